"""The numbers in words, of the notes on what does not hold and of the README, against the runs."""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest

from chainer_jo import files
from chainer_jo.experiments import packed_runs
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.paper.claims import curves

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "results" / "reference"
LAST_START, EPOCHS = ("start_epoch", 150), (10, 34, 51)


def words(*path: str) -> str:
    return re.sub(r"\s+", " ", ROOT.joinpath(*path).read_text())


def cell(preset: str, table: int, **where) -> float:
    """The mean of the one cell whose row and column are so."""
    cells = files.read_json(REFERENCE / preset / f"table{table}.json")["cells"]
    (found,) = [c for c in cells if where.items() <= {**c["row"], **c["column"]}.items()]
    return found["mean"]


def logs(preset: str) -> Iterator[list[dict]]:
    """Those of the trials at the high learning rate of Figure 2."""
    drawn = files.read_json(REFERENCE / preset / "figure2.json")["curves"]
    (curve,) = [c for c in drawn if c["label"] == "lr=0.2"]
    runs = packed_runs.read(REFERENCE / preset)
    return (runs[run]["log"] for run in curve["runs"])


def pairs(method: str, accuracy: str) -> list[float]:
    """Of the last epoch at r = 0.3 and 0.4 in half's Table 2."""
    score = {"method": method, "score": "last", "accuracy": accuracy}
    return [cell("half", 2, **score, noise_rate=rate) for rate in (0.3, 0.4)]


def forward_recovers_more() -> str:
    forward, joint = pairs("forward", "recovery"), pairs("joint", "recovery")
    return "{:.1f} and {:.1f} % for {:.1f} and {:.1f} % at r = 0.3 and 0.4".format(*forward, *joint)


def joint_tests_better() -> str:
    joint, forward = pairs("joint", "test"), pairs("forward", "test")
    return "{:.1f} and {:.1f} % for {:.1f} and {:.1f} %.".format(*joint, *forward)


def recovered(rate: float) -> float:
    return cell("half", 1, method="joint", score="last", accuracy="recovery", noise_rate=rate)


def right_before(rate: float) -> float:
    where = {"score": "initial", "accuracy": "recovery", "noise_rate": rate}
    return cell("half", 1, **where)


def high_rates_end() -> str:
    found = []
    for preset in ("digits", "half"):
        trials = dict(enumerate([100 * line["test"] for line in log] for log in logs(preset)))
        found += [curves.peak(trials).mean, curves.end(trials).mean]
    words = (
        "(Figure 2: from {:.0f} % to {:.0f} %; on the images of `half` from {:.0f} % to {:.0f} %)"
    )
    return words.format(*found)


def lost(table: int, parameter: str, value: float, default: float) -> float:
    """By a value of the digits' hyper parameter, against the one that is used."""
    used, other = (cell("digits", table, parameter=parameter, value=v) for v in (default, value))
    return used - other


def memorised(labels: str) -> list[float]:
    """Of the digits' first step that starts label updates last, in epochs before it does."""
    cells = files.read_json(REFERENCE / "digits" / "table11.json")["cells"]
    (last,) = [c for c in cells if (*c["row"].values(), *c["column"].values()) == LAST_START]
    runs = packed_runs.read(REFERENCE / "digits")
    first = (Experiment.from_dict(runs[run]["experiment"]).first_step for run in last["runs"])
    trials = [runs[experiment.id]["log"] for experiment in first]
    return [100 * mean(log[epoch - 1][f"accuracy/{labels}"] for log in trials) for epoch in EPOCHS]


def digits_are_memorised() -> str:
    true, noisy = memorised("true"), memorised("noisy")
    return (
        "predicts {:.0f} % of the true labels in epoch 10, {:.0f} % in epoch 34 and {:.0f} % in "
        "epoch 51, and {:.0f} %, {:.0f} % and {:.0f} % of the noisy ones"
    ).format(*true, *noisy)


@pytest.mark.parametrize("phrase", [
    digits_are_memorised,
    lambda: f"here 52, {lost(11, 'start_epoch', 150, 70):.1f} points are lost",
    lambda: f"0.005 costs the digits {lost(6, 'learning_rate', 0.005, 0.03):.1f} points (Table 6)",
    forward_recovers_more,
    joint_tests_better,
    high_rates_end,
    lambda: f"(Table 1, r = 0) {recovered(0.0):.1f} % still are",
    lambda: f"and {cell('half', 13, quantity='accuracy', range='1-0.99'):.1f} % of these are right",
    lambda: f"{recovered(0.7):.1f} % of all its labels for 86.4 %",
])  # fmt: skip
def test_the_notes_say_what_the_runs_do(phrase):
    assert phrase() in words("docs", "reproduction-notes.md")


def test_the_readme_says_how_many_wrong_labels_are_left():
    fewer = [1 - (100 - recovered(rate)) / (100 - right_before(rate)) for rate in (0.3, 0.5, 0.7)]
    assert min(fewer) > 0.38 and max(fewer) < 0.55
    assert "two fifths to a half fewer of them wrong" in words("README.md")
    assert round(100 / (100 - recovered(0.0))) == 15
    assert "it replaces one in fifteen by a wrong one" in words("README.md")
