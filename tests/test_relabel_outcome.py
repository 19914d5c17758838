"""What is said of a relabelling beside its numbers."""

import pytest

from chainer_jo.relabel.outcome import Accuracy, doubt


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
    found = doubt([Accuracy("test", number, before, after)])
    assert ("likely worse" in found) is said
    if said:
        assert "reaches 0.9 % instead of 40.7 % on test" in found


def test_a_worse_network_on_any_set_is_enough():
    good, bad = Accuracy("validation", 100, 0.5, 0.6), Accuracy("test", 1000, 0.9, 0.5)
    assert "on test" in doubt([good, bad]) and not doubt([good])
