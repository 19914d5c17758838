"""The page of ``chainer-jo relabel``: what a browser lets it do, what it says of a machine, and how
it looks with long names and names from right to left."""

import io
import re
import shutil
from base64 import b64encode
from hashlib import sha256

import numpy as np
import pytest
from PIL import Image
from processes import run as run_process

from chainer_jo.relabel.show import report

PAYLOAD = "document.documentElement.setAttribute('data-ran', '1')"
CHROMIUM = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-sync", "--disable-background-networking", "--disable-component-update",
            "--virtual-time-budget=4000", "--dump-dom")  # fmt: skip

needs_chromium = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="chromium is not installed"
)


@pytest.fixture(scope="module")
def page(by_features):
    return (by_features / "report.html").read_text(encoding="utf-8")


def test_a_page_may_use_its_own_style_and_script_alone(page):
    before, _, rest = page.partition('<meta http-equiv="Content-Security-Policy" content="')
    policy, _, after = rest.partition('">')
    assert "<style" not in before and "<script" not in before
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert allowed["default-src"] == allowed["base-uri"] == allowed["form-action"] == "'none'"
    for tag in ("style", "script"):
        own = re.findall(f"<{tag}>(.*?)</{tag}>", after, re.DOTALL)
        digests = [b64encode(sha256(text.encode()).digest()).decode() for text in own]
        expected = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
        assert allowed[f"{tag}-src"] == expected


@needs_chromium
def test_what_gets_into_a_page_does_not_run(page, tmp_path):
    """The page's own script does: it shows images."""
    foreign = f'<img src="x" onerror="{PAYLOAD}"><script>{PAYLOAD}</script>'
    path, profile = tmp_path / "page.html", f"--user-data-dir={tmp_path / 'profile'}"
    path.write_text(page.replace("<h1>", f"{foreign}<h1>", 1), encoding="utf-8")
    shown = run_process([*CHROMIUM, profile, path.as_uri()], timeout=120).stdout
    assert foreign[:9] in shown and "data-ran" not in re.search("<html[^>]*>", shown)[0]
    assert shown.count("<figure") > page.count("<figure") or 'id="content"' not in page


def test_a_page_does_not_say_where_the_data_were(page, own_set):
    assert "<title>Corrected labels: labels.csv</title>" in page
    assert str(own_set) not in page and f"{own_set.name}/" not in page


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
