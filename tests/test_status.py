"""What is said of runs under way."""

from dataclasses import replace

from tiny import STUDY

from chainer_jo.commands import status
from chainer_jo.commands.status import Status
from chainer_jo.experiments.scheduler import Event

RESULT = {"best": {"validation": 0.7}, "last": {"validation": 0.65}, "seconds": 10}


def runs(*epochs):
    base = STUDY.baseline("cross_entropy", "none", 0, 0)
    return [replace(base, optimization=replace(base.optimization, epochs=n)) for n in epochs]


def test_time_left_by_epochs(monkeypatch, capsys):
    """A short run says how long a long one takes; epochs that were there before took no time."""
    now = [0.0]
    monkeypatch.setattr(status.time, "monotonic", lambda: now[0])
    short, long, begun = runs(10, 30, 20)
    shown = Status(3, None, 1, False, {short: "a", long: "b", begun: "c"}.__getitem__, 60)
    for epoch in range(1, 11):
        now[0] += 2
        shown.show(Event(short, epoch))
    shown.show(Event(short, "finished", RESULT))
    assert capsys.readouterr().out == (
        "[1/3] a: validation 70.0 > 65.0 (best > last)  10 s  about 100 s left\n"
    )
    for epoch in range(15, 21):  # 14 epochs were done before
        now[0] += 2
        shown.show(Event(begun, epoch))
    shown.show(Event(begun, "finished", RESULT))
    assert "c: " in (said := capsys.readouterr().out) and "about 60 s left" in said
    shown.show(Event(long, "finished", RESULT))
    assert "left" not in capsys.readouterr().out
