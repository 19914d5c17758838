"""User errors, as opposed to errors of the program."""


class UserError(ValueError):
    """Bad input: one line that names the thing, the value and what was expected.

    The scripts print the line and end with exit code 2, without a traceback.
    """


class Unfinished(UserError):
    """Processes or workers died before the runs ended; the scripts add how to resume."""
