"""Names of files and folders that programs put beside people's own, and that do not count."""

_FOLDERS = {
    "__MACOSX",
    "@eaDir",
    "@Recycle",
    "@Recently-Snapshot",
    "#recycle",
    "#snapshot",
    "$RECYCLE.BIN",
    "System Volume Information",
    "lost+found",
}


def is_hidden(name: str) -> bool:
    """Whether a name begins with a dot, or is the folder of a system or of a network storage."""
    return name.startswith(".") or name in _FOLDERS
