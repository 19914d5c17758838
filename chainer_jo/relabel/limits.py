"""Limits of settings, for the command's flags and the Python functions' arguments alike."""

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

from chainer_jo.errors import UserError


def _whole(least: int) -> tuple:
    return Integral, f"at least {least}, a whole number", lambda x: x >= least


_NOT_NEGATIVE = Real, "a finite number that is not negative", lambda x: 0 <= x < math.inf
#: Type of each setting, its limits in words, and a test of a value.
LIMITS: dict[str, tuple[type, str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("alpha", "beta", "weight_decay"), _NOT_NEGATIVE),
    **dict.fromkeys(("seed", "quiet", "audit"), _whole(0)),
    **dict.fromkeys(("epochs", "average", "seeds"), _whole(1)),
    "folds": _whole(2),
    "size": _whole(8),
    "learning_rate": (Real, "a finite positive number", lambda x: 0 < x < math.inf),
    "min_probability": (Real, "0 to 1", lambda x: 0 <= x <= 1),
    "rule": (str, "posterior or soft", ("posterior", "soft").__contains__),
    "prior": (str, "labels or uniform", ("labels", "uniform").__contains__),
}


def check(values: Mapping[str, Any], written: Callable[[str], str] = str) -> None:
    """Raises UserError for the first setting with a value beyond its limits; `written` gives the
    name of a setting as the user wrote it."""
    for name, value in values.items():
        kind, expected, fits = LIMITS[name]
        if not isinstance(value, kind) or not fits(value):
            shown = value if isinstance(value, Real) else repr(value)
            raise UserError(f"{written(name)} {shown}: expected {expected}")
