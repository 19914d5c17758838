"""Convolution and batch normalisation, computed by interchangeable backends; captured steps.

Chainer `functions`, recorded by `replayed`, ask for the current `backend`; `choose_backend` there
finds the fastest one of this machine. Imports only the top-level helpers.
"""

from chainer_jo import _compat  # noqa: F401  (see there)
