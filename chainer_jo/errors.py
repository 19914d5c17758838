"""User errors, as opposed to errors of the program, limits of numbers, and text that a terminal may
show."""

import argparse
import math
import re
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

_CONTROL = re.compile(r"[\0-\x1f\x7f-\x9f]")


class UserError(ValueError):
    """Bad input: one line that names the thing, the value and what was expected.

    The scripts print the line and end with exit code 2, without a traceback.
    """


class Unfinished(UserError):
    """Processes or workers died before the runs ended; the scripts add how to resume."""


@dataclass(frozen=True)
class Limits:
    """Limits of a number, as the ``type`` of a flag (when called) or for values (`check`).

    Parameters
    ----------
    kind : `int` for whole numbers, `float` for all finite ones.
    least, most : limits, themselves allowed; ``least`` is not if ``above``.
    """

    kind: type
    least: float
    most: float = math.inf
    above: bool = False

    def __str__(self) -> str:
        if self.most < math.inf:
            return f"a number in [{self.least}, {self.most}]"
        words = f"above {self.least}" if self.above else f"of at least {self.least}"
        return f"a {'whole' if self.kind is int else 'finite'} number {words}"

    def check(self, name: str, value: object) -> None:
        """Raises UserError for another value, or one of another type."""
        kind = Integral if self.kind is int else Real
        number: Any = value if isinstance(value, kind) else math.nan
        enough = number > self.least if self.above else number >= self.least
        if not (enough and number <= self.most and number < math.inf):
            shown = value if isinstance(value, Real) else repr(value)
            raise UserError(f"{name} {shown}: expected {self}")

    def __call__(self, text: str) -> Any:
        try:
            value = self.kind(text)
            self.check("", value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text}: expected {self}") from None
        return value


def escaped(text: object, kept: str = "") -> str:
    """Text with control characters escaped as by `repr`, except for the ``kept`` ones: names of
    files and classes give a terminal no orders."""
    return _CONTROL.sub(lambda c: c[0] if c[0] in kept else repr(c[0])[1:-1], str(text))


def one_line(error: object) -> str:
    """Message of an error, or text, of 500 characters at most; libraries quote what they read."""
    return " ".join(str(error).split())[:500] or type(error).__name__
