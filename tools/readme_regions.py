"""Regions of README.md, between two comments, that are written from the results."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from committed import ADDITIONS, FULL_SCALE, MOST_TELLING, Reference, described, settings
from first_page import runs_in_words

from chainer_jo.reproduction.claims.claim import NOT_RUN, ONE_TRIAL
from chainer_jo.reproduction.experiments.words import of_the_paper, slug
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.claims_page import difference_in_words, in_words
from chainer_jo.text import counted

#: Characters of a line of prose.
LINE = 118
#: The paper's tables and figures that need runs on CIFAR-10.
COMPUTED = {"table": (1, 2, *range(6, 14)), "figure": range(2, 7)}
#: The section in docs on the features that are clustered.
PSEUDO_LABELS = "docs/baselines.md#pseudo-labels-pl-cifar-sections-51-and-57"
#: Clustered features in words, by the beginning of their name.
FEATURES = {"pixels": "pixels", "cifar10-effnetlite0-pca128": "EfficientNet-Lite0's features"}
#: Rows of `claims`: words, claim, and the beginning and setting of one of its comparisons.
CLAIMS = (
    ("cross entropy overfits: test accuracy, best / last epoch, symmetric r = 0.5",
     "symmetric-cross-entropy-drops", "test accuracy", "r = 0.5"),
    ("the joint method tests better than cross entropy: last epoch, symmetric r = 0.5",
     "symmetric-test-is-better", "test accuracy, last", "r = 0.5"),
    ("it corrects noisy labels: label accuracy after / before, symmetric r = 0.5",
     "labels-are-corrected", "label accuracy, symmetric", "r = 0.5"),
    ("it tests better than Forward: last epoch, asymmetric r = 0.4",
     "asymmetric-test-is-better", "test accuracy, last epoch: joint > Forward", "r = 0.4"),
    ("its labels are better than Forward's predictions: last epoch, asymmetric r = 0.4",
     "asymmetric-recovery-is-better", "label accuracy, last epoch: joint > Forward", "r = 0.4"),
    ("test accuracy stays high at a high learning rate (0.2, Figure 2): end / peak",
     "high-rate-keeps", "test accuracy", "lr = 0.2"),
    ("pseudo labels are corrected less: gain with symmetric r = 0.3 / with pseudo labels",
     "pseudo-corrected-less", "gain", "symmetric 0.3"),
    ("hyper parameters matter little: learning rate 0.005 / 0.03, Table 6",
     "table6-insensitive", "learning rate", "0.005"),
)  # fmt: skip


def claims(found: Sequence[Reference]) -> str:
    """Eight claims of the paper, each with one of its comparisons: the paper's two numbers and
    ours, the difference with its interval, and the word and counts of the claim."""
    heads = ("claim", "paper", "paper's scale (one seed)", *(f"`{name}`" for name in MOST_TELLING))
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for text, *which in CLAIMS:
        at_scale = [_compared(r, *which) for r in found if r.preset == FULL_SCALE]
        judged = [_compared(r, *which) for name in MOST_TELLING for r in found if r.name == name]
        shown = next((each for each in at_scale if each[2]["difference"] is not None), None)
        cells = [_sides(judged[0][2]["paper"]), f"{_sides(shown[2]['here'])}" if shown else ""]
        if shown and shown[0].data != "cifar10":
            cells[-1] += " (JPEG)"
        for r, claim, comparison in judged:
            cell = claim_link(r, claim, "results/")
            if comparison["difference"] is not None:
                sides, difference = _sides(comparison["here"]), difference_in_words(comparison)
                cell += f"<br>{sides}: {difference}"
            cells.append(cell)
        rows.append(f"| {text} | {' | '.join(cell or 'not run' for cell in cells)} |")
    return "\n".join(rows)


def _compared(r: Reference, name: str, compared: str, at: str) -> tuple[Reference, dict, dict]:
    """A claim of these results, and one of its comparisons."""
    (claim,) = (claim for claim in r.claims if claim["id"] == name)
    comparisons = (each for each in claim["comparisons"] if each["at"] == at)
    return r, claim, next(each for each in comparisons if each["compared"].startswith(compared))


def _sides(numbers: Sequence[float | None] | None) -> str:
    return "\xa0/\xa0".join("–" if n is None else f"{n:.1f}" for n in numbers or [None])


def claim_link(r: Reference, claim: dict, results: str) -> str:
    """Word and counts of a claim, linked to its section; ``results`` leads to that folder."""
    if claim["word"] == NOT_RUN:
        return NOT_RUN
    word, counts = in_words(claim).split(": ")
    return f"[{word}]({results}reference/{r.name}/claims.md#{slug(claim['section'])}) ({counts})"


def not_run(found: Sequence[Reference]) -> str:
    """Everything that no run has shown."""
    data = {r.data for r in found}
    full_scale = [r for r in found if r.preset == FULL_SCALE]
    float32 = _runs(r for r in found if (r.preset, r.precisions) == ("half", "fp32"))
    clustered = [
        f"{_features(name)} in `{r.name}`" for r in found for name in RunStore(r.results).features()
    ]
    single = sum(
        comparison["word"] == ONE_TRIAL
        for r in found
        if r.name == MOST_TELLING[0]
        for claim in r.claims
        for comparison in claim["comparisons"]
    )
    runs = "; ".join(f"on {described(r.data, 'docs')}: {runs_in_words(r)}" for r in full_scale)
    asymmetric = any("asymmetric" in runs_in_words(r) for r in full_scale)
    lines = {
        "Nothing under asymmetric noise has been run at the paper's scale.": not asymmetric,
        f"{_runs(full_scale)} exist at the paper's scale, all with seed 0; {runs}.": True,
        f"No run on CIFAR-10, at any scale, shows {not_on_images(found)}.": bool(
            not_on_images(found)
        ),
        f"{single} comparisons in `{MOST_TELLING[0]}` have one trial, so they have no word.": True,
        "Clothing1M was not available. Table 3 and Figures 7 and 8 show a "
        "[stand-in](docs/clothing1m.md#the-stand-in).": "clothing1m" not in data,
        f"Pseudo labels are not from the paper's ResNet-50. [Clusters]({PSEUDO_LABELS}) are of "
        f"{', '.join(clustered)}.": True,
        f"{float32} on `half` are in float32. Nothing has run on several GPUs or with CUDA 12 "
        "([state](docs/gpu.md#state)).": True,
        "A cluster of several [machines](docs/cluster.md), macOS and conda-forge's "
        "[packages](docs/dependencies.md#conda) have not been tried.": True,
    }
    return "\n".join(wrapped(f"- {line}") for line, unseen in lines.items() if unseen)


def _features(name: str) -> str:
    return next((words for begins, words in FEATURES.items() if name.startswith(begins)), name)


def _runs(found: Iterable[Reference]) -> str:
    return counted(sum(r.provenance["runs"] for r in found), "run")


def not_on_images(found: Sequence[Reference]) -> str:
    """The paper's tables and figures that no folder of CIFAR-10 has, and the tables of `ADDITIONS`
    of which none has a run of each setting."""
    images, missing = [r for r in found if of_the_paper(r.data)], []
    for kind, numbers in COMPUTED.items():
        there = {n for r in images for n in r.outputs(kind)}
        if lacks := [str(n) for n in numbers if n not in there]:
            missing.append(f"{kind.capitalize()}{'s' * (len(lacks) > 1)} {' and '.join(lacks)}")
    for name, words in ADDITIONS.items():
        counts = [settings(r.additions[name]) for r in images if name in r.additions]
        if not any(done == planned for done, planned in counts):
            missing.append(f"all {words}")
    return " or ".join(missing)


def wrapped(text: str) -> str:
    """A paragraph or an item of a list, in lines that can be read."""
    below = "  " if text.startswith("- ") else ""
    return textwrap.fill(
        text, LINE, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )


def fill(text: str, name: str, content: str) -> str:
    """A Markdown text with the region ``name`` replaced: the lines between ``<!-- name: ... -->``
    and ``<!-- end of name -->``."""
    pattern = rf"(<!-- {name}:.*?-->\n).*?(<!-- end of {name} -->)"
    filled, count = re.subn(pattern, lambda m: f"{m[1]}{content}\n{m[2]}", text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{count} regions {name!r} in the text, expected one")
    return filled
