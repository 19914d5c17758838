"""What is said of runs under way."""

from dataclasses import replace

from tiny import STUDY

from chainer_jo.runs import runner
from chainer_jo.runs.runner import Status
from chainer_jo.runs.scheduler import Event

RESULT = {"best": {"validation": 0.7}, "last": {"validation": 0.65}, "seconds": 10}


def runs(*epochs):
    base = STUDY.baseline("cross_entropy", "none", 0, 0)
    return [replace(base, optimization=replace(base.optimization, epochs=n)) for n in epochs]


def test_time_left_by_epochs(monkeypatch, capsys):
    """A short run says how long a long one takes; epochs that were there before took no time."""
    now = [0.0]
    monkeypatch.setattr(runner.time, "monotonic", lambda: now[0])
    short, long, begun = runs(10, 30, 20)
    names = {short: "a", long: "b", begun: "c"}
    shown = Status({short: 10, long: 30, begun: 6}, False, names.__getitem__)
    for epoch in range(1, 11):
        now[0] += 2
        shown.show(Event(short, epoch))
    shown.show(Event(short, "finished", RESULT))
    assert capsys.readouterr().out == (
        "[1/3] a: held-out agreement 70.0 > 65.0 (best > last)  10 s  about 72 s left\n"
    )
    for epoch in range(15, 21):
        now[0] += 2
        shown.show(Event(begun, epoch))
    shown.show(Event(begun, "finished", RESULT))
    assert "c: " in (said := capsys.readouterr().out) and "about 60 s left" in said
    shown.show(Event(long, "finished", RESULT))
    assert "left" not in capsys.readouterr().out


def test_time_left_by_epochs_that_are_seen_now_and_then(monkeypatch, capsys):
    """Epochs pass faster than they are looked at, a run is over between two looks."""
    now = [0.0]
    monkeypatch.setattr(runner.time, "monotonic", lambda: now[0])
    seen, unseen, last = runs(20, 30, 10)
    names = {seen: "a", unseen: "b", last: "c"}
    shown = Status({seen: 20, unseen: 30, last: 10}, False, names.__getitem__)
    for epoch in (7, 19):
        shown.show(Event(seen, epoch))
    now[0] = 20.0
    shown.show(Event(seen, "finished", RESULT))
    assert "about 40 s left" in capsys.readouterr().out
    now[0] = 50.0
    shown.show(Event(unseen, "finished", RESULT))
    assert "about 10 s left" in capsys.readouterr().out


def test_a_second_step_that_will_not_run_is_not_left(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(runner.time, "monotonic", lambda: now[0])
    second = STUDY.joint("symmetric", 0.5, 0)
    (baseline,) = runs(10)
    joint = (second.first_step, second)
    shown = Status({**{e: e.optimization.epochs for e in joint}, baseline: 10}, False)
    now[0] = 20.0
    shown.show(Event(second.first_step, "diverged", {"epoch": 1}))
    shown.show(Event(baseline, "finished", RESULT))
    first, last = capsys.readouterr().out.splitlines()
    assert "diverged in epoch 1" in first and first.startswith("[1/2]")
    assert last.startswith("[2/2]") and "left" not in last


def test_the_moving_line_fits_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr(runner.sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    (run,) = runs(100)
    Status({run: 100}, True, lambda _: "a name of more than thirty letters").show(Event(run, 1))
    assert len(capsys.readouterr().out.removeprefix("\r\x1b[K")) == 29


def test_without_a_terminal_a_line_every_minute(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(runner.time, "monotonic", lambda: now[0])
    (run,) = runs(100)
    shown = Status({run: 100}, True, {run: "a"}.__getitem__)
    for epoch in range(1, 16):
        now[0] += 10
        shown.show(Event(run, epoch))
    said = capsys.readouterr().out.splitlines()
    assert said == ["0/1 | a 6/100 | about 16 min left", "0/1 | a 12/100 | about 15 min left"]
