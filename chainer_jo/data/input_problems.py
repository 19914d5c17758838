"""All problems of an input, in one line."""

from __future__ import annotations

from chainer_jo.errors import UserError


class Problems:
    """Problems of a data set by kind: a million bad lines still make a short text."""

    EXAMPLES = 3

    def __init__(self) -> None:
        self._examples: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, what: str, example: str = "") -> None:
        self._counts[what] = self._counts.get(what, 0) + 1
        examples = self._examples.setdefault(what, [])
        if example and len(examples) < self.EXAMPLES:
            examples.append(example)

    def __len__(self) -> int:
        return len(self._counts)

    def lines(self) -> list[str]:
        """One line per kind: what, how often, and the first examples."""
        lines = []
        for what, count in self._counts.items():
            examples = self._examples[what]
            often = f" ({count} times)" if count > 1 else ""
            lines.append(what + often + (": " + ", ".join(examples) if examples else ""))
        return lines

    def raise_if_any(self, where: str) -> None:
        """Raises UserError with all of them in one line; the line begins with their place."""
        if self._counts:
            raise UserError(f"{where}: " + "; ".join(self.lines()))
