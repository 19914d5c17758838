"""The claims: their places in the paper, their words on made-up results, the page."""

import hashlib
import json
import re

import numpy as np
import paper_source
import pytest
from made_up_results import MadeUp, changed
from processes import ROOT

from chainer_jo.reproduction.claims import phases
from chainer_jo.reproduction.claims.claim import (
    AGREES,
    CONTRADICTED,
    CONTRADICTS,
    MIXED,
    NOT_RUN,
    ONE_TRIAL,
    UNCLEAR,
    Comparison,
    word_of,
)
from chainer_jo.reproduction.claims.comparisons import Pairs
from chainer_jo.reproduction.claims.statements import SECTIONS
from chainer_jo.reproduction.experiments.presets import PRESETS, Study
from chainer_jo.reproduction.tables_and_figures import claims_page
from chainer_jo.reproduction.trials import Trials

#: Changes that contradict claims whose words `reversed_` leaves true.
CONTRADICTED_BY = {
    "prior-prevents-one-class": changed("ablations", 84.0, removed="prior", noise="symmetric"),
    "without-both-terms-stuck": changed("ablations", 75.0, removed="both terms", quantity="last"),
    "high-rate-keeps": changed("figure2", (40, 80, 80, 77), learning_rate=0.2),
    "every-noise-is-fitted": changed("figure3", (2.3, 1.9, 1.9, 1.8), noise_rate=0.5),
    "soft-converges-faster": changed("figure4", (85.0, 0.05), rule="top5000"),
    "symmetric-joint-keeps": changed("table1", 87.0, score="last", method="joint", noise_rate=0.5),
    "asymmetric-joint-keeps": changed("table2", 82.0, score="last", method="joint"),
    "half-asymmetric-gains-least":
        changed("table2", 90.0, method="joint", noise_rate=0.5, score="last"),
    "updated-loss-follows-truth":
        changed("figure6", (2.3, 1.5, 0.2, 0.01), labels="symmetric_0.3", stage="updated"),
    "table7-insensitive": changed("table7", 80.0, parameter="alpha", value=0.1),
    "table10-stop": changed("table10", 88.0, parameter="stop_epoch", value=300),
    "table11-stop": changed("table11", 82.0, parameter="stop_epoch", value=200),
    "unsure-labels-are-wrong": changed("table12", 73.1, range="0.9-0"),
}  # fmt: skip


def reversed_(kind, keys, number):
    """The larger number becomes the smaller one, a hundred times as far."""
    return tuple(-100 * n for n in number) if isinstance(number, tuple) else -100 * number


CLAIMS = [claim for claims in SECTIONS.values() for claim in claims]
every_claim = pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
BY_ID = {claim.id: claim for claim in CLAIMS}


def words(claim, results):
    return [comparison.word for comparison in claim.compare(Pairs(results))]


class TestList:
    def test_numbers_in_the_statements_are_the_places(self):
        assert len(BY_ID) == len(CLAIMS) and BY_ID.keys() > CONTRADICTED_BY.keys()
        for claim in CLAIMS:
            text = paper_source.places()[claim.place]
            said = re.sub(r"Table \d+", "", claim.statement)
            for number in re.findall(r"\d+(?:\.\d+)?", said):
                alone = rf"(?<![\d.]){re.escape(number)}(?![\d]|\.\d)"
                assert re.search(alone, text), (claim.id, number)

    def test_no_wording_and_no_comparison_moves_without_an_entry(self):
        """docs/history.md names the digest of the list in its latest entry."""
        listed = [
            [section, claim.id, claim.place, claim.statement, claim.own_images,
             [[c.compared, c.at, c.by, c.unit] for c in claim.compare(Pairs(MadeUp()))]]
            for section, claims in SECTIONS.items() for claim in claims
        ]  # fmt: skip
        sized = {name: preset.sized_for for name, preset in PRESETS.items()}
        digest = hashlib.sha256(json.dumps([listed, sized]).encode()).hexdigest()[:16]
        history = (ROOT / "docs" / "history.md").read_text()
        assert re.findall(r"Digest of the claims: `(\w+)`", history)[-1] == digest
        assert {name for names in sized.values() for name in names} <= BY_ID.keys()

    @every_claim
    def test_its_numbers_are_in_the_tables_and_figures_it_names(self, claim):
        asked, results = set(), MadeUp()
        results.change = lambda kind, keys, number: (asked.add(kind), number)[1]
        words(claim, results)
        beside = {"label_accuracy": {"figure5", "figure6"}, "exchanged_classes": {"table2"}}
        shown = set(claim.shown_in.split())
        assert asked - set(beside) <= shown
        assert shown <= asked | set().union(*(beside.get(kind, ()) for kind in asked))


class TestWords:
    @every_claim
    @pytest.mark.parametrize("scale", [1.0, 0.25], ids=["full schedule", "short schedule"])
    def test_agrees(self, claim, scale):
        assert word_of(words(claim, MadeUp(scale=scale))) == AGREES

    @every_claim
    def test_is_contradicted(self, claim):
        change = CONTRADICTED_BY.get(claim.id, reversed_)
        assert CONTRADICTS in words(claim, MadeUp(change))

    @every_claim
    @pytest.mark.parametrize(("results", "word"), [
        (MadeUp(trials=0), NOT_RUN), (MadeUp(trials=1), ONE_TRIAL), (MadeUp(scatter=1e6), UNCLEAR),
    ], ids=["no runs", "one trial", "wide scatter"])  # fmt: skip
    def test_is_open(self, claim, results, word):
        assert set(words(claim, results)) == {word}

    @pytest.mark.parametrize(("differences", "by", "word"), [
        ([1.0, 2.0, 3.0], 0, UNCLEAR),  # 2 +- 2.48
        ([2.0, 2.5, 3.0], 0, AGREES),  # 2.5 +- 1.24
        ([2.0, 2.5, 3.0], 2, UNCLEAR),
        ([-2.0, -2.5, -3.0], 0, CONTRADICTS),
        ([-0.4, -0.5, -0.6], -2, AGREES),
        ([-4.0, -4.5, -5.0], -2, CONTRADICTS),
        ([5.0, 5.0], 0, AGREES),  # equal trials: no width
        ([2.0, 2.0], 2, UNCLEAR),
        ([9.0], 0, ONE_TRIAL),
        ([9.0, None], 0, UNCLEAR),  # as many diverged as finished
        ([8.0, 8.5, 9.0, None], 0, AGREES),
        ([], 0, NOT_RUN),
    ])  # fmt: skip
    def test_the_interval_decides(self, differences, by, word):
        """By t(2) = 4.303: 2.484 times the standard deviation of three trials."""
        sides = Trials(dict(enumerate(differences))), Trials.of_all(0.0)
        assert Comparison("", "", sides, by=by).word == word

    @pytest.mark.parametrize(("found", "word"), [
        ([AGREES, AGREES], AGREES),
        ([AGREES, UNCLEAR], UNCLEAR),
        ([AGREES, NOT_RUN], UNCLEAR),
        ([CONTRADICTS, UNCLEAR, NOT_RUN], CONTRADICTED),
        ([CONTRADICTS, AGREES, ONE_TRIAL], MIXED),
        ([ONE_TRIAL, NOT_RUN], UNCLEAR),
        ([NOT_RUN, NOT_RUN], NOT_RUN),
    ])  # fmt: skip
    def test_the_word_of_a_claim_follows_from_its_comparisons(self, found, word):
        assert word_of(found) == word

    def test_trials_that_one_side_lacks_are_left_out(self):
        has_run = {0.1: 3, 0.3: 2, 0.5: 1, 0.7: 0}
        results = MadeUp(has_run=lambda keys, t: t < has_run.get(keys["noise_rate"], 3))
        found = words(BY_ID["labels-are-corrected"], results)
        assert found[:5] == [AGREES, AGREES, ONE_TRIAL, NOT_RUN, AGREES]
        results = MadeUp(has_run=lambda keys, trial: keys["method"] != "cnn_crf")
        assert set(words(BY_ID["half-asymmetric-gains-least"], results)) == {NOT_RUN}

    @every_claim
    def test_a_diverged_trial_is_counted_and_has_no_number(self, claim):
        for comparison in claim.compare(Pairs(MadeUp(trials=6, diverged=(2,)))):
            assert comparison.word == AGREES and comparison.difference.diverged <= 1
            assert len(comparison.difference.finished) >= 5

    def test_numbers_beside_a_difference_are_of_its_trials(self):
        """A trial that diverged on one side would make 76.7 / 80.2 of a gain of 9.75."""
        sides = [Trials({0: 90.0, 1: 90.0, 2: 50.0}), Trials({0: 80.0, 1: 80.5, 2: None})]
        shown = claims_page._comparison(*[Comparison("a > b", "r", sides)] * 2)
        assert (shown["here"], shown["difference"]) == ([90.0, 80.25], 9.75)
        assert (shown["trials"], shown["diverged"]) == (2, 1)

    @pytest.mark.parametrize("n", [2, 3, 6])
    def test_the_interval_covers_the_truth_in_95_of_100_cases(self, n):
        """So a comparison at its bound contradicts in one case of 40."""
        draws, zero = np.random.default_rng(n).normal(80, 2, (4000, n)), Trials.of_all(80.0)
        found = [
            Comparison("", "", [Trials(dict(enumerate(d))), zero]).word for d in draws.tolist()
        ]
        for word in (AGREES, CONTRADICTS):
            assert found.count(word) / 4000 == pytest.approx(0.025, abs=0.0075)


class TestPhases:
    RAMP = {0: list(range(1, 41)), 1: list(range(1, 41))}  # 40 epochs; a phase is 2 of them

    def test_phases(self):
        schedule = (40, [20, 30])
        assert phases.end(self.RAMP).mean == 39.5
        assert phases.before_drop(self.RAMP, schedule).mean == 15.5
        assert phases.peak({0: [0, 5, 1] + [0] * 37}).mean == 3
        losses = {0: [3.0, 1.0, 2.0], 1: None, 2: []}
        assert phases.at_lowest({0: [5, 6, 7], 1: None, 2: []}, losses).numbers == {0: 6, 1: None}
        levels = Trials({0: 7, 1: 99, 2: 1})
        assert phases.epochs_until(self.RAMP, levels).numbers == {0: 7, 1: 40}

    def test_the_epochs_after_a_rate_drop_are_not_read(self):
        """Rises over equally many epochs: from 19, 20 to 24, 25, and from 14, 15 to 19, 20."""
        curve = {0: [*range(20), *[-100.0] * 3, *range(30, 47)]}
        rises = phases.rises_at_drop(curve, (40, [20, 30]))
        assert [rise.mean for rise in rises] == [30.5 - 18.5, 5.0]
        assert phases.rises_at_drop(curve, (40, [6, 30]))[1] == Trials({})  # too short before
        short = {**self.RAMP, 2: list(range(19))}
        assert sorted(phases.before_drop(short, (40, [20])).numbers) == [0, 1]
        assert phases.end({0: [], 1: [2.0]}).numbers == {1: 2.0}

    def test_a_flat_curve_has_no_peak(self):
        """Where each is highest it would be 1.9 above the end, by noise alone."""
        rng = np.random.default_rng(0)
        flat = {trial: list(rng.normal(80, 1, 40)) for trial in range(200)}
        assert phases.peak(flat).mean == pytest.approx(80, abs=0.2)
        hill = {trial: [*curve[:20], *(x + 5 for x in curve[20:24]), *curve[24:]]
                for trial, curve in flat.items()}  # fmt: skip
        assert phases.peak(hill).mean == pytest.approx(85, abs=0.2)
        assert phases.peak({0: flat[0], 1: flat[1], 2: None}).numbers[2] is None


def test_arithmetic_goes_trial_by_trial():
    """A trial that one side lacks is left out; one that either side diverged in has diverged; a
    given number goes with every trial."""
    a, b = Trials({0: 80.0, 1: None, 2: 95.0}), Trials({1: 50.0, 3: 7.0, 0: 90.0})
    assert ((a - b).numbers, a.mean, a.diverged) == ({0: -10.0, 1: None}, 87.5, 1)
    assert abs(a - b).numbers == {0: 10.0, 1: None}
    given = Trials.of_all(95.0)
    assert (given.mean, given.interval, given.only([1])) == (95.0, None, given)
    assert (given - Trials({0: 97.0, 4: 94.0})).only([4]) == Trials({4: 1.0})
    difference = Trials({0: 97.2, 1: 13.2}) - Trials({0: 96.1, 1: 12.1})
    assert difference.interval == (1.1, 1.1)  # 97.2 - 96.1 is not 13.2 - 12.1


class TestPage:
    @staticmethod
    def judged(monkeypatch, results, preset="half", data="cifar10-jpeg", features="pixels"):
        """Every claim over made-up results, beside the paper's own numbers."""

        class Results(MadeUp):
            def __init__(self, study, outputs, store, printed=False):
                super().__init__(trials=3)
                self.study, self.printed = study, printed
                self.source = MadeUp() if printed else results

            def decides(self, claim):
                return True

            def trials(self, kind, **keys):
                found = self.source.trials(kind, **keys)
                return Trials({}, constant=found.mean) if self.printed else found

            def curve(self, kind, logged="", **keys):
                return {} if self.printed else self.source.curve(kind, logged, **keys)

        monkeypatch.setattr(claims_page, "OutputResults", Results)
        study = Study(PRESETS[preset], data, features=features)
        return {claim["id"]: claim for claim in claims_page.judged(study, (), None)}

    def test_effects_that_a_preset_was_sized_for_count_nowhere(self, monkeypatch):
        found = self.judged(monkeypatch, MadeUp())
        sized = [name for name, claim in found.items() if claim["sized_for"]]
        assert sized == list(PRESETS["half"].sized_for)
        of_claims, of_comparisons = claims_page.totals(list(found.values()))
        n = sum(len(c["comparisons"]) for c in found.values() if not c["sized_for"])
        assert of_claims.startswith(f"{len(CLAIMS) - 5} claims: agrees {len(CLAIMS) - 5}; 5 more")
        assert of_comparisons.startswith(f"{n} comparisons: agrees {n}. ")
        assert f"contradict {n} / 40 = {n / 40:.1f} if every true" in of_comparisons
        assert "**sized for: 5 agree**" in claims_page.table([found[sized[-1]]])
        others = self.judged(monkeypatch, MadeUp(), data="digits")
        assert not any(claim["sized_for"] for claim in others.values())

    def test_a_row_shows_both_numbers_beside_the_papers(self, monkeypatch):
        results = MadeUp(changed("table1", 50.0, method="joint", noise_rate=0.5, score="last"))
        claim = self.judged(monkeypatch, results)["labels-are-corrected"]
        first, second = claims_page.table([claim]).splitlines()[2:]
        assert "(Abstract) **mixed: 9 agree, 1 contradicts** | label accuracy, symmetric" in first
        cells = [cell.strip().split("<br>") for cell in first.split("|")[3:-1]]
        assert [cell[2] for cell in cells] == [
            "r\xa0=\xa00.5", "91.8\xa0/\xa055.0", "50.0\xa0/\xa055.0",
            "-5.00\xa0(-5.00\xa0to\xa0-5.00)", CONTRADICTS,
        ]  # fmt: skip
        assert second.startswith("|  | label accuracy, asymmetric noise: after")

    def test_a_situation_comes_first_and_says_so(self, monkeypatch):
        other = changed("label_accuracy", 80.0, labels="pseudo", stage="initial")
        claim = self.judged(monkeypatch, MadeUp(other))["pseudo-loss-is-lower"]
        assert (claim["word"], claim["comparisons"][0]["word"]) == (MIXED, CONTRADICTS)
        table = claims_page.table([claim]).replace("\xa0", " ")
        assert "| contradicts: the situation did not arise |" in table.splitlines()[2]
