"""A few images drawn at random, to be judged by eye: what labels alone cannot tell.

Errors that follow the looks of images are learnt like what is right, so that nothing in the labels
gives them away. A share that somebody counted in a random sample does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from chainer_jo import seeds

#: Standard errors to either side of an interval of 95 %.
Z = 1.96


def drawn(number: int, images: int, seed: int) -> np.ndarray:
    """Rows of the images to be judged, int (min(number, images),): the same ones for a seed."""
    rng = seeds.generator(seed, "audit")
    return np.sort(rng.permutation(images)[:number])


@dataclass(frozen=True)
class ByEye:
    """What was found in the images that somebody judged: how many, and how many labels as given
    were wrong."""

    judged: int
    wrong: int

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of 95 % for the share of wrong labels, in [0, 1]."""
        n, share = self.judged, self.wrong / self.judged
        middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
        half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
        return max(0.0, middle - half), min(1.0, middle + half)

    def in_words(self, estimate: float) -> str:
        """Beside the share of wrong labels that was estimated from the labels, in [0, 1]."""
        low, high = self.interval
        words = (
            f"by eye: {self.wrong:,} of {self.judged:,} labels drawn at random are wrong, "
            f"{100 * self.wrong / self.judged:.1f} % (95 %: {100 * low:.1f} to {100 * high:.1f} %);"
            f" estimated from the labels: {100 * estimate:.1f} %"
        )
        if estimate < low:
            return words + ". Some errors follow the looks of images, and the new labels keep them."
        return words
