"""Data sets: sources, files, archives, decoding, caches. Imports only the top-level helpers."""

from chainer_jo import _compat  # noqa: F401  (see there)
