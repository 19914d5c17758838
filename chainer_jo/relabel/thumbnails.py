"""Small pictures of many images, a hundred in one file: a page of thousands opens at once."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from PIL import Image

from chainer_jo.cores import usable_cores
from chainer_jo.datasets import decoding

COLUMNS, ROWS = 12, 10
#: Images on a sheet.
CELLS = COLUMNS * ROWS
#: Sides to choose from, in pixels.
SIDES = (96, 64, 48, 32, 24)
#: All sheets together have about so many bytes at most; a pixel of a JPEG takes about so many.
BYTES, PER_PIXEL = 24 << 20, 0.35
#: Up to this side sheets are PNGs: such images are looked at pixel by pixel.
LOSSLESS = 16


def side_for(number: int, usual_size: int) -> int:
    """Pixels of a side, for so many images of this usual size: no more than they have, and fewer
    where there are many."""
    fits = (side for side in SIDES if number * side**2 * PER_PIXEL <= BYTES)
    return min(next(fits, SIDES[-1]), usual_size)


def sheets(paths: Sequence[str], side: int) -> Iterator[str]:
    """The images on sheets of `CELLS` each, row by row, as data URIs; the last may have fewer rows,
    or be one row alone, no longer than it has to be.

    An image that cannot be opened leaves its cell empty.
    """
    with ThreadPoolExecutor(usable_cores()) as pool:
        for start in range(0, len(paths), CELLS):
            cells = pool.map(lambda path: _cell(path, side), paths[start : start + CELLS])
            yield _sheet(list(cells), side)


def _cell(path: str, side: int) -> Image.Image | None:
    try:
        image = decoding.read(path, enough=side).convert("RGB")
    except Exception:  # a picture less is no reason to lose a report
        return None
    image.thumbnail((side, side), Image.Resampling.BILINEAR)
    return image


def _sheet(cells: list[Image.Image | None], side: int) -> str:
    columns = min(COLUMNS, len(cells))
    sheet = Image.new("RGB", (columns * side, -(-len(cells) // columns) * side), "#888")
    for i, image in enumerate(cells):
        if image is not None:
            left, top = i % columns * side, i // columns * side
            margin = (side - image.width) // 2, (side - image.height) // 2
            sheet.paste(image, (left + margin[0], top + margin[1]))
    out, kind = io.BytesIO(), "png" if side <= LOSSLESS else "jpeg"
    sheet.save(out, kind, quality=80, optimize=True)
    return f"data:image/{kind};base64," + base64.b64encode(out.getvalue()).decode()
