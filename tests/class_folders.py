"""Class folders of small images, and what is said of data that cannot be read."""

import numpy as np
import pytest
from PIL import Image

from chainer_jo.errors import UserError
from chainer_jo.relabel.read.labelled_images import read_sets


def save(path, colour=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (6, 4), (colour, 0, 0)).save(path)


def images_in(folder, number=6):
    """Paths of images of noise."""
    folder.mkdir(parents=True, exist_ok=True)
    rng, paths = np.random.default_rng(0), [str(folder / f"{i}.png") for i in range(number)]
    for path in paths:
        Image.fromarray(rng.integers(0, 256, (9, 9, 3)).astype(np.uint8)).save(path)
    return paths


def pets(root):
    """Classes cat 9 and cat 10, with spaces, accents and nested folders."""
    for i, name in enumerate(("cat 9/a é.png", "cat 9/more/b.JPG", "cat 10/a.webp")):
        save(root / name, 10 * i)
    return root


def refuse(words, *arguments, **more):
    with pytest.raises(UserError, match=words) as caught:
        read_sets(*map(str, arguments), **{name: str(value) for name, value in more.items()})
    assert "\n" not in str(caught.value)
