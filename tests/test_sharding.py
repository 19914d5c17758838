"""Shards: everything is somewhere once, epochs keep step, labels come together again."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from chainer import Reporter, links, serializers
from thread_ranks import ThreadRanks

from chainer_jo.errors import UserError
from chainer_jo.links.objectives import Classifier, JointObjective
from chainer_jo.training.extensions import accuracy
from chainer_jo.training.iterator import BatchIterator
from chainer_jo.training.labels import LabelStore
from chainer_jo.training.many_ranks import ALONE, Shards, SharedMomentumSGD
from chainer_jo.training.updaters import JointUpdater


def iterator_over(shards, batch_size, seed, step):
    return BatchIterator(shards.images, batch_size, seed, step, 0, False, shards=shards)


@pytest.mark.parametrize(("images", "number", "ranks"), [(10, 1, 1), (10, 2, 2), (11, 4, 2)])
def test_every_image_has_one_rank_and_joins_in_order(images, number, ranks):
    of_ranks = [Shards(images, number, rank, ranks) for rank in range(ranks)]
    assert sorted(np.concatenate([s.indices() for s in of_ranks])) == list(range(images))
    whole = np.random.default_rng(0).random((images, 3))
    parts = of_ranks[0].split(whole)
    np.testing.assert_array_equal(of_ranks[-1].join(parts), whole)
    for shards, part in zip(of_ranks, parts, strict=True):
        np.testing.assert_array_equal(part, whole[shards.indices()])


def test_shards_that_cannot_be_divided():
    with pytest.raises(UserError, match="3 shards on 2 ranks: expected a multiple of 2"):
        Shards(10, 3, 0, 2)
    with pytest.raises(UserError, match="batches of 8 images in 3 parts.*multiple of 3"):
        iterator_over(Shards(10, 3), 8, 0, 1)
    with pytest.raises(UserError, match="10 training images in 4 shards: expected at least 8"):
        iterator_over(Shards(10, 4), 32, 0, 1)


def test_two_shards_are_the_same_on_one_rank_and_on_two():
    together = iterator_over(Shards(51, 2), 8, 3, 1)
    apart = [iterator_over(Shards(51, 2, r, 2), 8, 3, 1) for r in (0, 1)]
    everyone = Shards(51, 2)
    for _ in range(30):
        mine = everyone.indices()[next(together).indices]
        theirs = [Shards(51, 2, r, 2).indices()[next(it).indices] for r, it in enumerate(apart)]
        assert len(mine) == 8
        np.testing.assert_array_equal(mine, np.concatenate(theirs))
        assert together.is_new_epoch == apart[0].is_new_epoch == apart[1].is_new_epoch


def test_an_epoch_has_every_image_and_orders_differ():
    shards = Shards(51, 2)  # 26 and 25 images
    iterator = iterator_over(shards, 2, 0, 1)
    epochs = [[next(iterator) for _ in range(26)] for _ in range(2)]
    assert iterator.epoch == 2
    orders = []
    for steps in epochs:
        seen = np.concatenate([shards.indices()[batch.indices] for batch in steps])
        assert set(seen) == set(range(51)) and len(seen) == 52
        orders.append(seen.tolist())
    assert orders[0] != orders[1]


def test_the_announced_order_is_the_order():
    iterator = iterator_over(Shards(41, 2), 8, 0, 1)
    for _ in range(4):
        next(iterator)
    announced = iterator.upcoming()
    for _ in range(12):
        np.testing.assert_array_equal(next(announced), next(iterator).indices)


def test_continuing_with_other_shards_begins_the_epoch_anew():
    state = {}

    class Saver:
        def __call__(self, name, value):
            return state.setdefault(name, value)

    first = iterator_over(Shards(40, 1), 8, 0, 1)
    for _ in range(7):
        next(first)
    first.serialize(Saver())
    assert state["epoch"] == 1 and state["position"] == 16
    other = iterator_over(Shards(40, 2), 8, 0, 1)
    other.serialize(lambda name, value: state[name])
    assert other.epoch == 1 and other.epoch_detail == 1.0 and not other.is_new_epoch
    same = iterator_over(Shards(40, 1), 8, 0, 1)
    same.serialize(lambda name, value: state[name])
    assert same.epoch_detail == pytest.approx(1.4)


def test_accuracy_leaves_out_what_is_not_known():
    predicted, labels = np.array([0, 1, 2, 3, 3]), np.array([0, 2, -1, 3, -1])
    assert accuracy(predicted, labels, ALONE) == pytest.approx(2 / 3)
    assert accuracy(predicted, np.full(5, -1), ALONE) is None


class Arrays:
    """Images that are in memory already."""

    def __init__(self, x):
        self._x = x

    def fetch(self, batch):
        return ()

    def augmented(self, batch):
        return self._x[batch.indices]


def updater_on(shards):
    """Without batch normalisation and L_p nothing but the images' mean is left of the parts."""
    rng = np.random.default_rng(0)
    x = rng.random((24, 5), dtype=np.float32)
    noisy = rng.integers(3, size=24).astype(np.int32)[shards.indices()]
    objective = JointObjective(np.full(3, 1 / 3, np.float32), alpha=0.0, beta=0.8)
    model = Classifier(links.Linear(5, 3, initialW=np.full((3, 5), 0.1, np.float32)), objective)
    optimizer = SharedMomentumSGD(0.5, 0.9, 1e-2, ranks=ALONE, parts=shards.number).setup(model)
    iterator = iterator_over(shards, 8, 0, 1)
    images, labels = Arrays(x[shards.indices()]), LabelStore(noisy, 3)
    known = np.where(noisy == 2, -1, noisy)
    return JointUpdater(
        iterator, optimizer, images, labels, noisy, known, "@numpy", parts=shards.number
    )


def test_a_step_in_parts_is_a_step_on_the_whole_batch():
    split, whole = updater_on(Shards(24, 2)), updater_on(Shards(24, 1))
    for _ in range(5):
        batch = next(split.get_iterator("main"))
        split.step(batch)
        split.get_optimizer("main").exchange()
        together = Shards(24, 2).indices()[batch.indices]
        whole.step(replace(batch, indices=together))
        whole.get_optimizer("main").exchange()
        weights = [u.get_optimizer("main").parameters for u in (split, whole)]
        np.testing.assert_allclose(*weights, rtol=1e-5)
    probabilities = np.empty_like(whole.labels.probabilities)
    probabilities[Shards(24, 2).indices()] = split.labels.probabilities
    np.testing.assert_allclose(probabilities, whole.labels.probabilities, rtol=1e-4)


def test_images_without_a_true_label_are_left_out_of_the_report():
    updater, report = updater_on(Shards(24, 2)), {}
    with Reporter().scope(report):
        while not updater.is_new_epoch:
            updater.update()
    noisy = updater._references["noisy"]
    right = updater.labels.probabilities.argmax(axis=1) == noisy
    assert report["accuracy/noisy"] == pytest.approx(right.mean())
    assert report["accuracy/true"] == pytest.approx(right[noisy != 2].mean())


def saved(updater):
    state = serializers.DictionarySerializer()
    state.save(updater)
    return state.target


@pytest.mark.parametrize(("number", "steps"), [(2, 1), (1, 0), (4, 0)])
def test_sums_within_an_epoch_go_on_unless_the_epoch_begins_anew(number, steps):
    updater = updater_on(Shards(24, 2))
    updater.update()
    assert updater.steps_of_epoch == 1 and updater._sums["loss"] > 0
    continued = updater_on(Shards(24, number))
    serializers.NpzDeserializer(saved(updater)).load(continued)
    assert continued.steps_of_epoch == steps
    sums = updater._sums if steps else {name: 0 for name in continued._sums}
    assert continued._sums == sums


def test_the_top_labels_are_those_of_all_ranks():
    rng = np.random.default_rng(0)
    noisy = rng.integers(4, size=30).astype(np.int32)
    probabilities = rng.dirichlet(np.ones(4), 30).astype(np.float32)
    alone = LabelStore(noisy, 4, "top", top=6, average=2)
    of_ranks = [Shards(30, 2, rank, 2).indices() for rank in range(2)]
    stores = [
        LabelStore(noisy[part], 4, "top", top=6, average=2, ranks=ranks)
        for part, ranks in zip(of_ranks, ThreadRanks.make(2), strict=True)
    ]
    alone.write(np.arange(30), probabilities)
    for store, part in zip(stores, of_ranks, strict=True):
        store.write(np.arange(len(part)), probabilities[part])
    for store in (alone, *stores):
        store.end_epoch()
    alone.update()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(LabelStore.update, stores))
    for store, part in zip(stores, of_ranks, strict=True):
        np.testing.assert_array_equal(store.labels, alone.labels[part])
    assert (alone.labels.argmax(axis=1) != noisy).sum() == 6
