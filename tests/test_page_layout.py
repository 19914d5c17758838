"""The page of ``chainer-jo relabel`` in a browser, with long names and names from right to left."""

import html
import re
import shutil

import numpy as np
import pytest
from own_images import run
from PIL import Image
from processes import run as run_process
from test_page_policy import CHROMIUM

#: Number of tables that are wider than their place, and whether the page is; number of cards with
#: the new label on the left; names of buttons, and what is asked before all are accepted.
MEASURE = """<script>addEventListener("load", () => {
  const left = (node, from, to) => {
    const range = document.createRange();
    range.setStart(node, from); range.setEnd(node, to);
    return range.getBoundingClientRect().left;
  };
  const shown = document.documentElement.dataset;
  shown.wide = [...document.querySelectorAll(".wide")].filter(
    e => e.scrollWidth > e.clientWidth).length + (document.body.scrollWidth > innerWidth);
  const changed = [...document.querySelectorAll("figcaption b")].map(e => e.firstChild)
    .filter(node => node.data.includes("→"));
  shown.swapped = changed.filter(node => {
    const arrow = node.data.indexOf("→");
    return left(node, 0, arrow) > left(node, arrow + 1, node.length);
  }).length + " of " + changed.length;
  shown.judge = [...document.querySelectorAll("#grid .judge button")].map(
    e => e.textContent.slice(0, 6)).slice(0, 2);
  confirm = text => { shown.asked = text; };
  document.getElementById("take").click();
  shown.saved = document.querySelector(".save").textContent;
})</script>"""
#: A page in a frame, because a window has at least 500 pixels.
FRAME = """<iframe style="width: {}px; height: 900px" onload="
Object.assign(document.documentElement.dataset, this.contentDocument.documentElement.dataset)"
srcdoc="{}"></iframe>"""


def measured(folder, width, out, *flags):
    """The attributes that `MEASURE` gives the page of a relabelling."""
    assert run("relabel", folder, "--features", "pixels", "--out", out, *flags) == 0
    page = (out / "report.html").read_text(encoding="utf-8")
    path = out.with_suffix(".html")
    page = re.sub("<meta http-equiv=[^>]*>", MEASURE, page, count=1)
    path.write_text(FRAME.format(width, html.escape(page)), encoding="utf-8")
    flags = "--window-size=1400,900", f"--user-data-dir={out / 'profile'}", path.as_uri()
    return re.search("<html[^>]*>", run_process([*CHROMIUM, *flags], timeout=120).stdout)[0]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_the_new_label_is_on_the_right(tmp_path, cache):
    rng = np.random.default_rng(0)
    for k, name in enumerate(("אבג", "דהו")):
        (folder := tmp_path / "set" / name).mkdir(parents=True)
        for i in range(40):
            low = 150 * (k != (i < 8))
            pixels = rng.integers(low, low + 100, (9, 9)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{i}.png")
    shown = measured(tmp_path / "set", 1300, tmp_path / "out")
    assert 'data-swapped="0 of 16"' in shown, shown
    assert 'data-judge="\u200e→ ' in shown and ",\u200ekeep " in shown
    assert 'data-asked="Accept the new label of 16 unreviewed images?"' in shown
    assert 'data-saved="Save reviewed.csv (0)"' in shown


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [1300, 390])
def test_no_table_is_cut_off(width, tmp_path, cache):
    """Ten classes have long names, and three of them the same image under a long name."""
    rng = np.random.default_rng(0)
    for k in range(10):
        (folder := tmp_path / "set" / f"{k}_{'long_name_of_a_class' * 3}").mkdir(parents=True)
        for i in range(12):
            pixels = rng.integers(0, 256, (9, 9)) if i or k > 2 else np.full((9, 9), 90)
            name = f"{'photograph' * 5}_{i}.png"
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name)
    shown = measured(tmp_path / "set", width, tmp_path / "out", "--epochs", "1")
    assert 'data-wide="0"' in shown, shown
    assert "Identical or nearly identical images" in (tmp_path / "out/report.html").read_text(
        "utf-8"
    )
