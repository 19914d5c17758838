"""The matrix of the README: which of the paper's tables and figures exist at which scale."""

from __future__ import annotations

from collections.abc import Sequence

from committed import Reference, trials

from chainer_jo.reproduction.paper.tables import TABLE1

#: The folders of each column, and what distinguishes the others from the first.
COLUMNS = {
    "paper's scale": {"paper-mixed": "", "paper-cifar10-jpeg-mixed": "JPEG"},
    "`half`": {
        "half": "",
        "half-cifar10": "official images",
        "half-fp32": "float32",
        "half-cifar10-fp32": "official images, float32",
    },
    "`digits`": {"digits": "", "digits-clothing1m-standin": "stand-in"},
}
#: The paper's tables and figures, in a few words.
ROWS = {
    ("table", 1): "symmetric noise",
    ("table", 2): "asymmetric noise",
    ("table", 3): "Clothing1M",
    ("table", 4): "network",
    ("table", 5): "hyper parameters",
    ("table", 6): "hyper parameters, asymmetric",
    ("table", 7): "the same, less noise",
    ("table", 8): "hyper parameters, symmetric",
    ("table", 9): "the same, less noise",
    ("table", 10): "epochs of updates",
    ("table", 11): "the same, symmetric",
    ("table", 12): "label accuracy by probability",
    ("table", 13): "the same, symmetric",
    ("figure", 1): "the method",
    ("figure", 2): "learning rate",
    ("figure", 3): "training loss",
    ("figure", 4): "hard and soft labels",
    ("figure", 5): "pseudo labels: accuracy",
    ("figure", 6): "pseudo labels: loss",
    ("figure", 7): "relabelled Clothing1M images",
    ("figure", 8): "the same, other class",
}
DONE, EMPTY = "✓", "–"


def matrix(found: Sequence[Reference]) -> str:
    """A row for each table and figure of the paper, a column for each scale."""
    by_name = {r.name: r for r in found}
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---" * (1 + len(COLUMNS)) + "|"]
    for (kind, number), about in ROWS.items():
        cells = [
            "; ".join(
                _entry(by_name[name], kind, number, of)
                for name, of in folders.items()
                if name in by_name and number in by_name[name].outputs(kind)
            )
            for folders in COLUMNS.values()
        ]
        row = " | ".join(cell or EMPTY for cell in cells)
        lines.append(f"| {kind.capitalize()} {number}: {about} | {row} |")
    return "\n".join(lines)


def _entry(r: Reference, kind: str, number: int, of: str) -> str:
    """The number of trials, linked, and the noise rates or settings that exist where some lack."""
    output = r.outputs(kind)[number]
    link = f"[{trials([output]) or DONE}](results/reference/{r.name}/{kind}{number}.md)"
    return " ".join(filter(None, (of, link, _part(output))))


def _part(output: dict) -> str:
    """The noise rates of Table 1 where they are not all, else the share of a table's settings that
    have a trial; empty for a whole output."""
    cells = [cell for cell in output.get("cells", []) if cell["runs"]]
    if output.get("table") == 1:
        rates = sorted({cell["column"]["noise_rate"] for cell in cells if cell["trials"]})
        if rates != sorted(TABLE1.keys("noise_rate")):
            return f"(r = {', '.join(f'{rate:g}' for rate in rates)})"
    settings = {tuple(cell["runs"]): bool(cell["trials"]) for cell in cells}
    done = sum(settings.values())
    return f"({done} of {len(settings)} settings)" if done < len(settings) else ""
