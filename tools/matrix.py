"""The matrix of results/README.md: which of the paper's tables and figures exist at which scale."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from committed import Reference, settings, trials

from chainer_jo.reproduction.paper.tables import TABLE1, TABLE2

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
    ("table", (1,)): "symmetric noise",
    ("table", (2,)): "asymmetric noise",
    ("table", (3,)): "Clothing1M",
    ("table", (4, 5)): "network, hyper parameters",
    ("table", (6, 8)): "sensitivity",
    ("table", (7, 9)): "the same, less noise",
    ("table", (10, 11)): "epochs of updates",
    ("table", (12, 13)): "labels by probability",
    ("figure", (1,)): "the method",
    ("figure", (2, 3)): "learning rate, training loss",
    ("figure", (4,)): "hard and soft labels",
    ("figure", (5, 6)): "pseudo labels",
    ("figure", (7, 8)): "images of Clothing1M",
}
DONE, EMPTY = "✓", "–"


def matrix(found: Sequence[Reference]) -> str:
    """A row for each table and figure of the paper, or for two of a kind; a column for each
    scale."""
    by_name = {r.name: r for r in found}
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---" * (1 + len(COLUMNS)) + "|"]
    for (kind, numbers), about in ROWS.items():
        cells = []
        for folders in COLUMNS.values():
            entries = (
                _entry(by_name[name], kind, numbers, of)
                for name, of in folders.items()
                if name in by_name
            )
            cells.append("; ".join(filter(None, entries)) or EMPTY)
        title = f"{kind.capitalize()}{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
        lines.append(f"| {title}: {about} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _entry(r: Reference, kind: str, numbers: Sequence[int], of: str) -> str:
    """For each number, the number of trials, linked, with the noise rates or settings that exist
    where some lack; empty for a folder that has none of them."""
    outputs = r.outputs(kind)
    if outputs.keys().isdisjoint(numbers):
        return ""
    entries = []
    for number in numbers:
        if output := outputs.get(number):
            link = f"[{trials([output]) or DONE}](reference/{r.name}/{kind}{number}.md)"
            entries.append(" ".join(filter(None, (link, _part(output)))))
        else:
            entries.append(EMPTY)
    return " ".join(filter(None, (of, ", ".join(entries))))


def _part(output: dict) -> str:
    """The noise rates of Tables 1 and 2 where they are not all, with the methods of a rate that
    lacks some, else the share of settings that have a trial; empty for a whole output."""
    if printed := {1: TABLE1, 2: TABLE2}.get(output.get("table", 0)):
        methods, run = printed.keys("method"), defaultdict(set)
        for cell in output["cells"]:
            if cell["trials"] and cell["row"]["method"] in methods:
                run[cell["column"]["noise_rate"]].add(cell["row"]["method"])
        if sorted(run) != sorted(printed.keys("noise_rate")):
            whole = [rate for rate in run if len(run[rate]) == len(methods)]
            parts = [f"r = {', '.join(f'{rate:g}' for rate in whole)}"]
            for rate in run.keys() - whole:
                names = " and ".join(sorted(run[rate])).replace("_", " ")
                parts.append(f"r = {rate:g}: {names} only")
            return f"({'; '.join(parts)})"
    done, planned = settings(output)
    return f"({done} of {planned} settings)" if done < planned else ""
