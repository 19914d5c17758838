"""The page of a results folder: Markdown and figures in one HTML file that loads nothing."""

import os
import re
import shutil
from html.parser import HTMLParser

import pytest
from processes import ROOT

from chainer_jo.reproduction.commands.report import main
from chainer_jo.reproduction.tables_and_figures.output import grid


class Parsed(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def all(self, name, attribute):
        return [found.get(attribute) for tag, found in self.tags if name in (tag, "")]


def written(folder, preset="digits"):
    flags = ["--preset", preset, "--results", str(folder), "--figures", str(folder / "figures")]
    main("test", flags)
    return (folder / preset / "report.html").read_text("utf-8")


def test_the_committed_results_are_one_page(tmp_path):
    """Tables, then figures, then claims; every link leads to a place of the page."""
    results = ROOT / "results" / "reference" / "half"
    (tmp_path / "half").mkdir()
    for path in (*results.glob("*.md"), *results.glob("*.json")):
        shutil.copy(path, tmp_path / "half")
    shutil.copytree(ROOT / "figures" / "reference" / "half", tmp_path / "figures" / "half")
    html = written(tmp_path, "half")
    page = Parsed(html)
    ids = [name for name in page.all("", "id") if name]
    links = page.all("a", "href")
    assert len(ids) == len(set(ids)) and set(links) <= {f"#{name}" for name in ids}
    assert links[:3] == ["#table1", "#table2", "#table4"] and links.index("#table13") == 9
    assert links.index("#ablations") < links.index("#figure1") < links.index("#claims")
    assert all(page.all("img", "alt"))
    assert page.all("img", "alt")[0].startswith("A CNN maps images to class probabilities.")
    assert {source[:22] for source in page.all("img", "src")} == {"data:image/png;base64,"}
    assert len(page.all("img", "src")) == len(list((tmp_path / "figures/half").glob("*.png")))
    assert "<td>69.0\xa0±\xa00.4\xa0[85.0]</td>" in html and "engine onednn" in html
    assert "<td>91.0\xa0/\xa087.0<br>" in html


def test_html_and_addresses_in_names_do_nothing(tmp_path):
    """Names of classes come with the data, Markdown files perhaps from others."""
    (tmp_path / "digits").mkdir()
    names = "<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "![b](https://c.example/d)"
    text = f"**Table 1.** <script>alert(1)</script>\n\n{grid(['', 'x'], [[n, n] for n in names])}\n"
    (tmp_path / "digits" / "table1.md").write_text(text)
    (tmp_path / "digits" / 'a"><img src=x onerror=b>.md').write_text("# A name\n")
    (tmp_path / "digits" / "provenance.json").write_text('{"devices": ["\\ud800"]}')
    html = written(tmp_path)
    page = Parsed(html)
    assert page.all("script", "src") == [] and page.all("", "onerror") == [None] * len(page.tags)
    assert set(page.all("a", "href")) == {
        "#table1", '#a"><img src=x onerror=b>', "https://c.example/d",
    }  # fmt: skip
    assert "img" not in dict(page.tags) and "&lt;script&gt;" in html
    before, _, rest = html.partition('<meta http-equiv="Content-Security-Policy" content="')
    allowed = dict(each.strip().split(" ", 1) for each in rest.partition('"')[0].split(";"))
    assert not re.search("<(style|img|link)", before)
    assert allowed["default-src"] == "'none'" and allowed["img-src"] == "data:"
    assert "script-src" not in allowed


@pytest.mark.parametrize("content", [None, b"\xff", ...])
def test_a_folder_without_readable_results_is_one_line(content, tmp_path, capsys):
    path = tmp_path / "digits" / "table1.md"
    path.parent.mkdir()
    if content is ...:
        os.mkfifo(path)
    elif content:
        path.write_bytes(content)
    with pytest.raises(SystemExit) as end:
        written(tmp_path)
    said = capsys.readouterr().err
    expected = "Markdown in UTF-8" if content else "a results folder"
    assert end.value.code == 2 and said.endswith(f"expected {expected}\n")
    assert said.startswith("error: ") and said.count("\n") == 1
