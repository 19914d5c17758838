"""Equations, sections, tables and figures that code and docs cite are in the paper's source."""

import re

import paper_source
from processes import ROOT

FILES = sorted(
    path
    for place in ("chainer_jo", "reproduce", "tools", "benchmarks", "examples", "tests", "docs")
    for suffix in ("*.py", "*.md", "*.sh")
    for path in (ROOT / place).rglob(suffix)
)
FILES += [ROOT / "README.md"]
ELSEWHERE = (
    "reproduction/claims/",
    "reproduction/paper/settings.py",
    "tests/paper_source",
    "tests/test_paper_",
)
"""Places cited there are held against the source in other tests, or are made up."""

NUMBERS = r"\(?(\d+)\)?((?:(?:,| and| to|, and)? \(?\d+\)?)*)"
EQUATION = re.compile(r"\b(?:[Ee]qs?\.|[Ee]quations?) ?" + NUMBERS)
SECTION = re.compile(r"\b[Ss]ections? (\d(?:\.\d)?)(?: and (\d\.\d))?")
LABEL = re.compile(r"\b(eq|tab|fig|sec):(\w+)")
FLOAT = re.compile(r"\b(Table|Figure|Algorithm)s? " + NUMBERS)


LAST = {"eq.": 13, "Table": 13, "Figure": 8, "Algorithm": 1}


def all_of(first: str, more: str) -> list[int]:
    """1, "5", " to 7 and 10": every number meant."""
    found = [int(first)]
    for joint, number in re.findall(r"(to)? \(?(\d+)", more):
        found += range(found[-1] + 1, int(number) + 1) if joint else [int(number)]
    return found


def test_what_is_cited_is_in_the_paper():
    labels = set(re.findall(r"\\label{(\w+:\w+)}", paper_source.source()))
    assert {kind: LAST[kind] for kind in ("eq.", "Table", "Figure")} == {
        name: len(re.findall(rf"\\begin{{{kind}", paper_source.source()))
        for name, kind in (("eq.", "equation"), ("Table", "table"), ("Figure", "figure"))
    }
    wrong = []
    for path in FILES:
        if any(own in str(path) for own in ELSEWHERE):
            continue
        text = path.read_text(encoding="utf-8")
        cited = [("eq.", *match) for match in EQUATION.findall(text)] + FLOAT.findall(text)
        wrong += [(path, kind, first) for kind, first, more in cited
                  if not 0 < max(all_of(first, more)) <= LAST[kind]]  # fmt: skip
        sections = [f"Section {n}" for match in SECTION.findall(text) for n in match if n]
        wrong += [(path, each) for each in sections if each not in paper_source.places()]
        wrong += [(path, m[0]) for m in LABEL.finditer(text) if m[0] not in labels]
    assert not wrong


def test_the_map_of_the_paper_names_code_and_tests_that_are_there():
    section = (
        (ROOT / "docs" / "extending.md").read_text().split("## From the paper to the code\n")[1]
    )
    places = re.findall(r"`([\w/]+\.py)((?:::\w+)*)`", section.split("\n## ")[0])
    assert len(places) > 40
    for path, names in places:
        file = ROOT / ("" if path.startswith(("tests/", "reproduce/")) else "chainer_jo") / path
        for name in filter(None, names.split("::")):
            defined = rf"^\s*(?:def|class) {name}\b"
            assert re.search(defined, file.read_text(), re.MULTILINE), (path, name)
