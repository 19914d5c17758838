"""Page of label errors: a summary, and a table for every setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

#: Columns of a setting's table: key of a record, title, factor, and decimals.
COLUMNS = (
    ("f1", "F1", 100, 1),
    ("precision", "precision", 100, 1),
    ("recall", "recall", 100, 1),
    ("average_precision", "average precision", 100, 1),
    ("right", "labels correct", 100, 1),
    ("processor_seconds", "processor seconds", 1, 2),
)
#: Columns without seconds, for methods that share a computation.
SCORES = COLUMNS[:-1]
#: Records of each method by the name of the task, in order.
Blocks = dict[str, dict[str, list[dict]]]


def markdown(
    result: dict, summary: Callable[[Blocks], list[str]], columns: Sequence[tuple] = COLUMNS
) -> str:
    """A summary, and of every setting mean and standard deviation over seeds; the best mean of a
    setting in bold."""
    seconds = " except for seconds" if columns is COLUMNS else ""
    lines = [
        "Wrong labels found and corrected: mean ± standard deviation over seeds, in percent"
        f"{seconds}; bold is the best of a setting.",
        f"{result['machine']['processor']}, {result['threads']} thread(s), cleanlab "
        f"{result['versions']['cleanlab']}, scikit-learn {result['versions']['scikit-learn']}. "
        f"{result['note']}",
        "",
        f"    {result['command']}",
    ]
    blocks: Blocks = {}
    for record in result["records"]:
        block = blocks.setdefault(record["task"], {})
        block.setdefault(record["method"], []).append(record)
    lines += ["", *summary(blocks)]
    for task, block in blocks.items():
        lines += ["", f"## {task} ({before(block):.1f} % of the labels correct before)", ""]
        lines += table([["", *(title for _, title, *_ in columns)], *_rows(block, columns)])
    return "\n".join([*lines, ""])


def _rows(block: dict[str, list[dict]], columns: Sequence[tuple]) -> Iterator[list[str]]:
    for name, rows in block.items():
        cells = [name]
        for key, _, factor, decimals in columns:
            if (mean := mean_of(rows, key)) is None:
                cells.append("-")
                continue
            best = (min if key == "processor_seconds" else max)(
                mean_of(others, key) for others in block.values()
            )
            text = f"{factor * mean:.{decimals}f}"
            if len(rows) > 1:
                text += f" ± {factor * np.std([row[key] for row in rows], ddof=1):.{decimals}f}"
            cells.append(f"**{text}**" if mean == best else text)
        yield cells


def table(rows: list[list[str]]) -> list[str]:
    """A Markdown table, header first."""
    header, *rest = (f"| {' | '.join(cells)} |" for cells in rows)
    return [header, "|---" * len(rows[0]) + "|", *rest]


def best_of(block: dict[str, list[dict]], prefix: str) -> str | None:
    """The method with the best mean F1, without wrong labels with the most correct ones, of those
    whose names begin so."""
    names = [name for name in block if name.startswith(prefix)]
    key = "right" if names and mean_of(block[names[0]], "f1") is None else "f1"
    return max(names, key=lambda name: mean_of(block[name], key), default=None)


def percent(rows: list[dict], key: str) -> str:
    return "-" if (mean := mean_of(rows, key)) is None else f"{100 * mean:.1f}"


def doubted(rows: list[dict]) -> str:
    return f"{sum(row['doubt'] for row in rows)} of {len(rows)}"


def mean_of(rows: list[dict], key: str) -> float | None:
    return None if rows[0][key] is None else float(np.mean([row[key] for row in rows]))


def before(block: dict[str, list[dict]]) -> float:
    return 100 * float(np.mean([r["right_before"] for rows in block.values() for r in rows]))
