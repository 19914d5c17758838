"""Training and evaluation through a graph step, without a GPU: a stand-in calls, not replays."""

from types import SimpleNamespace

import chainer
import numpy as np
import pytest
from engines import stand_in as stand_in_cudnn

from chainer_jo.method import cnn_crf, updater
from chainer_jo.method import images as images_module
from chainer_jo.method.algorithm1 import Optimization, first_step
from chainer_jo.method.cnn_crf import CNNCRF
from chainer_jo.method.extensions import evaluation
from chainer_jo.method.images import Images
from chainer_jo.method.objectives import Classifier, JointObjective
from chainer_jo.method.optimizers import FlatMomentumSGD
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.soft_labels import SoftLabels


class StandIn:
    """Calls the step on arrays that stay the same, and undoes what a replay would not do."""

    made = []
    optimizer = None

    def __init__(self, step, cupy):
        self.step = step
        self.held = None
        self.forgotten = 0
        StandIn.made.append(self)

    def __call__(self, *arrays):
        if self.held is None or self.held[0].shape != arrays[0].shape:
            self.held = tuple(np.empty_like(a) for a in arrays)
        for held, given in zip(self.held, arrays, strict=True):
            held[...] = given
        steps = self.optimizer and self.optimizer.t
        if self.optimizer:
            assert self.optimizer._sent_lr == self.optimizer.lr, "a replay reads what was sent"
        self.step(*self.held)
        if self.optimizer:
            self.optimizer.t = steps
        return self.held

    def forget(self):
        self.forgotten += 1


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(StandIn, "made", [])
    for module in (updater, evaluation):
        monkeypatch.setattr(module, "GraphStep", StandIn)
        monkeypatch.setattr(module, "cuda", SimpleNamespace(cupy=np))
    return StandIn


def model(seed=0, objective=None):
    objective = objective or JointObjective(np.full(3, 1 / 3), 1.2, 0.8)
    network = PreActResNet(1, 3 * objective.heads, (1, 1), (4, 8), np.random.RandomState(seed))
    return Classifier(network, objective)


def data():
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(50, 6, 6, 1), dtype=np.uint8)
    return images, rng.integers(3, size=50).astype(np.int32)


def train(folder, graph, objective=None, epochs=3):
    images, noisy = data()
    classifier = model(objective=objective)
    store = SoftLabels(noisy, 3, "soft", average=2)
    pixels = Images(images, np.float32(images.mean(axis=0) / 255), 1)
    sgd = Optimization(epochs, 0.05, batch_size=16, pad=1)
    trainer = first_step(
        classifier, pixels, store, sgd, 2, 3, seed=7, noisy_labels=noisy, graph=graph, out=folder
    )
    optimizer = StandIn.optimizer = trainer.updater.get_optimizer("main")
    reports = []
    trainer.extend(
        lambda t: reports.append(dict(t.observation)), name="keep", trigger=(1, "epoch"), priority=0
    )
    trainer.run()
    return optimizer.parameters, store.soft_labels, reports, optimizer.t


def test_a_graph_trains_bit_for_bit_as_calls_do(stand_in, tmp_path):
    eager, graph = train(tmp_path / "eager", False), train(tmp_path / "graph", True)
    assert len(stand_in.made) == 1
    assert np.array_equal(eager[0], graph[0]) and np.array_equal(eager[1], graph[1])
    assert eager[2] == graph[2] and len(eager[2]) == 3
    assert eager[3] == graph[3] == 10
    assert stand_in.made[0].forgotten == 0


@pytest.mark.parametrize("annealed, times", [(0.1, 1), (0.5, 4), (1.0, 8)])
def test_the_graph_is_forgotten_where_an_epoch_changes_the_objective(
    stand_in, tmp_path, monkeypatch, annealed, times
):
    """CNN-CRF's k falls over a part of the epochs, and stays where it is from then on."""
    monkeypatch.setattr(cnn_crf, "ANNEALED", annealed)
    objective = CNNCRF(np.eye(3), np.full(3, 1 / 3), 8)
    train(tmp_path, True, objective, epochs=8)
    assert stand_in.made[0].forgotten == times


def test_predictions_through_a_graph(stand_in, monkeypatch):
    monkeypatch.setattr(images_module, "BATCH", 16)
    images, _ = data()
    pixels = Images(images, np.float32(images.mean(axis=0) / 255), 1)
    classifier = model()
    for _ in range(30):
        classifier.predictor(pixels.plain(slice(None)))  # moves the running statistics
    classes = evaluation.Predictor(classifier, graph=True)(pixels)
    assert np.array_equal(classes, evaluation.Predictor(classifier)(pixels))
    assert len(set(classes)) > 1, "all the same, as from an array that was overwritten"


def test_a_scaled_loss_leaves_scaled_gradients_and_an_unscaled_update():
    images, labels = data()
    one_hot = np.eye(3, dtype=np.float32)[labels]
    updated = {}
    for precision in ("fp32", "mixed"):
        backend, _ = stand_in_cudnn(precision)
        classifier = model()
        optimizer = FlatMomentumSGD(0.05, 0.9, 1e-4).setup(classifier)
        x = Images(images, np.zeros((6, 6, 1), np.float32)).plain(slice(None))
        with chainer.using_config("jo_backend", backend):
            optimizer.update(classifier, x, one_hot)
        bias = classifier.predictor.dense.b
        updated[precision] = optimizer.gradients, bias.grad, optimizer.velocity
    for exact, half in zip(updated["fp32"], updated["mixed"], strict=True):
        scale = 1024 if exact is updated["fp32"][1] else 1
        assert np.linalg.norm(half / scale - exact) < 4e-2 * np.linalg.norm(exact)


def test_the_learning_rate_is_sent_when_it_changes():
    optimizer = FlatMomentumSGD(0.05).setup(model())
    optimizer.send_lr()
    assert optimizer._device_lr == np.float32(0.05)
    optimizer.lr = 0.005
    optimizer.send_lr()
    assert optimizer._device_lr == np.float32(0.005)
