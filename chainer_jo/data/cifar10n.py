"""CIFAR-10N: labels that people gave to the training images of CIFAR-10, from a user's copy of
`CIFAR-10_human.pt`, which is never packaged, downloaded or cached.

J. Wei, Z. Zhu, H. Cheng, T. Liu, G. Niu, Y. Liu, "Learning with Noisy Labels Revisited: A Study
Using Real-World Human Annotations", ICLR 2022; UCSC-REAL/cifar-10-100n, licence CC BY-NC 4.0.
The file is a zip with a pickle of six int64 arrays (50000,), in the order of CIFAR-10's Python
batches. Only the published file is unpickled, since a pickle can run any code.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import zipfile
from pathlib import Path

import numpy as np

from chainer_jo.errors import UserError
from chainer_jo.files import opened

#: Size in bytes and SHA-256 of the published file.
SIZE = 2_401_007
SHA256 = "873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310"
#: Arrays of the file by the name of the label set: the majority of three people, a wrong label of
#: theirs where one is wrong, and the labels of each.
LABEL_SETS = {"aggre": "aggre_label", "worse": "worse_label"}
LABEL_SETS |= {f"random{i}": f"random_label{i}" for i in (1, 2, 3)}
_TRUE = "clean_label"


def read(path: str | Path, true_labels: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Human labels, int32 (n,), by the name of the label set.

    Parameters
    ----------
    true_labels : int (n,), of CIFAR-10's training images in the order of the data; None: not
        compared, where the data are loaded later.

    Raises UserError for a file that cannot be read, has another size or digest than the published
    one, or has the images in another order than the data.
    """
    try:
        with opened(path) as file:
            raw = file.read(SIZE + 1)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}, expected CIFAR-10_human.pt") from None
    if (digest := hashlib.sha256(raw).hexdigest()) != SHA256:
        size = f"{len(raw):,}" if len(raw) <= SIZE else "more"
        raise UserError(
            f"{path}: {size} bytes, SHA-256 {digest}, expected {SIZE:,} bytes, {SHA256}; it is "
            "damaged, or not CIFAR-10_human.pt as published"
        )
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        content = pickle.loads(archive.read("archive/data.pkl"), encoding="latin-1")
    true, *labels = (content[name].astype(np.int32) for name in (_TRUE, *LABEL_SETS.values()))
    if true_labels is not None and not np.array_equal(true, true_labels):
        raise UserError(
            f"{path}: {_TRUE} differs from the labels of the data, expected the training images of "
            "CIFAR-10 in the order of the Python batches"
        )
    return dict(zip(LABEL_SETS, labels, strict=True))
