"""The residual branch of a pre-activation unit from its first convolution on, as one function."""

from __future__ import annotations

from typing import Any

import chainer
from chainer import Variable

from chainer_jo.functions import providers
from chainer_jo.functions.batch_norm_relu import batch_norm_relu
from chainer_jo.functions.conv2d import conv2d
from chainer_jo.functions.once import OnceBackward

DECAY, EPS = 0.9, 2e-5


def residual_branch(
    h: Any,
    W1: Any,
    stride: int,
    gamma: Any,
    beta: Any,
    running_mean: Any,
    running_var: Any,
    W2: Any,
    residual: Any,
) -> Variable:
    """relu(BN(h * W1)) * W2 + residual, both convolutions padded so that stride 1 keeps the size.

    A provider computes it in training as one node of the graph, since a node costs as much as a
    small convolution. Else it is put together from `conv2d` and `batch_norm_relu`, whose arguments
    these are.
    """
    provider = providers.current()
    pads = tuple(W.shape[2] // 2 for W in (W1, W2))
    if provider is None or not chainer.config.train:
        z = conv2d(h, W1, stride, pads[0])
        activated = batch_norm_relu(z, gamma, beta, running_mean, running_var, DECAY, EPS)
        return conv2d(activated, W2, 1, pads[1], residual)
    node = ResidualBranch(provider, stride, pads)
    y = node.apply((h, W1, gamma, beta, W2, residual))[0]
    samples = y.size // y.shape[1]
    provider.move_averages(running_mean, running_var, node.mean, node.var, DECAY, samples)
    return y


class ResidualBranch(OnceBackward):
    """`residual_branch` in training by a provider."""

    def __init__(self, provider: providers.Provider, stride: int, pads: tuple[int, int]) -> None:
        super().__init__()
        self._provider = provider
        self._stride = stride
        self._pads = pads

    def forward(self, inputs: tuple) -> tuple:
        self.retain_inputs(())
        h, W1, gamma, beta, W2, residual = inputs
        provider, stride, (pad1, pad2) = self._provider, self._stride, self._pads
        z = provider.conv2d(h, W1, stride, pad1, None)
        activated, self.mean, self.var, statistics = provider.batch_norm_relu_train(
            z, gamma, beta, EPS
        )
        y = provider.conv2d(activated, W2, 1, pad2, residual)
        self.keep(h, W1, gamma, W2, z, activated, statistics)
        return (y,)

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs) -> tuple:
        h, W1, gamma, W2, z, activated, statistics = self.take()
        provider, (pad1, pad2), gy = self._provider, self._pads, grad_outputs[0].array
        there = dict(zip(target_input_indexes, grad_inputs, strict=True))
        existing = {i: None if g is None else g.array for i, g in there.items()}

        gW2 = provider.conv2d_grad_weight(activated, gy, W2.shape, 1, pad2)
        gactivated = provider.conv2d_grad_input(gy, W2, z.shape, 1, pad2, None)
        gz, ggamma, gbeta = provider.batch_norm_relu_grad(
            z, activated, gamma, gactivated, statistics, None
        )
        del z, activated, gactivated
        gW1 = provider.conv2d_grad_weight(h, gz, W1.shape, self._stride, pad1)
        gradients = {2: ggamma, 3: gbeta}
        for i in gradients.keys() & existing.keys():
            if existing[i] is not None:
                gradients[i] = gradients[i] + existing[i]
        for i, W, gW in ((1, W1, gW1), (4, W2, gW2)):
            gradients[i] = provider.gradient_of(W, gW, existing.get(i))
        if 0 in existing:
            gradients[0] = provider.conv2d_grad_input(
                gz, W1, h.shape, self._stride, pad1, existing[0]
            )
        if 5 in existing:
            gradients[5] = gy if existing[5] is None else provider.add(gy, existing[5])
        return tuple(Variable(gradients[i], requires_grad=False) for i in target_input_indexes)
