"""Regions of README.md and docs/checklist.md, between two comments, that are made from results."""

from __future__ import annotations

import re
import statistics
import textwrap
from collections import defaultdict
from collections.abc import Mapping, Sequence

from committed import FULL_SCALE, MOST_TELLING, Reference, described, trials

from chainer_jo.paper.tables import TABLE1
from chainer_jo.report.claims import summary
from chainer_jo.report.headline import NOISE_RATE, SHOWN, headline, means
from chainer_jo.report.words import counted, of_the_paper, slug, trained_on
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.presets import PRESETS, Study
from chainer_jo.runs.store import RunStore, read_packed

#: Characters of a line of prose.
LINE = 140
#: The paper's tables and figures that are made of runs on CIFAR-10.
COMPUTED = {"table": (1, 2, *range(6, 14)), "figure": range(2, 7)}
#: The place in docs that says what pseudo labels are clustered from.
PSEUDO_LABELS = "docs/baselines.md#pseudo-labels-pl-cifar-sections-51-and-57"


def status(found: Sequence[Reference]) -> str:
    """The README's status: one line per preset, and what has not been run."""
    lines = [
        "| results | data | runs | trials | cross entropy, joint at 50 % (as above) | claims |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| [{r.name}](results/README.md#{slug(r.name)}) | {described(r.data, 'docs')} | "
        f"{r.provenance['runs']} | {_trials(r)} | {_shown(r)} | "
        f"{summary(r.claims) or '-'} |"
        for r in found
    ]
    there = {r.preset for r in found}
    lines += [
        f"| {name} | {preset.default_data} | not run | | | |"
        for name, preset in PRESETS.items()
        if name not in there
    ]
    lines += [
        "",
        "Not run, and so not shown to work:",
        "",
        *(wrapped(f"- {line}") for line in _unseen(found)),
    ]
    return "\n".join(lines)


def _trials(r: Reference) -> str:
    return trials([*r.outputs("table").values(), *r.outputs("figure").values()])


def _shown(r: Reference) -> str:
    """``69.0 → 48.4, 72.9``: test accuracies of Table 1."""
    if 1 not in r.outputs("table"):
        return "-"
    return ", ".join(_tested(means(r.outputs("table")[1]), NOISE_RATE))


def _unseen(found: Sequence[Reference]) -> list[str]:
    """What nobody has run."""
    data = {r.data for r in found}
    full_scale = [r for r in found if r.preset == FULL_SCALE]
    float32 = [r for r in found if r.name == "half-fp32"]
    lacks = _not_on_images(found)
    lines = {
        f"the paper's own scale (preset `paper`){_but_for(full_scale)};": True,
        "several GPUs; what one has shown, and what not: [docs/gpu.md](docs/gpu.md#state);": True,
        f"on CIFAR-10, at any scale: {lacks};": bool(lacks),
        "Clothing1M itself: Table 3 and Figures 7 and 8 are of a "
        "[stand-in](docs/clothing1m.md#the-stand-in);": "clothing1m" not in data,
        f"pseudo labels from the paper's ResNet-50: {_clustered(found)};": True,
        f"float32 on `half`, which is mixed precision{_but_for(float32)};": True,
        "a cluster of more than one machine ([docs/cluster.md](docs/cluster.md));": True,
        "macOS; conda-forge's own packages ([what was tried](docs/dependencies.md#conda)).": True,
    }
    return [line for line, unseen in lines.items() if unseen]


def _but_for(there: Sequence[Reference]) -> str:
    runs = sum(r.provenance["runs"] for r in there)
    return f", but for {counted(runs, 'run')}" if runs else ""


def _clustered(found: Sequence[Reference]) -> str:
    """What pseudo labels are in their place."""
    those = [f"of {of} in `{r.name}`" for r in found for of in RunStore(r.results).features()]
    return f"here they are [clusters]({PSEUDO_LABELS}) {', '.join(those)}"


def _not_on_images(found: Sequence[Reference]) -> str:
    """The paper's tables of runs and figures of curves that no folder of CIFAR-10 has, and whether
    none has the first step without its parts."""
    images, missing = [r for r in found if of_the_paper(r.data)], []
    for kind, numbers in COMPUTED.items():
        there = {n for r in images for n in r.outputs(kind)}
        if lacks := [str(n) for n in numbers if n not in there]:
            missing.append(f"{kind.capitalize()}{'s' * (len(lacks) > 1)} {', '.join(lacks)}")
    if not any(r.ablations.get("complete") for r in images):
        missing.append("the first step without parts of it")
    return "; ".join(missing)


def result(found: Sequence[Reference]) -> str:
    """What came out, in a sentence for each of the folders shown, and the curves of the first."""
    shown = _telling(found)
    return "\n\n".join([*map(wrapped, map(_said, shown)), _curves(shown[0])])


def _said(r: Reference) -> str:
    """The sentence of one folder, and that it is of one trial; empty where both methods have not
    ended at any noise rate."""
    table = r.outputs("table").get(1)
    said = headline(table, _images(r)) if table else ""
    return f"{said} One trial." if said and trials([table]) == "1" else said


def _curves(r: Reference) -> str:
    """The image of a folder's learning curves, and which there are."""
    labels = "; ".join(curve["label"] for curve in r.curves if curve["epochs"])
    return (
        f'<img src="figures/reference/{r.name}/learning_curves.png" width="480"\n'
        f'alt="Test accuracy by epoch on {_images(r)}: {labels}">'
    )


def _images(r: Reference) -> str:
    scale = " at the paper's own scale" if r.preset == FULL_SCALE else ""
    return trained_on(Study(PRESETS[r.preset], r.data)) + scale


def wrapped(text: str) -> str:
    """A paragraph or an item of a list, in lines that can be read."""
    below = "  " if text.startswith("- ") else ""
    return textwrap.fill(
        text, LINE, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )


def table1(found: Sequence[Reference]) -> str:
    """Table 1 in short, of the folders that the README shows: a row for each noise rate that has
    runs; and what it takes to make it."""
    shown = _telling(found)
    return "\n\n".join((f"{_images(r)}:\n\n" if len(shown) > 1 else "") + _short(r) for r in shown)


def _short(r: Reference) -> str:
    table = r.outputs("table")[1]
    ours = means(table)
    paper = {
        (*cell["row"].values(), *cell["column"].values()): cell["paper"] for cell in table["cells"]
    }
    beside = of_the_paper(r.data)
    rows, worse = [], []
    for rate in dict.fromkeys(cell["column"]["noise_rate"] for cell in table["cells"]):
        before = ours.get(("noisy_labels", "initial", "recovery", rate))
        after = ours.get((*JOINT, "recovery", rate))
        if before is None:
            continue
        worse += [rate] * (after is not None and after < before)
        row = [f"{100 * rate:g} %", f"{before:.1f}{TO}{_or_dash(after)}", *_tested(ours, rate)]
        rows.append(
            row + [f"{paper[*JOINT, 'recovery', rate]:.1f}", *_tested(paper, rate)] * beside
        )
    heads = [
        "labels right, before → after",
        "test: cross entropy, best → last",
        "test: joint, last",
    ]
    theirs = ["paper: labels after", "paper: cross entropy", "paper: joint"] * beside
    lines = [f"| {' | '.join(row)} |" for row in (["noise rate", *heads, *theirs], *rows)]
    lines.insert(1, "|---" * (1 + len(heads) + len(theirs)) + "|")
    number = trials([table])
    over = "one trial; " if number == "1" else f"means over {number} trials; scatter, and "
    notes = [
        f"In percent, {over}recovery of cross entropy: "
        f"[Table 1](results/reference/{r.name}/table1.md)."
    ]
    if worse:
        few = " and ".join(f"{100 * rate:g}" for rate in worse)
        notes.append(f"At noise rates of {few} % fewer labels are right afterwards.")
    return "\n".join([*lines, "", wrapped(" ".join([*notes, _made_by(r)]))])


JOINT = ("joint", "last")
TO = "\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}"


def _tested(found: Mapping, rate: float) -> list[str]:
    """Test accuracies: ``69.0 → 48.4`` of cross entropy, best and last, and the joint method's."""
    best, last, joint = (_or_dash(found.get((*which, "test", rate))) for which in SHOWN)
    return [f"{best}{TO}{last}", joint]


def _or_dash(accuracy: float | None) -> str:
    return "-" if accuracy is None else f"{accuracy:.1f}"


def _telling(found: Sequence[Reference]) -> list[Reference]:
    """The results that the README shows: the most telling at the paper's scale, and of the other
    presets."""
    by_name = {r.name: r for r in found}
    full = [r for r in found if r.preset == FULL_SCALE and _said(r)]
    others = [by_name[name] for name in MOST_TELLING if name in by_name]
    return full[:1] + others[:1]


def _made_by(r: Reference) -> str:
    """The command for a preset's Table 1, and what its runs took; nothing if they are not there."""
    packed = read_packed(r.results)
    table = r.outputs("table")[1]
    cells = table["cells"]
    # The table does not name a first step whose second has not ended; the curves do.
    keys = {key for part in (*cells, *r.curves) for key in part["runs"]}
    runs = [Experiment.from_dict(packed[key]["experiment"]) for key in keys & packed.keys()]
    by_device = defaultdict(lambda: defaultdict(list))
    for e in {*runs, *(run.first_step for run in runs if run.first_step)}:
        result = packed[e.id]["result"]
        device = by_device[result["provenance"]["device"]]
        device[e.kind, e.noise.short].append(result["seconds"])
    if not by_device:
        return ""
    flags = {"cifar10-jpeg": " --data cifar10-jpeg.tar.xz"}.get(r.data, "")
    if table["precision"] != PRESETS[r.preset].precision:
        flags += f" --precision {table['precision']}"
    flags += _part(cells, r.preset)
    took = "; ".join(f"{_took(by_device[name])} on {name}" for name in sorted(by_device))
    so_far = "" if table["complete"] else "so far "
    return f"`python reproduce/table1.py --preset {r.preset}{flags}` makes it: {so_far}{took}."


def _took(seconds: Mapping[tuple, list[float]]) -> str:
    """How many runs there are on one device, and how long they took, by what they have in common
    but their trial."""
    number = sum(map(len, seconds.values()))
    # By the medians, since a trial on a busy machine takes several times as long.
    hours = sum(len(each) * statistics.median(each) for each in seconds.values()) / 3600
    time = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.1f} minutes"
    took = f"{counted(number, 'run')}, {time}"
    if number > 1:
        took += " one after the other"
    if number > len(seconds):
        took += ", each counted as the median of its trials,"
    return took


def _part(cells: Sequence[dict], preset: str) -> str:
    """The flags that ask for no more than the noise rates and trials of Table 1 that there are."""
    rates = sorted({cell["column"]["noise_rate"] for cell in cells if cell["trials"]})
    most = max(len(cell["trials"]) for cell in cells)
    flags = ""
    if rates != sorted(TABLE1.keys("noise_rate")):
        flags += "".join([" --noise-rates", *(f" {rate:g}" for rate in rates)])
    return flags if most == PRESETS[preset].trials[0] else f"{flags} --trials {most}"


def script_costs(measured: dict) -> str:
    """The measurements of ``benchmarks/script_costs.py``, and their machine."""
    lines = [
        "| script | runs | processor minutes | MB per process | MB on disk |",
        "|---|---|---|---|---|",
        *(
            f"| `{s['script']}.py` | {s['runs']} | {s['processor_s'] / 60:.1f} | "
            f"{s['process_mb']} | {s['disk_mb']:g} |"
            for s in measured["scripts"]
            if s["runs"]
        ),
        "",
        f"{measured['machine']['processor']}, oneDNN {measured['machine']['onednn']}; "
        f"`{' '.join(measured['flags'])}`.",
    ]
    return "\n".join(lines)


def fill(text: str, name: str, content: str) -> str:
    """A Markdown text with the region ``name`` replaced: what is between ``<!-- name: ... -->`` and
    ``<!-- end of name -->``."""
    pattern = rf"(<!-- {name}:.*?-->\n).*?(<!-- end of {name} -->)"
    filled, count = re.subn(
        pattern, lambda m: f"{m[1]}\n{content}\n\n{m[2]}", text, flags=re.DOTALL
    )
    if count != 1:
        raise ValueError(f"{count} regions {name!r} in the text, expected one")
    return filled
