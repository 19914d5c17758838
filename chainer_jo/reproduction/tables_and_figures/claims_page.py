"""All claims of the paper, with every comparison, for one preset and data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import sqrt
from pathlib import Path

from chainer_jo.reproduction.claims import claim as rule
from chainer_jo.reproduction.claims.comparisons import Pairs
from chainer_jo.reproduction.claims.statements import SECTIONS, Claim
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import clusters
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures import output
from chainer_jo.reproduction.tables_and_figures.output import Output, Results, TableOrFigure
from chainer_jo.reproduction.tables_and_figures.results import OutputResults
from chainer_jo.reproduction.trials import alike

RULE = (
    "A comparison names the number that should be larger according to the paper: *joint > "
    "Forward*. The difference is the first number minus the second, trial by trial, with the 95 % "
    "interval of its mean (Student's t). The comparison *agrees* if the interval lies above 0, or "
    "above the bound that is named. It *contradicts* if the interval lies below, and is *unclear* "
    "otherwise. One trial gives no word. A claim agrees if all comparisons agree. It is "
    "contradicted if some contradict and none agrees, mixed if some do either, else unclear.",
    "A drop is a loss of more than 2 points; to keep, to stay high or to depend little is to lose "
    "less. Best: the epoch chosen by validation images. Peak and end: means over a twentieth of "
    "the epochs; the other trials choose a trial's peak. Before the rate drop: later half of the "
    "epochs before it. Paper: the same two numbers, where the paper's tables print them.",
)
HEADERS = ("claim", "comparison", "at", "paper", "here", "difference (95 %)", "word")


@dataclass(frozen=True)
class Claims(Output):
    """Writes ``claims.md`` and ``claims.json`` from the finished runs; requires no run itself, and
    writes nothing if no claim is about such images. The numbers of the tables and figures of
    ``builds`` decide."""

    study: Study
    builds: Sequence[Callable[[Study], TableOrFigure]]

    name = "claims"

    def data(self, results: Results) -> list[dict]:
        """Every claim as ``claims.json`` has it."""
        study = replace(self.study, noise_rates=None)  # there may be others than were asked for
        return judged(study, [build(study) for build in self.builds], results.store)

    def text(self, results: Results) -> str:
        """One line per claim, and the totals."""
        claims = self.data(results)
        lines = (f"{c['word']:12}  {c['place']:12}  {c['statement']}" for c in claims)
        return "\n".join([*lines, "", *totals(claims)])

    def write(self, results: Results, folder: Path, figures: Path) -> list[Path]:
        """Writes both files; returns their paths."""
        claims = self.data(results)
        if not claims:
            return []
        clustered = self.study.features and f" Pseudo labels are {clusters(self.study.features)}."
        paragraphs = ["# Claims of the paper in these runs", f"{results}.{clustered or ''}"]
        paragraphs.append("\n".join(f"- {line}" for line in totals(claims)))
        paragraphs += [*RULE, _test_images(self.study)]
        run = (claim for claim in claims if claim["word"] != rule.NOT_RUN)
        for section, of_section in groupby(run, lambda claim: claim["section"]):
            paragraphs += [f"## {section}", table(list(of_section))]
        if unrun := [claim for claim in claims if claim["word"] == rule.NOT_RUN]:
            listed = "\n".join(f"- {c['statement']} ({c['place']})" for c in unrun)
            paragraphs += [f"## {len(unrun)} claims without a run", listed]
        text = "\n\n".join(paragraphs) + "\n"
        return output.write_all(folder / self.name, {".md": text, ".json": claims})


def judged(
    study: Study, outputs: Sequence[TableOrFigure], store: RunStore, shown_in: str = ""
) -> list[dict]:
    """Every claim that these outputs decide, or those whose numbers one of them shows."""
    results, printed = (OutputResults(study, outputs, store, paper) for paper in (False, True))
    return [
        _claim(claim, section, results, printed)
        for section, claims in SECTIONS.items()
        for claim in claims
        if results.decides(claim) and (not shown_in or shown_in in claim.shown_in.split())
    ]


def _claim(claim: Claim, section: str, results: OutputResults, printed: OutputResults) -> dict:
    """A claim with its comparisons, each beside the same comparison of the paper's numbers."""
    pairs = zip(claim.compare(Pairs(results)), claim.compare(Pairs(printed)), strict=True)
    comparisons = [_comparison(here, paper) for here, paper in pairs]
    words = [each["word"] for each in comparisons]
    return {
        "id": claim.id,
        "section": section,
        "place": claim.place,
        "statement": claim.statement,
        "sized_for": claim.id in results.study.sized_for,
        "word": rule.word_of(words),
        "counts": {word: words.count(word) for word in rule.COMPARISON_WORDS if word in words},
        "comparisons": comparisons,
    }


def _comparison(here: rule.Comparison, paper: rule.Comparison) -> dict:
    """One comparison; "here" has the means over the trials of both sides, "paper" the numbers that
    the paper prints (None: not printed)."""
    difference, both = here.difference, zip(here.sides, paper.sides, strict=True)
    printed = any(there.has_numbers and side.constant is None for side, there in both)
    paired = [trial for trial, number in difference.numbers.items() if number is not None]
    sides = [side.only(paired or side.numbers) for side in here.sides]
    return {
        "compared": here.compared,
        "at": here.at,
        "situation": here.situation,
        "bound": here.by,
        "unit": here.unit,
        "paper": [side.mean_or_none for side in paper.sides] if printed else None,
        "here": [side.mean_or_none for side in sides],
        "std": [side.std for side in sides],
        "difference": difference.mean_or_none,
        "interval": difference.interval and list(difference.interval),
        "trials": len(difference.finished),
        "diverged": difference.diverged,
        "word": here.word,
    }


def table(claims: Sequence[dict]) -> str:
    """A row for the comparisons of a claim that differ in their setting, an unbroken line each."""
    rows = []
    for claim in claims:
        first = f"{claim['statement']} ({claim['place']}) **{in_words(claim)}**"
        for compared, same in groupby(claim["comparisons"], lambda each: each["compared"]):
            columns = zip(*map(_cells, same), strict=True)
            lines = ("<br>".join(c).replace(" ", "\xa0") if any(c) else "" for c in columns)
            rows.append([first, compared, *lines])
            first = ""
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEADERS, ["---"] * len(HEADERS), *rows))


def in_words(claim: Mapping) -> str:
    """The word and the counts of a claim: "mixed: 8 agree, 1 contradicts, 1 unclear"."""
    plural = {rule.AGREES: "agree", rule.CONTRADICTS: "contradict"}
    counts = (f"{n} {plural.get(w, w) if n > 1 else w}" for w, n in claim["counts"].items())
    return f"{'sized for' if claim['sized_for'] else claim['word']}: {', '.join(counts)}"


def _cells(comparison: Mapping) -> Iterator[str]:
    """A comparison's cells: setting, paper, here, difference, word."""
    yield comparison["at"]
    for sides in (comparison["paper"] or (), comparison["here"]):
        numbers = ["–" if n is None else alike(n)[0] for n in sides]
        yield " / ".join(numbers) if set(numbers) != {"–"} else ""
    yield difference_in_words(comparison)
    word, diverged = comparison["word"], comparison["diverged"]
    if comparison["situation"] and word == rule.CONTRADICTS:
        word += ": the situation did not arise"
    yield f"{word} ({diverged} diverged)" if diverged else word


def difference_in_words(comparison: Mapping) -> str:
    """The mean difference of a comparison, with its interval if there is one: "2.73 (0.75 to
    4.71)", and the unit where it is not points."""
    if comparison["difference"] is None:
        return ""
    unit = "" if comparison["unit"] == rule.POINTS else f" {comparison['unit']}"
    mean, *ends = alike(comparison["difference"], *(comparison["interval"] or ()))
    return f"{mean}{unit}" + (" ({} to {})".format(*ends) if ends else "")


def totals(claims: Sequence[dict]) -> list[str]:
    """The numbers of claims and of comparisons by word, without those sized for, and how many
    comparisons would contradict by chance alone: the interval of a true difference at the bound
    lies below it in one case of 40."""
    counted = [claim for claim in claims if not claim["sized_for"]]
    words = Counter(each["word"] for claim in counted for each in claim["comparisons"])
    decided = sum(words[word] for word in (rule.AGREES, rule.CONTRADICTS, rule.UNCLEAR))
    rest = len(claims) - len(counted)
    are = "is an effect" if rest == 1 else "are effects"
    of_claims = _counts(Counter(claim["word"] for claim in counted), rule.CLAIM_WORDS)
    return [
        f"{len(counted)} claims: {of_claims}"
        + f"; {rest} more {are} for which we sized the preset" * bool(rest),
        f"{words.total()} comparisons: {_counts(words, rule.COMPARISON_WORDS)}"
        + f". Of the {decided} with two trials or more, chance would contradict {decided} / 40 = "
        f"{decided / 40:.1f} if every true difference were at its bound" * bool(decided),
    ]


def _counts(counts: Counter, words: Sequence[str]) -> str:
    return ", ".join(f"{word} {counts[word]}" for word in words if counts[word])


def _test_images(study: Study) -> str:
    """The error that the finite test set adds to every test accuracy."""
    images = study.preset.test_images
    high, low = (f"{196 * sqrt(p * (1 - p) / images):.1f} points" for p in (0.95, 0.7))
    said = (
        f"The error (95 %) from {images:,} test images is {high} at an accuracy of 95 % and {low}"
    )
    same = "Trials are seeds on the same images."
    return f"{same} {said} at 70 %. No interval covers it." if study.of_the_preset else same
