"""Names of files and folders that systems put beside people's own, and that do not count."""

_FOLDERS = "__MACOSX @eaDir @Recycle @Recently-Snapshot #recycle #snapshot $RECYCLE.BIN lost+found"


def is_hidden(name: str) -> bool:
    """Whether a name begins with a dot, or is that of a system's or a network storage's folder."""
    return name.startswith(".") or name in _FOLDERS.split()
