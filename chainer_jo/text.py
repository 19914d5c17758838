"""Text of terminals and Markdown pages."""

import itertools
import textwrap

#: Characters of a cell that a terminal shows above a table.
LONG = 30


def aligned(rows: list[list[str]]) -> list[str]:
    """A Markdown table, header first, whose columns also line up as plain text."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(t.ljust(width) for t, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [lines[0], rule, *lines[1:]]


def for_terminal(page: str, width: int) -> str:
    """A Markdown page for a terminal of ``width`` columns: paragraphs are wrapped, and a table that
    does not fit is in parts, one below the other."""
    paragraphs = []
    for paragraph in page.strip().split("\n\n"):
        if paragraph.startswith("|"):
            paragraphs += _parts(paragraph, width)
        else:
            lines = (textwrap.fill(line, width) for line in paragraph.split("\n"))
            paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs) + "\n"


def _parts(table: str, width: int) -> list[str]:
    """A table in the fewest parts that fit: whole, in halves or parts of halves, each with the
    first column and without rows that are empty there; else a table for each row, below the cells
    that are longer than `LONG`."""
    lines = [line for line in table.split("\n") if line.strip("|-: ")]
    rows = [[cell.strip() for cell in line[1:-1].split(" | ")] for line in lines]
    number, half = len(rows[0]), (len(rows[0]) - 1) // 2
    for each in (number, *(n for n in range(half, 0, -1) if half % n == 0)):
        made = [
            aligned([[line[0], *cells] for line in rows if any(cells := line[i : i + each])])
            for i in range(1, number, each)
        ]
        if max((len(part[0]) for part in made), default=0) <= width:
            return ["\n".join(part) for part in made]
    divided = [[cell.split("<br>") for cell in row] for row in rows]
    long = [max(len(line) for row in divided for line in row[k]) > LONG for k in range(number)]
    records = []
    for row in divided[1:]:
        above = [textwrap.fill(" ".join(row[k]), width) for k in range(number) if long[k]]
        short = [k for k in range(number) if not long[k]]
        below = itertools.zip_longest(*(row[k] for k in short), fillvalue="")
        shown = aligned([[rows[0][k] for k in short], *map(list, below)])
        records.append([*filter(None, above), *shown])
    return ["\n".join(part) for part in records]


def counted(number: int, thing: str) -> str:
    """A number of things: "1 run", "3 runs"."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def percent(share: float, digits: int = 1) -> str:
    """A share in [0, 1] as text in percent."""
    return f"{100 * share:.{digits}f} %"
