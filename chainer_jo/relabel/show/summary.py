"""The outcome of a relabelling in tables, and in lines for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chainer_jo.data.labelled_data import UNKNOWN
from chainer_jo.relabel.outcome.corrected_labels import CorrectedLabels
from chainer_jo.relabel.outcome.outcome import Accuracy, Outcome, choice_in_words
from chainer_jo.text import aligned, counted, percent

#: Rows of the tables: classes in the terminal, pairs of confused classes.
MOST_CLASSES, MOST_CONFUSED = 10, 10
#: Least entry of the transition matrix that is shown.
MIN_SHARE_SHOWN = 0.005
#: Words that follow the estimated share of wrong labels. Networks learn such errors like right
#: labels, so under labels of people the estimate is too low. Noise of classes that no network can
#: tell apart is not identifiable, and the estimate too high.
WRONG_OR_MORE = "wrong (more if errors follow the appearance of images, fewer if classes overlap)"


def tables(outcome: Outcome, most: int | None = None) -> dict[str, list[list[str]]]:
    """Tables of text by heading, header first; of the classes the ``most`` with the largest shares
    of wrong labels, or all. Tables without rows are left out."""
    labels = outcome.labels
    found = {
        "Label error detection": _score_rows(labels),
        "Labels by column": _column_rows(labels),
        "Labels by class": _class_rows(labels, most),
        "Most frequent confusions": _transition_rows(labels),
        "Accuracy of a network trained on the labels": _accuracy_rows(outcome.accuracies),
    }
    return {heading: rows for heading, rows in found.items() if len(rows) > 1}


def _accuracy_rows(accuracies: Sequence[Accuracy]) -> list[list[str]]:
    rows = [["accuracy (%) on", "images", "given labels", "new labels"]]
    for accuracy in accuracies:
        before = "" if accuracy.before is None else f"{100 * accuracy.before:.1f}"
        rows.append([accuracy.of, f"{accuracy.number:,}", before, f"{100 * accuracy.after:.1f}"])
    return rows


def _score_rows(labels: CorrectedLabels) -> list[list[str]]:
    rows = [["a label counts as wrong if", "precision", "recall", "F1"]]
    for rule, scores in labels.scores().items():
        shares = (scores.precision, scores.recall, scores.f1)
        rows.append([rule, *(f"{100 * share:.1f}" for share in shares)])
    return rows


def _class_rows(labels: CorrectedLabels, most: int | None) -> list[list[str]]:
    names, errors = labels.images.class_names, labels.errors
    shares = errors.share_wrong_by_class
    count = np.bincount(errors.given, minlength=len(names))
    changed = np.bincount(errors.given[labels.changed], minlength=len(names))
    rows = [["given label", "images", "estimated wrong", "changed"]]
    for k in np.argsort(-shares, kind="stable")[:most]:
        rows.append([names[k], f"{count[k]:,}", percent(shares[k]), f"{changed[k]:,}"])
    return rows


def _column_rows(labels: CorrectedLabels) -> list[list[str]]:
    images, shares = labels.images, labels.errors.share_wrong_by_column
    rows = [["label column", "labels", "estimated wrong"]]
    for name, votes, share in zip(images.label_columns, images.given.T, shares, strict=False):
        number = int((votes != UNKNOWN).sum())
        rows.append([name, f"{number:,}", percent(share) if number else "–"])
    return rows


def _transition_rows(labels: CorrectedLabels) -> list[list[str]]:
    """Estimated shares of the images of a class that have another label, the largest first."""
    names, transition = labels.images.class_names, labels.errors.transition
    apart = np.where(np.eye(len(names), dtype=bool), 0, transition)
    rows = [["share of", "estimate"]]
    for flat in np.argsort(-apart, axis=None, kind="stable")[:MOST_CONFUSED]:
        true, given = divmod(int(flat), len(names))
        if apart[true, given] >= MIN_SHARE_SHOWN:
            share = percent(apart[true, given])
            rows.append([f"class {names[true]} labelled {names[given]}", share])
    return rows


def given_labels(labels: CorrectedLabels) -> str:
    """Words for the labels before: given labels, or the majority of several."""
    return "majority labels" if labels.images.label_columns else "given labels"


def summary(outcome: Outcome) -> list[str]:
    """The outcome in lines for the terminal; a doubt is the last."""
    labels, images, audited = outcome.labels, outcome.labels.images, outcome.audited
    changed, reviewed = int(labels.changed.sum()), int(labels.reviewed.sum())
    by_hand = f", {counted(reviewed, 'label')} reviewed by hand" if reviewed else ""
    share, wrong = percent(changed / len(images)), percent(labels.errors.share_wrong)
    shown = tables(outcome, MOST_CLASSES)
    lines = [
        f"{changed:,} of {len(images):,} labels changed ({share}){by_hand}",
        f"an estimated {wrong} of the {given_labels(labels)} are {WRONG_OR_MORE}",
    ]
    if by_column := shown.pop("Labels by column", None):
        lines += ["", *aligned(by_column), ""]
    if outcome.choice:
        lines.append(f"features: {choice_in_words(outcome.choice)}")
    if audited:
        lines.append(audited.in_words())
    elif len(outcome.audit):
        waiting = int((~labels.reviewed[outcome.audit]).sum())
        of = f" of {len(outcome.audit)}" if waiting < len(outcome.audit) else ""
        lines.append(
            f"audit: {waiting}{of} random images in the report await manual review, the only check "
            "for errors that depend on the appearance of images"
        )
    if duplicates := labels.errors.duplicates:
        names = ", ".join(repr(images.paths[i]) for i in duplicates[0][:3])
        groups = counted(len(duplicates), "group")
        lines.append(f"identical or nearly identical images: {groups}, such as {names}")
    for scores in list(labels.scores().values())[:1]:
        lines.append(
            f"label accuracy: from {percent(scores.right_before)} to "
            f"{percent(scores.right_after)} ({scores.known:,} true labels known)"
        )
    for rows in shown.values():
        lines += ["", *aligned(rows)]
    return [*lines, "", doubtful] if (doubtful := outcome.doubt) else lines
