"""The page results/README.md; its links are relative to it."""

from __future__ import annotations

from collections.abc import Sequence

from brief import gains, tables
from committed import ADDITIONS, MOST_TELLING, Reference, described, settings, trials
from matrix import matrix
from pack import SUMS
from readme_regions import claim_link, wrapped

from chainer_jo.reproduction.claims.statements import SECTIONS
from chainer_jo.reproduction.experiments.presets import PRESETS
from chainer_jo.reproduction.running.store import PACKED
from chainer_jo.reproduction.tables_and_figures.claims_page import totals
from chainer_jo.text import counted

INTRODUCTION = (
    "A claim *agrees* if all its comparisons agree with the paper, each by its own 95 % interval. "
    "It is *contradicted* if some contradict and none agrees, *mixed* if some do either, and "
    "*unclear* otherwise. *Sized for*: an effect for which we chose the preset, so no result. –: "
    "not about these images. Words link to all numbers."
)


def page(found: Sequence[Reference], costs: dict) -> str:
    """The page ``results/README.md``; links are relative to it."""
    lines = [
        "# All committed results",
        "",
        "`tools/overview.py` writes this page.",
        "",
        *_claims([r for r in found if r.name in MOST_TELLING]),
        "",
        *_results(found),
        "## Runs",
        "",
        "Each section names the commits that computed its runs. Later code may round otherwise. "
        "New runs are written to another folder. `reproduce/compare.py` compares them with these.",
        "",
    ]
    for r in found:
        lines += _section(r)
    lines += _script_costs(costs)
    return "\n".join(line if line.startswith("|") else wrapped(line) for line in lines)


def _results(found: Sequence[Reference]) -> list[str]:
    """The matrix of results, and Tables 1 and 2 in brief."""
    symmetric, asymmetric = tables(found)
    return [
        "## Tables and figures",
        "",
        "A number counts the trials of a table or figure and links to it. ✓: computed without "
        "training. –: not run. In Tables 6 to 13 the second of a pair has symmetric noise.",
        "",
        *matrix(found).split("\n"),
        "",
        "## Tables 1 and 2 in brief",
        "",
        "`half` has JPEG images and [fewer pixels, units and epochs](../docs/scripts.md#presets) "
        "than the paper, so its accuracies are lower. Compare the differences between methods. "
        "Numbers are in percent, *here / paper*: means of three trials in `half`, one trial at the "
        "paper's scale.",
        "",
        "Symmetric noise; test accuracies except for the first two columns:",
        "",
        *symmetric.split("\n"),
        "",
        "Asymmetric noise in `half`; test accuracies of the last epoch except for the first two "
        "columns:",
        "",
        *asymmetric.split("\n"),
        "",
        "Label accuracy counts the first step's labels, for a baseline (Table 2) its predictions, "
        "which profit from memorised labels ([unlike "
        "things](../docs/baselines.md#forward-correction-table-2-row-2-patrini-et-al-2017)).",
        "",
        "The gain in test accuracy of the joint method's last epoch, over noise rates:",
        "",
        *gains(found).split("\n"),
        "",
    ]


def _section(r: Reference) -> list[str]:
    origin, here, drawn = r.provenance, f"reference/{r.name}", f"../figures/reference/{r.name}"
    seeds = origin["seeds"]
    facts = [
        f"{counted(origin['runs'], 'run')}, {origin['hours']:.1f} hours of computing",
        f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}",
        ", ".join(origin["devices"]),
        f"engine {', '.join(origin['engines'])}",
        f"precision {r.precisions}" if r.precisions else "",
        f"commit {', '.join(str(commit or 'unknown') for commit in origin['commits'])}",
    ]
    tables = [
        f"[{number}]({here}/table{number}.md){_filled(table)}"
        for number, table in r.outputs("table").items()
    ]
    for name, table in r.additions.items():
        tables.append(f"[{ADDITIONS[name]}]({here}/{name}.md){_filled(table)}")
    figures = [
        f"[{number}]({here}/figure{number}.md){_filled(figure)} "
        f"([image]({drawn}/figure{number}.png))"
        for number, figure in r.outputs("figure").items()
    ]
    more = [
        f"[{title}]({here}/{file})"
        for title, file in (
            ("claims", "claims.md"),
            ("learning curves of Table 1", "learning_curves.md"),
            ("corrected labels of twenty images", "corrected_labels.md"),
            ("every finished run: description, result, log", PACKED),
            ("labels and weights of some runs", f"runs/{SUMS}"),
        )
        if (r.results / file).exists()
    ]
    about = PRESETS[r.preset].summary if r.name == r.preset else ""
    return [
        f"### {r.name}",
        "",
        (f"{about[0].upper()}{about[1:]}. " if about else "")
        + f"Data: {described(r.data, '../docs')}.",
        "",
        "; ".join(filter(None, facts)) + ".",
        "",
        *(f"- {name}: {', '.join(items)}" for name, items in
          (("Tables (trials)", tables), ("Figures (trials)", figures),
           ("Label accuracy before → after the first step, in percent", r.labels_right),
           ("Also", more)) if items),
        "",
    ]  # fmt: skip


def _filled(table: dict) -> str:
    """Number of trials of a table or figure; where some settings of a table have none, also how
    many have any."""
    number, (done, planned) = trials([table]), settings(table)
    if not number:
        return ""
    return f" ({number})" if done == planned else f" ({number}; {done} of {planned} settings)"


def _script_costs(measured: dict) -> list[str]:
    """The measurements of ``benchmarks/script_costs.py``, and their machine."""
    return [
        "## Cost of the scripts",
        "",
        "Each script from nothing on the digits, one trial, two jobs, on an idle machine "
        "(`benchmarks/script_costs.py`). Half of the processor time is about the time on two "
        "idle cores.",
        "",
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
        "",
    ]


def _claims(found: Sequence[Reference]) -> list[str]:
    """Every claim with its word and counts in each preset, side by side, by section."""
    known = {r.name: {claim["id"]: claim for claim in r.claims} for r in found}
    lines = ["## Claims", "", *wrapped(INTRODUCTION).split("\n"), ""]
    for r in found:
        lines += [
            f"- [{r.name}](reference/{r.name}/claims.md): {line}." for line in totals(r.claims)
        ]
    lines += ["", f"| claim | {' | '.join(known)} |", "|---" * (len(found) + 1) + "|"]
    for section, claims in SECTIONS.items():
        lines.append(f"| **{section}** |" + " |" * len(found))
        for claim in claims:
            cells = (
                claim_link(r, known[r.name][claim.id], "") if claim.id in known[r.name] else "–"
                for r in found
            )
            lines.append(f"| {claim.statement} ({claim.place}) | {' | '.join(cells)} |")
    return lines
