"""README.md and results/README.md take their numbers from results; `test_reference` compares the
whole text with what the tool writes."""

import re

import first_page
import numpy as np
import pytest
from committed import ADDITIONS, Reference, references, settings
from first_page import labels_of_people, labels_predicted, learning_rate, runs_in_words
from matrix import _part
from processes import ROOT
from readme_regions import not_on_images

from chainer_jo import files
from chainer_jo.reproduction.running.store import read_packed

README = (ROOT / "README.md").read_text("utf-8")
AT_SCALE = ROOT / "results" / "reference" / "paper-mixed"


def test_accuracies_of_the_readme_stand_in_regions_that_the_tool_writes():
    by_hand = re.sub(r"<!-- ([\w ]+):.*?<!-- end of \1 -->", "", README, flags=re.DOTALL)
    assert not re.findall(r"\d+\.\d %", by_hand) and len(README.splitlines()) <= 130


def test_the_time_of_the_table_at_the_top():
    runs = read_packed(AT_SCALE).values()
    noisy = [run["result"]["seconds"] for run in runs if "sn50" in run["result"]["id"]]
    assert len(noisy) == 3 and f"| {sum(noisy) / 60:.0f} minutes on an H100 |" in README


@pytest.mark.parametrize("name", ["ablations", "human_noise"])
def test_additions_are_shown_once_each_setting_has_a_run(name, tmp_path):
    half = Reference("half", tmp_path, tmp_path)
    half.__dict__["provenance"] = {"data": {"data": "cifar10"}}
    trials = [{"trial": 0}]
    people, difference = ({"runs": ["people"], "trials": each} for each in (trials, []))
    for of_drawn, whole in ((trials, True), ([], False)):
        drawn = {"runs": ["drawn"], "trials": of_drawn}
        half.additions[name] = {"cells": [people, drawn, difference]}
        assert (f"all {ADDITIONS[name]}" not in not_on_images([half])) == whole


def test_runs_under_asymmetric_noise_at_the_papers_scale(monkeypatch):
    """Table 2 at a rate, beside the runs that there are: one first step is not the only one."""
    found = references(AT_SCALE.parent, ROOT / "figures" / "reference")
    at_scale, before = found[0], learning_rate(found)
    others = read_packed(AT_SCALE.parent / "half").items()
    table2 = {name: run for name, run in others if "-an40-s0-" in name}
    runs = {AT_SCALE: dict(read_packed(AT_SCALE)) | table2}
    monkeypatch.setattr(first_page, "read_packed", lambda root: runs.get(root) or read_packed(root))
    assert learning_rate(found) == before
    words = "CNN-CRF, Forward, both steps, cross entropy, asymmetric noise at r = 0.4"
    assert runs_in_words(at_scale).endswith(f"; {words}")


@pytest.mark.parametrize("number", [1, 2])
def test_a_table_with_one_rate_is_listed_with_it(number):
    table = files.read_json(AT_SCALE.parent / "half" / f"table{number}.json")
    assert _part(table) == ""
    for cell in table["cells"]:
        cell["trials"] *= cell["column"]["noise_rate"] == 0.5
    assert _part(table) == "(r = 0.5)"


def test_curves_of_a_figure_count_as_settings():
    assert settings({"curves": [{"runs": ["a"], "trials": 1}, {"runs": ["b"], "trials": 0}]}) == (
        1,
        2,
    )


@pytest.mark.parametrize("memorised", [0, 0.2, 0.6])
def test_bounds_on_the_labels_that_a_network_predicts(memorised):
    """As counted from drawn labels and predictions."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 10, 5000)
    noisy = np.where(rng.random(5000) < 0.5, (true + rng.integers(1, 10, 5000)) % 10, true)
    predicted = np.where(rng.random(5000) < 0.9, true, rng.integers(0, 10, 5000))
    predicted = np.where(rng.random(5000) < memorised, noisy, predicted)
    shares = {"noisy": (predicted == noisy).mean(), "true": (predicted == true).mean()}
    log = [{f"accuracy/{name}": share for name, share in shares.items()}]
    is_clean = noisy == true
    run = {"result": {"noisy_labels_right": is_clean.mean()}, "log": log}
    clean, least, most = labels_predicted(run, -1)
    assert clean <= 100 * (predicted == noisy)[is_clean].mean() <= clean + 8
    assert least <= 100 * (predicted == noisy)[~is_clean].mean() <= most <= least + 15
    assert (least > 0) == (memorised > 0.1)


def test_labels_of_people_are_beside_the_best_filter():
    *_, last = labels_of_people().splitlines()
    before, ours, default, best = map(float, last.split("|")[2:-1])
    assert before < default <= best and before < ours
