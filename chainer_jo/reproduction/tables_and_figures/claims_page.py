"""All claims of the paper and their verdicts for one preset and data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from chainer_jo import files
from chainer_jo.errors import UserError
from chainer_jo.reproduction.claims import GROUPS
from chainer_jo.reproduction.claims import claim as paper
from chainer_jo.reproduction.claims.decision import REFUTES, SUPPORTS, Finding, decidable
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import clusters, in_words, slug
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures import output
from chainer_jo.reproduction.tables_and_figures.output import Output, Setting, TableOrFigure
from chainer_jo.reproduction.tables_and_figures.results import OutputResults
from chainer_jo.reproduction.trials import Trials

RULE = (
    "± is one standard deviation over trials. Trials are seeds on the same images, so ± does not "
    "cover other test images. Differences are taken trial by trial. The 95 % confidence interval "
    "of the mean difference (Student's t, in parentheses) decides. A claim of several comparisons "
    "is refuted with Holm's correction for their number. A refuted claim holds in part if more "
    "than half of its comparisons support it. Each claim is judged in the paper's words first. "
    "Where these have no bound, our stricter form has one. A verdict rests on a premise if it "
    "needs another claim for which the preset was chosen, or which does not hold here. The open "
    "verdicts are: a premise (the preset was chosen so that the claim holds), premise not met, a "
    "tie, undecided, too few trials, not all run. For an undecided comparison, p "
    "is the probability that chance alone causes a difference at least as extreme. Peak, end and "
    "the value just after a learning rate drop are means over a twentieth of the epochs of each "
    "trial (one epoch of 30)."
)
#: The remedy for a damaged claims.json.
AGAIN = "the file removed, so that it is written again"
#: Columns of the overview and their verdicts.
OVERVIEW = {
    "holds": (paper.HOLDS, paper.PREMISE),
    "in part": (paper.IN_PART,),
    "does not hold": (paper.DOES_NOT_HOLD,),
    "open": {*paper.VERDICTS} - {*paper.DECIDED, paper.PREMISE},
}


@dataclass(frozen=True)
class Claims(Output):
    """Writes ``claims.md`` and ``claims.json`` from the finished runs; requires no run itself, and
    writes nothing if no claim is about such images. The numbers of the tables and figures of
    ``builds`` decide."""

    study: Study
    builds: Sequence[Callable[[Study], TableOrFigure]]

    _decided: dict[RunStore, list[dict]] = field(default_factory=dict, init=False, repr=False)

    name = "claims"

    def data(self, store: RunStore, setting: Setting) -> list[dict]:
        """Every claim as ``claims.json`` has it. Decided once per store: a command checks and
        writes claims after its last run."""
        if store not in self._decided:
            # Whichever noise rates were asked for, there may be others.
            study = replace(self.study, noise_rates=None)
            outputs = [build(study) for build in self.builds]
            self._decided[store] = judged(OutputResults(study, outputs, store))
        return self._decided[store]

    def text(self, store: RunStore, setting: Setting) -> str:
        """One line per claim that has been written, and the count of each verdict."""
        verdicts = read(store.root)
        lines = [f"{v['label']:28}  {v['place']:12}  {v['statement']}" for v in verdicts]
        return "\n".join(
            [*lines, "", summary(verdicts), f"with bounds: {summary(bounded(verdicts))}"]
        )

    def write(self, store: RunStore, setting: Setting, folder: Path, figures: Path) -> list[Path]:
        """Writes both files; returns their paths."""
        verdicts = self.data(store, setting)
        if not verdicts:
            return []
        run = [v for v in verdicts if v["verdict"] != paper.NOT_RUN]
        unrun = [f"- {v['statement']} ({v['place']})" for v in verdicts if v not in run]
        paragraphs = [
            "# Claims of the paper and verdicts of these runs",
            f"{setting}; {len(verdicts)} claims.",
            f"- In the paper's words: {summary(verdicts)}.\n"
            f"- With our bounds where there are any: {summary(bounded(verdicts))}.",
            _overview(run),
            " ".join(filter(None, (RULE, power(run), one_image(self.study)))),
            *(paragraph for verdict in run for paragraph in _section(verdict)),
            f"## {len(unrun)} claims without a run" if unrun else "",
            "\n".join(unrun),
        ]
        text = "\n\n".join(filter(None, paragraphs)) + "\n"
        return output.write_all(folder / self.name, {".md": text, ".json": verdicts})


def read(folder: Path) -> list[dict]:
    """The claims in a results folder; none where no claims were written. Raises UserError for a
    verdict that is none of `VERDICTS`, and for a file of another form."""
    path = folder / "claims.json"
    verdicts = files.read_json(path, list, missing=[])
    with files.expected(path, AGAIN):
        if unknown := {v["verdict"] for v in verdicts} - {*paper.VERDICTS}:
            known = ", ".join(paper.VERDICTS)
            raise UserError(f"{path}: verdict {unknown.pop()!r}, expected one of: {known}")
    return verdicts


def _overview(verdicts: Sequence[dict]) -> str:
    """One line per group of claims, with a column for each kind of verdict."""
    lines = [f"| | {' | '.join(OVERVIEW)} |", "|---" * (len(OVERVIEW) + 1) + "|"]
    for group in dict.fromkeys(v["group"] for v in verdicts):
        cells = [
            ", ".join(_link(v) for v in verdicts if v["group"] == group and v["verdict"] in those)
            for those in OVERVIEW.values()
        ]
        lines.append(f"| {group} | {' | '.join(cells)} |")
    return "\n".join(lines) if verdicts else ""


def _link(verdict: dict) -> str:
    """The claim's name, with the verdict where the column is not specific."""
    more = "against" if verdict["against"] else verdict["verdict"]
    if verdict["verdict"] in paper.DECIDED:
        more = "on a premise" if verdict["rests_on"] else ""
    note = f" ({more})" if more not in ("", paper.UNDECIDED) else ""
    return f"[{in_words(verdict['id'])}](#{slug(_heading(verdict))}){note}"


def _heading(verdict: dict) -> str:
    return f"{verdict['label']}: {verdict['id']}"


def _section(verdict: dict) -> list[str]:
    """A claim with every comparison, by paragraphs."""
    paragraphs = [
        f"## {_heading(verdict)}",
        f"{verdict['statement']} ({verdict['place']})",
        f"Checked: {verdict['check']}",
        f"{'; '.join([*verdict['tally'], *verdict['notes']])}.",
        _comparisons(verdict),
    ]
    if strict := verdict["bounded"]:
        tally = f"{strict['check']} {'; '.join(strict['tally'])}."
        paragraphs += [f"**With our bound: {strict['label']}.** {tally}", _comparisons(strict)]
    return paragraphs


def _comparisons(verdict: dict) -> str:
    """Every comparison of a verdict, a line each."""
    return "\n".join(
        f"- {f['what']}: {'; '.join(dict.fromkeys((numbers(f), f['remark'])))}"
        for f in verdict["findings"]
    )


def numbers(finding: Mapping) -> str:
    """Both sides of a comparison in ``claims.json`` and their difference, in words."""
    return ", difference ".join(filter(None, (finding["sides"], finding["difference_in_words"])))


def one_image(study: Study) -> str:
    """The share of one image in every accuracy; empty for other images than the preset's."""
    if not study.of_the_preset:
        return ""
    preset = study.preset
    counted = {
        "test": preset.test_images,
        "validation": preset.validation_images,
        "label": preset.train_images,
    }
    shares = [f"{100 / n:.2g} of {name} accuracy ({n:,})" for name, n in counted.items()]
    return f"One image counts, in points, {', '.join(shares)}."


def judged(results: OutputResults, shown_in: str = "") -> list[dict]:
    """Every claim that these results decide, or those whose numbers one table or figure shows."""
    decided = {
        claim.id: (claim, group, claim.decide(results))
        for group, claims in GROUPS.items()
        for claim in claims
        if results.decides(claim) and (not shown_in or shown_in in claim.shown_in)
    }
    verdicts = {name: verdict.verdict for name, (_, _, verdict) in decided.items()}
    return [as_json(*each, results, verdicts) for each in decided.values()]


def as_json(
    claim: paper.Claim,
    group: str,
    verdict: paper.Verdict,
    results: OutputResults,
    verdicts: Mapping[str, str],
) -> dict:
    """A claim, its verdict and its comparisons with every number, and under "bounded" the same of
    our stricter form, if it has one. The claim rests on a premise if the claim that it needs does
    not have the verdict "holds" in ``verdicts``."""
    needed = verdicts.get(claim.rests_on, paper.HOLDS)
    notes = []
    if verdict.diverged:
        notes.append(f"up to {verdict.diverged} trials of a setting diverged and are left out")
    if claim.id in results.premises:
        preset = results.study.preset.name
        notes.append(f"{preset} was chosen so that this claim holds: an assumption, not a result")
    if needed != paper.HOLDS:
        notes.append(f"the claim rests on {in_words(claim.rests_on)}: {needed} here")
    features = results.study.features
    if features and not {"figure5", "figure6"}.isdisjoint(claim.shown_in):
        notes.append(f"pseudo labels are {clusters(features)}")
    strict = claim.decide_with_bounds(results)
    return {
        "id": claim.id,
        "group": group,
        "place": claim.place,
        "statement": claim.statement,
        "check": claim.check,
        "shown_in": list(claim.shown_in),
        "rests_on": "" if needed == paper.HOLDS else claim.rests_on,
        "notes": notes,
        **_decided(verdict),
        "bounded": strict and {"check": claim.bounded_check, **_decided(strict)},
    }


def _decided(verdict: paper.Verdict) -> dict:
    """A verdict and its comparisons."""
    compared = zip(verdict.findings, verdict.outcomes, verdict.remarks, strict=True)
    return {
        "verdict": verdict.verdict,
        "label": verdict.label,
        "within": verdict.within,
        "trials": list(verdict.trials),
        "diverged": verdict.diverged,
        "against": verdict.against,
        "comparisons": len(verdict.findings),
        "counts": dict(verdict.counts),
        "tally": verdict.tally,
        "findings": [_finding(*each) for each in compared],
    }


def _finding(finding: Finding, outcome: str, remark: str) -> dict:
    difference = finding.difference
    return {
        "what": finding.compared,
        "outcome": outcome,
        "remark": remark,
        "premise": finding.premise,
        "sides": finding.sides,
        "difference_in_words": finding.difference_in_words,
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
    """The number of claims with each verdict, how many of them rest on a premise, and the share of
    comparisons that support the paper: "holds: 17 (resting on a premise: 5), does not hold: 7; 91
    of 111 comparisons support, 10 refute"."""
    parts = []
    for name in paper.VERDICTS:
        those = [verdict for verdict in verdicts if verdict["verdict"] == name]
        resting = sum(map(on_premise, those))
        marked = f" (resting on a premise: {resting})" * bool(resting)
        parts += [f"{name}: {len(those)}{marked}"] * bool(those)
    # Premises are no findings. Without a p-value nothing was compared.
    outcomes = [
        finding["outcome"]
        for verdict in verdicts
        for finding in verdict["findings"]
        if verdict["verdict"] not in (paper.PREMISE, paper.NO_PREMISE)
        and not finding["premise"]
        and finding["chance"] is not None
    ]
    supporting, refuting = outcomes.count(SUPPORTS), outcomes.count(REFUTES)
    share = f"; {supporting} of {len(outcomes)} comparisons support, {refuting} refute"
    return ", ".join(parts) + share * bool(outcomes)


def on_premise(verdict: dict) -> bool:
    """True for a claim that is decided either way and rests on a premise."""
    return verdict["verdict"] in paper.DECIDED and bool(verdict["rests_on"])


def bounded(verdicts: Sequence[dict]) -> list[dict]:
    """The verdicts of our stricter forms; of a claim with one form only, its verdict."""
    return [{**verdict, **(verdict["bounded"] or {})} for verdict in verdicts]


def power(verdicts: Sequence[dict]) -> str:
    """The difference that the usual number of trials can decide, in words; empty without one."""
    numbers = [f["trials"] for v in verdicts for f in v["findings"] if f["trials"] > 1]
    if not numbers:
        return ""
    trials = max(set(numbers), key=numbers.count)
    return (
        f"{trials} trials decide a comparison in 80 % of cases only if the true difference is "
        f"{decidable(trials):.1f} times the standard deviation of the differences."
    )
