"""Every claim of the paper with its verdict over the results of one preset and data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from chainer_jo import files
from chainer_jo.experiments.clothing1m import Clothing1MStudy
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import Study
from chainer_jo.experiments.store import RunStore
from chainer_jo.paper.claims import CLAIMS, NOT_RUN, VERDICTS, Claim, Verdict
from chainer_jo.paper.claims.scatter import Estimate, Finding
from chainer_jo.report.study_results import results_of

RULE = (
    "± is one standard deviation over trials. Differences are taken trial by trial; in parentheses "
    "stands the 95 % confidence interval of their mean (Student's t), which decides. Comparisons "
    "refute a claim of several by Holm's rule for that many."
)


@dataclass(frozen=True)
class Claims:
    """Writes ``claims.md`` and ``claims.json`` from whatever runs there are; needs none itself."""

    study: Study | Clothing1MStudy
    name: str = "claims"
    experiments: Sequence[Experiment] = ()
    missing: str = ""

    def text(self, store: RunStore, origin: dict) -> str:
        """One line per claim and the count of each verdict."""
        verdicts = judged(self.study, store)
        lines = [f"{v['label']:28}  {v['place']:12}  {v['statement']}" for v in verdicts]
        return "\n".join([*lines, "", summary(verdicts)])

    def write(self, store: RunStore, origin: dict, folder: Path, figures: Path) -> list[Path]:
        """Writes both files; returns their paths."""
        verdicts = judged(self.study, store)
        lines = [
            "# What the paper says, and what these runs say", "",
            f"Preset {origin['preset']}, data {origin['data']}, precision {origin['precision']}; "
            f"{len(verdicts)} claims about such images; {summary(verdicts) or 'none'}.", "",
            RULE, "",
        ]  # fmt: skip
        for verdict in verdicts:
            lines += [
                f"## {verdict['label']}: {verdict['id']}", "",
                f"{verdict['statement']} ({verdict['place']})", "",
                f"Checked: {verdict['check']}", "", f"{verdict['reason']}.", "",
            ]  # fmt: skip
            if verdict["verdict"] != NOT_RUN:
                lines += [
                    f"- {f['what']}: {'; '.join(dict.fromkeys((f['numbers'], f['outcome'])))}"
                    for f in verdict["findings"]
                ] + [""]
        markdown, data = folder / "claims.md", folder / "claims.json"
        files.write_text(markdown, "\n".join(lines))
        files.write_json(data, verdicts)
        return [markdown, data]


def judged(study: Study | Clothing1MStudy, store: RunStore, shown_in: str = "") -> list[dict]:
    """Every claim as ``claims.json`` has it, or those whose numbers one table or figure shows."""
    results = results_of(study, store)
    return [
        as_json(claim, claim.decide(results))
        for claim in CLAIMS
        if results.decides(claim) and (not shown_in or shown_in in claim.shown_in)
    ]


def as_json(claim: Claim, verdict: Verdict) -> dict:
    """A claim, its verdict, what each comparison says, and every number behind it."""
    return {
        "id": claim.id,
        "place": claim.place,
        "statement": claim.statement,
        "check": claim.check,
        "shown_in": list(claim.shown_in),
        "verdict": verdict.verdict,
        "label": verdict.label,
        "within": verdict.within,
        "trials": list(verdict.trials),
        "diverged": verdict.diverged,
        "comparisons": len(verdict.findings),
        "counts": dict(verdict.counts),
        "reason": verdict.reason,
        "findings": [
            _finding(finding, outcome)
            for finding, outcome in zip(verdict.findings, verdict.outcomes, strict=True)
        ],
    }


def _finding(finding: Finding, outcome: str) -> dict:
    difference = finding.difference
    return {
        "what": finding.what,
        "outcome": outcome,
        "numbers": finding.numbers,
        "a": _estimate(finding.a),
        "b": _estimate(finding.b),
        "more_than": finding.by,
        "difference": difference.mean,
        "interval": difference.interval and list(difference.interval),
        "trials": len(difference.finished),
        "chance": finding.chance,
    }


def _estimate(estimate: Estimate) -> dict:
    return {
        "mean": estimate.mean,
        "std": estimate.std,
        "trials": None if estimate.given else len(estimate.finished),
        "diverged": estimate.diverged,
    }


def summary(verdicts: Sequence[dict]) -> str:
    """How many claims have which verdict: "holds: 17, does not hold: 7"; verdicts that earlier
    versions gave come last."""
    counts = Counter(verdict["verdict"] for verdict in verdicts)
    order = [*VERDICTS, *sorted(set(counts) - set(VERDICTS))]
    return ", ".join(f"{name}: {counts[name]}" for name in order if counts[name])
