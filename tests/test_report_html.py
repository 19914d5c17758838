"""The report: one page, self-contained and well-formed. What it shows of results is held against
the committed pages, byte for byte, by test_reference.py."""

import re
from html.parser import HTMLParser

import pytest
from processes import ROOT
from tiny import STUDY

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.paper import tables
from chainer_jo.paper.claims.claim import NOT_ALL_RUN
from chainer_jo.report.grid import Grid
from chainer_jo.report.html import Report
from chainer_jo.report.html_claims import claims_html
from chainer_jo.report.table_layouts import comparison_table
from chainer_jo.runs import presets
from chainer_jo.runs.store import RunStore

ORIGIN = {"preset": "tiny", "data": "cifar10", "precision": "fp32"}
PROVENANCE = {
    "commits": ["0123456789ab"], "versions": [{"chainer": "7.8.1", "numpy": "2.4.0"}],
    "devices": ["A <fast> processor"], "engines": ["stock"], "runs": 7, "hours": 1.5,
    "seeds": [0, 1], "data": {"data": "digits", "fingerprint": "feedbeef"},
}  # fmt: skip
VOID = {"meta", "img", "br"}


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
def html():
    """The committed one with most verdicts, and with the paper's numbers."""
    return (ROOT / "results" / "reference" / "half" / "report.html").read_text("utf-8")


def test_the_page_is_whole_and_can_be_read_without_seeing(html):
    """Its links lead to places of its own, and nothing comes from elsewhere."""
    page = Page(html)
    assert page.all("script", "link", "iframe", "object") == []
    assert "url(" not in html and "@import" not in html
    assert all(image["src"].startswith("data:image/png;base64,") for image in page.all("img"))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    links = {attributes["href"] for attributes in page.all("a")}
    assert len(ids) == len(set(ids)) and links <= {f"#{each}" for each in ids}
    assert {"#result", "#claims", "#tables", "#provenance"} <= links
    assert dict(page.all("html")[0])["lang"] == "en"
    assert all("scope" in attributes for attributes in page.all("th"))
    assert all(attributes["alt"] for attributes in page.all("img"))


@pytest.mark.parametrize("preset, data, said", [
    (presets.PAPER, "cifar10", "Data, network and schedules are the paper’s."),
    (presets.PAPER, "cifar10-jpeg", "Network and schedules are the paper’s; the data are CIFAR-10 "
        "(as JPEG)."),
    (presets.DIGITS, "digits", "Not the paper’s setting : scikit-learn’s 8x8 digits"),
    (presets.DIGITS, "photos", "Not the paper’s setting : preset digits, on photos."),
])  # fmt: skip
def test_scope_is_of_the_preset_and_the_data(tmp_path, preset, data, said):
    origin = {**ORIGIN, "preset": preset.name, "data": data}
    report = Report(presets.Study(preset, data), [])
    (path,) = report.write(RunStore(tmp_path), origin, tmp_path, tmp_path)
    assert said in Page(path.read_text("utf-8")).text


def test_what_has_not_run_is_said_once():
    claim = {
        "id": "x", "group": "", "place": "", "statement": "It's so.", "check": "One <b>.",
        "verdict": NOT_ALL_RUN, "label": NOT_ALL_RUN, "notes": [],
        "tally": ["0 of 1 comparisons support the claim"],
        "findings": [{"what": "r = 0.5", "outcome": "not run", "remark": "not run",
                      "sides": "not run", "difference_in_words": ""}],
    }  # fmt: skip
    text = Page(f"<main>{claims_html([claim], '')}</main>").text
    assert "○ not all run It’s so." in text and "One <b>." in text
    assert "r = 0.5 not run Not all run. Rules" in text


def test_unfinished_tables_are_folded(store, tmp_path):
    table = comparison_table(STUDY, tables.TABLE2, "asymmetric")
    table.write(store, ORIGIN, store.root, tmp_path / "figures")
    shown = '<details><summary>Table 2: .*unfinished</span></summary>\n<article id="table2"'
    assert re.search(shown, write(store, tmp_path, (table,)))


def test_provenance_without_runs(store, tmp_path):
    assert "Nothing yet." in Page(write(store, tmp_path)).text
    files.write_json(store.root / "provenance.json", PROVENANCE)
    text = Page(write(store, tmp_path)).text
    for expected in ("0123456789ab", "numpy 2.4.0", "A <fast> processor", "feedbeef", "1.5 hours"):
        assert expected in text


@pytest.mark.parametrize("claims", [[3], [{}], [{"verdict": ["holds"]}], [{"verdict": "holds"}]])
def test_claims_of_another_form_are_one_line(store, tmp_path, claims):
    files.write_json(store.root / "claims.json", claims)
    with pytest.raises(UserError, match=r"claims.json: damaged \(.*expected the file removed"):
        write(store, tmp_path)


def test_words_of_a_grid_are_escaped():
    assert '<td class="words">b &lt; c</td>' in Grid(["words"], [("a", ["b < c"])]).html()
