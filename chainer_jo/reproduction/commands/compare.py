"""Comparison of results computed here with the committed ones (``reproduce/compare.py``)."""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from chainer_jo import files
from chainer_jo.command_line import exit_codes, folders_parser, print_safely
from chainer_jo.reproduction import agreement
from chainer_jo.reproduction.agreement import DIFFERS, WITHIN, Comparison, in_words
from chainer_jo.reproduction.experiments.experiment import PRECISIONS
from chainer_jo.text import aligned, counted

#: A cell whose trials equal the trials of the reference.
SAME = "the same numbers"


def main(description: str, argv: list[str] | None = None) -> None:
    """Entry point: prints the cells that differ and one verdict; ends the process with 0 (agrees),
    1 (differs) or 2 (bad input, or nothing to compare)."""
    with exit_codes():
        parser = folders_parser(description, results="results", reference="results/reference")
        parser.add_argument("--all", action="store_true", help="show also cells that agree")
        flags = parser.parse_args(argv)
        computed = flags.results / flags.preset
        committed = flags.reference / _reference_of(flags.preset, flags.reference)
        comparisons = agreement.compare_pairs(agreement.read_pairs(computed, committed))
        for name, folder in (("here", computed), ("reference", committed)):
            print_safely(f"{name:9}  {folder}: {origin(folder)}")
        print()
        differing = [j for j in comparisons if j.verdict == DIFFERS]
        if shown := comparisons if flags.all else differing:
            print_safely(*_table(shown), "", sep="\n")
        print_safely(*_counts(comparisons), "", sep="\n")
        print(*_verdict(comparisons), sep="\n")
        sys.exit(1 if differing else 0)


def _reference_of(name: str, reference: Path) -> str:
    """Name of the committed folder: its own, or without the precision at its end if no table of
    that precision is committed. Rounding differs by less than the scatter over trials."""
    whole, _, precision = name.rpartition("-")
    own = any((reference / name).glob("table*.json"))
    return whole if precision in PRECISIONS and not own else name


def origin(folder: Path) -> str:
    """The devices, engines, commits and code that computed a results folder."""
    path = folder / "provenance.json"
    provenance = files.read_json(path, missing={})
    with files.expected(path, "it whole, or removed"):
        values = [
            ", ".join(str(value or "unknown") for value in provenance.get(key, []))
            for key in ("devices", "engines", "commits", "sources")
        ]
    names = ("", "engine ", "commit ", "code ")
    found = " | ".join(f"{n}{v}" for n, v in zip(names, values, strict=True) if v)
    return found or "device and code unknown"


def _table(comparisons: Sequence[Comparison]) -> list[str]:
    rows = [["", "here", "reference", "difference", "limit", ""]]
    for j in comparisons:
        pair = j.pair
        rows.append([
            f"{pair.table}, {pair.cell}", in_words(pair.here),
            in_words(pair.reference),
            f"{pair.difference:+.1f}" if pair.comparable else "",
            f"{j.limit:.1f}" if j.limit is not None else "", j.verdict,
        ])  # fmt: skip
    return aligned(rows)


def _counts(comparisons: Sequence[Comparison]) -> list[str]:
    """One line per table: the number of cells with each verdict, each cell in one column."""
    verdicts = (SAME, *agreement.VERDICTS)
    rows = [["cells", *verdicts]]
    for table in dict.fromkeys(j.pair.table for j in comparisons):
        cells = [j for j in comparisons if j.pair.table == table and j.pair.unit != agreement.MEAN]
        counts = Counter(
            SAME if j.verdict == WITHIN and j.pair.same_numbers else j.verdict for j in cells
        )
        rows.append([table, *(str(counts[verdict]) for verdict in verdicts)])
    return aligned(rows)


def _verdict(comparisons: Sequence[Comparison]) -> list[str]:
    apart = [j for j in comparisons if j.verdict == DIFFERS]
    compared = [j for j in comparisons if j.verdict in (WITHIN, DIFFERS)]
    limits = sorted(j.limit for j in compared if j.limit is not None and j.pair.unit == "percent")
    means, lines = sum(j.pair.unit == agreement.MEAN for j in compared), []
    of = f"{counted(len(compared) - means, 'cell')}, {counted(means, 'mean')} over a table"
    if apart:
        lines.append(f"DIFFERS: {len(apart)} of {len(compared)} numbers ({of}) differ.")
        most = max(len(j.pair.here.finished) for j in comparisons)
        if most < max(len(j.pair.reference.finished) for j in comparisons):
            lines.append(
                "A single trial can be an outlier; more trials (--trials) reveal a true difference."
            )
    else:
        lines.append(f"AGREES: all {len(compared)} numbers ({of}) are within scatter.")
    if limits:
        lines.append(
            f"Smallest detectable difference: {limits[0]:.1f} to {limits[-1]:.1f} points, "
            f"{statistics.median(limits):.1f} in the median cell; more trials lower it."
        )
    return lines
