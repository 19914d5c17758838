"""Ends of the scripts: interrupts, kills, output that nobody reads, and how to resume."""

import itertools
import os
import pty
import signal
import sys
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import processes
import pytest
from here import Here
from processes import HERE, ROOT
from script_runs import SMALL, run, table1

from chainer_jo import command_line
from chainer_jo.command_line import exit_codes
from chainer_jo.data.progress import Progress
from chainer_jo.errors import Unfinished, UserError
from chainer_jo.reproduction.commands import app, script_flags
from chainer_jo.reproduction.running import worker


def test_workers_warm_up_while_data_are_loaded_and_end_where_they_cannot_be(
    tiny, tmp_path, monkeypatch
):
    done = []

    class Warming(Here):
        def submit(self, function, *arguments):
            done.append((function, arguments[1:]))

        def __exit__(self, kind, *error):
            done.append(kind)

    def bind(script):
        done.append("data")
        raise UserError("no data")

    monkeypatch.setattr(app, "Processes", Warming)
    monkeypatch.setattr(app, "_bind_data", bind)
    monkeypatch.setattr(script_flags, "resolve_device", lambda *_: "cuda:0")
    monkeypatch.setattr(app, "device_of", lambda name: None)
    monkeypatch.setattr(app.provenance, "device_name", lambda device: "a GPU")
    assert run(table1, tmp_path, *SMALL) == 2
    assert done == [(worker.warm_up, ("fp32",)), "data", UserError]


class BreaksDown(Here):
    def submit(self, function, *arguments):
        raise Unfinished("a worker process was killed")


class IsKilled(Here):
    def submit(self, function, *arguments):
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("pool, code", [(Here, 0), (IsKilled, 130), (BreaksDown, 2)])
def test_stopped_after_fresh_the_command_without_it_goes_on(
    tiny, tmp_path, capsys, monkeypatch, pool, code
):
    """The same command would forget what there is by now. A budget ends though the clock is set
    back."""
    set_back = itertools.count(time.time(), -1e6)
    monkeypatch.setattr(time, "time", lambda: next(set_back))
    monkeypatch.setattr(app, "Processes", pool)
    budget = ("--time-budget", "1e-9") if pool is Here else ()
    assert run(table1, tmp_path, *SMALL, "--fresh", *budget) == code
    said = "".join(capsys.readouterr())
    assert said.count("the same command without --fresh continues where this one stopped") == 1
    assert "the same command continues" not in said and ("time is up" in said) == (pool is Here)


def test_a_kill_while_runs_are_forgotten_leaves_no_second_step_alone(
    computed, tmp_path, capsys, monkeypatch
):
    unlink, runs = os.unlink, []

    def killed(path):
        runs.append(Path(path).parent.name)
        if runs[-1] != runs[0]:
            signal.raise_signal(signal.SIGTERM)
        unlink(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", killed)
        assert run(table1, tmp_path, *SMALL, "--fresh") == 130
    assert runs[0].startswith("second-step")
    (first,) = tmp_path.rglob("first-step-*/result.json")
    assert run(table1, tmp_path, *SMALL) == 0  # the second once more
    first.unlink()
    capsys.readouterr()
    assert run(table1, tmp_path, *SMALL, "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:9].strip() for line in lines if "-step-" in line] == ["to do", "-"]


def test_what_the_encoding_of_the_output_lacks_is_a_question_mark():
    program = "from chainer_jo.command_line import exit_codes\nwith exit_codes(): print('1 \\xb1')"
    plain = processes.environment(LC_ALL="C", PYTHONUTF8=0)
    assert processes.run([sys.executable, "-c", program], env=plain).stdout == "1 ?\n"
    with redirect_stdout(StringIO()) as shown, exit_codes():
        print("1 ±")
    assert shown.getvalue() == "1 ±\n"


def test_names_give_a_terminal_no_orders(capsys):
    """Neither in errors nor in results or progress."""
    bad, shown = "a\x1b]0;mine\x07\x9b31m\x7f\rb", "a\\x1b]0;mine\\x07\\x9b31m\\x7f\\rb"
    with pytest.raises(SystemExit), exit_codes():
        Progress(bad, "images", 1).finish(1)
        command_line.print_safely(bad)
        raise UserError(bad)
    said = "".join(capsys.readouterr())
    assert said.count(shown) == 3 and not set(said) & set("\x1b\x07\x9b\x7f\r")


def test_too_little_memory_is_one_line(capsys):
    with pytest.raises(SystemExit, match="2"), exit_codes():
        raise MemoryError("Unable to\nallocate")
    said = "error: Unable to allocate, expected more memory, or less data\n"
    assert capsys.readouterr().err == said
    with pytest.raises(RuntimeError, match="the program's own"), exit_codes():
        raise RuntimeError("the program's own")


def test_a_terminal_that_goes_away_ends_no_work(tmp_path):
    """With SIGHUP ignored, as by `disown`."""
    program = (
        "import signal, sys, time, pathlib\n"
        "from chainer_jo.command_line import exit_codes, print_safely as say\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "with exit_codes():\n say('begun', flush=True)\n"
        " while not pathlib.Path(sys.argv[1], 'gone').exists(): time.sleep(0.01)\n"
        " print('more', flush=True); say('more'); pathlib.Path(sys.argv[1], 'done').touch()\n"
    )
    master, terminal = pty.openpty()
    command = [sys.executable, "-c", program, tmp_path]
    process = processes.start(command, stdout=terminal, start_new_session=True)
    os.close(terminal)
    assert os.read(master, 5) == b"begun"
    os.close(master)
    (tmp_path / "gone").touch()
    assert processes.finish(process, 0).stderr == "" and (tmp_path / "done").exists()


@pytest.mark.parametrize("word, meant", [
    ("--out=~/res", "--out=/home/me/res"), ("--out=~", "--out=/home/me"), ("~/x", "/home/me/x"),
    ("--out=a~/b", "--out=a~/b"), ("--label-column=a=~/b", "--label-column=a=~/b"), ("~.x", "~.x"),
])  # fmt: skip
def test_the_home_folder_is_meant_after_an_equals_sign_too(word, meant, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert command_line.Parser().parse_known_args([word])[1] == [meant]


@pytest.mark.parametrize("kind, shown", [("dumb", "x: 1 of 1 images"), ("xterm", "\rx: 1 of 1 im")])
def test_a_dumb_terminal_gets_lines(kind, shown, monkeypatch, capsys):
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    Progress("x", "images", 1).finish(1)
    said = capsys.readouterr().err
    assert said.startswith(shown) and ("\033" in said) == (kind != "dumb")


@pytest.mark.parametrize("number, code", [("11", 2), ("12 13", 2), ("12 ", 0), ("13", 0)])
def test_make_names_the_versions_that_it_takes(number, code):
    command = ["make", "-n", "--always-make", f"GPU={number}", "setup"]
    said = processes.run(command, code, cwd=ROOT)
    assert code == 0 or f"GPU={number}: expected 12 or 13" in said.stderr


def _computing(folder, **options):
    """A process that has begun to compute the whole table: 36 runs."""
    command = [HERE / "script_runs.py", "--preset", "tiny", "--jobs", "1", "--device", "cpu",
               "--results", folder, "--figures", folder]  # fmt: skip
    process = processes.start(command, **options)
    assert "36 to do" in process.stdout.readline()
    processes.wait_until(lambda: any(folder.rglob("experiment.json")), 300)
    return process


NO_READER = "output closed by its reader; the same command continues where this one stopped\n"


@pytest.mark.parametrize("script, said", [("table1", NO_READER), ("compare", "")])
def test_output_that_is_kept_back_until_nobody_reads_it(script, said):
    buffered = processes.environment()
    buffered.pop("PYTHONUNBUFFERED", None)
    command = [sys.executable, ROOT / "reproduce" / f"{script}.py", "--help"]
    process = processes.start(command, env=buffered)
    process.stdout.close()
    assert processes.finish(process, 1).stderr == said


INTERRUPTED = "interrupted; the same command continues where this one stopped\n"


@pytest.mark.parametrize("stop, code, last", [
    (lambda process: os.killpg(process.pid, signal.SIGINT), 130, INTERRUPTED),
    (lambda process: os.kill(process.pid, signal.SIGTERM), 130, INTERRUPTED),
    (lambda process: process.stdout.close(), 1, NO_READER),
], ids=["ctrl-c", "kill", "no reader"])  # fmt: skip
def test_what_ends_a_computation_says_how_to_go_on(tmp_path, stop, code, last):
    process = _computing(tmp_path, start_new_session=True)
    stop(process)
    assert processes.finish(process, code).stderr.lstrip("\n") == last
    processes.wait_until(lambda: not processes.alive(process.pid), 5)
