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

    ``names`` are the names of the keys that together address a cell, such as ``("method", "score",
    "accuracy", "noise_rate")``; ``cells`` maps a tuple of keys, in that order, to the number
    printed there; ``bold`` holds the keys of the cells printed in bold. Accuracies are in percent,
    noise rates are fractions. Cells keep the paper's order: row by row, from left to right.
    """

    number: int
    caption: str
    names: tuple[str, ...]
    cells: Mapping[Keys, Number]
    bold: frozenset[Keys] = frozenset()

    def value(self, **keys: Key) -> Number | None:
        """The number printed at `keys`, or None where the paper prints none.

        Raises KeyError if `keys` are not exactly the table's `names`.
        """
        return self.cells.get(self._ordered(keys))

    def is_bold(self, **keys: Key) -> bool:
        """True if the number at `keys` is printed in bold; KeyError as in `value`."""
        return self._ordered(keys) in self.bold

    def keys(self, name: str, **given: Key) -> tuple[Any, ...]:
        """The values of the key `name`, in the paper's order, among the cells where `given` hold;
        KeyError for other names than the table's."""
        cells = (dict(zip(self.names, cell, strict=True)) for cell in self.cells)
        values = (cell[name] for cell in cells if all(cell[k] == v for k, v in given.items()))
        return tuple(dict.fromkeys(values))

    def _ordered(self, keys: Mapping[str, Key]) -> Keys:
        if set(keys) != set(self.names):
            raise KeyError(
                f"Table {self.number} is addressed by {self.names}, not by {tuple(keys)}"
            )
        return tuple(keys[name] for name in self.names)


@dataclass(frozen=True, kw_only=True)
class SensitivityTable(PrintedTable):
    """Validation accuracy (percent) as one parameter varies and the others stay (Tables 6 to 11).

    Cells are addressed by ``parameter`` and ``value``. ``chosen`` maps each varied parameter to its
    value in bold; ``fixed`` maps the parameters that the table never varies to their values.
    """

    noise: str
    noise_rate: float
    chosen: Mapping[str, Number]
    fixed: Mapping[str, Number]

    def others(self, parameter: str) -> dict[str, Number]:
        """The parameters that stay while `parameter` varies."""
        return {**self.fixed, **{k: v for k, v in self.chosen.items() if k != parameter}}


class Row(NamedTuple):
    """One line of a table drawn as text: head, cells, and those of them that are starred."""

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
