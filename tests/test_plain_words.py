"""Pages have nouns in the place of words that point back to one, and short lines."""

import re

from processes import ROOT

POINTERS = re.compile(
    r"\b(?:that of|those of|but for|besides|anew|afresh)\b"
    r"|(?:^|\n\n|\n *(?:[-*]|\d+\.) |[.!?:][*_)\"]* |\| )[*_(\"]*(?-i:Of|By|What)\b",
    re.IGNORECASE,
)
CODE = r"(?ms)^( *)```.*?^\1```|^ {4,}\S[^\n]*|`[^`\n]*`|<[^>]*>|\]\([^)]*\)"


def test_pages_have_few_pointer_words():
    found = []
    for pattern in ("README.md", "docs/*.md", "results/**/*.md"):
        for path in ROOT.glob(pattern):
            text = re.sub(CODE, "", path.read_text("utf-8"))
            text = re.sub(r"(?<=\S)\n *(?=\w)", " ", text)  # line breaks in sentences
            found += [f"{path.name}: {text[m.start() :][:60]}" for m in POINTERS.finditer(text)]
    assert len(found) <= 10, "\n".join(found)


def test_pages_have_lines_of_at_most_120_characters():
    """Outside of tables and code."""
    for path in (ROOT / "README.md", *ROOT.glob("docs/*.md"), ROOT / "results/README.md"):
        text = re.sub(r"(?ms)^( *)```.*?^\1```|^ {4,}\S[^\n]*|^ *\|[^\n]*", "", path.read_text())
        assert max(map(len, text.splitlines())) <= 120, path
