"""That the tests under `arithmetic` do run without subnormals."""

import numpy as np
import subnormals


def test_subnormals_are_zero_where_they_are_flushed(arithmetic):
    small = np.array([1e-38, 3e-39, 1e-45], np.float32)
    smallest = np.full(3, np.finfo(np.float32).smallest_normal)
    kept = arithmetic == "subnormals"
    assert ((small * np.float32(1)) > 0).tolist() == [kept] * 3, "as operands"
    assert ((smallest * np.float32(0.5)) > 0).tolist() == [kept] * 3, "as results"
    assert (np.maximum(small, np.float32(0)) > 0).tolist() == [kept] * 3
    assert (smallest * np.float32(1) == smallest).all()
    with subnormals.flushed():
        pass
    assert (np.float32(1e-45) * np.float32(1) > 0) == kept, "the mode ends with the block"
