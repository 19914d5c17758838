"""Shards: everything is somewhere once, epochs keep step, labels come together again."""

import numpy as np
import pytest
from chainer import links

from chainer_jo.errors import UserError
from chainer_jo.links.classifier import Classifier
from chainer_jo.links.joint_objective import JointObjective
from chainer_jo.training.iterator import Batch, BatchIterator
from chainer_jo.training.labels import LabelStore
from chainer_jo.training.ranks import Ranks, counts
from chainer_jo.training.sharding import ShardedIterator, Shards
from chainer_jo.training.updaters.sharded_updater import ShardedUpdater, SharedMomentumSGD


class NoImages:
    """Takes the announced order and remembers it."""

    following = False

    def follow(self, order):
        self.following = True
        self.announced = order


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
        ShardedIterator(Shards(10, 3), 8, 0, 1, NoImages())
    with pytest.raises(UserError, match="10 training images in 4 shards: expected at least 8"):
        ShardedIterator(Shards(10, 4), 32, 0, 1, NoImages())


def test_one_shard_is_the_order_without_shards():
    plain = BatchIterator(50, 8, seed=3, step=1, pad=0, flip=False)
    sharded = ShardedIterator(Shards(50, 1), 8, 3, 1, NoImages())
    for _ in range(20):
        (part,) = next(sharded)
        np.testing.assert_array_equal(part.indices, next(plain).indices)
        assert sharded.epoch_detail == plain.epoch_detail
        assert sharded.is_new_epoch == plain.is_new_epoch


def test_two_shards_are_the_same_on_one_rank_and_on_two():
    together = ShardedIterator(Shards(51, 2), 8, 3, 1, NoImages())
    apart = [ShardedIterator(Shards(51, 2, r, 2), 8, 3, 1, NoImages()) for r in (0, 1)]
    everyone = Shards(51, 2)
    for _ in range(30):
        mine = [everyone.indices()[part.indices] for part in next(together)]
        theirs = [Shards(51, 2, r, 2).indices()[next(it)[0].indices] for r, it in enumerate(apart)]
        for a, b in zip(mine, theirs, strict=True):
            assert len(a) == 4
            np.testing.assert_array_equal(a, b)
        assert together.is_new_epoch == apart[0].is_new_epoch == apart[1].is_new_epoch


def test_an_epoch_has_every_image_and_orders_differ():
    shards = Shards(51, 2)  # 26 and 25 images
    iterator = ShardedIterator(shards, 2, 0, 1, NoImages())
    epochs = [[next(iterator) for _ in range(26)] for _ in range(2)]
    assert iterator.epoch == 2
    orders = []
    for steps in epochs:
        seen = np.concatenate([shards.indices()[p.indices] for parts in steps for p in parts])
        assert set(seen) == set(range(51)) and len(seen) == 52
        orders.append(seen.tolist())
    assert orders[0] != orders[1]


def test_the_announced_order_is_the_order():
    images = NoImages()
    iterator = ShardedIterator(Shards(40, 2), 8, 0, 1, images)
    for _ in range(4):
        next(iterator)
    images.following = False  # another reading of the stream has ended this one
    parts = [part for _ in range(12) for part in next(iterator)]
    for part in parts:
        np.testing.assert_array_equal(next(images.announced), part.indices)


def test_continuing_with_other_shards_begins_the_epoch_anew():
    state = {}

    class Saver:
        def __call__(self, name, value):
            return state.setdefault(name, value)

    first = ShardedIterator(Shards(40, 1), 8, 0, 1, NoImages())
    for _ in range(7):
        next(first)
    first.serialize(Saver())
    assert state["epoch"] == 1 and state["position"] == 16
    other = ShardedIterator(Shards(40, 2), 8, 0, 1, NoImages())
    other.serialize(lambda name, value: state[name])
    assert other.epoch == 1 and other.epoch_detail == 1.0 and not other.is_new_epoch
    same = ShardedIterator(Shards(40, 1), 8, 0, 1, NoImages())
    same.serialize(lambda name, value: state[name])
    assert same.epoch_detail == pytest.approx(1.4)


def test_counts_leave_out_what_is_not_known():
    predicted = np.array([0, 1, 2, 3, 3])
    labels = np.array([0, 2, -1, 3, -1])
    np.testing.assert_array_equal(counts(predicted, labels), [2, 3])


def test_one_process_alone_exchanges_with_itself():
    ranks, array = Ranks(), np.arange(3.0)
    ranks.average(array)
    assert (ranks.size, ranks.is_first) == (1, True)
    assert ranks.gather(1) == [1] and ranks.sum(2) == 2 and ranks.scatter([3]) == 3
    np.testing.assert_array_equal(array, np.arange(3.0))


class Arrays:
    """Images that are in memory already."""

    following = True

    def __init__(self, x):
        self._x = x

    def augmented(self, batch):
        return self._x[batch.indices]


def test_a_step_in_parts_is_a_step_on_the_whole_batch():
    """Without batch normalisation and L_p nothing but the images' mean is left."""
    rng = np.random.default_rng(0)
    x = rng.random((24, 5), dtype=np.float32)
    noisy = rng.integers(3, size=24).astype(np.int32)

    def updater(shards):
        objective = JointObjective(np.full(3, 1 / 3, np.float32), alpha=0.0, beta=0.8)
        linear = links.Linear(5, 3, initialW=np.full((3, 5), 0.1, np.float32))
        optimizer = SharedMomentumSGD(0.5, 0.9, 1e-2, ranks=Ranks(), parts=shards.number)
        iterator = ShardedIterator(shards, 8, 0, 1, Arrays(x))
        labels = LabelStore(noisy[shards.indices()], 3)
        optimizer.setup(Classifier(linear, objective))
        images = Arrays(x[shards.indices()])
        return ShardedUpdater(
            iterator, optimizer, images, labels, noisy, noisy, shards, Ranks(), "@numpy"
        )

    split, whole = updater(Shards(24, 2)), updater(Shards(24, 1))
    for _ in range(5):
        parts = next(split.get_iterator("main"))
        split.step(parts)
        together = split.shards.indices()[np.concatenate([part.indices for part in parts])]
        unmoved = np.zeros(8, np.int8)
        whole.step([Batch(together, unmoved, unmoved, unmoved.astype(bool))])
        weights = [u.get_optimizer("main").parameters for u in (split, whole)]
        np.testing.assert_allclose(*weights, rtol=1e-5)
    probabilities = np.empty_like(whole.labels.probabilities)
    probabilities[split.shards.indices()] = split.labels.probabilities
    np.testing.assert_allclose(probabilities, whole.labels.probabilities, rtol=1e-4)
