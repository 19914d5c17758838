"""Regions of README.md and docs/checklist.md, between two comments, that are made from results."""

from __future__ import annotations

import re
from collections.abc import Sequence

from committed import MOST_TELLING, SHOWN, Reference, described, trials

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import PRESETS
from chainer_jo.experiments.store import read_packed
from chainer_jo.paper.tables import TABLE1
from chainer_jo.report.claims import summary
from chainer_jo.report.words import slug


def status(found: Sequence[Reference]) -> str:
    """The README's status: one line per preset, and what has not been run."""
    paper = [TABLE1.value(method=method, **SHOWN) for method in ("cross_entropy", "joint")]
    lines = [
        "| results | data | runs | trials | computed on | cross entropy, joint method (%) | "
        "claims |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| [{r.name}](results/README.md#{slug(r.name)}) | {described(r.data, 'docs')} | "
        f"{r.provenance['runs']} | {trials(r.parts('table').values())} | "
        f"{', '.join(r.provenance['devices'])} | {_shown_pair(r)} | "
        f"{summary(r.claims) or '-'} |"
        for r in found
    ]
    there = {r.preset for r in found}
    lines += [
        f"| {name} | {preset.default_data} | not run | | | | |"
        for name, preset in PRESETS.items()
        if name not in there
    ]
    lines += [
        "",
        "Cross entropy and joint method: test accuracy in percent at the end, symmetric noise "
        f"r = {SHOWN['noise_rate']:g}, ± one standard deviation over trials; the paper's, on all "
        f"of CIFAR-10, are {paper[0]:g} and {paper[1]:g}. Every claim on every data set, side by "
        "side: [results/README.md](results/README.md#claims).",
        "",
        *_not_run(found),
    ]
    return "\n".join(lines)


def _shown_pair(r: Reference) -> str:
    if 1 not in r.parts("table"):
        return "-"
    return f"{r.shown('cross_entropy')}, {r.shown('joint')}"


def _not_run(found: Sequence[Reference]) -> list[str]:
    lines = ["Not run, and so not shown to work:", ""]
    if not any(r.preset == "paper" for r in found):
        lines.append("- the paper's own scale (preset `paper`): no number here is of it;")
    versions = [version for r in found for version in r.provenance["versions"]]
    if not any(name.startswith("cupy") for version in versions for name in version):
        lines.append(
            "- anything on a GPU: the code for it has run on an emulated device alone, and there "
            "are no times ([docs/gpu.md](docs/gpu.md#state));"
        )
    lines.append(
        "- the conda environment: a test holds its versions against pip's, none creates it."
    )
    return lines


def table1(found: Sequence[Reference]) -> str:
    """Table 1 of the most telling preset that has one, as it is committed but for columns without
    any runs; and what it takes to make it."""
    by_name = {r.name: r for r in found}
    chosen = next(by_name[name] for name in MOST_TELLING if name in by_name)
    text = (chosen.results / "table1.md").read_text().strip()
    before, rows = text[: text.index("|")], text[text.index("|") :].split("\n")
    columns = zip(*([cell.strip() for cell in row.split("|")[1:-1]] for row in rows), strict=True)
    kept = [c for i, c in enumerate(columns) if not i or any(_has_own(cell) for cell in c[2:])]
    lines = [f"| {' | '.join(row)} |" for row in zip(*kept, strict=True)]
    lines[1] = "|---" * len(kept) + "|"
    return "\n".join([before.rstrip(), "", *lines, "", _made_by(chosen)]).strip()


def _has_own(cell: str) -> bool:
    """Whether a cell of a table has more than the paper's number."""
    return bool(cell) and not cell.startswith("…")


def _made_by(r: Reference) -> str:
    """The command for a preset's Table 1, and what its runs took; nothing if they are not there."""
    packed = read_packed(r.results)
    cells = r.parts("table")[1]["cells"]
    keys = {key for cell in cells for key in cell["runs"]}
    shown = [packed[key] for key in keys & packed.keys()]
    firsts = (Experiment.from_dict(run["experiment"]).first_step for run in shown)
    seconds = {run["result"]["id"]: run["result"]["seconds"] for run in shown}
    seconds |= {e.id: packed[e.id]["result"]["seconds"] for e in firsts if e}
    if not seconds:
        return ""
    data = {"cifar10-jpeg": " --data cifar10-jpeg.tar.xz"}.get(r.data, "")
    return (
        f"`python reproduce/table1.py --preset {r.preset}{data}{_part(cells, r.preset)}` makes it. "
        f"These {len(seconds)} runs took {sum(seconds.values()) / 3600:.1f} hours, one after the "
        f"other, on {', '.join(r.provenance['devices'])}."
    )


def _part(cells: Sequence[dict], preset: str) -> str:
    """The flags that ask for no more than the cells of Table 1 that are filled."""
    rates = {cell["column"]["noise_rate"]: False for cell in cells}
    for cell in cells:
        rates[cell["column"]["noise_rate"]] |= bool(cell["trials"])
    most = max(len(cell["trials"]) for cell in cells)
    flags = ""
    if not all(rates.values()):
        flags += "".join([" --noise-rates", *(f" {r:g}" for r in sorted(rates) if rates[r])])
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
