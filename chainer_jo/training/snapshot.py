"""Chainer's snapshot extension with a writer that survives a crash at any moment."""

import os
from pathlib import Path

from chainer.serializers import save_npz
from chainer.training import extensions
from chainer.training.extensions import snapshot_writers

FILENAME = "snapshot_iter_{.updater.iteration}"
#: Must not begin like a snapshot: Chainer goes on from the newest file whose name does.
UNFINISHED = "snapshot.tmp"


class DurableWriter(snapshot_writers.Writer):
    """Writes beside the snapshot, synchronises, renames; so there is always one whole snapshot or
    none."""

    def __call__(self, filename: str, outdir: str, target: dict) -> None:
        path = Path(outdir) / filename
        temporary = path.with_name(UNFINISHED)
        with open(temporary, "wb") as file:
            save_npz(file, target, compression=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        self._post_save()


def snapshot() -> extensions.snapshot:
    """A snapshot extension that keeps the latest snapshot only and starts from it if there is
    one."""
    return extensions.snapshot(
        filename=FILENAME, writer=DurableWriter(), n_retains=1, autoload=True
    )
