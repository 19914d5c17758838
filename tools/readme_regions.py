"""Regions of README.md, between two comments, that are written from the results."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from committed import FULL_SCALE, Reference

from chainer_jo.reproduction.claims.claim import DECIDED, NOT_RUN
from chainer_jo.reproduction.experiments.words import of_the_paper
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.claims_page import bounded, on_premise, summary
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


def verdicts(found: Sequence[Reference]) -> str:
    """The number of claims by verdict in each preset that is judged, in the paper's words and with
    our bounds."""
    return verdict_counts(found, "results/reference")


def verdict_counts(found: Sequence[Reference], folder: str) -> str:
    """The table of `verdicts`, with links below ``folder``."""
    lines = [
        "| preset, form | holds | in part | does not hold | open | not run | comparisons |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in (r for r in found if r.claims):
        for form, claims in (("paper's words", r.claims), ("our bounds", bounded(r.claims))):
            count = Counter(claim["verdict"] for claim in claims)
            decided = [count[verdict] for verdict in DECIDED]
            left = len(claims) - sum(decided) - count[NOT_RUN]
            cells = [*map(str, (*decided, left, count[NOT_RUN]))]
            for i, verdict in enumerate(DECIDED):
                resting = sum(on_premise(c) for c in claims if c["verdict"] == verdict)
                cells[i] += f" ({resting} on a premise)" * bool(resting)
            share = summary(claims).split("; ")[1].replace(" comparisons", "")
            link = f"[{r.name}]({folder}/{r.name}/claims.md)"
            lines.append(f"| {link}, {form} | {' | '.join((*cells, share))} |")
    return "\n".join(lines)


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
