"""What Chainer imports from there."""


class PerformanceWarning(RuntimeWarning):
    """CuPy's."""
