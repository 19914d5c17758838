"""Labels of the Python functions, in lists of NumPy's scalars."""

import numpy as np
import pytest

from chainer_jo.relabel import find_label_errors


@pytest.mark.parametrize("number", [1, np.int64(1), np.float64(1.5)])
def test_text_and_numbers_in_one_list(number):
    """A number beside text is text; NumPy's own kind of truth value made it a missing label."""
    pred_probs = np.tile([[0.9, 0.1], [0.2, 0.8]], (10, 1))
    errors = find_label_errors(["a", number] * 10, pred_probs, ["a", str(number)])
    assert errors.table()["given"].tolist() == ["a", str(number)] * 10
