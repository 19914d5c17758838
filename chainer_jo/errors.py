"""User errors, as opposed to errors of the program."""


class UserError(ValueError):
    """Bad input: one line that names the thing, the value and what was expected.

    The scripts print the line and end with exit code 2, without a traceback.
    """


def one_line(error: Exception) -> str:
    """Message of an error, of 500 characters at most; libraries quote what they have read."""
    return " ".join(str(error).split())[:500] or type(error).__name__


class Unfinished(UserError):
    """Processes or workers died before the runs ended; the scripts add how to resume."""
