"""Functions whose backward pass runs once say so when they are asked for more."""

import chainer
import chainer.functions as F
import numpy as np
import pytest
from engines import backend

from chainer_jo.engine.functions import as_activation, batch_norm_relu, conv2d
from chainer_jo.relabel.judge.features import FeatureNetwork

RNG = np.random.default_rng(0)
W, GAMMA, BETA = (RNG.standard_normal(s, np.float32) for s in ((4, 4, 3, 3), 4, 4))


def averages():
    return np.zeros(4, np.float32), np.ones(4, np.float32)


FUNCTIONS = {
    "conv2d": lambda x: conv2d(as_activation(x), W, 1, 1),
    "batch_norm_relu": lambda x: batch_norm_relu(as_activation(x), GAMMA, BETA, *averages()),
    "perceptron": lambda x: FeatureNetwork(4, 4, 4)(x[:, :, 0, 0]),
}


@pytest.fixture(params=FUNCTIONS)
def sum_of_squares(request):
    """Of the function's result, and what it is a function of."""
    with chainer.using_config("jo_backend", backend("fp32")):
        x = chainer.Variable(RNG.standard_normal((3, 4, 5, 5), np.float32))
        yield F.sum(FUNCTIONS[request.param](x) ** 2), x


def test_a_second_backward_pass_is_refused(sum_of_squares):
    loss, _ = sum_of_squares
    loss.backward()
    with pytest.raises(RuntimeError, match="backward has run already, expected once"):
        loss.backward()


def test_a_gradient_is_not_differentiated_as_if_it_were_constant(sum_of_squares):
    loss, x = sum_of_squares
    with pytest.raises(RuntimeError, match="its gradient has no derivative"):
        chainer.grad([loss], [x], enable_double_backprop=True)
