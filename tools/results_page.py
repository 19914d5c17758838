"""The page results/README.md; its links are relative to it."""

from __future__ import annotations

from collections.abc import Sequence

from committed import Reference, described, trials
from readme_regions import wrapped

from chainer_jo.reproduction.claims import GROUPS
from chainer_jo.reproduction.claims.claim import IN_PART, NOT_RUN
from chainer_jo.reproduction.experiments.presets import PRESETS
from chainer_jo.reproduction.experiments.words import slug
from chainer_jo.reproduction.running.store import PACKED, SUMS
from chainer_jo.reproduction.tables_and_figures.claims_page import on_premise, summary
from chainer_jo.text import counted


def page(found: Sequence[Reference]) -> str:
    """The page ``results/README.md``; links are relative to it."""
    lines = [
        "# All committed results",
        "",
        "`reproduce/overview.py` writes this page. Each section names the commits that computed "
        "its runs; later code may round otherwise. New runs are written to another folder, and "
        "`reproduce/compare.py` compares them with these.",
        "",
    ]
    for r in found:
        lines += _section(r)
    lines = list(map(wrapped, lines))
    return "\n".join([*lines, *_claims([r for r in found if r.claims]), ""])


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
        f"## {r.name}",
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


def _claims(found: Sequence[Reference]) -> list[str]:
    """Every claim and its verdict in each preset, side by side, by groups."""
    verdicts = {r.name: {claim["id"]: claim for claim in r.claims} for r in found}
    lines = [
        "## Claims",
        "",
        "The paper's claims in our words. Each verdict links to all numbers. The share of "
        "supporting comparisons and the range",
        "of differences, the least favourable first, stand beside it.",
        "",
        f"| claim | {' | '.join(verdicts)} |",
        "|---" * (len(found) + 1) + "|",
        f"| all | {' | '.join(summary(r.claims) for r in found)} |",
    ]
    for group, claims in GROUPS.items():
        of = [[known[c.id] for c in claims if c.id in known] for known in verdicts.values()]
        if any(of):
            lines.append(f"| **{group}** | {' | '.join(map(summary, of))} |")
        for claim in claims:
            cells = [
                _verdict(r, verdicts[r.name].get(claim.id, {"verdict": "not judged"}))
                for r in found
            ]
            if any(claim.id in known for known in verdicts.values()):
                lines.append(f"| {claim.statement} ({claim.place}) | {' | '.join(cells)} |")
    return lines


def _verdict(r: Reference, claim: dict) -> str:
    label = claim.get("label") or claim["verdict"]
    if claim["verdict"] == NOT_RUN or "id" not in claim:
        return label
    anchor = slug(f"{label}: {claim['id']}")
    text = f"[{label}](reference/{r.name}/claims.md#{anchor})"
    findings = [finding for finding in claim["findings"] if not finding["premise"]]
    borne_out = sum(finding["outcome"] == "supports" for finding in findings)
    if len(findings) > 1 and claim["verdict"] != IN_PART:  # which has said so
        text += f", {borne_out} of {len(findings)}"
    text += ", on a premise" * on_premise(claim)
    differences = [f["difference"] for f in findings if f.get("difference") is not None]
    if differences:
        least, most = min(differences), max(differences)
        text += f", {least:+.3g}" + (f" to {most:+.3g}" if len(differences) > 1 else "")
        text += f" {findings[0]['unit']}"
    return text
