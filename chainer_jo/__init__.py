"""Joint Optimization Framework for Learning with Noisy Labels (CVPR 2018) in Chainer."""

from chainer_jo import _compat  # noqa: F401  (must come before anything imports chainer)

__version__ = "1.0.0"
