"""What benchmarks/machine_cuda.py takes from there."""


def set_compute_type(dtype, compute_type):
    """Nothing: there are no tensor cores."""
