"""Where activations begin and end: images in, one float32 vector per image out."""

from __future__ import annotations

from typing import Any

import chainer
from chainer import FunctionNode, Variable

from chainer_jo.functions import providers


def as_activation(x: Any) -> Variable:
    """x (n, c, h, w), float32, in the dtype and the memory layout that the provider computes in."""
    provider = providers.current()
    if provider is None:
        return chainer.as_variable(x)
    return AsActivation(provider).apply((x,))[0]


def spatial_mean(x: Any) -> Variable:
    """Global average pooling of an activation (n, c, h, w): float32 (n, c)."""
    provider = providers.current()
    if provider is None:
        return chainer.functions.mean(x, axis=(2, 3))
    return SpatialMean(provider).apply((x,))[0]


class AsActivation(FunctionNode):
    """`as_activation` by a provider."""

    def __init__(self, provider: providers.Provider) -> None:
        super().__init__()
        self._provider = provider

    def forward(self, inputs: tuple) -> tuple:
        self.retain_inputs(())
        return (self._provider.as_activation(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs) -> tuple:
        return (Variable(self._provider.to_float32(grad_outputs[0].array), requires_grad=False),)


class SpatialMean(FunctionNode):
    """`spatial_mean` by a provider."""

    def __init__(self, provider: providers.Provider) -> None:
        super().__init__()
        self._provider = provider

    def forward(self, inputs: tuple) -> tuple:
        self.retain_inputs(())
        self._x_shape = inputs[0].shape
        return (self._provider.spatial_mean(inputs[0]),)

    def backward(self, target_input_indexes, grad_outputs) -> tuple:
        gy = grad_outputs[0].array
        return (Variable(self._provider.spatial_mean_grad(gy, self._x_shape), requires_grad=False),)
