"""Phrases shared by captions and notes."""

import re

from chainer_jo.reproduction.experiments.presets import Study

_DATA = {
    "cifar10": "CIFAR-10",
    "cifar10-jpeg": "CIFAR-10 (as JPEG)",
    "digits": "handwritten digits",
    "clothing1m": "Clothing1M",
    "clothing1m-standin": "a stand-in for Clothing1M",
}


def data_set(name: str) -> str:
    """Name of a data set in prose: "CIFAR-10 (as JPEG)"."""
    return _DATA.get(name, name)


def of_the_paper(data: str) -> bool:
    """True for a data set of the paper, whose numbers can be compared; False for a stand-in."""
    return data in ("cifar10", "cifar10-jpeg", "clothing1m")


def trained_on(study: Study) -> str:
    """The training images of a study: "CIFAR-10 at half of its resolution"."""
    data = data_set(study.data)
    shrink = study.preset.shrink
    share = "half" if shrink == 2 else f"1/{shrink}"
    return f"{data} at {share} of its resolution" if shrink else data


def clusters(features: str) -> str:
    """Pseudo labels in words, by the features of a study or run: "clusters of pixels, not of
    ResNet-50's features". The name of a user's file is left out."""
    if features.startswith("resnet50"):
        return "clusters of ResNet-50's features"
    used = features if features == "pixels" else "other features"
    return f"clusters of {used}, not of ResNet-50's features"


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
