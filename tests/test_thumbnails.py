"""Sheets of small pictures."""

import io

import numpy as np
from PIL import Image

from chainer_jo.relabel.show import report


def opened(sheet):
    return np.asarray(Image.open(io.BytesIO(sheet)).convert("RGB"))


def test_every_image_is_where_it_belongs(tmp_path):
    paths = []
    for i in range(report.CELLS + 13):
        paths.append(str(tmp_path / f"{i}.png"))
        Image.new("RGB", (8, 8), (i, 0, 200)).save(paths[-1])
    (tmp_path / "3.png").write_bytes(b"damaged")
    first, second = map(opened, report.sheets(paths, 8))
    assert first.shape == (report.ROWS * 8, report.COLUMNS * 8, 3)
    assert second.shape == (2 * 8, report.COLUMNS * 8, 3)
    for i in range(len(paths)):
        sheet, place = (first, i) if i < report.CELLS else (second, i - report.CELLS)
        row, column = divmod(place, report.COLUMNS)
        cell = sheet[8 * row : 8 * row + 8, 8 * column : 8 * column + 8]
        assert (cell == ((0x88, 0x88, 0x88) if i == 3 else (i, 0, 200))).all()


def test_the_whole_image_is_seen_whatever_its_shape(tmp_path):
    Image.new("RGB", (400, 100), "red").save(tmp_path / "wide.jpg")
    (sheet,) = map(opened, report.sheets([str(tmp_path / "wide.jpg")], 24))
    red = (sheet[:24, :24].astype(int) @ (1, -1, 0)) > 100
    assert abs(red.sum() - 24 * 6) <= 48  # JPEG blurs the edges


def test_many_images_are_shown_smaller_but_none_larger_than_it_is():
    sides = [report.side_for(number, 1000) for number in (10, 30_000, 60_000, 100_000)]
    assert sides == sorted(sides, reverse=True) and sides[0] == 96 and sides[-1] == 48
    assert report.side_for(10, 8) == 8
    for number, side in zip((10, 30_000, 60_000), sides, strict=False):
        assert number * side**2 * report.BYTES_PER_PIXEL <= report.MAX_BYTES
