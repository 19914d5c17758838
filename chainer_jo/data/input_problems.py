"""Collected problems of an input, for one message; unusable numbers."""

from __future__ import annotations

import numpy as np

from chainer_jo.errors import UserError

#: Largest usable magnitude of a number; see `unusable`.
LARGEST = 1e14
UNUSABLE = f"numbers that are not finite, or beyond {LARGEST:g}"


class Problems:
    """Problems of a data set, counted by kind: a million bad lines make a short message."""

    EXAMPLES = 3

    def __init__(self) -> None:
        self._examples: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, kind: str, example: str = "") -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        examples = self._examples.setdefault(kind, [])
        if example and len(examples) < self.EXAMPLES:
            examples.append(example)

    def __len__(self) -> int:
        return len(self._counts)

    def lines(self) -> list[str]:
        """One line per kind, with its count and first examples."""
        lines = []
        for kind, count in self._counts.items():
            examples = self._examples[kind]
            times = f" ({count} times)" if count > 1 else ""
            lines.append(kind + times + (": " + ", ".join(examples) if examples else ""))
        return lines

    def raise_if_any(self, where: str) -> None:
        """Raises UserError with all problems in one line, which begins with `where`."""
        if self._counts:
            raise UserError(f"{where}: " + "; ".join(self.lines()))


def unusable(numbers: np.ndarray) -> np.ndarray:
    """Rows of (rows, columns) with numbers beyond `LARGEST` or not finite. The sum of squares of a
    billion usable numbers is finite in float32."""
    return np.flatnonzero(~((numbers >= -LARGEST) & (numbers <= LARGEST)).all(axis=1))
