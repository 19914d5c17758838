"""What claims are decided by: estimates over trials, rules with their errors, phases of phases."""

from dataclasses import replace

import claim_errors
import numpy as np
import pytest
from scipy import stats

from chainer_jo.reproduction.claims import decision, phases
from chainer_jo.reproduction.claims.claim import DECIDED, DOES_NOT_HOLD, NOT_ALL_RUN, Verdict
from chainer_jo.reproduction.claims.decision import (
    REFUTES,
    SUPPORTS,
    TIES,
    UNDECIDED,
    Finding,
    holm_outcomes,
    not_inferior,
    on_average,
)
from chainer_jo.reproduction.trials import Trials, mean_of


def about(mean, scatter, trials=3):
    """An estimate over that many trials with this mean and scatter."""
    spread = Trials({t: t - (trials - 1) / 2 for t in range(trials)})
    return Trials({t: mean + n * scatter / spread.scatter for t, n in spread.numbers.items()})


class TestEstimate:
    @pytest.mark.parametrize(("trials", "quantile"), [(2, 12.71), (3, 4.30), (5, 2.78), (60, 2.00)])
    def test_scatter_is_students(self, trials, quantile):
        numbers = {t: 90.0 + (-1) ** t for t in range(trials)}
        variance = sum((n - sum(numbers.values()) / trials) ** 2 for n in numbers.values())
        error = (variance / (trials - 1) / trials) ** 0.5
        assert Trials(numbers).scatter == pytest.approx(quantile * error, rel=2e-3)

    def test_fewer_than_two_trials_and_equal_trials_have_no_scatter(self):
        """Of accuracies counted in images, two are often equal, and at 100 % all are."""
        assert Trials({}).mean_or_none is Trials({}).scatter is Trials({0: 90.0}).scatter is None
        assert Trials({0: 41.9, 1: 41.9 + 1e-9}).scatter is None  # rounding
        assert Trials(dict.fromkeys(range(6), 100.0)).interval is None

    def test_arithmetic_goes_trial_by_trial(self):
        """A trial that one side lacks is left out on both; one that either side diverged in has
        diverged; a given number goes with every trial."""
        a, b = Trials({0: 80.0, 1: None, 2: 95.0}), Trials({1: 50.0, 3: 7.0, 0: 90.0})
        assert (a - b).numbers == {0: -10.0, 1: None}
        assert (abs(a - b) * 2).numbers == {0: 20.0, 1: None}
        assert Trials({0: 80.0}) - Trials({1: 80.0}) == Trials({})
        assert (a.mean, a.diverged, (a - b).diverged) == (87.5, 1, 1)
        a, b = Trials({0: 80.0, 1: 60.0, 2: None}), Trials({1: 50.0, 0: 85.0, 2: 7.0, 3: 9.0})
        assert mean_of([a, b]) == Trials({0: 82.5, 1: 55.0, 2: None})
        given = Trials.of_all(95.0)
        assert (given.mean, given.scatter) == (95.0, 0.0)
        assert Trials({0: 97.0, 4: 94.0}) - given == Trials({0: 2.0, 4: -1.0})
        assert given - Trials({0: 97.0, 4: 94.0}) == Trials({0: -2.0, 4: 1.0})
        assert abs(given * 2 - Trials.of_all(200.0)) == Trials.of_all(10.0)

    def test_equal_differences_of_percentages_are_equal(self):
        difference = Trials({0: 97.2, 1: 13.2}) - Trials({0: 96.1, 1: 12.1})
        assert 97.2 - 96.1 != 13.2 - 12.1
        assert str(difference) == "1.10 ± 0.00"

    @pytest.mark.parametrize(("shown", "text"), [
        (Trials({0: 89.4, 1: 90.2}), "89.8 ± 0.6"),
        (Trials({0: 0.0234, 1: 0.0244}), "0.024 ± 0.001"),
        (Trials.of_all(0.0234), "0.023"),
        (Trials.of_all(1500.0), "1500.0"),
        (Trials({0: 90.0}), "90.0 (1 trial)"),
        (Trials({}), "not run"),
        (Trials({0: 90.0, 1: None, 2: 92.0}), "91.0 ± 1.4 (1 of 3 diverged)"),
        (Trials({0: None}), "1 of 1 diverged"),
    ])  # fmt: skip
    def test_numbers_are_short(self, shown, text):
        assert str(shown) == text


class TestRule:
    @pytest.mark.parametrize(("difference", "scatter", "rule", "outcome"), [
        *((x, 5.0, {}, out) for x, out in (
            (5.1, SUPPORTS), (4.9, UNDECIDED), (-4.9, UNDECIDED), (-5.1, REFUTES))),
        *((x, 5.0, {"by": by}, out) for x, by, out in (
            (7.1, 2, SUPPORTS), (6.9, 2, UNDECIDED), (3.1, -2, SUPPORTS), (-7.1, -2, REFUTES))),
        # Narrow intervals tie.
        *((x, scatter, {"ties": True}, out) for x, scatter, out in (
            (0.3, 0.2, SUPPORTS), (0.3, 0.6, TIES), (-0.3, 0.2, REFUTES), (-0.3, 0.6, TIES),
            (0.5, 0.6, UNDECIDED), (-0.5, 0.6, UNDECIDED))),
        # A loss of 3.7, which the interval does not rule out, is not keeping up.
        *((-loss, scatter, None, out) for loss, scatter, out in (
            (0.9, 1.0, SUPPORTS), (-2.0, 3.0, SUPPORTS), (0.1, 1.8, SUPPORTS),
            (1.8, 1.9, UNDECIDED), (0.1, 2.0, UNDECIDED), (3.0, 1.1, UNDECIDED),
            (3.2, 1.1, REFUTES), (0.5, 0.2, SUPPORTS))),
    ])  # fmt: skip
    def test_the_interval_decides(self, difference, scatter, rule, outcome):
        sides = "", about(10.0 + difference, scatter), Trials.of_all(10.0)
        finding = not_inferior(*sides) if rule is None else Finding(*sides, **rule)
        assert finding.outcome == outcome

    def test_nothing_ties_where_more_is_asked_for(self):
        """This counts where Holm's rule has not let equal numbers refute two points."""
        for by, close in ((0, TIES), (2, UNDECIDED)):
            found = Finding("", about(10.3, 0.6), Trials.of_all(10.0), by, ties=True)
            assert found.close == close

    def test_chance_is_students(self):
        finding = Finding("", Trials({0: 9.0, 1: 10.0, 2: 8.0}), Trials.of_all(10.0))
        assert finding.p_value == pytest.approx(stats.ttest_1samp([-1, 0, -2], 0).pvalue / 2)

    @pytest.mark.parametrize(
        ("trials", "a", "outcome", "chance"),
        [(6, 100.0, SUPPORTS, 1.0), (5, 100.0, UNDECIDED, 1.0), (2, 100.0, UNDECIDED, 1.0)]
        + [(6, 90.0, REFUTES, 1 / 64), (3, 90.0, UNDECIDED, 1 / 8), (6, 95.0, UNDECIDED, 1.0)],
    )
    def test_equal_differences_are_judged_by_their_signs(self, trials, a, outcome, chance):
        """A ceiling is no tie, and an interval of no width is none."""
        finding = Finding("", about(a, 0.0, trials), Trials.of_all(95.0), ties=True)
        assert (finding.outcome, finding.p_value) == (outcome, chance)
        each = f"{a - 95:.2f} points in each of {trials} trials"
        same = f"0.000 points in each of {trials} trials"
        assert finding.difference_in_words == (each if a != 95 else same)

    @pytest.mark.parametrize(
        ("below", "refuting"),
        [
            ([2.6], [0]),  # t(5) is under -2.571 in 2.5 % of cases
            ([2.6, 0, 0, 0, 0], []),
            ([4.1, 2.6, 0, 0, 0], [0]),  # 2.5 % / 5: -4.03; 2.5 % / 4: -3.81
            ([4.1, 3.9, 2.6, 0, 0], [0, 1]),  # 2.5 % / 3: -3.53
            ([3.9, 3.9, 3.9, 3.9, 3.9], []),
            ([2.6, -9, -9], []),  # supporting comparisons are comparisons
        ],
    )
    def test_refuting_takes_all_comparisons_together(self, below, refuting):
        standard_error = about(0.0, float(stats.t.ppf(0.975, 5)), trials=6)
        findings = [
            Finding("", standard_error - Trials.of_all(t), Trials.of_all(0.0)) for t in below
        ]
        outcomes = holm_outcomes(findings)
        assert [k for k, outcome in enumerate(outcomes) if outcome == REFUTES] == refuting
        assert (Verdict(findings, outcomes).verdict in DECIDED[1:]) == bool(refuting)

    @pytest.mark.parametrize(
        ("outcomes", "label"),
        [
            ([REFUTES], DOES_NOT_HOLD),
            ([REFUTES, SUPPORTS], DOES_NOT_HOLD),  # half is not most
            ([REFUTES, SUPPORTS, SUPPORTS], "in part (2 of 3)"),
            ([REFUTES] + [SUPPORTS] * 8 + [UNDECIDED], "in part (8 of 10)"),
            ([REFUTES, REFUTES, SUPPORTS, SUPPORTS, SUPPORTS], "in part (3 of 5)"),
            ([REFUTES, SUPPORTS, SUPPORTS, UNDECIDED], DOES_NOT_HOLD),
            ([REFUTES, SUPPORTS, SUPPORTS, *[decision.NOT_RUN] * 2], DOES_NOT_HOLD),
            ([UNDECIDED, SUPPORTS, SUPPORTS], "undecided after 3 trials"),
        ],
    )
    def test_a_refuted_claim_holds_in_part_if_most_comparisons_support_it(self, outcomes, label):
        finding = Finding("", about(1.0, 0.5), Trials.of_all(0.0))
        assert Verdict([finding] * len(outcomes), outcomes).label == label

    def test_premises_are_not_counted_among_the_comparisons_that_support(self):
        finding = Finding("", about(1.0, 0.5), Trials.of_all(0.0))
        premise = replace(finding, premise=True)
        verdict = Verdict([premise, premise, finding, finding], [SUPPORTS] * 3 + [REFUTES])
        assert (verdict.label, verdict.support) == (DOES_NOT_HOLD, (1, 2))

    def test_what_has_not_run_does_not_count_as_a_comparison(self):
        one = Finding("", about(-2.6, float(stats.t.ppf(0.975, 5)), trials=6), Trials.of_all(0.0))
        others = [Finding("", Trials({}), Trials.of_all(0.0))] * 9
        assert holm_outcomes([one, *others])[0] == REFUTES

    def test_pairs_decide_where_either_side_scatters_more_than_they_differ(self):
        a = Trials({0: 81.0, 1: 91.2, 2: 100.8})
        b = Trials({0: 80.0, 1: 90.0, 2: 100.0})
        finding = Finding("", a, b)
        assert finding.outcome == SUPPORTS
        assert finding.sides == "91.0 ± 9.9 versus 90.0 ± 10.0 %"
        assert finding.difference_in_words == "1.00 points (0.50 to 1.50)"
        shuffled = Trials({0: 91.2, 1: 100.8, 2: 81.0})
        assert Finding("", shuffled, b).outcome == UNDECIDED

    @pytest.mark.parametrize("rule", [Finding, not_inferior])
    @pytest.mark.parametrize("a", [{0: 90.0}, {5: 90.0, 6: 90.0}, {2: 90.0, 5: 91.0}])
    def test_fewer_than_two_common_trials_decide_nothing(self, rule, a):
        assert rule("", Trials(a), about(10.0, 1.0)).outcome == decision.TOO_FEW_TRIALS

    def test_where_as_many_trials_diverge_as_finish_nothing_is_decided(self):
        numbers = {0: 90.0, 1: 91.0, 2: 90.5, 3: None, 4: None}
        assert Finding("", Trials(numbers), Trials.of_all(10.0)).outcome == SUPPORTS
        numbers[5] = None
        assert Finding("", Trials(numbers), Trials.of_all(10.0)).outcome == decision.MOSTLY_DIVERGED

    def test_after_the_first_that_does_not_refute_all_would_have_to_reach_its_level(self):
        scatter = float(stats.t.ppf(0.975, 5))
        findings = [
            Finding("", about(-t, scatter, trials=6), Trials.of_all(0.0)) for t in (2.7, 2.6, 1.0)
        ]
        verdict = Verdict(findings, holm_outcomes(findings))
        assert findings[1].p_value > 0.025 / 3 and REFUTES not in verdict.outcomes
        assert all("%, 0.83 % would refute it" in remark for remark in verdict.remarks)

    def test_an_average_over_rates_decides_once_all_have_run(self):
        ours = {0.1: Trials({0: 80.0, 1: 81.0}), 0.5: Trials({0: 70.0, 1: 70.5})}
        theirs = {0.1: Trials({0: 81.0, 1: 82.0}), 0.5: Trials({0: 60.0, 1: 60.0})}
        finding = on_average("test", ours, theirs)
        assert finding.compared == "test, mean over r = 0.1, 0.5"
        assert finding.difference == Trials({0: 4.5, 1: 4.75})
        assert finding.outcome == SUPPORTS
        finding = on_average("test", ours, {**theirs, 0.5: Trials({})})
        assert finding.compared == "test, mean over r = 0.1 alone of 2 rates"
        assert finding.difference == Trials({0: -1.0, 1: -1.0})
        assert holm_outcomes([finding]) == [finding.outcome] == [decision.PARTLY_RUN]
        assert Verdict([finding], [finding.outcome]).verdict == NOT_ALL_RUN
        nothing = on_average("test", ours, dict.fromkeys(ours, Trials({})))
        assert (nothing.outcome, nothing.sides) == (decision.NOT_RUN, "not run")

    def test_sides_are_shown_over_the_trials_that_they_share(self):
        """A mean over other trials would contradict the difference beside it."""
        one, three = Trials({0: 65.0}), Trials({0: 64.8, 1: 66.0, 2: 66.6, 3: None})
        gone = Finding("", Trials({2: 60.0, 3: 61.0}), three)
        assert gone.sides == "60.5 ± 0.7 versus 66.6 (1 trial) (1 of 2 diverged) %"
        assert Finding("", Trials({9: 1.0}), one).sides == "1.00 (1 trial) versus 65.0 (1 trial) %"
        assert Finding("", Trials.of_all(50.0), one).sides == "50.0 versus 65.0 (1 trial) %"


def test_the_power_of_trials():
    """By scipy.stats.nct, 6 trials need a difference of 1.44 standard deviations."""
    assert decision.decidable(6) == pytest.approx(1.435, abs=1e-3)


class TestErrors:
    """True nulls, simulated, with shared trials as real runs have; benchmarks/claim_errors.py has
    more settings."""

    REPEATS = 1000  # a rate of 2.5 % is then known up to 1 %

    def test_chance_refutes_a_claim_in_one_case_of_forty(self):
        rates = claim_errors.error_rates(claim_errors.pairs, 5, 3, self.REPEATS)
        assert rates["refuted"] < 0.025 + 0.01
        assert rates["holds"] < 0.025 + 0.01
        assert rates["one for itself"] > 0.06  # what it would be without Holm's rule
        counted = claim_errors.error_rates(claim_errors.pairs, 5, 2, self.REPEATS, counted=True)
        assert counted["refuted"] < 0.025 + 0.015
        # So does a loss of the margin pass as kept.
        assert claim_errors.kept_at_the_margin(6, self.REPEATS) < 0.025 + 0.01

    def test_chance_makes_a_claim_hold_in_part_in_fewer_than_one_case_of_twenty(self):
        """One comparison is truly wrong, the others are at their bounds."""
        for compared in (claim_errors.pairs, claim_errors.one_with_all):
            assert claim_errors.in_part_by_chance(compared, 3, 6, self.REPEATS) < 0.05


class TestCurves:
    RAMP = {0: list(range(1, 41)), 1: list(range(1, 41))}  # 40 epochs; a phase is 2 of them

    def test_phases(self):
        schedule = (40, [20, 30])
        assert phases.start(self.RAMP).mean == 1
        assert phases.end(self.RAMP).mean == 39.5
        assert phases.before_drop(self.RAMP, schedule).mean == 15.5
        assert phases.after_drop(self.RAMP, schedule).mean == 21.5
        assert phases.peak({0: [0, 5, 1] + [0] * 37}).mean == 3
        losses = {0: [3.0, 1.0, 2.0], 1: None, 2: []}
        lowest = phases.at_lowest({0: [5, 6, 7], 1: None, 2: []}, losses)
        assert lowest.numbers == {0: 6, 1: None}
        levels = Trials({0: 7, 1: 99, 2: 1})
        assert phases.epochs_until(self.RAMP, levels).numbers == {0: 7, 1: 40}

    def test_a_flat_curve_has_no_peak(self):
        """Where each is highest it would be 1.9 above the end, by noise alone."""
        rng = np.random.default_rng(0)
        flat = {trial: list(rng.normal(80, 1, 40)) for trial in range(200)}
        assert phases.peak(flat).mean == pytest.approx(80, abs=0.2)
        hill = {trial: [*curve[:20], *(x + 5 for x in curve[20:24]), *curve[24:]]
                for trial, curve in flat.items()}  # fmt: skip
        assert phases.peak(hill).mean == pytest.approx(85, abs=0.2)
        assert phases.peak({0: flat[0], 1: flat[1], 2: None}).numbers[2] is None

    def test_curves_too_short_for_a_phase_do_not_count(self):
        short = {**self.RAMP, 2: list(range(21))}
        assert sorted(phases.after_drop(short, (40, [20])).numbers) == [0, 1]
        assert phases.before_drop({0: [1.0]}, (40, [20])).mean_or_none is None
        for phase in (phases.start, phases.end, phases.peak):
            assert phase({0: [], 1: [2.0]}).numbers == {1: 2.0}
