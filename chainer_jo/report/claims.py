"""Every claim of the paper with its verdict over the results of one preset and data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import Study
from chainer_jo.experiments.store import RunStore
from chainer_jo.paper.claims import CLAIMS, NOT_RUN, VERDICTS, Claim, Verdict
from chainer_jo.paper.claims.decision import Finding
from chainer_jo.paper.trials import Trials
from chainer_jo.report.output import Output, write_all
from chainer_jo.report.results import OutputResults

RULE = (
    "± is one standard deviation over trials. Differences are taken trial by trial; in parentheses "
    "stands the 95 % confidence interval of their mean (Student's t), which decides. Comparisons "
    "refute a claim of several by Holm's rule for that many."
)


@dataclass(frozen=True)
class Claims:
    """Writes ``claims.md`` and ``claims.json`` from whatever runs there are; needs none itself.

    Parameters
    ----------
    builds : what makes the tables and figures whose numbers decide.
    """

    study: Study
    builds: Sequence[Callable[[Study], Output]]
    name: str = "claims"
    experiments: Sequence[Experiment] = ()
    missing: str = ""

    def data(self, store: RunStore, origin: dict) -> list[dict]:
        """Every claim as ``claims.json`` has it."""
        # Whichever noise rates were asked for, there may be others.
        study = replace(self.study, noise_rates=None)
        return judged(OutputResults(study, [build(study) for build in self.builds], store))

    def text(self, store: RunStore, origin: dict) -> str:
        """One line per claim and the count of each verdict."""
        verdicts = self.data(store, origin)
        lines = [f"{v['label']:28}  {v['place']:12}  {v['statement']}" for v in verdicts]
        return "\n".join([*lines, "", summary(verdicts)])

    def write(self, store: RunStore, origin: dict, folder: Path, figures: Path) -> list[Path]:
        """Writes both files; returns their paths."""
        verdicts = self.data(store, origin)
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
        return write_all(folder / self.name, {".md": "\n".join(lines), ".json": verdicts})


def judged(results: OutputResults, shown_in: str = "") -> list[dict]:
    """Every claim that these results decide, or those whose numbers one table or figure shows."""
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
        "a": _side(finding.a),
        "b": _side(finding.b),
        "more_than": finding.by,
        "difference": difference.mean,
        "interval": difference.interval and list(difference.interval),
        "trials": len(difference.finished),
        "chance": finding.chance,
    }


def _side(side: Trials) -> dict:
    return {
        "mean": side.mean,
        "std": side.std,
        "trials": None if side.given else len(side.finished),
        "diverged": side.diverged,
    }


def summary(verdicts: Sequence[dict]) -> str:
    """How many claims have which verdict: "holds: 17, does not hold: 7"; verdicts that earlier
    versions gave come last."""
    counts = Counter(verdict["verdict"] for verdict in verdicts)
    order = [*VERDICTS, *sorted(set(counts) - set(VERDICTS))]
    return ", ".join(f"{name}: {counts[name]}" for name in order if counts[name])
