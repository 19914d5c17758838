"""What has been computed and what came out, over all committed results: for the README, and as the
page ``results/README.md``."""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from chainer_jo import files
from chainer_jo.experiments import packed_runs
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import PRESETS
from chainer_jo.experiments.provenance import known
from chainer_jo.paper import TABLE1
from chainer_jo.paper.claims import CLAIMS
from chainer_jo.report.claims import summary

#: The cells that stand for a preset in one line.
SHOWN = {"score": "last", "accuracy": "test", "noise_rate": 0.5}
#: Presets whose Table 1 the README shows: that of the first there is. They also come first.
MOST_TELLING = ("paper", "half", "digits")
#: Where in docs it is said what a data set is, if its name does not say it.
DESCRIBED = {
    "cifar10-jpeg": "checklist.md#cifar-10-as-jpeg",
    "clothing1m-standin": "clothing1m.md#the-stand-in",
}


@dataclass(frozen=True)
class Reference:
    """What is committed of one preset and data set, below ``results`` and ``figures``."""

    name: str
    results: Path
    figures: Path

    @cached_property
    def preset(self) -> str:
        """The longest name of a preset that the folder's begins with."""
        return max((p for p in PRESETS if self.name.startswith(p)), key=len)

    @cached_property
    def provenance(self) -> dict:
        return known(self.results)

    @cached_property
    def claims(self) -> list[dict]:
        path = self.results / "claims.json"
        return files.read_json(path) if path.exists() else []

    def parts(self, kind: str) -> dict[int, dict]:
        """The tables or figures that there are, by number."""
        found = map(files.read_json, self.results.glob(f"{kind}[0-9]*.json"))
        return dict(sorted((part[kind], part) for part in found))

    @cached_property
    def data(self) -> str:
        """Name of the data set."""
        parts = [*self.parts("table").values(), *self.parts("figure").values()]
        return parts[0]["data"] if parts else "?"

    @cached_property
    def precisions(self) -> str:
        parts = [*self.parts("table").values(), *self.parts("figure").values()]
        return ", ".join(sorted({part["precision"] for part in parts if "precision" in part}))

    @cached_property
    def labels_right(self) -> list[str]:
        """Of the method's runs in Tables 1 and 2, how many labels were right before and after the
        first step, in percent: ``symmetric 50 %: 55.0 > 97.3``."""
        runs, found = packed_runs.read(self.results), {}
        for number in (1, 2):
            for cell in self.parts("table").get(number, {"cells": []})["cells"]:
                for run in (runs[key] for key in cell["runs"] if key in runs):
                    first = Experiment.from_dict(run["experiment"]).first_step
                    if first and first.noise.rate and first.id in runs:
                        found[first] = runs[first.id]["result"]
        pairs = defaultdict(list)
        for first, result in found.items():
            if result["state"] == "finished":
                pair = result["noisy_labels_right"], result["last"]["recovery"]
                pairs[first.noise.kind, first.noise.rate].append(pair)
        return [
            f"{kind} {100 * rate:g} %: "
            + " > ".join(
                f"{100 * statistics.fmean(side):.1f}"
                for side in zip(*pairs[kind, rate], strict=True)
            )
            for kind, rate in sorted(pairs, reverse=True)
        ]

    def shown(self, method: str) -> str:
        """A method's cell of Table 1 that stands for all."""
        for cell in self.parts("table").get(1, {"cells": []})["cells"]:
            if {**cell["row"], **cell["column"]} == {"method": method, **SHOWN} and cell["trials"]:
                spread = "" if cell["std"] is None else f" ± {cell['std']:.1f}"
                return f"{cell['mean']:.1f}{spread}"
        return "-"


def references(results: Path, figures: Path) -> list[Reference]:
    """What is committed, the most telling first."""
    order = list(dict.fromkeys([*MOST_TELLING, *PRESETS]))
    found = [
        Reference(folder.name, folder, figures / folder.name)
        for folder in results.iterdir()
        if folder.is_dir()
    ]
    return sorted(found, key=lambda r: (order.index(r.preset), r.name))


def status(found: Sequence[Reference]) -> str:
    """The README's status: one line per preset, and what has not been run."""
    paper = [TABLE1.value(method=method, **SHOWN) for method in ("cross_entropy", "joint")]
    lines = [
        "| results | data | runs | trials | computed on | cross entropy, joint method (%) | "
        "claims |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| [{r.name}](results/README.md#{_slug(r.name)}) | {_described(r.data, 'docs')} | "
        f"{r.provenance['runs']} | {_trials(r.parts('table').values())} | "
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
            "- anything on a GPU: the code for it is tested against stand-ins alone, and there are "
            "no times ([docs/gpu.md](docs/gpu.md#state));"
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
    packed = packed_runs.read(r.results)
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
    trials = max(len(cell["trials"]) for cell in cells)
    flags = ""
    if not all(rates.values()):
        flags += "".join([" --noise-rates", *(f" {r:g}" for r in sorted(rates) if rates[r])])
    return flags if trials == PRESETS[preset].trials[0] else f"{flags} --trials {trials}"


def script_costs(measured: dict) -> str:
    """What ``benchmarks/script_costs.py`` has measured, and where."""
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


def page(found: Sequence[Reference]) -> str:
    """The page ``results/README.md``; links are relative to it."""
    lines = [
        "# What has been computed, and what came out",
        "",
        "Written by `reproduce/overview.py` from what is committed here. What scripts compute goes "
        "elsewhere, and `reproduce/compare.py` holds it against this.",
        "",
    ]
    for r in found:
        lines += _section(r)
    return "\n".join([*lines, *_claims([r for r in found if r.claims]), ""])


def _section(r: Reference) -> list[str]:
    origin, here, drawn = r.provenance, f"reference/{r.name}", f"../figures/reference/{r.name}"
    seeds = origin["seeds"]
    facts = [
        f"{origin['runs']} runs, {origin['hours']:g} hours of computing",
        f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}",
        ", ".join(origin["devices"]),
        f"engine {', '.join(origin['engines'])}",
        f"precision {r.precisions}" if r.precisions else "",
        f"commit {', '.join(str(commit or 'unknown') for commit in origin['commits'])}",
    ]
    tables = [
        f"[{number}]({here}/table{number}.md){_filled(table)}"
        for number, table in r.parts("table").items()
    ]
    figures = [
        f"[{number}]({here}/figure{number}.md) ([image]({drawn}/figure{number}.png))"
        for number in r.parts("figure")
    ] + [
        f"{path.stem.removeprefix('figure')} ([image]({drawn}/{path.name}))"
        for path in sorted(r.figures.glob("figure*.png"))
        if not (r.results / f"{path.stem}.md").exists()  # of Clothing1M, which are images alone
    ]
    more = [
        f"[{title}]({here}/{file})"
        for title, file in (
            ("report", "report.html"),
            ("claims", "claims.md"),
            ("relabelled images", "relabelled.html"),
            ("every run: description, result, log", packed_runs.NAME),
        )
        if (r.results / file).exists()
    ]
    about = PRESETS[r.preset].summary if r.name == r.preset else ""
    return [
        f"## {r.name}",
        "",
        (f"{about[0].upper()}{about[1:]}. " if about else "")
        + f"Data: {_described(r.data, '../docs')}.",
        "",
        "; ".join(filter(None, facts)) + ".",
        "",
        *(f"- {name}: {', '.join(items)}" for name, items in
          (("Tables (trials)", tables), ("Figures", figures),
           ("Labels that are right, in percent, before and after the first step", r.labels_right),
           ("Besides", more)) if items),
        "",
    ]  # fmt: skip


def _described(data: str, docs: str) -> str:
    """The name of a data set, with a link to where it is described below ``docs``."""
    return f"[{data}]({docs}/{DESCRIBED[data]})" if data in DESCRIBED else data


def _trials(tables: Iterable[dict]) -> str:
    """Of the cells that have any: ``6``, or ``1 to 6``."""
    counts = {len(cell["trials"]) for table in tables for cell in table.get("cells", [])} - {0}
    if not counts:
        return ""
    return f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{max(counts)}"


def _filled(table: dict) -> str:
    """`_trials` of one table, and where not all of its settings have any: of how many."""
    cells = [cell for cell in table.get("cells", []) if cell["runs"]]  # others are quoted
    settings = {tuple(cell["runs"]): bool(cell["trials"]) for cell in cells}
    trials, done = _trials([table]), sum(settings.values())
    if not trials:
        return ""
    return (
        f" ({trials})"
        if done == len(settings)
        else f" ({trials}; {done} of {len(settings)} settings)"
    )


def _claims(found: Sequence[Reference]) -> list[str]:
    """Every claim and its verdict in each preset, side by side."""
    paper = [] if any(r.preset == "paper" for r in found) else ["paper"]
    names = [*(r.name for r in found), *paper]
    lines = [
        "## Claims",
        "",
        "What the paper says, in words of this project, and what the runs say: the verdict, how "
        "many comparisons bear it out, and their differences in the claim's own unit, from the "
        "least to the most favourable. The verdict leads to all numbers.",
        "",
        f"| | {' | '.join(summary(r.claims) for r in found)} |{' not run |' * len(paper)}",
    ]
    lines.insert(-1, f"| claim | {' | '.join(names)} |")
    lines.insert(-1, "|---" * (len(names) + 1) + "|")
    verdicts = [{claim["id"]: claim for claim in r.claims} for r in found]
    said_by = {claim.id: claim.statement for claim in CLAIMS}
    for key, claim in {k: c for known_ in reversed(verdicts) for k, c in known_.items()}.items():
        cells = [
            _verdict(r, by_id[key]) if key in by_id else "not judged"
            for r, by_id in zip(found, verdicts, strict=True)
        ]
        said = said_by.get(key) or claim.get("statement") or key
        cells += ["not run"] * len(paper)
        lines.append(f"| {said} ({claim['place']}) | {' | '.join(cells)} |")
    return lines


def _verdict(r: Reference, claim: dict) -> str:
    label = claim.get("label") or claim["verdict"]
    anchor = _slug(f"{label}: {claim['id']}")
    text = f"[{label}](reference/{r.name}/claims.md#{anchor})"
    findings = claim.get("findings", [])
    borne_out = sum(finding["outcome"] == "supports" for finding in findings)
    if len(findings) > 1:
        text += f", {borne_out} of {len(findings)}"
    differences = [f["difference"] for f in findings if f.get("difference") is not None]
    if differences:
        least, most = min(differences), max(differences)
        text += f", {least:+.3g}" + (f" to {most:+.3g}" if len(differences) > 1 else "")
    return text


def _slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


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
