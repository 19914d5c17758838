"""Independent, named random streams derived from the seed of a run."""

import numpy as np

#: Names of the streams; the position is the spawn key: append only, or every result changes.
NAMES = ("split", "noise", "weights", "order", "augmentation", "clusters", "audit")


def child(seed: int, name: str, *keys: int) -> np.random.SeedSequence:
    """SeedSequence of a named stream of a run, and of ``keys`` (step, epoch) within the stream."""
    return np.random.SeedSequence(seed, spawn_key=(NAMES.index(name), *keys))


def generator(seed: int, name: str, *keys: int) -> np.random.Generator:
    """Generator of a named stream; see `child`."""
    return np.random.default_rng(child(seed, name, *keys))


def random_state(seed: int, name: str, *keys: int) -> np.random.RandomState:
    """Named stream in NumPy's older interface, which Chainer's initializers call."""
    return np.random.RandomState(np.random.MT19937(child(seed, name, *keys)))
