"""Regions of README.md, between two comments, that are written from the results."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from committed import FULL_SCALE, MOST_TELLING, Reference

from chainer_jo.reproduction.claims.claim import NOT_RUN
from chainer_jo.reproduction.experiments.words import of_the_paper, slug
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.claims_page import difference_in_words, in_words
from chainer_jo.reproduction.tables_and_figures.table_layouts import NOISE_RATE
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
    ("test accuracy stays high at a high learning rate: end / peak, Figure 2, 0.2",
     "high-rate-keeps", "test accuracy", "lr = 0.2"),
    ("pseudo labels are corrected less: gain with symmetric r = 0.3 / with pseudo labels",
     "pseudo-corrected-less", "gain", "symmetric 0.3"),
    ("hyper parameters matter little: learning rate 0.005 / 0.03, Table 6",
     "table6-insensitive", "learning rate", "0.005"),
)  # fmt: skip
CROSS_ENTROPY, JOINT = "cross_entropy", "joint"


def means(table: Mapping) -> dict[tuple, float]:
    """Means in a table's JSON, by method, score, accuracy and noise rate, without empty cells."""
    return {
        (*cell["row"].values(), *cell["column"].values()): cell["mean"]
        for cell in table["cells"]
        if cell["mean"] is not None
    }


def papers(table: Mapping) -> dict[tuple, float]:
    """The paper's numbers in a table's JSON, by method, score, accuracy and noise rate."""
    return {
        (*cell["row"].values(), *cell["column"].values()): cell["paper"]
        for cell in table["cells"]
        if cell["paper"] is not None
    }


def result(found: Sequence[Reference]) -> str:
    """The result at the paper's scale on the official images, beside the paper's."""
    table = next(r for r in found if r.preset == FULL_SCALE).outputs("table")[1]
    ours, paper = means(table), papers(table)
    rows = {
        "cross entropy, best epoch": (CROSS_ENTROPY, "best", "test"),
        "cross entropy, last epoch": (CROSS_ENTROPY, "last", "test"),
        "joint method, last epoch": (JOINT, "last", "test"),
        "joint method, label accuracy": (JOINT, "last", "recovery"),
    }
    lines = [
        "| CIFAR-10, r = 0.5 | here (%) | paper (%) | difference |",
        "|---|---|---|---|",
    ]
    for name, key in rows.items():
        here, there = ours[*key, NOISE_RATE], paper[*key, NOISE_RATE]
        lines.append(f"| {name} | {here:.1f} | {there:.1f} | {here - there:+.1f} |")
    return "\n".join(lines)


def tables(found: Sequence[Reference]) -> str:
    """Tables 1 and 2 in brief: rows in which every method has a trial, without the row that
    `result` shows."""
    by_name = {r.name: r for r in found}
    shown = {"paper-cifar10-jpeg-mixed": "paper's, JPEG", "half": "`half`"}
    table1 = {
        "noisy labels": ("noisy_labels", "initial", "recovery"),
        "label accuracy": (JOINT, "last", "recovery"),
        "cross entropy, best": (CROSS_ENTROPY, "best", "test"),
        "cross entropy, last": (CROSS_ENTROPY, "last", "test"),
        "joint, last": (JOINT, "last", "test"),
    }
    table2 = {
        name: (method, "last", "test")
        for name, method in (
            ("cross entropy", CROSS_ENTROPY),
            ("Forward", "forward"),
            ("CNN-CRF", "cnn_crf"),
            ("joint", JOINT),
        )
    } | {"label accuracy": (JOINT, "last", "recovery")}
    rows1 = [row for name, of in shown.items() for row in _brief(by_name[name], 1, of, table1)]
    rows2 = _brief(by_name["half"], 2, "`half`", table2)
    return "\n".join([*_table(table1, rows1), "", *_table(table2, rows2)])


def _brief(r: Reference, number: int, of: str, columns: Mapping[str, tuple]) -> list[list[str]]:
    """A row for each noise rate at which every column has a mean: ours / the paper's."""
    table = r.outputs("table")[number]
    ours, paper = means(table), papers(table)
    rows = []
    for rate in dict.fromkeys(cell["column"]["noise_rate"] for cell in table["cells"]):
        keys = [(*key, rate) for key in columns.values()]
        if ours.keys() >= set(keys):
            cells = [
                f"{ours[key]:.1f}" + (f" / {paper[key]:.1f}" if key in paper else "")
                for key in keys
            ]
            rows.append(
                [f"[{of}](results/reference/{r.name}/table{number}.md)", f"{rate:g}", *cells]
            )
    return rows


def _table(columns: Mapping[str, tuple], rows: Sequence[Sequence[str]]) -> list[str]:
    heads = ["scale", "r", *columns]
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]


def claims(found: Sequence[Reference], above: str = "") -> str:
    """Eight claims of the paper, each with one of its comparisons: the paper's two numbers and
    ours, the difference with its interval, and the word and counts of the claim; links are
    relative to the folder that ``above`` leads to."""
    heads = ("claim", "paper", "paper's scale (one seed)", *(f"`{name}`" for name in MOST_TELLING))
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for text, *which in CLAIMS:
        at_scale = [_compared(r, *which) for r in found if r.preset == FULL_SCALE]
        judged = [_compared(r, *which) for name in MOST_TELLING for r in found if r.name == name]
        shown = next((each for each in at_scale if each[2]["difference"] is not None), None)
        cells = [_sides(judged[0][2]["paper"]), f"{_sides(shown[2]['here'])}" if shown else ""]
        if shown and shown[0].data != "cifar10":
            cells[-1] += " (JPEG)"
        cells += [
            "; ".join(filter(None, (
                f"{_sides(comparison['here'])}: {difference_in_words(comparison)}"
                if comparison["difference"] is not None else "",
                claim_link(r, claim, f"{above}results/"),
            )))
            for r, claim, comparison in judged
        ]  # fmt: skip
        rows.append(f"| {text} | {' | '.join(cell or 'not run' for cell in cells)} |")
    return "\n".join(rows)


def _compared(r: Reference, name: str, compared: str, at: str) -> tuple[Reference, dict, dict]:
    """A claim of these results, and one of its comparisons."""
    (claim,) = (claim for claim in r.claims if claim["id"] == name)
    comparisons = (each for each in claim["comparisons"] if each["at"] == at)
    return r, claim, next(each for each in comparisons if each["compared"].startswith(compared))


def _sides(numbers: Sequence[float | None] | None) -> str:
    return " / ".join("–" if n is None else f"{n:.1f}" for n in numbers) if numbers else "–"


def claim_link(r: Reference, claim: dict, results: str) -> str:
    """Word and counts of a claim, linked to its section; ``results`` leads to that folder."""
    if claim["word"] == NOT_RUN:
        return NOT_RUN
    word, counts = in_words(claim).split(": ")
    return f"[{word}]({results}reference/{r.name}/claims.md#{slug(claim['section'])}) ({counts})"


def not_run(found: Sequence[Reference]) -> str:
    """Everything that no run has shown."""
    data = {r.data for r in found}
    full_scale = _runs(r for r in found if r.preset == FULL_SCALE)
    float32 = _runs(r for r in found if (r.preset, r.precisions) == ("half", "fp32"))
    clustered = [
        f"{_features(name)} in `{r.name}`" for r in found for name in RunStore(r.results).features()
    ]
    lines = {
        f"the paper's scale, except for {full_scale}, all with seed 0;": True,
        f"on CIFAR-10 at any scale: {_not_on_images(found)};": bool(_not_on_images(found)),
        "Clothing1M: Table 3 and Figures 7 and 8 show a "
        "[stand-in](docs/clothing1m.md#the-stand-in);": "clothing1m" not in data,
        f"pseudo labels from the paper's ResNet-50; [clusters]({PSEUDO_LABELS}) are of "
        f"{', '.join(clustered)};": True,
        f"float32 on `half`, except for {float32}; several GPUs; CUDA 12 "
        "([state](docs/gpu.md#state));": True,
        "a cluster of several [machines](docs/cluster.md); macOS; conda-forge's "
        "[packages](docs/dependencies.md#conda).": True,
    }
    return "\n".join(wrapped(f"- {line}") for line, unseen in lines.items() if unseen)


def _features(name: str) -> str:
    return next((words for begins, words in FEATURES.items() if name.startswith(begins)), name)


def _runs(found: Iterable[Reference]) -> str:
    return counted(sum(r.provenance["runs"] for r in found), "run")


def _not_on_images(found: Sequence[Reference]) -> str:
    """The paper's tables and figures that no folder of CIFAR-10 has, and the ablations if no
    folder has them all."""
    images, missing = [r for r in found if of_the_paper(r.data)], []
    for kind, numbers in COMPUTED.items():
        there = {n for r in images for n in r.outputs(kind)}
        if lacks := [str(n) for n in numbers if n not in there]:
            missing.append(f"{kind.capitalize()}{'s' * (len(lacks) > 1)} {', '.join(lacks)}")
    if not any(r.ablations.get("complete") for r in images):
        missing.append("all ablations of the first step (`ablations.py`)")
    return "; ".join(missing)


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
