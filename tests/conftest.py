"""The tests run from a checkout: the package need not be installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import chainer_jo  # noqa: E402, F401  (before any test imports chainer: see chainer_jo._compat)
