"""A printed table as data: numbers looked up by the names of their row and column."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, overload

Key = str | int | float
Keys = tuple[Key, ...]
Number = int | float
NumberName = Literal["noise_rate", "value"]
WordName = Literal["accuracy", "method", "parameter", "quantity", "range", "score"]


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

    def cell(self, **keys: Key) -> Number:
        """The number printed at `keys`; KeyError where the paper prints none, and as in `value`."""
        return self.cells[self._ordered(keys)]

    def value(self, **keys: Key) -> Number | None:
        """The number printed at `keys`, or None where the paper prints none.

        Raises KeyError if `keys` are not exactly the table's `names`.
        """
        return self.cells.get(self._ordered(keys))

    def is_bold(self, **keys: Key) -> bool:
        """True if the number at `keys` is printed in bold; KeyError as in `value`."""
        return self._ordered(keys) in self.bold

    @overload
    def keys(self, name: NumberName, **given: Key) -> tuple[Number, ...]: ...
    @overload
    def keys(self, name: WordName, **given: Key) -> tuple[str, ...]: ...
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


@dataclass(frozen=True)
class Row:
    """One line of a table drawn as text: head, blocks between bars, places of starred cells."""

    head: str
    blocks: tuple[tuple[str, ...], ...]
    starred: frozenset[tuple[int, int]]

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(cell for block in self.blocks for cell in block)


def rows(text: str) -> Iterator[Row]:
    """Read a table drawn as text: per line ``head : cell *bold_cell ... | cell ...``."""
    for line in text.strip().splitlines():
        head, _, rest = line.partition(":")
        words = [block.split() for block in rest.split("|")]
        places = ((b, c) for b, block in enumerate(words) for c in range(len(block)))
        starred = frozenset((b, c) for b, c in places if words[b][c][0] == "*")
        blocks = tuple(tuple(word.lstrip("*") for word in block) for block in words)
        yield Row(head.strip(), blocks, starred)


def number(text: str) -> Number:
    """An int where the paper prints one, else a float; reads ``50k`` as well."""
    if text.endswith("k"):
        return 1000 * number(text[:-1])
    return float(text) if "." in text else int(text)
