"""Batch normalisation and ReLU, the pair of a pre-activation network, as one function."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import chainer
from chainer import Variable
from chainer import functions as F

from chainer_jo.engine.backend import DECAY, EPS, Backend, current_backend
from chainer_jo.engine.function_nodes import ByBackend, OnceBackward


def batch_norm_relu(x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Variable:
    """relu(gamma (x - mean) / sqrt(var + EPS) + beta), per channel.

    In training (`chainer.config.train`) mean and var are the batch's, and the running statistics
    are updated in place as by `chainer.functions.batch_normalization`:
    running <- DECAY running + (1 - DECAY) batch, with the unbiased variance. In test mode the
    running statistics are used.

    Parameters
    ----------
    x : activation (n, c, h, w).
    gamma, beta : float32 (c,).
    running_mean, running_var : float32 arrays (c,).
    """
    backend = current_backend()
    if backend is None:
        return F.relu(_stock(x, gamma, beta, running_mean, running_var))
    if not chainer.config.train:
        return ByBackend(
            partial(backend.batch_norm_relu_test, mean=running_mean, var=running_var),
            [_no_gradient] * 3,
        ).apply((x, gamma, beta))[0]
    node = BatchNormReLU(backend)
    y = node.apply((x, gamma, beta))[0]
    samples = x.size // x.shape[1]
    backend.move_averages(running_mean, running_var, node.mean, node.var, samples)
    return y


class BatchNormReLU(OnceBackward):
    """Training mode by a backend."""

    def __init__(self, backend: Backend) -> None:
        super().__init__()
        self._backend = backend

    def forward(self, inputs: tuple) -> tuple:
        x, gamma, beta = inputs
        y, self.mean, self.var, saved = self._backend.batch_norm_relu_train(x, gamma, beta)
        self.keep(x, y, gamma, saved)
        return (y,)

    def backward_accumulate(self, target_input_indexes, grad_outputs, grad_inputs) -> tuple:
        x, y, gamma, saved = self.take()
        existing = dict(zip(target_input_indexes, grad_inputs, strict=True))
        accumulate = existing.pop(0, None)
        gradients = self._backend.batch_norm_relu_grad(
            x,
            y,
            gamma,
            grad_outputs[0].array,
            saved,
            None if accumulate is None else accumulate.array,
        )
        return tuple(
            Variable(_plus(gradients[i], existing.get(i)), requires_grad=False)
            for i in target_input_indexes
        )


def _no_gradient(gy: Any) -> NoReturn:
    """Raises RuntimeError: no training step needs this gradient."""
    raise RuntimeError(
        "batch_norm_relu: no gradient in test mode, expected chainer.config.train, or the stock "
        "backend"
    )


def _stock(x, gamma, beta, running_mean, running_var) -> Variable:
    if not chainer.config.train:
        return F.fixed_batch_normalization(x, gamma, beta, running_mean, running_var, eps=EPS)
    return F.batch_normalization(
        x,
        gamma,
        beta,
        eps=EPS,
        running_mean=running_mean,
        running_var=running_var,
        decay=DECAY,
    )


def _plus(gradient: Any, existing: Variable | None) -> Any:
    return gradient if existing is None else gradient + existing.array
