"""Files that somebody made to do harm, for the tests."""

import os
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np


@contextmanager
def memory_below(size):
    """Fails where Python and NumPy hold ``size`` bytes or more at once that were not there
    before."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


def promise_npz(path, name, shape, **arrays):
    """An .npz of ``arrays``, and of one whose header promises float32 of a shape that do not
    follow."""
    np.savez(path, **arrays)
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with zipfile.ZipFile(path, "a") as archive, archive.open(f"{name}.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, header)


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, mark):
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def poison_npz(path, name, mark):
    """Puts an object into an .npz, in the place of one of its arrays, that makes the folder
    ``mark`` when it is unpickled."""
    with np.load(path, allow_pickle=True) as archive:
        arrays = {key: archive[key] for key in archive.files}
    assert name in arrays
    np.savez(path, **{**arrays, name: np.array(Evil(mark), object)})
