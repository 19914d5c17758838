"""Text of terminals and Markdown pages."""


def aligned(rows: list[list[str]]) -> list[str]:
    """A Markdown table, header first, whose columns also line up as plain text."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(t.ljust(width) for t, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [lines[0], rule, *lines[1:]]


def counted(number: int, thing: str) -> str:
    """A number of things: "1 run", "3 runs"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def percent(share: float, digits: int = 1) -> str:
    """A share in [0, 1] as text in percent."""
    return f"{100 * share:.{digits}f} %"
