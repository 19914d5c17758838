"""The page of ``chainer-jo relabel``: what a browser lets it do, what it says of a machine, and how
it looks with long names and names from right to left."""

import html
import io
import re
import shutil
from base64 import b64encode
from hashlib import sha256

import numpy as np
import pytest
from own_images import run
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
  for (const i of [0, 1, 5]) document.querySelectorAll("#drawn button")[i].click();
  shown.audited = document.getElementById("audited").textContent;
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


@needs_chromium
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
    assert 'data-judge="\u200e→ ' in shown and ",keep" in shown
    assert 'data-asked="Accept the new label of 16 unreviewed images?"' in shown
    assert 'data-saved="Save reviewed.csv (3)"' in shown
    # Of the audit, the result of the first images in random order: the sixth has to wait.
    assert 'data-audited="The first 2 of 50 are reviewed' in shown and ": 0 of 2 are wrong" in shown


@needs_chromium
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
