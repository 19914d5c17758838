"""What is said of a relabelling beside its numbers."""

import pytest

from chainer_jo.commands.relabel_outcome import HELD_OUT, Accuracy, Trial, choice, doubt


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
    found = doubt([Accuracy(HELD_OUT, number, before, after)])
    assert bool(found) is said
    if said:
        assert "reaches 0.9 % instead of 40.7 % on held-out images" in found


def test_a_worse_network_on_any_set_is_enough():
    good, bad = Accuracy("validation", 100, 0.5, 0.6), Accuracy("test", 1000, 0.9, 0.5)
    assert "on test" in doubt([good, bad]) and not doubt([good])


def test_why_settings_were_chosen():
    def trials(first, chosen):
        return [Trial(1, 1, 1, first, chosen == 0), Trial(2, 1, 1, 0.7, chosen == 1)]

    assert "none are better by more than two standard errors" in choice(trials(0.6, 0))
    assert choice(trials(0.6, 1)).startswith("better than the first")
    assert "diverged" in choice(trials(None, 1))
