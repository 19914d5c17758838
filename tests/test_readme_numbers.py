"""README.md and results/README.md take their numbers from results; `test_reference` compares the
whole text with what the tool writes."""

import re

import numpy as np
import pytest
from committed import Reference
from first_page import before_the_first_update, labels_of_people
from processes import ROOT

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


@pytest.mark.parametrize("seed", range(5))
def test_bounds_on_the_labels_predicted_before_the_first_update(seed, monkeypatch):
    """As counted from drawn labels and predictions."""
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 10, 5000)
    noisy = np.where(rng.random(5000) < 0.5, (true + rng.integers(1, 10, 5000)) % 10, true)
    predicted = np.where(rng.random(5000) < 0.9, true, rng.integers(0, 10, 5000))
    shares = {"noisy": (predicted == noisy).mean(), "true": (predicted == true).mean()}
    run = {
        "experiment": {"relabelling": {"start": 1}},
        "result": {"noisy_labels_right": (noisy == true).mean()},
        "log": [{f"accuracy/{name}": share for name, share in shares.items()}],
    }
    monkeypatch.setattr("first_page.read_packed", lambda root: {"first-step": run})
    clean, corrupted = before_the_first_update(Reference("paper", AT_SCALE, AT_SCALE))
    is_clean = noisy == true
    assert clean <= 100 * (predicted == noisy)[is_clean].mean() <= clean + 8
    assert corrupted - 8 <= 100 * (predicted == noisy)[~is_clean].mean() <= corrupted


def test_labels_of_people_are_beside_the_best_filter():
    *_, last = labels_of_people().splitlines()
    before, ours, default, best = map(float, last.split("|")[2:-1])
    assert before < default <= best and before < ours
