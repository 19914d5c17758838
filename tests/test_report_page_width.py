"""The page of ``chainer-jo relabel`` in a browser: tables are as wide as the page at most."""

import re
import shutil

import numpy as np
import pytest
from own_images import run
from PIL import Image
from processes import run as run_process
from test_page_policy import CHROMIUM

#: Number of tables that are wider than their place.
MEASURE = """<script>addEventListener("load", () => document.documentElement.dataset.wide =
[...document.querySelectorAll(".high")].filter(e => e.scrollWidth > e.clientWidth).length)</script>
"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [1300, 500])
def test_no_table_is_cut_off(width, tmp_path, cache):
    """Three images with long names are the same, and have long class names."""
    rng = np.random.default_rng(0)
    for k in range(3):
        (folder := tmp_path / "set" / f"{k}_{'long_name_of_a_class' * 3}").mkdir(parents=True)
        for i in range(20):
            pixels = rng.integers(0, 256, (9, 9)) if i else np.full((9, 9), 90)
            name = f"{'photograph' * 5}_{i}.png"
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name)
    arguments = "--features", "pixels", "--epochs", "1", "--out", tmp_path / "out"
    assert run("relabel", tmp_path / "set", *arguments) == 0
    page = (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert "Identical or nearly identical images" in page
    path = tmp_path / "measured.html"
    path.write_text(re.sub("<meta http-equiv=[^>]*>", MEASURE, page, count=1), encoding="utf-8")
    flags = f"--window-size={width},900", f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()
    shown = run_process([*CHROMIUM, *flags], timeout=120).stdout
    assert 'data-wide="0"' in re.search("<html[^>]*>", shown)[0]
