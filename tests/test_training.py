"""The optimizer against Chainer's, the order of images, the updater against a loop by hand."""

from types import SimpleNamespace

import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer import serializers, training

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.method import extensions, optimizers
from chainer_jo.method.algorithm1 import Optimization, first_step
from chainer_jo.method.extensions import epoch_end
from chainer_jo.method.images import Images
from chainer_jo.method.iterator import BatchIterator
from chainer_jo.method.objectives import Classifier, JointObjective
from chainer_jo.method.optimizers import CHUNK_ELEMENTS, FlatMomentumSGD
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.soft_labels import SoftLabels
from chainer_jo.method.updater import JointUpdater


def network(seed=0):
    return PreActResNet(1, 3, (1, 1), (4, 8), np.random.RandomState(seed))


def filled(chain):
    """The model with weights that follow from their sizes."""
    for _, param in sorted(chain.namedparams()):
        param.array[...] = np.random.default_rng(param.size).normal(size=param.shape)
    return chain


@pytest.mark.usefixtures("arithmetic")
def test_optimizer_is_chainers_momentum_sgd_with_weight_decay():
    L = chainer.links
    ours, theirs = (filled(chainer.Sequential(L.Linear(2, 600), L.Linear(600, 200))) for _ in "ab")
    flat = FlatMomentumSGD(0.1, 0.9, 1e-2).setup(ours)
    stock = chainer.optimizers.MomentumSGD(0.1, 0.9).setup(theirs)
    stock.add_hook(chainer.optimizer_hooks.WeightDecay(1e-2))
    assert flat.parameters.size > 2 * CHUNK_ELEMENTS
    rng = np.random.default_rng(0)
    for step in range(4):
        x = rng.normal(size=(5, 2)).astype(np.float32)
        for optimizer, link in ((flat, ours), (stock, theirs)):
            optimizer.lr = 0.1 / (1 + step)
            optimizer.update(lambda x, link=link: F.mean(link(x) ** 2), x)
    theirs = dict(theirs.namedparams())
    for name, param in ours.namedparams():
        np.testing.assert_allclose(param.array, theirs[name].array, rtol=1e-5, atol=1e-7)


def test_velocity_is_saved_in_the_order_of_names_on_every_device(monkeypatch):
    """On a GPU parameters of odd size come last in memory: here as the optimizer is set up."""

    def set_up(on_gpu):
        chain = filled(chainer.ChainList(chainer.links.Linear(3, 5), chainer.links.Linear(5, 8)))
        with monkeypatch.context() as patch:
            patch.setattr(optimizers, "is_on_gpu", lambda _: on_gpu)
            return FlatMomentumSGD(0.1, 0.9, 1e-2).setup(chain), chain

    def step(optimizer, chain):
        optimizer.update(lambda x: F.mean(chain[1](F.relu(chain[0](x))) ** 2), x)
        return [param.array.copy() for _, param in sorted(chain.namedparams())]

    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    (cpu, on_cpu), (gpu, on_gpu) = set_up(False), set_up(True)
    for _ in range(3):
        expected, same = step(cpu, on_cpu), step(gpu, on_gpu)
    assert all(map(np.array_equal, expected, same))
    assert not np.array_equal(cpu.velocity, gpu.velocity), "otherwise nothing is tested"
    saved = []
    for optimizer in (cpu, gpu):
        serializer = serializers.DictionarySerializer()
        optimizer.serialize(serializer)
        saved.append(serializer.target)
    assert all(np.array_equal(saved[0][name], saved[1][name]) for name in saved[0])
    expected = step(cpu, on_cpu)
    gpu.serialize(serializers.NpzDeserializer(saved[0]))
    assert all(map(np.array_equal, expected, step(gpu, on_gpu)))


def test_what_the_optimizer_cannot_do_is_named():
    links = chainer.links
    with pytest.raises(UserError, match="parameter /1/W: no shape yet, expected"):
        FlatMomentumSGD(0.1).setup(chainer.Sequential(links.Linear(3, 2), links.Linear(None, 2)))
    both = chainer.ChainList(links.Linear(3, 3), links.Linear(3, 2))
    optimizer = FlatMomentumSGD(0.1).setup(both)
    with pytest.raises(UserError, match="parameter /1/W: no gradient, expected"):
        optimizer.update(lambda: F.sum(both[0](np.ones((1, 3), np.float32))))
    with pytest.raises(UserError, match="hooks: not called by FlatMomentumSGD"):
        optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(1.0))
    before = optimizer.parameters.copy()
    both[0].b.update_rule.enabled = False  # as by disable_update()
    with pytest.raises(UserError, match="parameter /0/b: updates are disabled; use an"):
        optimizer.update(lambda: F.sum(both[1](both[0](np.ones((1, 3), np.float32)))))
    np.testing.assert_array_equal(optimizer.parameters, before)


def small_chain():
    chain = chainer.links.Linear(3, 2)
    chain.W.array[...] = np.arange(6).reshape(2, 3)
    return chain


def loss_of(chain):
    return F.sum(chain(np.ones((4, 3), np.float32)) ** 2)


def test_a_parameter_that_was_given_another_array_is_trained_and_looked_at():
    chain, same = small_chain(), small_chain()
    optimizer, other = FlatMomentumSGD(1e-3).setup(chain), FlatMomentumSGD(1e-3).setup(same)
    chain.W.array = chain.W.array * 2
    same.W.array *= 2
    for _ in range(3):
        optimizer.update(lambda: loss_of(chain))
        other.update(lambda: loss_of(same))
    np.testing.assert_array_equal(chain.W.array, same.W.array)
    assert np.shares_memory(chain.W.array, optimizer.parameters) and optimizer.is_finite()
    chain.b.array = np.full_like(chain.b.array, np.nan)
    assert not optimizer.is_finite()


def test_gradients_of_whoever_computes_them_count_once(monkeypatch):
    """Where a backend asks for scaled losses, as in half precision, but nobody has scaled one."""
    backend = SimpleNamespace(loss_scale=1024.0)
    monkeypatch.setattr(optimizers, "current_backend", lambda: backend)
    chain, same = small_chain(), small_chain()
    optimizer = FlatMomentumSGD(1e-3).setup(chain)
    optimizer.update(lambda: loss_of(chain))
    other = FlatMomentumSGD(1e-3).setup(same)
    same.cleargrads()
    loss_of(same).backward()
    other.update()
    np.testing.assert_allclose(chain.W.array, same.W.array, rtol=1e-6)
    assert not np.allclose(chain.W.array, small_chain().W.array)


@pytest.mark.parametrize("parameter, loss", [(np.nan, 1.0), (np.inf, 1.0), (1.0, np.nan)])
def test_what_is_not_finite_ends_training(parameter, loss):
    """Not every engine passes a NaN on to the loss."""
    chain = small_chain()
    optimizer = FlatMomentumSGD(0.1).setup(chain)
    updater = SimpleNamespace(epoch=3, get_optimizer=lambda name: optimizer)
    trainer = SimpleNamespace(updater=updater, observation={"loss": 1.0})
    stop = extensions.StopWhenDiverged()
    stop(trainer)
    chain.b.array[1], trainer.observation["loss"] = parameter, loss
    with pytest.raises(extensions.Diverged, match="in epoch 3"):
        stop(trainer)


def test_the_best_epoch_is_the_first_of_the_highest_validation():
    model = small_chain()
    best = extensions.BestEpoch(model, keep_weights=True)
    for epoch, validation in enumerate((0.2, 0.5, 0.5, 0.3), 1):
        model.W.array[...] = epoch
        updater = SimpleNamespace(epoch=epoch)
        best(SimpleNamespace(observation={"validation": validation}, updater=updater))
    best.restore()
    assert (best.epoch, best.validation) == (2, 0.5) and (model.W.array == 2).all()


def test_what_is_predicted_of_an_image_does_not_depend_on_the_others():
    rng = np.random.RandomState(0)
    network = PreActResNet(1, 3, (1,), (4,), rng)
    model = Classifier(network, JointObjective(np.full(3, 1 / 3)))
    for link in network.links():
        if hasattr(link, "avg_var"):
            link.avg_var[...] = 1
    x = rng.normal(0, 1, (8, 1, 6, 6)).astype(np.float32)
    one_by_one = np.concatenate([model.predict(x[i : i + 1]) for i in range(8)])
    np.testing.assert_allclose(model.predict(x), one_by_one, rtol=1e-5)
    assert np.ptp(one_by_one, axis=0).min() > 1e-3


def small_updater(optimizer=None, graph=False, objective=JointObjective):
    """Five steps of 8 images are two epochs of 20; some true labels are not known."""
    rng = np.random.default_rng(0)
    x, noisy = rng.random((20, 5), dtype=np.float32), rng.integers(3, size=20).astype(np.int32)
    objective = objective(np.full(3, 1 / 3, np.float32), alpha=1.2, beta=0.8)
    weights = rng.random((3, 5), dtype=np.float32)
    model = Classifier(chainer.links.Linear(5, 3, initialW=weights), objective)
    return JointUpdater(
        BatchIterator(20, 8, 0, 1, 0, False),
        (optimizer or FlatMomentumSGD(0.5, 0.9, 1e-2)).setup(model),
        SimpleNamespace(fetch=lambda *_: (), augmented=lambda batch: x[batch.indices]),
        SoftLabels(noisy, 3),
        noisy,
        np.where(noisy == 2, -1, noisy),
        graph=graph,
    )


def test_optimizers_of_chainer_train_too():
    stock = chainer.optimizers.MomentumSGD(0.5, 0.9)
    others = [small_updater(each) for each in (stock, chainer.optimizers.Adam())]
    stock.add_hook(chainer.optimizer_hooks.WeightDecay(1e-2))
    updaters = [small_updater(), *others]
    start = updaters[0].model.predictor.W.array.copy()
    for updater in updaters:
        for _ in range(5):
            updater.update()
    ours, same, adam = (updater.model.predictor.W.array for updater in updaters)
    np.testing.assert_allclose(ours, same, rtol=1e-5)
    assert np.abs(adam - start).min() > 1e-4
    with pytest.raises(UserError, match="CUDA graph with Adam: expected FlatMomentumSGD"):
        small_updater(chainer.optimizers.Adam(), graph=True)


@pytest.mark.parametrize("known", [True, False])
def test_an_epochs_means_and_accuracies_are_reported(known):
    """Each epoch's are its own, and labels that are not known count neither as right nor wrong."""
    updater = small_updater()
    if not known:
        updater._references["true"] = np.full(20, -1)
    noisy = updater.labels.soft_labels.argmax(axis=1)
    for steps in (3, 2):
        losses, report = [], {}
        with chainer.Reporter().scope(report):
            for _ in range(steps):
                assert not report
                updater.update()
                losses.append({k: float(v) for k, v in updater.model.objective.terms.items()})
        right = updater.labels.probabilities.argmax(axis=1) == noisy
        assert report.pop("accuracy/noisy") == right.mean()
        if known:
            assert report.pop("accuracy/true") == right[noisy != 2].mean()
        assert right.mean() != right[noisy != 2].mean(), "otherwise nothing is tested"
        assert report == pytest.approx(
            {name: np.mean([step[name] for step in losses]) for name in losses[0]}
        )
    assert updater.epoch == updater.get_optimizer("main").epoch == 2 and updater.replays == 0


class ByEpoch(JointObjective):
    """A loss with a weight by epoch that no checkpoint has, and a term in float64."""

    def start_epoch(self, epoch):
        self.alpha = 0.7 + epoch
        return True

    def forward(self, logits, labels):
        loss = super().forward(logits, labels)
        self.terms["alpha"] = np.float64(self.alpha / 3) * loss.array
        return loss


class Narrow(JointObjective):
    """NumPy would broadcast its probabilities to all classes."""

    def forward(self, logits, labels):
        loss = super().forward(logits, labels)
        self.probabilities = self.probabilities[:, :1]
        return loss


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("kind", [JointObjective, ByEpoch])
def test_sums_within_an_epoch_go_on_from_a_checkpoint(steps, kind):
    whole, killed, continued = (small_updater(objective=kind) for _ in range(3))
    for updater in (whole, killed):
        for _ in range(steps):
            updater.update()
    state = serializers.DictionarySerializer()
    state.save(killed)
    older = {**state.target, "iterator:main/shards": np.array(1)}  # as earlier versions wrote it
    serializers.NpzDeserializer(older).load(continued)
    reports = {}, {}
    for updater, report in zip((whole, continued), reports, strict=True):
        with chainer.Reporter().scope(report):
            while not report:
                updater.update()
    assert reports[0] == reports[1] and whole.iteration == continued.iteration


def test_what_does_not_fit_is_refused():
    with pytest.raises(UserError, match=r"^loss Narrow: .* shape \(8, 1\), expected \(8, 3\)$"):
        small_updater(objective=Narrow).update()
    order = BatchIterator(4, 2, 0, 1, pad=2, flip=False)
    images = Images(np.zeros((4, 8, 8, 1), np.uint8), np.zeros((8, 8, 1), np.float32), pad=1)
    optimizer = FlatMomentumSGD(0.1).setup(small_chain())
    with pytest.raises(
        UserError, match="crops with padding 2, the images have padding 1; expected"
    ):
        JointUpdater(order, optimizer, images, SoftLabels(np.zeros(4, np.int32), 2, "soft"))


def test_every_batch_is_full_and_every_epoch_complete():
    iterator = BatchIterator(10, 4, seed=5, step=1, pad=1, flip=True)
    theirs, batches = chainer.iterators.SerialIterator(range(10), 4), []
    for _ in range(5):
        batches.append(iterator.next())
        theirs.next()
        for name in ("epoch", "is_new_epoch", "epoch_detail", "previous_epoch_detail"):
            assert getattr(iterator, name) == getattr(theirs, name)
    assert [len(batch.indices) for batch in batches] == [4] * 5 and iterator.is_new_epoch
    order = np.concatenate([batch.indices for batch in batches])
    assert sorted(order[:10]) == sorted(order[10:]) == list(range(10))
    for name in ("indices", "dy", "dx", "flips"):
        drawn = np.concatenate([getattr(batch, name) for batch in batches])
        assert (drawn[:10] != drawn[10:]).any()


@pytest.mark.parametrize("size, batch, done", [(10, 4, 3), (41, 8, 4)])
def test_iterator_continues_where_it_was_in_the_order_that_it_announces(size, batch, done):
    whole, half, continued = (BatchIterator(size, batch, 5, 1, pad=2, flip=True) for _ in range(3))
    for _ in range(done):
        next(whole), next(half)
    state = serializers.DictionarySerializer()
    state.save(half)
    serializers.NpzDeserializer(state.target).load(continued)
    announced = continued.upcoming()
    for _ in range(12):
        expected, found = next(whole), next(continued)
        np.testing.assert_array_equal(next(announced), expected.indices)
        for name, array in vars(expected).items():
            np.testing.assert_array_equal(getattr(found, name), array)


@pytest.mark.usefixtures("arithmetic")
def test_updater_and_label_update_against_a_loop_by_hand(tmp_path):
    """Algorithm 1 with stock Chainer pieces, from the same weights and the same order of images."""
    rng = np.random.default_rng(0)
    n, batch, epochs, start, alpha, beta = 50, 16, 4, 2, 1.2, 0.8
    images = rng.integers(256, size=(n, 6, 6, 1), dtype=np.uint8)
    noisy = rng.integers(3, size=n).astype(np.int32)
    mean = (images / 255).mean(axis=0).astype(np.float32)

    model = Classifier(network(), JointObjective(np.full(3, 1 / 3), alpha, beta))
    store = SoftLabels(noisy, 3, "soft", average=2)
    sgd = Optimization(epochs, 0.05, batch_size=batch, pad=0, flip=False)
    trainer = first_step(
        model, Images(images, mean), store, sgd, start, epochs, seed=7, out=tmp_path
    )
    trainer.run()

    net = network()
    stock = chainer.optimizers.MomentumSGD(0.05, 0.9).setup(net)
    stock.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))
    iterator = BatchIterator(n, batch, 7, 1, 0, False)
    labels, latest, history = np.eye(3, dtype=np.float32)[noisy], np.zeros((n, 3)), []
    x_all = (images / 255 - mean).astype(np.float32).transpose(0, 3, 1, 2)
    for epoch in range(1, epochs + 1):
        while iterator.epoch < epoch:
            chosen = iterator.next().indices
            log_s = F.log_softmax(net(x_all[chosen]))
            s = F.exp(log_s)
            loss = (
                -F.sum(labels[chosen] * log_s) / batch
                - alpha * F.sum(F.log(F.mean(s, axis=0))) / 3
                - beta * F.sum(s * log_s) / batch
            )
            net.cleargrads()
            loss.backward()
            stock.update()
            latest[chosen] = s.array
        history.append(latest.copy())
        if epoch >= start:
            labels = np.mean(history[-2:], axis=0).astype(np.float32)
    np.testing.assert_allclose(store.soft_labels, labels, atol=2e-5)
    np.testing.assert_allclose(net.conv.W.array, model.predictor.conv.W.array, atol=2e-5)
    assert np.abs(store.soft_labels - np.eye(3)[noisy]).max() > 0.1


def five_epochs(out):
    """A trainer of ten steps that do nothing."""
    optimizer = FlatMomentumSGD(lr=0.1).setup(chainer.links.Linear(1, 1))
    optimizer.update = lambda *args: None
    batches = chainer.iterators.SerialIterator(np.zeros((2, 1), np.float32), 1)
    return training.Trainer(training.StandardUpdater(batches, optimizer), (5, "epoch"), out)


@pytest.mark.parametrize("interval, in_file", [(1000, [1, 1, 1, 1, 5]), (0, [1, 2, 3, 4, 5])])
def test_log_is_written_now_and_then_and_at_the_end(tmp_path, monkeypatch, interval, in_file):
    monkeypatch.setattr(epoch_end, "INTERVAL", interval)
    trainer, lengths = five_epochs(tmp_path), []

    def length():
        return len(files.read_json(tmp_path / "log.json", list))

    trainer.extend(extensions.LogReport(), trigger=(1, "epoch"), priority=2)
    trainer.extend(lambda _: lengths.append(length()), trigger=(1, "epoch"), priority=1, name="see")
    trainer.run()
    assert [*lengths[:4], length()] == in_file
    assert [entry["epoch"] for entry in trainer.get_extension("LogReport").log] == [1, 2, 3, 4, 5]
