"""Training on the stand-in for a GPU: captured, counted and replayed."""

import json
import sys
from pathlib import Path

import pytest
from cuda_on_cpu import needs_compiler
from gpu_standin_environment import environment
from processes import run

pytestmark = needs_compiler


@pytest.mark.parametrize("precision, objective, most", [
    ("mixed", "joint", 201), ("fp32", "joint", 216), ("mixed", "cross_entropy", 199),
    ("mixed", "forward", 217), ("mixed", "cnn_crf", 228),
])  # fmt: skip
def test_a_step_is_captured_whole_and_replayed_as_it_was_called(
    tmp_path, precision, objective, most
):
    """Every objective of the tables, without a word from the host; with so many kernels at most."""
    program = Path(__file__).with_name("kernels_of_a_step.py")
    command = [sys.executable, program, precision, objective]
    result = json.loads(run(command, env=environment(tmp_path)).stdout)
    assert result["finite"], "subnormal numbers are zero on a GPU"
    assert result["same"] and result["kernels"] <= most, result
