"""Relabelling by features that are computed here: pixels, or the built-in network's. The noisy
labels choose between them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from chainer_jo.relabel.judge.by_features import ByFeatures
from chainer_jo.relabel.judge.features import FeatureSet
from chainer_jo.relabel.judge.label_errors import LabelErrors
from chainer_jo.relabel.read import image_features
from chainer_jo.relabel.read.feature_table import check_different
from chainer_jo.relabel.read.image_features import Extractor
from chainer_jo.relabel.read.labelled_images import LabelledImages
from chainer_jo.relabel.show.outcome import Outcome, choice_in_words
from chainer_jo.relabel.write.trained_network import Member, TrainedNetwork

#: Principal components that networks are trained on, of features with more dimensions; and images
#: at most from which they are computed.
COMPONENTS, MAX_ROWS = 128, 10_000


class Axes(NamedTuple):
    """Mean (d,) and orthonormal principal directions (d, k) of features, float32."""

    mean: np.ndarray
    directions: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray) -> Axes:
        """The `COMPONENTS` directions of largest variance, of at most `MAX_ROWS` rows."""
        mean = features.mean(axis=0, dtype=np.float64)
        rows = np.random.default_rng(0).permutation(len(features))[:MAX_ROWS]
        some = features[rows] - mean
        directions = np.linalg.eigh(some.T @ some)[1][:, ::-1][:, :COMPONENTS]
        return cls(mean.astype(np.float32), np.ascontiguousarray(directions, np.float32))

    def project(self, features: np.ndarray) -> np.ndarray:
        """Coordinates (n, k) of features (n, d)."""
        return (features - self.mean) @ self.directions


class Tried(NamedTuple):
    """Features of one extractor, for the training images and by the use of held-out sets, with the
    verdict by networks trained on them."""

    extractor: Extractor
    axes: Axes
    data: FeatureSet
    others: dict[str, np.ndarray]
    errors: LabelErrors

    @property
    def agreement(self) -> float:
        """Share of the noisy labels that the networks predict out of fold."""
        return float((self.errors.network == self.errors.given).mean())


class ByComputedFeatures(ByFeatures):
    """Tries all extractors, and takes the one whose networks predict the noisy labels best."""

    def open(self) -> None:
        """Names the features; they are computed in `work`."""
        self.extractors = image_features.candidates(self.flags.features, self.sets.train)

    @property
    def images(self) -> str:
        ways = " or ".join(extractor.words for extractor in self.extractors)
        better = ", whichever predict the labels better" if len(self.extractors) > 1 else ""
        return f"by {ways}{better}: {COMPONENTS} principal components at most, one hidden layer"

    def plan(self) -> None:
        print("features take about 10 ms an image on one core, once; then:")
        super().plan()

    def work(self) -> Outcome:
        sets = {"train": self.sets.train, **self.sets.held_out}
        computed = [  # all before training: an image that cannot be decoded is named first
            (extractor, {use: self._features(extractor, images) for use, images in sets.items()})
            for extractor in self.extractors
        ]
        with threadpool_limits(self.flags.threads):
            tried = [self._tried(extractor, features) for extractor, features in computed]
            best = max(tried, key=lambda each: each.agreement)
            self.extractors, self.axes = [best.extractor], best.axes
            self.data, self.others = best.data, best.others
            choice = {each.extractor.words: each.agreement for each in tried}
            outcome = self.outcome(best.errors)
        about = {**outcome.about, "choice": choice_in_words(choice)}
        return replace(outcome, about=about, choice=choice)

    def _features(self, extractor: Extractor, images: LabelledImages) -> np.ndarray:
        where = f"data {images.source!r}"
        device = self.flags.device
        return image_features.compute(images.files(), extractor, device, where, images.show)

    def _tried(self, extractor: Extractor, features: dict[str, np.ndarray]) -> Tried:
        train = features.pop("train")
        check_different(f"{extractor.words} of {self.sets.train.source!r}", train)
        axes = Axes.of(train)
        data = FeatureSet(axes.project(train), self.sets.train.labels)
        return Tried(extractor, axes, data, features, self.judged(data))

    def network(self, labels: np.ndarray) -> TrainedNetwork:
        """Network trained on labels (n, c) of all images; projection and scale are multiplied into
        its first layer, so that its input are features as they are computed."""
        network = super().network(labels)
        ((weights, normalisation),) = network.members
        mean, scale = normalisation["mean"], normalisation["scale"]
        hidden = (weights["hidden/W"] / scale) @ self.axes.directions.T
        centre = self.axes.mean + self.axes.directions @ mean
        whole = Member(
            {**weights, "hidden/W": hidden}, {"mean": centre, "scale": np.ones((), np.float32)}
        )
        seen = {"features": len(centre), "seen": self.extractors[0].seen}
        return TrainedNetwork({**network.about, **seen}, [whole])
