"""Function nodes whose gradients are arrays without a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import chainer
from chainer import FunctionNode, Variable


class OnceBackward(FunctionNode):
    """Frees its saved tensors in backward; no double backprop.

    Gradients are arrays without a graph. A second backward pass raises RuntimeError, and so does
    one with double backprop, whose second derivative would silently be 0.
    """

    _saved: tuple | None = None

    def keep(self, *values: Any) -> None:
        """Saves values in forward for `take`, if there is to be a backward pass."""
        if chainer.config.enable_backprop:
            self._saved = values

    def take(self) -> tuple:
        """Returns and frees the saved values, in backward."""
        if chainer.config.enable_backprop:
            raise RuntimeError(
                f"{self.label}: its gradient has no derivative, expected backward without "
                "enable_double_backprop"
            )
        if self._saved is None:
            raise RuntimeError(
                f"{self.label}: backward has run already, expected once for each forward pass"
            )
        saved, self._saved = self._saved, None
        return saved


class ByBackend(FunctionNode):
    """A backend's function whose gradients do not depend on its inputs.

    Parameters
    ----------
    function : from the input arrays to the result.
    gradients : per input, a callable from the result's gradient to the input's gradient.
    """

    def __init__(
        self, function: Callable[..., Any], gradients: Sequence[Callable[[Any], Any]]
    ) -> None:
        super().__init__()
        self._function = function
        self._gradients = gradients

    def forward(self, inputs: tuple) -> tuple:
        return (self._function(*inputs),)

    def backward(self, target_input_indexes, grad_outputs) -> tuple:
        gy = grad_outputs[0].array
        gradients = (self._gradients[i](gy) for i in target_input_indexes)
        return tuple(Variable(gradient, requires_grad=False) for gradient in gradients)
