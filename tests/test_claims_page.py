"""claims.json and what is written from it: marks, counts, and files of another form."""

from dataclasses import replace
from functools import partial
from unittest import mock

import pytest

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.reproduction.claims import claim as paper
from chainer_jo.reproduction.experiments.presets import DIGITS, Study
from chainer_jo.reproduction.paper import tables
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures import claims_page as claims
from chainer_jo.reproduction.tables_and_figures.claims_page import Claims, summary
from chainer_jo.reproduction.tables_and_figures.output import Setting
from chainer_jo.reproduction.tables_and_figures.table_layouts import comparison_table

SETTING = Setting("digits", "digits", "fp32")
table1 = partial(comparison_table, printed=tables.TABLE1, noise="symmetric")


def finding(outcome="supports", premise=False, **others):
    chance = None if outcome in ("not run", "not all run", "too few trials") else 0.01
    return {"what": "r = 0.5", "outcome": outcome, "premise": premise, "chance": chance,
            "sides": "80.0 versus 70.0 %", "difference_in_words": "10.0 points (9.0 to 11.0)",
            "remark": outcome, "unit": "points", "difference": 10.0, **others}  # fmt: skip


def verdict(name, *findings, rests_on="", bounded=None, **others):
    return {"id": "x", "group": "g", "place": "p", "statement": "s", "check": "c", "verdict": name,
            "label": name, "against": 0, "rests_on": rests_on, "bounded": bounded,
            "tally": ["1 of 1 comparisons support the claim"], "notes": [], "findings": [*findings],
            **others}  # fmt: skip


def test_the_summary_counts_verdicts_on_premises_apart_and_leaves_out_what_says_nothing():
    """Premises, claims that are a premise or lack theirs, and comparisons without enough runs."""
    holds, refuted = verdict(paper.HOLDS, finding()), finding("refutes")
    found = [
        holds, {**holds, "rests_on": "y"},
        verdict(paper.IN_PART, finding(), finding(), refuted),
        verdict(paper.DOES_NOT_HOLD, refuted, finding("undecided")),
        verdict(paper.DOES_NOT_HOLD, refuted, finding(premise=True), rests_on="y"),
    ]  # fmt: skip
    assert summary(found) == (
        "holds: 2 (resting on a premise: 1), in part: 1, does not hold: 2 (resting on a premise: "
        "1); 4 of 8 comparisons support, 3 refute"
    )
    found = [
        verdict(paper.PREMISE, finding()),
        verdict(paper.NO_PREMISE, finding()),
        verdict(paper.NOT_ALL_RUN, finding(), finding("not run"), finding("too few trials")),
        verdict(paper.HOLDS, finding(), finding(premise=True)),
    ]
    assert summary(found).endswith("not all run: 1; 2 of 2 comparisons support, 0 refute")
    assert summary([verdict(paper.NOT_RUN, finding("not run"))]) == "not run: 1"
    assert summary([]) == ""


@pytest.mark.parametrize("needed", [paper.HOLDS, paper.PREMISE, paper.UNDECIDED])
def test_a_claim_rests_on_a_premise_unless_the_claim_that_it_needs_holds(
    tmp_path, monkeypatch, needed
):
    premise = "symmetric-cross-entropy-falls"

    def decide(claim, results):
        name = needed if claim.id == premise else paper.HOLDS
        return mock.MagicMock(verdict=name, diverged=0)  # without findings

    monkeypatch.setattr(paper.Claim, "decide", decide)
    monkeypatch.setattr(paper.Claim, "decide_with_bounds", lambda claim, results: None)
    found = Claims(Study(DIGITS, "digits"), [table1]).data(RunStore(tmp_path), SETTING)
    by_id = {each["id"]: (each["rests_on"], each["notes"]) for each in found}
    note = f"the claim rests on Symmetric cross entropy falls: {needed} here"
    assert by_id["noise-degrades"] == (("", []) if needed == paper.HOLDS else (premise, [note]))
    assert by_id["labels-are-corrected"] == ("", [])


def test_claims_are_decided_once_per_command(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(claims, "judged", lambda *args: calls.append(args) or [])
    both, store = Claims(Study(DIGITS, "digits"), [table1]), RunStore(tmp_path)
    both.data(store, SETTING)  # the check before writing
    both.write(store, SETTING, tmp_path, tmp_path)
    assert len(calls) == 1
    replace(both).data(store, SETTING)  # another command
    assert len(calls) == 2


@pytest.mark.parametrize("content, words", [
    ([verdict(paper.HOLDS), verdict("perhaps")], "verdict 'perhaps', expected one of: holds"),
    *((content, r"damaged \(.*expected the file removed")
      for content in ([3], [{}], [{"verdict": ["holds"]}])),
])  # fmt: skip
def test_an_unknown_verdict_and_claims_of_another_form_are_one_line(tmp_path, content, words):
    files.write_json(tmp_path / "claims.json", content)
    with pytest.raises(UserError, match=f"claims.json: {words}"):
        claims.read(tmp_path)
    assert claims.read(tmp_path / "nowhere") == []
