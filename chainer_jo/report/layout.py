"""How text is laid out in Markdown and LaTeX."""


def aligned(rows: list[list[str]]) -> list[str]:
    """A Markdown table, header first, whose columns also line up as plain text."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(t.ljust(width) for t, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [lines[0], rule, *lines[1:]]


def escape(text: str) -> str:
    """Text as LaTeX."""
    for character in "&%#_":
        text = text.replace(character, "\\" + character)
    symbols = {"±": r"$\pm$", "…": r"\dots{}", "–": "--", "→": r"$\rightarrow$", "×": r"$\times$",
               "α": r"$\alpha$", "β": r"$\beta$"}  # fmt: skip
    for character, command in symbols.items():
        text = text.replace(character, command)
    return text
