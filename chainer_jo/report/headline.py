"""The main result in two sentences, for the top of the report and of the README."""

from __future__ import annotations

from collections.abc import Mapping

from chainer_jo.paper.tables import TABLE1
from chainer_jo.report.words import of_the_paper

#: The noise rate of Table 1 that stands for all.
NOISE_RATE = 0.5
#: Scores in the sentence: best and last of cross entropy, last of the joint method.
SHOWN = (("cross_entropy", "best"), ("cross_entropy", "last"), ("joint", "last"))


def means(table1: Mapping) -> dict[tuple, float]:
    """Means in Table 1's JSON by method, score, accuracy and noise rate, without empty cells."""
    return {
        (*cell["row"].values(), *cell["column"].values()): cell["mean"]
        for cell in table1["cells"]
        if cell["mean"] is not None
    }


def headline(table1: Mapping, images: str) -> str:
    """Test accuracies of both methods, and the paper's on the same data set, at r = 0.5 or the
    nearest noise rate at which both methods have a trial. Empty without such a rate.

    Parameters
    ----------
    table1 : JSON of Table 1.
    images : the training images, see `chainer_jo.report.words.trained_on`.
    """
    accuracies = means(table1)
    whole = [rate for rate in TABLE1.keys("noise_rate") if accuracies.keys() >= set(_keys(rate))]
    if not whole:
        return ""
    rate = min(whole, key=lambda rate: abs(rate - NOISE_RATE))
    best, last, joint = map(accuracies.get, _keys(rate))
    sentence = (
        f"On {images} with {100 * rate:g} % symmetric noise, the test accuracy of cross entropy is "
        f"{best:.1f} % at the best epoch and {last:.1f} % at the last. "
        f"The joint method ends at {joint:.1f} %."
    )
    if not of_the_paper(table1["data"]):
        return sentence
    paper = [
        TABLE1.value(method=method, score=score, accuracy="test", noise_rate=rate)
        for method, score in SHOWN
    ]
    scale = "" if table1["preset"] == "paper" else " at full scale"
    return f"{sentence} The paper reports {{:.1f}}, {{:.1f}} and {{:.1f}} %{scale}.".format(*paper)


def _keys(rate: float) -> list[tuple]:
    return [(method, score, "test", rate) for method, score in SHOWN]
