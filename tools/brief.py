"""Tables 1 and 2 in brief, and the gain of the joint method, for results/README.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from committed import Reference

CROSS_ENTROPY, JOINT = "cross_entropy", "joint"
Numbers = Mapping[tuple, float]
#: The columns of both tables: method, score and accuracy.
NOISY_LABELS = {"noisy labels": ("noisy_labels", "initial", "recovery")}
LABELS = {"label accuracy": (JOINT, "last", "recovery")}
TABLE1 = {
    "cross entropy, best": (CROSS_ENTROPY, "best", "test"),
    "cross entropy, last": (CROSS_ENTROPY, "last", "test"),
    "joint, last": (JOINT, "last", "test"),
}
TABLE2 = {
    name: (method, "last", "test")
    for name, method in (
        ("cross entropy", CROSS_ENTROPY),
        ("Forward", "forward"),
        ("CNN-CRF", "cnn_crf"),
        ("joint", JOINT),
    )
}


def both(r: Reference, number: int) -> tuple[Numbers, Numbers]:
    """Means here and the paper's numbers in Table 1 or 2, by method, score, accuracy and noise
    rate, without empty cells."""
    cells = r.outputs("table")[number]["cells"]
    keys = [(*cell["row"].values(), *cell["column"].values()) for cell in cells]
    means, papers = (
        {key: c[name] for key, c in zip(keys, cells, strict=True) if c[name] is not None}
        for name in ("mean", "paper")
    )
    return means, papers


def tables(found: Sequence[Reference]) -> tuple[str, str]:
    """Tables 1 and 2 in brief: rows in which every method has a trial, without the row at the
    top of the README."""
    by_name = {r.name: r for r in found}
    columns = NOISY_LABELS | LABELS | TABLE1
    rows = [
        row
        for name, scale in (("paper-cifar10-jpeg-mixed", "paper's, JPEG"), ("half", "`half`"))
        for row in _brief(by_name[name], 1, scale, columns)
    ]
    columns2 = NOISY_LABELS | LABELS | TABLE2
    rows2 = [row[1:] for row in _brief(by_name["half"], 2, "", columns2)]
    return table(["scale", "r", *columns], rows), table(["r", *columns2], rows2)


def _brief(r: Reference, number: int, scale: str, columns: Mapping[str, tuple]) -> list[list[str]]:
    """A row for each noise rate at which every column has a mean: ours / the paper's."""
    ours, paper = both(r, number)
    rows = []
    for rate in sorted({key[-1] for key in ours}):
        keys = [(*key, rate) for key in columns.values()]
        if ours.keys() >= set(keys):
            link = f"[{scale}](reference/{r.name}/table{number}.md)"
            pairs = ([of[key] for of in (ours, paper) if key in of] for key in keys)
            cells = [" / ".join(f"{number:.1f}" for number in pair) for pair in pairs]
            rows.append([link, f"{rate:g}", *cells])
    return rows


def gains(found: Sequence[Reference]) -> str:
    """Test accuracy of the joint method at the last epoch minus another method's at its best."""
    by_name = {r.name: r for r in found}
    rows = []
    for name, number, method, words in (
        ("paper-mixed", 1, CROSS_ENTROPY, "cross entropy, symmetric, paper's scale"),
        ("half", 1, CROSS_ENTROPY, "cross entropy, symmetric, `half`"),
        ("half", 2, "forward", "Forward, asymmetric, `half`"),
        ("half", 2, "cnn_crf", "CNN-CRF, asymmetric, `half`"),
    ):
        numbers = both(by_name[name], number)
        rates = [key[-1] for key in numbers[0] if key[:3] == TABLE1["joint, last"]]
        gained = ([of[*TABLE1["joint, last"], r] - of[method, "best", "test", r] for r in rates]
                  for of in numbers)  # fmt: skip
        rows.append([words, *map(_range, gained)])
    return table(["versus the best epoch of", "here (points)", "paper (points)"], rows)


def _range(numbers: Iterable[float]) -> str:
    words = [f"{number:.1f}" for number in sorted(numbers)]
    return " to ".join(dict.fromkeys((words[0], words[-1])))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
