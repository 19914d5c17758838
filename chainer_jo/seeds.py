"""One seed per run; an independent, named source of randomness for each thing that is drawn."""

import numpy as np

#: Position is the spawn key: append only, or every result changes.
NAMES = ("split", "noise", "weights", "order", "augmentation", "clusters", "audit")


def child(seed: int, name: str, *keys: int) -> np.random.SeedSequence:
    """The SeedSequence of one named thing of the run with this seed, and of one ``keys`` (a step,
    an epoch) within it."""
    return np.random.SeedSequence(seed, spawn_key=(NAMES.index(name), *keys))


def generator(seed: int, name: str, *keys: int) -> np.random.Generator:
    """A generator for one named thing of the run with this seed."""
    return np.random.default_rng(child(seed, name, *keys))


def random_state(seed: int, name: str, *keys: int) -> np.random.RandomState:
    """The same in NumPy's older interface, which Chainer's initializers call."""
    return np.random.RandomState(np.random.MT19937(child(seed, name, *keys)))
