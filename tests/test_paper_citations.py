"""Equations, sections, tables and figures that code and docs cite, against the paper's source.

A number that exists can still be the wrong one, so what is cited has to be what the words around it
speak of: the numbers come from the source's labels and headings, the words from here.
"""

import re
from pathlib import Path

import paper_source
import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(
    path
    for place in ("chainer_jo", "reproduce", "benchmarks", "examples", "tests", "docs")
    for suffix in ("*.py", "*.md", "*.sh")
    for path in (ROOT / place).rglob(suffix)
    if path != Path(__file__).resolve()
)
FILES += [ROOT / "README.md"]
ELSEWHERE = (
    "paper/claims/",
    "paper/text.py",
    "tests/paper_source",
    "tests/test_paper_",
    "_html.py",
)
"""Places cited there are held against the source in other tests, or are made up."""

SPOKEN_OF = {  # by the source's label: what a sentence that cites it has, one of these
    "eq:NoisematrixCE": r"T\^T|[Ff]orward",
    "eq:supervisedLearning": r"cross entropy|supervised",
    "eq:usual": r"supervised",
    "eq:modified": r"joint",
    "eq:all": r"alpha|objective|\bL\b",
    "eq:KLdivergence": r"L_c|objective of",
    "eq:KLdivergence2": r"KL|L_c|objective of",
    "eq:label": r"hard|arg max",
    "eq:soft": r"soft|mean s\b",
    "eq:kl": r"L_p|prior|objective of",
    "eq:batch": r"L_p|mini-batch|objective of",
    "eq:ent": r"L_e|entropy|objective of",
    "": r"[Ss]ymmetric",  # the equation without a label
}
SECTIONS = {
    "Learning on noisy labeled datasets": r"forward|transition",
    "Alternating Optimization": r"[Uu]pdat|\bY\b|rules",
    "Regularization Terms": r"L_p|L_e|prior",
    "Additional Details": r"second step|two steps",
    "Datasets": r"[Nn]oise|noisy|[Pp]seudo|PL-CIFAR|million|training data|mistaken|are right",
    "Implementation": r"crop|subtract|resiz|square|uniform|momentum|epochs|first step",
    "Generalization and Memorization": r"memori|learning rate|Figures? [23]",
    "Hard-Label vs. Soft-Label": r"recovery|[Ss]oft|[Hh]ard",
    "Experiment on SN-CIFAR": r"[Ss]ymmetric|predictions|SN-CIFAR|Cross entropy",
    "Experiment on AN-CIFAR": r"[Aa]symmetric|AN-CIFAR|Forward|CNN-CRF",
    "Experiment on PL-CIFAR": r"[Pp]seudo|PL-CIFAR",
    "Experiment on the Clothing1M dataset": r"Clothing1M|come with the images|real noise",
    "Conclusion": r"memori",
}
NUMBERS = r"\(?(\d+)\)?((?:(?:,| and| to|, and)? \(?\d+\)?)*)"
EQUATION = re.compile(r"\b(?:[Ee]qs?\.|[Ee]quations?) ?" + NUMBERS)
SECTION = re.compile(r"\b[Ss]ections? (\d(?:\.\d)?)(?: and (\d\.\d))?")
LABEL = re.compile(r"\b(eq|tab|fig|sec):(\w+)")
FLOAT = re.compile(r"\b(Table|Figure|Algorithm)s? " + NUMBERS)


def all_of(first: str, more: str) -> list[int]:
    """1, "5", " to 7 and 10": every number meant."""
    found = [int(first)]
    for joint, number in re.findall(r"(to)? \(?(\d+)", more):
        found += range(found[-1] + 1, int(number) + 1) if joint else [int(number)]
    return found


def cited(pattern: re.Pattern) -> list[tuple[Path, int, re.Match, str]]:
    """File, line, match and the lines around it."""
    found = []
    for path in FILES:
        if any(own in str(path) for own in ELSEWHERE):
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            around = " ".join(lines[max(0, number - 1) : number + 2])
            for match in pattern.finditer(line):
                found.append((path.relative_to(ROOT), number + 1, match, around))
    return found


def test_lists_and_ranges_of_numbers():
    match = EQUATION.search("L = ... (eqs. 5 to 7 and 10 to 12); (13)")
    assert all_of(*match.groups()) == [5, 6, 7, 10, 11, 12]
    assert all_of(*EQUATION.search("(eqs. 6 and 7)").groups()) == [6, 7]
    assert all_of(*FLOAT.search("Tables 1, 2 and 13").groups()[1:]) == [1, 2, 13]


def test_the_numbers_of_the_source():
    """As printed; what the rest of this file rests on."""
    labels = paper_source.equations()
    assert (labels.index("eq:all"), labels.index("eq:label"), len(labels)) == (4, 7, 13)
    assert paper_source.sections()["5.8"] == "Experiment on the Clothing1M dataset"
    assert set(labels) == set(SPOKEN_OF)
    assert set(SECTIONS) <= set(paper_source.sections().values())


def test_equations_are_what_is_spoken_of():
    wrong, citations = [], cited(EQUATION)
    for path, line, match, around in citations:
        for number in all_of(*match.groups()):
            labels = paper_source.equations()
            label = labels[number - 1] if 0 < number <= len(labels) else None
            if label is None or not re.search(SPOKEN_OF[label], around):
                wrong.append(f"{path}:{line}: {match[0]} is {label}")
    assert not wrong, "\n".join(wrong)
    assert len(citations) > 15


def test_sections_are_what_is_spoken_of():
    wrong, citations = [], cited(SECTION)
    for path, line, match, around in citations:
        for number in filter(None, match.groups()):
            title = paper_source.sections().get(number)
            if title is None or not re.search(SECTIONS.get(title, "$^"), around):
                wrong.append(f"{path}:{line}: {match[0]} is {title}")
    assert not wrong, "\n".join(wrong)
    assert len(citations) > 15


def test_labels_exist():
    known = set(re.findall(r"\\label{(\w+:\w+)}", paper_source.source()))
    wrong = [f"{path}:{line}: {m[0]}" for path, line, m, _ in cited(LABEL) if m[0] not in known]
    assert not wrong, "\n".join(wrong)


def test_tables_and_figures_exist():
    last = {"Table": 13, "Figure": 8, "Algorithm": 1}
    assert last["Table"] == len(re.findall(r"\\begin{table", paper_source.source()))
    assert last["Figure"] == len(re.findall(r"\\begin{figure", paper_source.source()))
    wrong = [
        f"{path}:{line}: {match[0]}"
        for path, line, match, _ in cited(FLOAT)
        if max(all_of(*match.groups()[1:])) > last[match[1]]
    ]
    assert not wrong, "\n".join(wrong)


def rows_of_the_map() -> list[list[str]]:
    """README's table from the paper to code and tests, a list of cells per row."""
    section = (ROOT / "README.md").read_text().split("## From the paper to the code\n")[1]
    lines = [line for line in section.split("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


class TestMap:
    def test_everything_numbered_in_the_paper_is_in_it(self):
        mapped = {"eq.": [], "Table": [], "Figure": [], "Algorithm": []}
        for what, *_ in rows_of_the_map():
            kind, _, numbers = what.partition(" (")[0].partition(" ")
            mapped[kind.removesuffix("s").replace("eqs.", "eq.")] += all_of(
                *re.fullmatch(NUMBERS, numbers).groups()
            )
        expected = {"eq.": 13, "Table": 13, "Figure": 8, "Algorithm": 1}
        assert {kind: sorted(numbers) for kind, numbers in mapped.items()} == {
            kind: list(range(1, last + 1)) for kind, last in expected.items()
        }

    @pytest.mark.parametrize("row", rows_of_the_map(), ids=lambda row: row[0])
    def test_code_and_tests_are_there(self, row):
        _, code, test = row
        assert "`" in code and "`tests/" in test
        for place in re.findall(r"`([^`]+)`", f"{code} {test}"):
            path, _, name = place.partition("::")
            file = ROOT / path if path.startswith(("tests/", "reproduce/")) else None
            file = file or ROOT / "chainer_jo" / path
            assert file.exists(), path
            for part in filter(None, name.split("::")):
                assert re.search(rf"^\s*(?:def|class) {part}\b", file.read_text(), re.MULTILINE), (
                    place
                )
