"""Ranking of label errors where 0.5 to 3 % of the labels are wrong, next to cleanlab's scores.

    python benchmarks/label_errors_rare.py --features FILE.npz --json FILE.json

All methods see the same out-of-fold probabilities of `relabel`'s networks. Seeds differ from the
ones of `label_errors.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import label_errors as given_features
import label_tasks
import numpy as np
from label_errors import CLEANLAB, RELABEL, Methods, SameNetworks, Verdict
from label_errors_page import SCORES, Blocks, mean_of, percent, table

from chainer_jo.command_line import exit_codes

SEEDS = [301, 302]
NETWORKS = SameNetworks()


def cleanlab_by(score: str, adjusted: bool) -> Callable[..., Verdict]:
    """cleanlab's filter, and its ranking by one of its scores."""

    def method(features: np.ndarray, given: np.ndarray, seed: int) -> Verdict:
        from cleanlab.rank import get_label_quality_scores

        found = NETWORKS.cleanlab("prune_by_noise_rate")(features, given, seed)
        probabilities = NETWORKS(features, given, seed)
        quality = get_label_quality_scores(
            given, probabilities, method=score, adjust_pred_probs=adjusted
        )
        return found._replace(probability_given=quality)

    return method


METHODS: Methods = {RELABEL: NETWORKS.relabel} | {
    f"{CLEANLAB}{score.replace('_', ' ')}{', adjusted' * adjusted}": cleanlab_by(score, adjusted)
    for score, adjusted in (
        ("self_confidence", False),
        ("self_confidence", True),
        ("normalized_margin", False),
        ("normalized_margin", True),
        ("confidence_weighted_entropy", False),
    )
}


def summary(blocks: Blocks) -> list[str]:
    """Average precision next to cleanlab's score with the best mean over all settings, and F1."""
    of_method: dict[str, list[dict]] = {}
    for block in blocks.values():
        for name, rows in block.items():
            of_method.setdefault(name, []).extend(rows)
    theirs = [name for name in of_method if name.startswith(CLEANLAB)]
    best = max(theirs, key=lambda name: mean_of(of_method[name], "average_precision"))
    head = ["", "average precision", best, "F1", "cleanlab's filter"]
    rows = [
        [task, *(percent(block[name], key) for key in KEYS for name in (RELABEL, best))]
        for task, block in {**blocks, "mean": of_method}.items()
    ]
    ours, other = (mean_of(of_method[name], "average_precision") for name in (RELABEL, best))
    return [
        f"Mean average precision: {100 * ours:.1f} by `relabel`, {100 * other:.1f} by the best of "
        f"cleanlab's scores ({best.removeprefix(CLEANLAB)}), which the true labels pick.",
        "",
        *table([head, *rows]),
    ]


KEYS = "average_precision", "f1"


def main(arguments: list[str] | None = None) -> None:
    parser = given_features.flags_of(list(METHODS))
    parser.set_defaults(seeds=SEEDS)
    with exit_codes():
        options = parser.parse_args(arguments)
        tasks = label_tasks.rare_errors_tasks(options.features)
        tasks = [task for task in tasks if not options.tasks or task.name in options.tasks]
        given_features.compare(options, Path(__file__).name, tasks, METHODS, summary, SCORES)


if __name__ == "__main__":
    main()
