"""User errors, as opposed to errors of the program, and text that a terminal may show."""

import re

_CONTROL = re.compile(r"[\0-\x1f\x7f-\x9f]")


class UserError(ValueError):
    """Bad input: one line that names the thing, the value and what was expected.

    The scripts print the line and end with exit code 2, without a traceback.
    """


def escaped(text: object, kept: str = "") -> str:
    """Text with control characters escaped as by `repr`, except for the ``kept`` ones: names of
    files and classes give a terminal no orders."""
    return _CONTROL.sub(lambda c: c[0] if c[0] in kept else repr(c[0])[1:-1], str(text))


def one_line(error: object) -> str:
    """Message of an error, or text, of 500 characters at most; libraries quote what they read."""
    return " ".join(str(error).split())[:500] or type(error).__name__


class Unfinished(UserError):
    """Processes or workers died before the runs ended; the scripts add how to resume."""
