"""`replayed`: what a recording gives is what Chainer gives, bit for bit, whatever comes between."""

import copy
import weakref

import chainer
import numpy as np
import pytest
from engines import backend

from chainer_jo.method.optimizers import FlatMomentumSGD
from chainer_jo.method.preact_resnet import PreActResNet

RNG = np.random.default_rng(0)
IMAGES = RNG.standard_normal((3, 8, 2, 6, 6), np.float32)
GRADIENTS = RNG.standard_normal((8, 4), np.float32)


def network():
    return PreActResNet(2, 4, (2, 1), (8, 16), np.random.RandomState(0))


def state(net):
    """Gradients and running statistics as they are now."""
    found = {name: p.grad.copy() for name, p in net.namedparams() if p.grad is not None}
    for name, link in net.namedlinks():
        found |= {f"{name}/{key}": getattr(link, key).copy() for key in link._persistent}
    return found


def backward(y, step=0):
    y.grad = (step + 1) * GRADIENTS[: len(y)]
    y.backward()


def several_steps(net):
    for step, images in enumerate(IMAGES):
        net.cleargrads()
        y = net(images)
        backward(y, step)
        yield y.array
        yield state(net)


def two_parts(net):
    for images in IMAGES:
        net.cleargrads()
        for part in images[:4], images[4:]:
            backward(net(part))
        yield state(net)


def both_forward_first(net):
    for images in IMAGES:
        net.cleargrads()
        one, other = net(images), net(images[::-1])
        backward(one)
        backward(other)
        yield state(net)


def something_in_between(net):
    for images in IMAGES:
        net.cleargrads()
        backward(net(images))
        net.cleargrads()
        backward(net(images[:3]))
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            yield net(images).array
        with chainer.no_backprop_mode():
            yield net(images).array
        x = chainer.Variable(images)
        backward(net(x))
        yield x.grad
        yield state(net)


def moved_parameters(net):
    for images in IMAGES:
        optimizer = FlatMomentumSGD(0.1).setup(net)
        net.cleargrads()
        backward(net(images))
        optimizer.update()
        yield net.conv.W.array.copy()
        net.conv.W.array = net.conv.W.array.copy()
        for unit in net.stages:
            unit.bn1.avg_mean = unit.bn1.avg_mean + 1
        yield state(net)


def parameters_that_are_copied(net):
    """They are not C-contiguous, and change in place."""
    net.conv.W.array = np.asfortranarray(net.conv.W.array)
    for images in IMAGES:
        net.cleargrads()
        y = net(images)
        backward(y)
        net.conv.W.array -= 0.1
        yield y.array


@pytest.mark.parametrize("name", ["fp32", "mixed"])
@pytest.mark.parametrize("use", [
    several_steps, two_parts, both_forward_first, something_in_between, moved_parameters,
    parameters_that_are_copied,
])  # fmt: skip
def test_as_without_a_recording(use, name, monkeypatch):
    net, chosen = network(), backend(name)
    other = copy.deepcopy(net)
    with chainer.using_config("jo_backend", chosen):
        replayed = list(use(net))
        assert net in chosen.recordings
        monkeypatch.setattr(chosen, "recordings", None)
        eager = list(use(other))
    for ours, expected in zip(replayed, eager, strict=True):
        np.testing.assert_equal(ours, expected)


def test_chainer_computes_the_first_step_alone(monkeypatch):
    net, chosen = network(), backend("fp32")
    with chainer.using_config("jo_backend", chosen):
        steps = several_steps(net)
        next(steps), next(steps)
        monkeypatch.delattr(type(chosen), "conv2d")
        assert len(list(steps)) == 4
        with pytest.raises(AttributeError), chainer.using_config("train", False):
            net(IMAGES[0])


def test_backward_runs_once():
    net = network()
    with chainer.using_config("jo_backend", backend("fp32")):
        for images in IMAGES:
            y = net(images)
            backward(y)
            with pytest.raises(RuntimeError, match="backward has run already"):
                backward(y)
            with pytest.raises(RuntimeError, match="its gradient has no derivative"):
                y = net(images)
                y.grad = GRADIENTS
                y.backward(enable_double_backprop=True)


def test_memory_of_networks_that_are_gone_is_given_back():
    chosen, allocated = backend("fp32"), []
    with chainer.using_config("jo_backend", chosen):
        for _ in range(3):
            net = network()
            net.itself = net  # as a trainer and its extensions refer to each other
            backward(net(IMAGES[0]))
            recorder = chosen.recordings[net]._recorder
            allocated.append(weakref.ref(recorder.buffers))
            del net, recorder
    assert [memory() is None for memory in allocated] == [True, True, False]
