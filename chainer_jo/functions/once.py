"""What functions have in common whose backward pass runs once."""

from __future__ import annotations

from typing import Any

import chainer
from chainer import FunctionNode


class OnceBackward(FunctionNode):
    """Backward runs once: it lets go of what forward kept, so that the memory is reused at once.

    Gradients are arrays without a graph. Both a second backward pass and one that is to be
    differentiated again raise RuntimeError, the latter since a derivative of theirs would be taken
    for 0. Stock Chainer's functions can do both.
    """

    _kept: tuple | None = None

    def keep(self, *values: Any) -> None:
        """Called by forward: what `take` will give, if there is to be a backward pass."""
        if chainer.config.enable_backprop:
            self._kept = values

    def take(self) -> tuple:
        """Called by backward: what forward has kept, and no longer is."""
        if chainer.config.enable_backprop:
            raise RuntimeError(
                f"{self.label}: its gradient has no derivative, expected backward without "
                "enable_double_backprop"
            )
        if self._kept is None:
            raise RuntimeError(
                f"{self.label}: backward has run already, expected once for each forward pass"
            )
        kept, self._kept = self._kept, None
        return kept
