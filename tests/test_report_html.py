"""The report: one page, complete, self-contained and well-formed."""

import re
import shutil
from html import escape
from html.parser import HTMLParser

import pytest
from processes import run
from tiny import STUDY

from chainer_jo import files
from chainer_jo.experiments import presets
from chainer_jo.experiments.store import RunStore
from chainer_jo.paper import tables
from chainer_jo.paper.claims.claim import VERDICTS
from chainer_jo.report.comparison_table import comparison_table
from chainer_jo.report.curves import Curve
from chainer_jo.report.figure import Figure
from chainer_jo.report.grid import Grid, Number
from chainer_jo.report.html import Report
from chainer_jo.report.html_claims import claims_html

ORIGIN = {"preset": "tiny", "data": "cifar10", "precision": "fp32"}
PROVENANCE = {
    "commits": ["0123456789ab"], "versions": [{"chainer": "7.8.1", "numpy": "2.4.0"}],
    "devices": ["A <fast> processor"], "engines": ["stock"], "runs": 7, "hours": 1.5,
    "seeds": [0, 1], "data": {"data": "digits", "fingerprint": "feedbeef"},
}  # fmt: skip
VOID = {"meta", "img", "br"}


def claim(name, verdict, label=None):
    """As claims.json has it, as far as the page shows it."""
    return {
        "id": name, "group": "One group", "place": "Section 5.6",
        "statement": "At a noise rate of 50 % it's different.",
        "check": "One <b> against another.", "verdict": verdict, "label": label or verdict,
        "reason": "0 of 3 comparisons support it; 1 refute it: r = 0.1",
        "findings": [
            {"what": "r = 0.1", "outcome": "refutes", "remark": "refutes",
             "numbers": "90.1 ± 0.2 against 88.0 ± 0.3, difference 2.1 points (1.9 to 2.3)"},
            {"what": "r = 0.3", "outcome": "not run", "remark": "not run",
             "numbers": "not run against 1.00"},
            {"what": "r = 0.5", "outcome": "not run", "remark": "not run", "numbers": "not run"},
        ],
    }  # fmt: skip


class Page(HTMLParser):
    """What a page consists of; fails where tags do not match."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    def all(self, *names):
        return [attributes for tag, attributes in self.tags if tag in names]


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "results" / "tiny")


def write(store, tmp_path, outputs=()):
    builds = [lambda study, output=output: output for output in outputs]
    (path,) = Report(STUDY, builds).write(store, ORIGIN, store.root, tmp_path / "figures")
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """A report of Table 1 with one finished cell, Figure 2 with one trial, all verdicts."""
    tmp_path = tmp_path_factory.mktemp("report")
    store = RunStore(tmp_path / "results" / "tiny")
    table = comparison_table(STUDY, tables.TABLE1, "symmetric")
    for trial in STUDY.comparison_trials():
        run = STUDY.baseline("cross_entropy", "symmetric", 0.1, trial)
        scores = {"test": 0.5 + trial / 10, "recovery": 0.7}
        origin = {"commit": "abc", "versions": {"chainer": "7.8.1"}, "device": "d", "engine": "e"}
        store.open(run)
        store.save_result(
            run,
            {"id": run.id, "state": "finished", "best": scores, "last": scores, "seconds": 1800,
             "noisy_labels_right": 0.9,
             "iterations": 10, "provenance": origin},
        )  # fmt: skip
    curve = Curve("lr=0.2", [STUDY.plain("symmetric", 0.5, 0, 0.2, 60)])
    files.write_json(store.open(curve.experiments[0]) / "log.json", [{"test": 0.625, "epoch": 1}])
    figure = Figure(2, "A <caption>.", "test", [curve], "symmetric noise r = 0.5")
    for output in (table, figure):
        output.write(store, ORIGIN, store.root, tmp_path / "figures")
    labels = {"a tie": "a tie within 0.4 points"}
    verdicts = [claim(f"claim-{k}", v, labels.get(v)) for k, v in enumerate(VERDICTS)]
    files.write_json(store.root / "claims.json", verdicts)
    return write(store, tmp_path, (table, figure))


def test_needs_nothing_from_elsewhere(html):
    page = Page(html)
    assert page.all("script", "link", "iframe", "object") == []
    for attributes in page.all("a", "img"):
        address = attributes.get("href") or attributes["src"]
        assert address.startswith(("#", "data:image/png;base64,"))
    assert "url(" not in html
    assert "@import" not in html


def test_every_link_leads_somewhere(html):
    page = Page(html)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for a in page.all("a")} <= set(ids)
    assert {"result", "claims", "tables", "provenance"} <= {a["href"][1:] for a in page.all("a")}


def test_can_be_read_without_seeing(html):
    page = Page(html)
    assert dict(page.all("html")[0])["lang"] == "en"
    assert all("scope" in attributes for attributes in page.all("th"))
    (image,) = page.all("img")
    assert "lr=0.2 ends at 62.5" in image["alt"]


def test_numbers_stand_next_to_the_papers(html):
    text = Page(html).text
    assert "55.0 ± 7.1 paper [91.0]" in text
    printed = tables.TABLE1.value(method="joint", score="last", accuracy="test", noise_rate=0.9)
    assert f"paper [ {printed} ]" in text  # in bold
    assert '<th scope="colgroup" colspan="6">Recovery</th>' in html


def test_says_what_these_results_are(html):
    text = Page(html).text
    assert "Preset tiny on data set cifar10" in text
    assert "Not the paper’s setting" in text
    assert "Still without all of their runs: Table 1, Figure 2." in text
    assert "A <caption>." in text


@pytest.mark.parametrize(
    ("preset", "data", "said"),
    [
        (presets.PAPER, "cifar10", "These are the paper’s own data and schedules."),
        (presets.PAPER, "cifar10-jpeg",
         "The paper’s network and schedules, on CIFAR-10 (as JPEG)."),
        (presets.DIGITS, "digits", "Not the paper’s setting , but scikit-learn’s 8x8 digits"),
        (presets.DIGITS, "photos", "Not the paper’s setting , but preset digits, on photos."),
    ],
)  # fmt: skip
def test_scope_is_of_the_preset_and_the_data(tmp_path, preset, data, said):
    origin = {**ORIGIN, "preset": preset.name, "data": data}
    report = Report(presets.Study(preset, data), [])
    (path,) = report.write(RunStore(tmp_path), origin, tmp_path, tmp_path)
    assert said in Page(path.read_text("utf-8")).text


def test_claims_have_verdicts_in_words(html):
    text = Page(html).text
    signs = ("✓ holds", "✗ does not hold", "= a tie", "? undecided", "○ too few trials")
    for verdict in (*signs, "✓ a premise", "○ not all run", "○ not run"):
        assert verdict.replace(" ", " 1 ", 1) in text
    assert "= a tie within 0.4 points At a noise rate of 50 % it’s different. Section 5.6" in text
    assert "One <b> against another." in text
    assert "r = 0.1 90.1 ± 0.2 against 88.0 ± 0.3 2.1 points (1.9 to 2.3) refutes" in text
    assert "r = 0.3 not run against 1.00 not run" in text
    assert "r = 0.5 not run A tie within 0.4 points: 0 of 3" in text  # said once
    assert "1 refute it: r = 0.1." in text


def test_a_single_comparison_is_not_counted():
    one = {**claim("x", "holds"), "reason": "1 of 1 comparisons support it; this rests on that"}
    one["findings"] = one["findings"][:1]
    text = Page(f"<main>{claims_html([one], '')}</main>").text
    assert "Holds: this rests on that." in text and "of 1 comparisons" not in text


def test_what_decides_nothing_is_folded(html):
    decided, rest = html.split("<summary>The others: ")
    assert "1 undecided, " in rest
    shown = {v: f'id="claim-{k}"' in decided for k, v in enumerate(VERDICTS)}
    decisive = {"holds", "does not hold", "a tie", "a premise"}
    assert {verdict for verdict, there in shown.items() if there} == decisive


def test_it_begins_with_what_came_out(html):
    places = [html.index(f'id="{key}"') for key in ("result", "table1", "figure2", "claims")]
    assert places == sorted(places)
    assert html.count("symmetric noise r = 0.5") == 0  # in the picture, and so not below it


def test_unfinished_tables_are_folded(store, tmp_path):
    table = comparison_table(STUDY, tables.TABLE2, "asymmetric")
    table.write(store, ORIGIN, store.root, tmp_path / "figures")
    shown = '<details><summary>Table 2: .*unfinished</span></summary>\n<article id="table2"'
    assert re.search(shown, write(store, tmp_path, (table,)))


def test_provenance_is_that_of_the_runs(html):
    text = Page(html).text
    assert "Commit abc" in text
    assert "2 finished, 1 hours of computing" in text
    assert "Seeds 0, 1" in text


def test_provenance_without_runs(store, tmp_path):
    files.write_json(store.root / "provenance.json", PROVENANCE)
    text = Page(write(store, tmp_path)).text
    for expected in ("0123456789ab", "numpy 2.4.0", "A <fast> processor", "feedbeef", "1.5 hours"):
        assert expected in text


def test_empty_folder_still_gives_a_page(store, tmp_path):
    text = Page(write(store, tmp_path)).text
    assert "Nothing yet." in text


def test_a_grid_shows_numbers_and_words():
    numbers = [Number("1.5", "± 0.2", best=True, paper="1.4"), "b < c"]
    waiting = [Number(state="(1 of 2 trials …)"), "…"]
    html = Grid(["value", "words"], [("a", numbers), ("d", waiting)], "alpha varies").html()
    assert "<caption>alpha varies</caption>" in html
    assert "<b>1.5</b>" in html
    assert '<td class="words">b &lt; c</td>' in html
    text = Page(html).text
    assert "1.5 ± 0.2 paper [1.4]" in text
    assert "(1 of 2 trials …)" in text


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_the_page_never_scrolls_sideways(html, tmp_path):
    page, frame = tmp_path / "frames.html", f'height="900" srcdoc="{escape(html)}"></iframe>'
    page.write_text(
        "".join(f'<iframe width="{width}" {frame}' for width in (390, 800, 1200))
        + "<script>onload = () => { document.title = [...document.querySelectorAll('iframe')].map("
        "frame => frame.contentDocument.documentElement).map("
        "page => `${page.clientWidth} ${page.scrollWidth}`).join(', ') }</script>"
    )
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update")  # fmt: skip
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    done = run(["chromium", *flags, profile, "--dump-dom", page.as_uri()], timeout=120)
    (title,) = re.findall(r"<title>(\d+ \d+, \d+ \d+, \d+ \d+)</title>", done.stdout)
    for visible, whole in (map(int, pair.split()) for pair in title.split(", ")):
        assert 0 < whole <= visible
