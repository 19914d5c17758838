"""Pointer words in the pages: a noun reads faster than a word that points back to it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/*.md", "results/**/*.md")
LONGEST = 120
"""Characters of a line of prose, in pages that people edit and in the page of all results."""
ALLOWED = 10
"""Pointer words in all pages together."""

POINTERS = re.compile(
    r"\b(?:that of|those of|but for|besides|anew|afresh)\b"
    r"|(?:^|\n\n|\n *(?:[-*]|\d+\.) |[.!?:][*_)\"]* |\| )[*_(\"]*(?-i:Of|By|What)\b",
    re.IGNORECASE,
)


def pointers(page: str) -> Iterator[str]:
    """Each pointer word in the prose of a page, with the words that follow."""
    text = re.sub(r"(?ms)^```.*?^```|`[^`\n]*`|<[^>]*>|\]\([^)]*\)", "", page)
    text = re.sub(r"(?<=\S)\n *(?=\w)", " ", text)  # line breaks in sentences
    for match in POINTERS.finditer(text):
        yield " ".join(text[match.start() : match.end() + 40].split())


def test_pages_have_few_pointer_words():
    paths = sorted({path for pattern in PAGES for path in ROOT.glob(pattern)})
    found = [
        f"{path.relative_to(ROOT)}: {pointer}"
        for path in paths
        for pointer in pointers(path.read_text(encoding="utf-8"))
    ]
    assert len(found) <= ALLOWED, "\n".join([f"{len(found)} pointer words:", *found])


def long_lines(page: str) -> list[str]:
    """Lines that are too long outside of tables and code."""
    without_code = re.sub(r"(?ms)^( *)```.*?^\1```|^ {4,}\S[^\n]*", "", page)
    rows = (line for line in without_code.splitlines() if not line.lstrip().startswith("|"))
    return [line for line in rows if len(line) > LONGEST]


@pytest.mark.parametrize("pages", ["README.md", "docs/*.md", "results/README.md"])
def test_pages_have_short_lines(pages):
    paths = sorted(ROOT.glob(pages))
    assert paths
    found = {path.name: long_lines(path.read_text(encoding="utf-8")) for path in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}
