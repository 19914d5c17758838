"""Function nodes whose gradients are arrays without a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import chainer
from chainer import FunctionNode, Variable


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


class ByBackend(FunctionNode):
    """A function of a backend that keeps nothing of its inputs.

    Parameters
    ----------
    function : gives the result, of the input arrays.
    gradients : for each input a callable that gives its gradient, of the result's.
    """

    def __init__(
        self, function: Callable[..., Any], gradients: Sequence[Callable[[Any], Any]]
    ) -> None:
        super().__init__()
        self._function = function
        self._gradients = gradients

    def forward(self, inputs: tuple) -> tuple:
        self.retain_inputs(())
        return (self._function(*inputs),)

    def backward(self, target_input_indexes, grad_outputs) -> tuple:
        gy = grad_outputs[0].array
        gradients = (self._gradients[i](gy) for i in target_input_indexes)
        return tuple(Variable(gradient, requires_grad=False) for gradient in gradients)
