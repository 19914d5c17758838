"""The dense layer behind the network: float32 in every precision."""

from __future__ import annotations

from typing import Any

import chainer
from chainer import FunctionNode, Variable

from chainer_jo.functions import providers


def linear(x: Any, W: Any, b: Any) -> Variable:
    """x W^T + b for float32 x (n, c), W (o, c), b (o,)."""
    provider = providers.current()
    if provider is None:
        return chainer.functions.linear(x, W, b)
    return Linear(provider).apply((x, W, b))[0]


class Linear(FunctionNode):
    """`linear` by a provider."""

    def __init__(self, provider: providers.Provider) -> None:
        super().__init__()
        self._provider = provider

    def forward(self, inputs: tuple) -> tuple:
        x, W, b = inputs
        self._kept = x, W
        self.retain_inputs(())
        return (self._provider.matmul(x, W.T) + b,)

    def backward(self, target_input_indexes, grad_outputs) -> tuple:
        (x, W), gy, matmul = self._kept, grad_outputs[0].array, self._provider.matmul
        gradients = {
            0: lambda: matmul(gy, W),
            1: lambda: matmul(gy.T, x),
            2: lambda: gy.sum(axis=0),
        }
        return tuple(Variable(gradients[i](), requires_grad=False) for i in target_input_indexes)
