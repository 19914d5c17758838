"""Text of terminals and Markdown pages."""

import textwrap


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
    does not fit is in parts, one below the other, each with the first column."""
    paragraphs = []
    for paragraph in page.strip().split("\n\n"):
        if paragraph.startswith("|"):
            paragraphs += _parts(paragraph, width)
        else:
            lines = (textwrap.fill(line, width) for line in paragraph.split("\n"))
            paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs) + "\n"


def _parts(table: str, width: int) -> list[str]:
    """A table as `aligned` writes it, whole, in halves, or in the fewest parts of halves that
    fit, without rows that are empty there."""
    rows = [
        [cell.strip() for cell in line[1:-1].split(" | ")]
        for line in table.split("\n")
        if not line.startswith("|-")
    ]
    number, half = len(rows[0]) - 1, (len(rows[0]) - 1) // 2
    made = [aligned(rows)]
    for each in (n for n in range(half, 0, -1) if half % n == 0):
        if max(len(part[0]) for part in made) <= width:
            break
        made = [
            aligned([[row[0], *cells] for row in rows if any(cells := row[i : i + each])])
            for i in range(1, number + 1, each)
        ]
    return ["\n".join(part) for part in made]


def counted(number: int, thing: str) -> str:
    """A number of things: "1 run", "3 runs"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def percent(share: float, digits: int = 1) -> str:
    """A share in [0, 1] as text in percent."""
    return f"{100 * share:.{digits}f} %"
