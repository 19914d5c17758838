"""Training and evaluation through a graph step, without a GPU: a stand-in calls, not replays."""

from functools import partial
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
        optimizer = self.optimizer if self is self.made[0] else None  # the others predict
        steps = optimizer and optimizer.t
        if optimizer:
            assert optimizer._device_lr == np.float32(optimizer.lr), "a replay reads what was sent"
        self.step(*self.held)
        if optimizer:
            optimizer.t = steps
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


JOINT = partial(JointObjective, np.full(3, 1 / 3), 1.2, 0.8)


def model(objective=JOINT):
    objective = objective()
    network = PreActResNet(3, 3 * objective.heads, (1, 1), (8, 16), np.random.RandomState(0))
    return Classifier(network, objective)


def data(side=6):
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(50, side, side, 3), dtype=np.uint8)
    return images, rng.integers(3, size=50).astype(np.int32)


def train(folder, graph, objective=JOINT, epochs=3, device="@numpy", backend=None, side=6):
    """A small run with label updates and a drop of the learning rate: arrays that it ends with,
    reports by epoch, and its updater."""
    images, noisy = data(side)
    device = chainer.get_device(device)
    classifier = model(objective)
    classifier.to_device(device)
    store = SoftLabels(noisy, 3, "soft", average=2, xp=device.xp)
    mean = np.float32(images.mean(axis=0) / 255)
    pixels = Images(device.send(images), device.send(mean), 1)
    sgd = Optimization(epochs, 0.05, drops=(2,), batch_size=16, pad=1)
    trainer = first_step(
        classifier, pixels, store, sgd, 2, epochs, seed=7, noisy_labels=noisy, graph=graph,
        out=folder,
    )  # fmt: skip
    optimizer = StandIn.optimizer = trainer.updater.get_optimizer("main")
    reports = []
    trainer.extend(evaluation.Evaluation(classifier, {"test": (pixels, noisy)}, graph))
    trainer.extend(
        lambda t: reports.append(dict(t.observation)), name="keep", trigger=(1, "epoch"), priority=0
    )
    with chainer.using_config("jo_backend", backend):
        trainer.run()
    arrays = optimizer.parameters, optimizer.velocity, store.soft_labels, store.probabilities
    return [chainer.backend.CpuDevice().send(a) for a in arrays], reports, trainer.updater


def test_a_graph_trains_bit_for_bit_as_calls_do(stand_in, tmp_path):
    arrays, reports, updater = train(tmp_path / "eager", False)
    same, same_reports, through_graph = train(tmp_path / "graph", True)
    assert len(stand_in.made) == 2
    assert all(map(np.array_equal, arrays, same))
    assert reports == same_reports and len(reports) == 3
    for each in (updater, through_graph):
        assert each.get_optimizer("main").t == 10
    assert stand_in.made[0].forgotten == 0


@pytest.mark.parametrize("annealed, times", [(0.1, 1), (0.5, 4), (1.0, 8)])
def test_the_graph_is_forgotten_where_an_epoch_changes_the_objective(
    stand_in, tmp_path, monkeypatch, annealed, times
):
    """CNN-CRF's k falls over a part of the epochs, and stays where it is from then on."""
    monkeypatch.setattr(cnn_crf, "ANNEALED", annealed)
    objective = partial(CNNCRF, np.eye(3), np.full(3, 1 / 3), 8)
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
        x = Images(images, np.zeros((6, 6, 3), np.float32)).plain(slice(None))
        with chainer.using_config("jo_backend", backend):
            optimizer.update(classifier, x, one_hot)
        bias = classifier.predictor.dense.b
        updated[precision] = optimizer.gradients, bias.grad, optimizer.velocity
    for exact, half in zip(updated["fp32"], updated["mixed"], strict=True):
        scale = 1024 if exact is updated["fp32"][1] else 1
        assert np.linalg.norm(half / scale - exact) < 4e-2 * np.linalg.norm(exact)
