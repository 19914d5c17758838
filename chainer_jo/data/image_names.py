"""Names of images, and of system files and folders, which are ignored among images."""

#: Endings of images in lower case.
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_FOLDERS = "__MACOSX @eaDir @Recycle @Recently-Snapshot #recycle #snapshot $RECYCLE.BIN lost+found"


def is_hidden(name: str) -> bool:
    """True for a name that begins with a dot, or of a system's or network storage's folder."""
    return name.startswith(".") or name in _FOLDERS.split()


def is_image(name: str) -> bool:
    """True for a name or path with an image's ending."""
    return name.lower().endswith(ENDINGS)
