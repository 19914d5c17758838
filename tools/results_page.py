"""The page results/README.md; its links are relative to it."""

from __future__ import annotations

from collections.abc import Sequence

from committed import Reference, described, trials
from pack import SUMS
from readme_regions import verdict_counts, wrapped

from chainer_jo.reproduction.claims import GROUPS
from chainer_jo.reproduction.claims.claim import NOT_RUN
from chainer_jo.reproduction.experiments.presets import PRESETS
from chainer_jo.reproduction.experiments.words import slug
from chainer_jo.reproduction.running.store import PACKED
from chainer_jo.reproduction.tables_and_figures.claims_page import on_premise
from chainer_jo.text import counted


def page(found: Sequence[Reference], costs: dict) -> str:
    """The page ``results/README.md``; links are relative to it."""
    lines = [
        "# All committed results",
        "",
        "`tools/overview.py` writes this page.",
        "",
        *_claims([r for r in found if r.claims]),
        "",
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
    if ablations := r.ablations:
        tables.append(f"[ablations of the first step]({here}/ablations.md){_filled(ablations)}")
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
    cells = [cell for cell in table.get("cells", []) if cell["runs"]]  # others are quoted
    settings = {tuple(cell["runs"]): bool(cell["trials"]) for cell in cells}
    number, done = trials([table]), sum(settings.values())
    if not number:
        return ""
    return (
        f" ({number})"
        if done == len(settings)
        else f" ({number}; {done} of {len(settings)} settings)"
    )


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
    """Every claim and its verdict in each preset, side by side, by groups."""
    verdicts = {r.name: {claim["id"]: claim for claim in r.claims} for r in found}
    lines = [
        "## Claims",
        "",
        "Each claim is judged in the paper's words. The verdict with our bound follows where it "
        "differs. Verdicts link to all numbers. *k of n* counts the comparisons that support the "
        "claim. The number after it is the least favourable difference.",
        "",
        *verdict_counts(found, "reference").split("\n"),
        "",
        f"| claim | {' | '.join(verdicts)} |",
        "|---" * (len(found) + 1) + "|",
    ]
    for group, claims in GROUPS.items():
        if any(claim.id in known for claim in claims for known in verdicts.values()):
            lines.append(f"| **{group}** |" + " |" * len(found))
        for claim in claims:
            cells = [
                _verdict(r, verdicts[r.name].get(claim.id, {"verdict": "not judged"}))
                for r in found
            ]
            if any(claim.id in known for known in verdicts.values()):
                lines.append(f"| {claim.statement} ({claim.place}) | {' | '.join(cells)} |")
    return lines


def _verdict(r: Reference, claim: dict) -> str:
    """The verdict with a link, our bound's where it differs, the share of comparisons that support
    the claim, and the least favourable difference."""
    verdict = claim["verdict"]
    if verdict == NOT_RUN or "id" not in claim:
        return verdict
    anchor = slug(f"{claim['label']}: {claim['id']}")
    parts = [f"[{verdict}](reference/{r.name}/claims.md#{anchor})"]
    if claim["bounded"] and claim["bounded"]["verdict"] != verdict:
        parts.append(f"with our bound: {claim['bounded']['verdict']}")
    if on_premise(claim):
        parts.append("on a premise")
    findings = [finding for finding in claim["findings"] if not finding["premise"]]
    if len(findings) > 1:
        supporting = sum(finding["outcome"] == "supports" for finding in findings)
        parts.append(f"{supporting} of {len(findings)}")
    different = [f for f in findings if f.get("difference") is not None]
    if different:
        least = min(different, key=lambda finding: finding["difference"])
        parts.append(f"{least['difference']:+.3g} {least['unit']}")
    return ", ".join(parts)
