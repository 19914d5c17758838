"""Errors that are the user's to mend, told apart from errors of the program."""


class UserError(ValueError):
    """Bad input: one line that names the thing, the value and what was expected.

    The scripts print the line and end with exit code 2, without a traceback.
    """


class Unfinished(UserError):
    """What runs are computed on broke down; the scripts add to the line what continues them."""
