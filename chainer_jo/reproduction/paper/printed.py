"""A printed table as data: numbers looked up by the names of their row and column."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Key = str | int | float
Keys = tuple[Any, ...]
Number = int | float


@dataclass(frozen=True)
class PrintedTable:
    """The numbers of one table of the paper; ``caption`` describes them in our words.

    ``cells`` maps a tuple of keys to the number printed there, in the paper's order; ``names`` are
    the names of these keys, such as ``("method", "score", "accuracy", "noise_rate")``; ``bold``
    holds the keys of the cells printed in bold. Accuracies are in percent, noise rates fractions.
    """

    number: int
    caption: str
    names: tuple[str, ...]
    cells: Mapping[Keys, Number]
    bold: frozenset[Keys] = frozenset()

    def keys(self, name: str, **given: Key) -> tuple[Any, ...]:
        """The values of the key `name`, in the paper's order, among the cells where `given` hold;
        KeyError for other names than the table's."""
        cells = (dict(zip(self.names, cell, strict=True)) for cell in self.cells)
        values = (cell[name] for cell in cells if all(cell[k] == v for k, v in given.items()))
        return tuple(dict.fromkeys(values))


@dataclass(frozen=True, kw_only=True)
class SensitivityTable(PrintedTable):
    """Validation accuracy (percent) by parameter and value, as the others stay (Tables 6 to 11).
    ``chosen`` maps each varied parameter to its value in bold, ``fixed`` the others to theirs."""

    noise: str
    noise_rate: float
    chosen: Mapping[str, Number]
    fixed: Mapping[str, Number]

    def others(self, parameter: str) -> dict[str, Number]:
        """The parameters that stay while `parameter` varies."""
        return {**self.fixed, **{k: v for k, v in self.chosen.items() if k != parameter}}


class Row(NamedTuple):
    """One line of a table drawn as text: head, cells, and the starred cells."""

    head: str
    cells: list[str]
    starred: list[bool]


def rows(text: str) -> Iterator[Row]:
    """Read a table drawn as text: per line ``head : cell *bold_cell ... | cell ...``."""
    for line in text.strip().splitlines():
        head, _, rest = line.partition(":")
        words = rest.replace("|", " ").split()
        yield Row(head.strip(), [w.lstrip("*") for w in words], [w[0] == "*" for w in words])


def number(text: str) -> Number:
    """An int where the paper prints one, else a float."""
    return float(text) if "." in text else int(text)


def printed_table(
    table_number: int,
    caption: str,
    names: tuple[str, ...],
    lines: Iterable[Row],
    columns: Sequence[Keys],
) -> PrintedTable:
    """The table of these lines: a cell has the words of its line's head and its column as keys."""
    cells: dict[Keys, Number] = {}
    bold: set[Keys] = set()
    for line in lines:
        for column, cell, starred in zip(columns, line.cells, line.starred, strict=True):
            keys = (*line.head.split(), *column)
            cells[keys] = number(cell)
            if starred:
                bold.add(keys)
    return PrintedTable(table_number, caption, names, cells, frozenset(bold))
