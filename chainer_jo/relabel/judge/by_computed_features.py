"""Relabelling by features that are computed here: pixels, or the built-in network's. The noisy
labels choose between them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from chainer_jo.relabel.judge.by_features import ByFeatures
from chainer_jo.relabel.judge.features import FeatureSet
from chainer_jo.relabel.read import image_features
from chainer_jo.relabel.read.feature_table import check_different
from chainer_jo.relabel.show.outcome import Outcome, choice_in_words
from chainer_jo.relabel.write.trained_network import Member, TrainedNetwork

#: Features of more than MOST dimensions are projected to COMPONENTS principal ones, of MAX_ROWS
#: images at most. Pixels of 8 x 8 are not: networks learn standardised columns better.
MOST, COMPONENTS, MAX_ROWS = 256, 128, 10_000


class Axes(NamedTuple):
    """Mean (d,) and orthonormal principal directions (d, k) of features, float32."""

    mean: np.ndarray
    directions: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray) -> Axes:
        """The `COMPONENTS` directions of largest variance of features (n, d); few features' own."""
        if (d := features.shape[1]) <= MOST:
            return cls(np.zeros(d, np.float32), np.eye(d, dtype=np.float32))
        mean = features.mean(axis=0, dtype=np.float64)
        rows = np.random.default_rng(0).permutation(len(features))[:MAX_ROWS]
        some = features[rows] - mean
        directions = np.linalg.eigh(some.T @ some)[1][:, : -COMPONENTS - 1 : -1]
        return cls(mean.astype(np.float32), directions.astype(np.float32))

    def project(self, features: np.ndarray) -> np.ndarray:
        """Coordinates (n, k) of features (n, d)."""
        return (features - self.mean) @ self.directions


class ByComputedFeatures(ByFeatures):
    """Tries several features, and takes those from which networks predict the noisy labels best,
    out of fold."""

    def open(self) -> None:
        """Names the features; they are computed in `work`."""
        self.extractors = image_features.candidates(self.flags.features, self.sets.train)

    @property
    def images(self) -> str:
        ways = " or ".join(extractor.words for extractor in self.extractors)
        better = ", whichever predict the labels better" if len(self.extractors) > 1 else ""
        return f"by {ways}{better}: {COMPONENTS} principal components of many, one hidden layer"

    def plan(self) -> None:
        print("built-in features take about 10 ms an image on one core, once; training:")
        super().plan()

    def work(self) -> Outcome:
        # All features before training: images that cannot be decoded are named at once.
        computed = [(extractor, self._features(extractor)) for extractor in self.extractors]
        shares: dict[str, float] = {}
        with threadpool_limits(self.flags.threads):
            for extractor, features in computed:
                train = features.pop("train")
                check_different(f"{extractor.words} of {self.flags.data!r}", train)
                axes = Axes.of(train)
                data = FeatureSet(axes.project(train), self.sets.train.labels)
                errors = self.judged(data)
                share = float((errors.network == errors.given).mean())
                if share > max(shares.values(), default=-1.0):
                    best = errors
                    self.extractors, self.axes, self.data = [extractor], axes, data
                    self.others = features
                shares[extractor.words] = share
            outcome = self.outcome(best)
        about = {**outcome.about, "choice": choice_in_words(shares)}
        return replace(outcome, about=about, choice=shares)

    def _features(self, extractor: image_features.Extractor) -> dict[str, np.ndarray]:
        """Features of all sets, by their use."""
        return {
            use: image_features.compute(
                images.files(), extractor, self.flags.device, f"data {images.source!r}", images.show
            )
            for use, images in {"train": self.sets.train, **self.sets.held_out}.items()
        }

    def network(self, labels: np.ndarray) -> TrainedNetwork:
        """Network trained on labels (n, c) of all images. Projection and scale are multiplied into
        its first layer, so that its input are features as they are computed."""
        network = super().network(labels)
        ((weights, normalisation),) = network.members
        mean, directions = self.axes
        hidden = (weights["hidden/W"] / normalisation["scale"]) @ directions.T
        centre = mean + directions @ normalisation["mean"]
        whole = Member(
            {**weights, "hidden/W": hidden}, {"mean": centre, "scale": np.ones((), "f4")}
        )
        (extractor,) = self.extractors
        seen = {"by": extractor.name, "side": extractor.side}
        return TrainedNetwork({**network.about, "features": len(mean), "seen": seen}, [whole])
