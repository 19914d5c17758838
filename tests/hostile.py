"""Files that somebody made to do harm, for the tests."""

import os

import numpy as np


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
