"""Every claim of the paper with its verdict over the results of one preset and data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from chainer_jo import files
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import Study
from chainer_jo.experiments.store import RunStore
from chainer_jo.paper.claims import CLAIMS
from chainer_jo.report.study_results import StudyResults


@dataclass(frozen=True)
class Claims:
    """Writes ``claims.md`` and ``claims.json`` from whatever runs there are; needs none itself."""

    study: Study
    name: str = "claims"
    experiments: Sequence[Experiment] = ()
    missing: str = ""

    def _verdicts(self, store: RunStore) -> list[dict]:
        results = StudyResults(self.study, store)
        return [
            {"id": claim.id, "place": claim.place, "quote": claim.quote, "check": claim.check,
             **asdict(claim.decide(results))}
            for claim in CLAIMS
        ]  # fmt: skip

    def text(self, store: RunStore, origin: dict) -> str:
        """One line per claim and the count of each verdict."""
        verdicts = self._verdicts(store)
        lines = [f"{v['verdict']:16}  {v['place']:16}  {v['quote']}" for v in verdicts]
        return "\n".join([*lines, "", _summary(verdicts)])

    def write(self, store: RunStore, origin: dict, folder: Path, figures: Path) -> list[Path]:
        """Writes both files; returns their paths."""
        verdicts = self._verdicts(store)
        lines = [
            "# What the paper says, and what these runs say", "",
            f"Preset {origin['preset']}, data {origin['data']}, precision {origin['precision']}; "
            f"{len(verdicts)} claims: {_summary(verdicts)}.", "",
        ]  # fmt: skip
        for verdict in verdicts:
            lines += [
                f"## {verdict['verdict']}: {verdict['id']}", "",
                f"> {verdict['quote']}", ">", f"> ({verdict['place']})", "",
                f"Checked: {verdict['check']}", "",
                f"{verdict['figures']}.", "", f"{verdict['reason']}.", "",
            ]  # fmt: skip
        markdown, data = folder / "claims.md", folder / "claims.json"
        files.write_text(markdown, "\n".join(lines))
        files.write_json(data, verdicts)
        return [markdown, data]


def _summary(verdicts: Sequence[dict]) -> str:
    counts = Counter(verdict["verdict"] for verdict in verdicts)
    return ", ".join(f"{number} {name}" for name, number in counts.items())
