"""Pointer words in the pages: a noun reads faster than a word that points back to it."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/*.md", "results/**/*.md", "results/**/*.html", "figures/**/*.md")
ALLOWED = 10
"""Pointer words in all pages together."""

POINTERS = re.compile(
    r"\b(?:that of|those of|but for|besides|anew|afresh)\b"
    r"|(?:^|\n\n|\n *(?:[-*]|\d+\.) |[.!?:][*_)\"]* |\| )[*_(\"]*(?-i:Of|By|What)\b",
    re.IGNORECASE,
)


def prose(page: str) -> str:
    """The text of a page of Markdown or HTML without code, tags, and line breaks in sentences."""
    page = re.sub(r"(?s)<(style|script|svg|pre)\b.*?</\1>|^```.*?^```", "\n\n", page, flags=re.M)
    page = re.sub(r"</?(?:p|li|td|th|h\d|figcaption|summary|div|tr)\b[^>]*>", "\n\n", page)
    page = re.sub(r"`[^`\n]*`|<[^>]*>|\]\([^)]*\)", "", page)
    return re.sub(r"(?<=\S)\n *(?=\w)", " ", html.unescape(page))


def pointers(page: str) -> Iterator[str]:
    """Each pointer word of a page, with the words that follow."""
    text = prose(page)
    for match in POINTERS.finditer(text):
        yield " ".join(text[match.start() : match.end() + 40].split())


@pytest.mark.parametrize(
    ("page", "number"),
    [
        ("The accuracy is that\nof the digits, but for one seed.", 2),
        ("It ends. What it learns is stored.\n\n- By class, all are there.", 2),
        ("Sorted by class; it says what it is. `that of`\n\n```\nbut for\n```\n", 0),
        ("<p>Of <b>ten</b> runs</p><td>What is left</td><script>but for</script>", 2),
    ],
)
def test_counts_words_in_prose_only(page, number):
    assert len(list(pointers(page))) == number


def test_pages_have_few_pointer_words():
    paths = sorted({path for pattern in PAGES for path in ROOT.glob(pattern)})
    found = [
        f"{path.relative_to(ROOT)}: {pointer}"
        for path in paths
        for pointer in pointers(path.read_text(encoding="utf-8"))
    ]
    assert len(found) <= ALLOWED, "\n".join([f"{len(found)} pointer words:", *found])
