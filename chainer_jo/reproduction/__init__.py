"""The paper's experiments, from their descriptions to tables, figures and claims."""

from chainer_jo import _compat  # noqa: F401  (see there)
