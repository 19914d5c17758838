"""What came out, in one sentence: for the top of the report and of the README."""

from __future__ import annotations

from collections.abc import Mapping

from chainer_jo.paper.tables import TABLE1
from chainer_jo.report.words import of_the_paper

#: The column of Table 1 that stands for all, and how its labels came about.
NOISE_RATE, LABELS = 0.5, "half of the labels redrawn at random"
#: What is said of it: the fall of cross entropy, and where the joint method ends.
SHOWN = (("cross_entropy", "best"), ("cross_entropy", "last"), ("joint", "last"))


def means(table1: Mapping) -> dict[tuple, float]:
    """The means of Table 1's JSON by method, score, accuracy and noise rate, of cells that have
    any."""
    return {
        (*cell["row"].values(), *cell["column"].values()): cell["mean"]
        for cell in table1["cells"]
        if cell["mean"] is not None
    }


def headline(table1: Mapping, images: str) -> str:
    """Test accuracies of both methods at r = 0.5, and the paper's if it is of the same data set; of
    cross entropy alone while the joint method has no trial, empty while cross entropy has none.

    Parameters
    ----------
    table1 : its JSON.
    images : what it was trained on, see `chainer_jo.report.words.images`.
    """
    found = means(table1)
    keys = [(method, score, "test", NOISE_RATE) for method, score in SHOWN]
    best, last, joint = (found.get(key) for key in keys)
    if best is None or last is None:
        return ""
    printed = [TABLE1.value(method=m, score=s, accuracy=a, noise_rate=r) for m, s, a, r in keys]
    said = (
        f"On {images}, with {LABELS}, cross entropy reaches a test accuracy of {best:.1f} % at its "
        f"best epoch and {last:.1f} % at its last. "
    )
    if joint is None:
        said += "The joint method has not ended there."
        paper = "{:.1f} and {:.1f} %".format(*printed)
    else:
        said += f"The joint method ends at {joint:.1f} %."
        paper = "{:.1f}, {:.1f} and {:.1f} %".format(*printed)
    if not of_the_paper(table1["data"]):
        return said
    scale = "" if table1["preset"] == "paper" else ", at its own scale"
    return f"{said} The paper has {paper}{scale}."
