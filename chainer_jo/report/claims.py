"""Every claim of the paper with its verdict over the results of one preset and data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chainer_jo import files
from chainer_jo.paper.claims import GROUPS
from chainer_jo.paper.claims import claim as paper
from chainer_jo.paper.claims.claim import DOES_NOT_HOLD, HOLDS, NOT_RUN, PREMISE, UNDECIDED
from chainer_jo.paper.claims.decision import Finding
from chainer_jo.paper.trials import Trials
from chainer_jo.report.output import Output, TableOrFigure, write_all
from chainer_jo.report.results import OutputResults
from chainer_jo.report.words import clusters, in_words, slug
from chainer_jo.runs.presets import Study
from chainer_jo.runs.store import RunStore

RULE = (
    "± is one standard deviation over trials, which are seeds on the same images: what other test "
    "images would change is not in it. Differences are taken trial by trial; in parentheses stands "
    "the 95 % confidence interval of their mean (Student's t), which decides. A claim of several "
    "comparisons is refuted by Holm's rule for that many. Where one is undecided, p is how often "
    "chance alone brings about a difference as small, or as large. A curve's peak, its end, and "
    "just after the learning rate is divided are each trial's, means over a twentieth of its "
    "epochs (of 30 one)."
)
#: Columns of the overview, and the verdicts that they are of.
OVERVIEW = {
    "holds": (HOLDS, PREMISE),
    "does not hold": (DOES_NOT_HOLD,),
    "open": {*paper.VERDICTS} - {HOLDS, PREMISE, DOES_NOT_HOLD},
}


@dataclass(frozen=True)
class Claims(Output):
    """Writes ``claims.md`` and ``claims.json`` from whatever runs there are; needs none itself.
    Nothing where the paper claims nothing of such images.

    Parameters
    ----------
    builds : what makes the tables and figures whose numbers decide.
    """

    study: Study
    builds: Sequence[Callable[[Study], TableOrFigure]]

    name = "claims"

    def data(self, store: RunStore, origin: dict) -> list[dict]:
        """Every claim as ``claims.json`` has it."""
        # Whichever noise rates were asked for, there may be others.
        study = replace(self.study, noise_rates=None)
        return judged(OutputResults(study, [build(study) for build in self.builds], store))

    def text(self, store: RunStore, origin: dict) -> str:
        """One line per claim that has been written, and the count of each verdict."""
        verdicts = files.read_json(store.root / f"{self.name}.json", list, missing=[])
        lines = [f"{v['label']:28}  {v['place']:12}  {v['statement']}" for v in verdicts]
        return "\n".join([*lines, "", summary(verdicts)])

    def write(self, store: RunStore, origin: dict, folder: Path, figures: Path) -> list[Path]:
        """Writes both files; returns their paths."""
        verdicts = self.data(store, origin)
        if not verdicts:
            return []
        run = [v for v in verdicts if v["verdict"] != NOT_RUN]
        lines = [
            "# What the paper says, and what these runs say", "",
            f"Preset {origin['preset']}, data {origin['data']}, precision {origin['precision']}; "
            f"{len(verdicts)} claims about such images; {summary(verdicts)}.", "",
            *_overview(run), f"{RULE} {one_image(self.study)}".strip(), "",
            *(line for verdict in run for line in _section(verdict)),
            *_not_run([v for v in verdicts if v["verdict"] == NOT_RUN]),
        ]  # fmt: skip
        return write_all(folder / self.name, {".md": "\n".join(lines), ".json": verdicts})


def _overview(verdicts: Sequence[dict]) -> list[str]:
    """A line per group of claims: which of them hold, which do not, and what is open."""
    lines = [f"| | {' | '.join(OVERVIEW)} |", "|---" * (len(OVERVIEW) + 1) + "|"]
    for group in dict.fromkeys(v["group"] for v in verdicts):
        cells = [
            ", ".join(_link(v) for v in verdicts if v["group"] == group and v["verdict"] in those)
            for those in OVERVIEW.values()
        ]
        lines.append(f"| {group} | {' | '.join(cells)} |")
    return [*lines, ""] if verdicts else []


def _link(verdict: dict) -> str:
    """The claim's name, and what its column does not say."""
    decided = verdict["verdict"] in (HOLDS, DOES_NOT_HOLD)
    more = "against" if verdict["against"] else verdict["verdict"]
    note = "" if decided or more == UNDECIDED else f" ({more})"
    return f"[{in_words(verdict['id'])}](#{slug(_heading(verdict))}){note}"


def _heading(verdict: dict) -> str:
    return f"{verdict['label']}: {verdict['id']}"


def _section(verdict: dict) -> list[str]:
    """A claim with every comparison."""
    return [
        f"## {_heading(verdict)}", "",
        f"{verdict['statement']} ({verdict['place']})", "",
        f"Checked: {verdict['check']}", "", f"{verdict['reason']}.", "",
        *(
            f"- {f['what']}: {'; '.join(dict.fromkeys((f['numbers'], f['remark'])))}"
            for f in verdict["findings"]
        ),
        "",
    ]  # fmt: skip


def _not_run(verdicts: Sequence[dict]) -> list[str]:
    """Claims of which nothing has been run, folded."""
    if not verdicts:
        return []
    listed = [f"- {v['statement']} ({v['place']})" for v in verdicts]
    summed = f"<summary>{len(verdicts)} claims of which nothing has been run</summary>"
    return ["<details>", summed, "", *listed, "", "</details>", ""]


def one_image(study: Study) -> str:
    """The share of one image in every accuracy; empty for other images than the preset's."""
    if not study.of_the_preset:
        return ""
    preset = study.preset
    counted = {
        "test": preset.test_images,
        "validation": preset.validation_images,
        "recovery": preset.train_images,
    }
    shares = [f"{100 / n:.2g} of {name} accuracy ({n:,})" for name, n in counted.items()]
    return f"One image is {', '.join(shares)}, in points."


def judged(results: OutputResults, shown_in: str = "") -> list[dict]:
    """Every claim that these results decide, or those whose numbers one table or figure shows."""
    return [
        as_json(claim, group, claim.decide(results), results)
        for group, claims in GROUPS.items()
        for claim in claims
        if results.decides(claim) and (not shown_in or shown_in in claim.shown_in)
    ]


def as_json(claim: paper.Claim, group: str, verdict: paper.Verdict, results: OutputResults) -> dict:
    """A claim, its verdict, what each comparison says, and every number behind it."""
    preset = results.study.preset.name
    premise = {
        claim.id: f"{preset} was chosen so that this holds: a premise of its results, no finding",
        claim.rests_on: f"this rests on a premise of {preset}: {in_words(claim.rests_on)}",
    }
    remarks = [remark for key, remark in premise.items() if key in results.premises]
    features = results.study.features
    if features and not {"figure5", "figure6"}.isdisjoint(claim.shown_in):
        remarks.append(f"pseudo labels are {clusters(features)}")
    compared = zip(verdict.findings, verdict.outcomes, verdict.remarks, strict=True)
    return {
        "id": claim.id,
        "group": group,
        "place": claim.place,
        "statement": claim.statement,
        "check": claim.check,
        "shown_in": list(claim.shown_in),
        "verdict": verdict.verdict,
        "label": verdict.label,
        "within": verdict.within,
        "trials": list(verdict.trials),
        "diverged": verdict.diverged,
        "against": verdict.against,
        "comparisons": len(verdict.findings),
        "counts": dict(verdict.counts),
        "reason": "; ".join([verdict.reason, *remarks]),
        "findings": [_finding(*each) for each in compared],
    }


def _finding(finding: Finding, outcome: str, remark: str) -> dict:
    difference = finding.difference
    return {
        "what": finding.compared,
        "outcome": outcome,
        "remark": remark,
        "premise": finding.premise,
        "numbers": finding.numbers,
        "a": _side(finding.a),
        "b": _side(finding.b),
        "more_than": finding.by,
        "unit": finding.difference_unit,
        "difference": difference.mean_or_none,
        "interval": difference.interval and list(difference.interval),
        "trials": len(difference.finished),
        "chance": finding.p_value,
    }


def _side(side: Trials) -> dict:
    return {
        "mean": side.mean_or_none,
        "std": side.std,
        "trials": len(side.finished) if side.constant is None else None,
        "diverged": side.diverged,
    }


def summary(verdicts: Sequence[dict]) -> str:
    """The number of claims with each verdict: "holds: 17, does not hold: 7"."""
    counts = Counter(verdict["verdict"] for verdict in verdicts)
    return ", ".join(f"{name}: {counts[name]}" for name in paper.VERDICTS if counts[name])
