"""What is said of a relabelling beside its numbers."""

import pytest

from chainer_jo.relabel.outcome import HELD_OUT, Accuracy, Trial, choice, doubt


@pytest.mark.parametrize(
    "number, before, after, said",
    [
        (317, 0.407, 0.009, True),
        (180, 0.617, 0.661, False),
        (180, 0.617, 0.600, False),  # no more than chance
        (1, 1.0, 0.0, False),
        (180, None, 0.1, False),
    ],
)
def test_labels_that_make_a_worse_network_are_doubted(number, before, after, said):
    found = doubt([Accuracy(HELD_OUT, number, before, after)], 0.0)
    assert ("likely worse" in found) is said
    if said:
        assert "reaches 0.9 % instead of 40.7 % on held-out images" in found


def test_a_worse_network_on_any_set_is_enough():
    good, bad = Accuracy("validation", 100, 0.5, 0.6), Accuracy("test", 1000, 0.9, 0.5)
    assert "on test" in doubt([good, bad], 0.0) and not doubt([good], 0.9)


@pytest.mark.parametrize(
    "number, before, after, said",
    [
        (31, 0.129, 0.129, True),
        (180, 0.128, 0.111, True),
        (180, None, 0.13, True),
        (180, 0.622, 0.644, False),
        (180, 0.128, 0.644, False),  # the labels as given may be too wrong to learn from
        (2, 1.0, 1.0, True),  # too few to know
    ],
)
def test_networks_that_have_learnt_nothing_are_doubted(number, before, after, said):
    found = doubt([Accuracy(HELD_OUT, number, before, after)], 0.133)
    assert bool(found) is said
    if said:
        assert f"as given, {number} in number" in found and "which 13.3 % of all images" in found


def test_why_settings_were_chosen():
    def trials(first, chosen):
        return [Trial(1, 1, 1, first, chosen == 0), Trial(2, 1, 1, 0.7, chosen == 1)]

    assert "none are better by more than two standard errors" in choice(trials(0.6, 0))
    assert choice(trials(0.6, 1)).startswith("better than the first")
    assert "diverged" in choice(trials(None, 1))
