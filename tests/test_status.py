"""What is said of runs under way."""

from dataclasses import replace

import pytest
from tiny import STUDY

from chainer_jo.reproduction.running import status
from chainer_jo.reproduction.running.status import Status

RESULT = {"best": {"test": 0.7}, "last": {"test": 0.65}, "seconds": 10}


@pytest.fixture
def now(monkeypatch):
    """The seconds of the clock, a list of one."""
    seconds = [0.0]
    monkeypatch.setattr(status.time, "monotonic", lambda: seconds[0])
    return seconds


def runs(*epochs):
    base = STUDY.baseline("cross_entropy", "none", 0, 0)
    return [replace(base, optimization=replace(base.optimization, epochs=n)) for n in epochs]


def test_time_left_by_epochs(now, capsys):
    """A short run says how long a long one takes; epochs that were there before took no time."""
    short, long, begun = runs(10, 30, 20)
    shown = Status({short: 10, long: 30, begun: 6})
    for epoch in range(1, 11):
        now[0] += 2
        if epoch < 9:  # the run is over before its last epochs are looked at
            shown.show(short, epoch)
    shown.show(short, "finished", RESULT)
    assert capsys.readouterr().out == (
        f"[1/3] {short.id}: test best 70.0, last 65.0  10 s  about 72 s left\n"
    )
    for epoch in range(15, 21):
        now[0] += 2
        shown.show(begun, epoch)
    shown.show(begun, "finished", RESULT)
    assert f"{begun.id}: " in (said := capsys.readouterr().out) and "about 60 s left" in said
    shown.show(long, "finished", RESULT)
    assert "left" not in capsys.readouterr().out


def test_a_second_step_that_will_not_run_is_not_left(now, capsys):
    second = STUDY.joint("symmetric", 0.5, 0)
    (baseline,) = runs(10)
    joint = (second.first_step, second)
    shown = Status({**{e: e.optimization.epochs for e in joint}, baseline: 10})
    now[0] = 20.0
    shown.show(second.first_step, "diverged", {"epoch": 1})
    shown.show(baseline, "finished", RESULT)
    first, last = capsys.readouterr().out.splitlines()
    assert "diverged in epoch 1" in first and first.startswith("[1/2]")
    assert last.startswith("[2/2]") and "left" not in last


def test_the_moving_line_fits_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr(status.sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    (run,) = runs(100)
    Status({run: 100}).show(run, 1)
    assert len(capsys.readouterr().out.removeprefix("\r\x1b[K")) == 29


def test_without_a_terminal_a_line_every_minute(now, capsys):
    (run,) = runs(100)
    shown = Status({run: 100})
    for epoch in range(1, 16):
        now[0] += 10
        shown.show(run, epoch)
    said = capsys.readouterr().out.splitlines()
    assert said == [
        f"0/1 | {run.kind} clean {epoch}/100 | about {minutes} min left"
        for epoch, minutes in ((6, 16), (12, 15))
    ]
