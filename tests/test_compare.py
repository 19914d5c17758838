"""compare.py: the same code agrees with the reference, another method does not, and the exit code
says which."""

import itertools
from copy import deepcopy

import pytest
from processes import ROOT

from chainer_jo import files
from chainer_jo.reproduction import agreement
from chainer_jo.reproduction.agreement import DIFFERS, MEAN
from chainer_jo.reproduction.commands import compare

DIGITS = ROOT / "results" / "reference" / "digits"
TABLE1 = files.read_json(DIGITS / "table1.json")
CELLS = len(TABLE1["cells"])
TRIALS = range(len(TABLE1["cells"][0]["runs"]))
JOINT = {"method": "joint", "score": "last", "accuracy": "test", "noise_rate": 0.5}


@pytest.fixture
def run(tmp_path, capsys):
    """Holds a made-up table against a reference one; gives the exit code and what was printed."""

    def call(here, reference=TABLE1, *flags, number=1):
        for name, table in (("results", here), ("reference", reference)):
            if table is not None:
                files.write_json(tmp_path / name / "digits" / f"table{number}.json", table)
        argv = ["--results", str(tmp_path / "results"),
                "--reference", str(tmp_path / "reference"), *flags]  # fmt: skip
        with pytest.raises(SystemExit) as end:
            compare.main("test", argv)
        out = capsys.readouterr()
        return end.value.code, out.out + out.err

    return call


def part(table, trials, rates=None, change=lambda keys, numbers: numbers):
    """The table, had only these trials (and noise rates) been computed, with other numbers."""
    table = deepcopy(table)
    for cell in table["cells"]:
        chosen = trials if rates is None or cell["column"]["noise_rate"] in rates else ()
        numbers = [cell["trials"][t] for t in chosen]
        cell["trials"] = change({**cell["row"], **cell["column"]}, numbers)
        cell["runs"] = [cell["runs"][t] for t in (chosen or trials)]
    return table


def find(table, **keys):
    return next(c for c in table["cells"] if {**c["row"], **c["column"]} == keys)


def counts(out):
    """The numbers printed of Table 1: same numbers, other verdicts."""
    line = next(line for line in out.splitlines() if line.startswith("| Table 1 "))
    return [int(number) for number in line.split("|")[2:-1]]


@pytest.mark.parametrize("trials", ((0,), (0, 1, 2), TRIALS))
@pytest.mark.parametrize("other", [0, 5])
def test_the_same_trials_agree(run, trials, other):
    """Where some are the same numbers and some only within scatter, each cell is counted once."""
    here = part(TABLE1, trials)
    for cell in here["cells"][:other]:
        cell["trials"] = [number + 0.01 for number in cell["trials"]]
    code, out = run(here)
    assert code == 0
    assert f"AGREES: all {CELLS + 1} numbers ({CELLS} cells, 1 mean over a table)" in out
    assert counts(out) == [CELLS - other, other, 0, 0, 0, 0]


def test_another_precision_is_held_against_the_presets_own(run, tmp_path):
    here, own = (tmp_path / name / "digits-mixed" for name in ("results", "reference"))
    files.write_json(here / "table1.json", part(TABLE1, (0, 1)))
    own.mkdir(parents=True)  # with figures alone
    code, out = run(None, TABLE1, "--preset", "digits-mixed")
    assert code == 0 and f"reference  {own.with_name('digits')}: " in out
    files.write_json(own / "table1.json", TABLE1)  # one of its own comes first
    assert f"reference  {own}: " in run(None, TABLE1, "--preset", "digits-mixed")[1]


def test_other_trials_of_the_same_code_agree():
    """Any three of the committed trials against the other three: 1 % may differ, not more."""
    splits = list(itertools.combinations(TRIALS, 3))
    wrong = 0
    for name in ("table1", "table2"):
        table = files.read_json(DIGITS / f"{name}.json")
        for here in splits:
            others = [t for t in TRIALS if t not in here]
            sides = (part(table, trials)["cells"] for trials in (here, others))
            pairs = [
                agreement.Pair(name, str(k), "percent", *map(agreement.read_trials, cells))
                for k, cells in enumerate(zip(*sides, strict=True))
            ]  # fmt: skip
            wrong += any(j.verdict == DIFFERS for j in agreement.compare_pairs(pairs))
    assert wrong <= 0.05 * 2 * len(splits)


@pytest.mark.parametrize("rates", (None, (0.5,)))
@pytest.mark.parametrize("trials", ((0,), (0, 1, 2)))
def test_labels_that_are_never_updated_differ(run, trials, rates):
    """The second step is then cross entropy on noisy labels, and what is recovered is what was
    right: 1 - 0.9 r of them."""

    def broken(keys, numbers):
        if keys["method"] != "joint":
            return numbers
        if keys["accuracy"] == "recovery":
            return [100 * (1 - 0.9 * keys["noise_rate"])] * len(numbers)
        return find(part(TABLE1, trials, rates), **{**keys, "method": "cross_entropy"})["trials"]

    code, out = run(part(TABLE1, trials, rates, broken))
    assert code == 1 and "cross entropy" not in out
    assert "DIFFERS" in out and "Table 1, joint last recovery noise rate 0.5" in out


def test_a_small_shift_of_everything_shows_in_the_mean(run):
    """Less than what is noticed in any one cell, but in all of them."""
    shifted = part(TABLE1, TRIALS, change=lambda keys, numbers: [n - 1.1 for n in numbers])
    code, out = run(shifted, TABLE1, "--all")
    mean = next(line for line in out.splitlines() if MEAN in line)
    assert code == 1 and DIFFERS in mean and "-1.1" in mean
    assert out.count(f"| {DIFFERS} ") == 2  # this line, and the head of the counts


def test_what_is_missing_or_of_one_trial_a_side_is_counted_and_not_judged(run):
    reference = deepcopy(TABLE1)
    reference["cells"] = [c for c in reference["cells"] if c["column"]["noise_rate"] != 0.3]
    code, out = run(part(TABLE1, (0,), (0.1, 0.3, 0.5)), reference)
    rate = CELLS // 6
    assert code == 0 and counts(out) == [2 * rate, 0, 0, 0, 3 * rate, rate]
    reference, here = part(TABLE1, (0, 1, 2)), part(TABLE1, (1,))
    single = find(reference, **JOINT)
    single["trials"], single["runs"] = single["trials"][:1], single["runs"][:1]
    find(here, **JOINT)["trials"] = [0.0]
    code, out = run(here, reference)
    assert code == 0 and counts(out) == [CELLS - 1, 0, 0, 1, 0, 0]


def test_runs_that_diverge_here_alone_differ(run):
    here, reference = part(TABLE1, (0,)), deepcopy(TABLE1)
    find(here, **JOINT).update(trials=[], diverged=1)
    code, out = run(here)
    assert code == 1 and "1 diverged" in out
    find(reference, **JOINT).update(trials=[], diverged=6)
    assert run(here, reference)[0] == 0
    assert run(part(TABLE1, (0,)), reference)[0] == 1


@pytest.mark.parametrize("accuracies, code", [([99.0, 99.1, 99.2], 0), ([90.0, 91.0, 90.5], 1)])
def test_numbers_of_labels_are_no_percentages(run, accuracies, code):
    def table(**cells):
        return {"table": 12, "preset": "digits", "data": "digits", "cells": [
            {"row": {"quantity": quantity}, "column": {"range": "1-0.99"}, "diverged": 0,
             "trials": trials, "runs": [f"first-step-sn70-s{t}-x" for t in range(3)]}
            for quantity, trials in cells.items()]}  # fmt: skip

    reference = table(accuracy=[99.0, 99.1, 99.2], number=[900, 1000, 950])
    assert run(table(accuracy=accuracies, number=[950, 920, 990]), reference, number=12)[0] == code


@pytest.mark.parametrize("here, reference, words", [
    (None, TABLE1, ["no tables", "results/digits"]),
    (part(TABLE1, (0,)), None, ["no tables", "reference/digits"]),
    ({**part(TABLE1, (0,)), "data": "other"}, TABLE1, ["data other", "digits"]),
    (part(TABLE1, ()), TABLE1, ["nothing to compare"]),
    (part(TABLE1, (0,)), part(TABLE1, (1,)), ["nothing to compare", "two on one of them"]),
    (TABLE1, {"cells": 3}, ["reference/digits/table1.json: damaged", "what a script in reproduce"]),
    ({**TABLE1, "cells": [{}]}, TABLE1, ["results/digits/table1.json: damaged", "expected"]),
    ({**TABLE1, "table": "one"}, TABLE1, ["results/digits/table1.json: damaged", "expected"]),
    (part(TABLE1, (0,)), TABLE1, ["results/digits/provenance.json: damaged ("]),
])  # fmt: skip
def test_what_cannot_be_compared_is_one_line(run, here, reference, words, tmp_path):
    if "provenance" in words[0]:
        files.write_json(tmp_path / "results" / "digits" / "provenance.json", {"devices": 3})
    code, out = run(here, reference)
    assert code == 2 and out.count("\n") == 1
    assert all(word in out for word in words), out
