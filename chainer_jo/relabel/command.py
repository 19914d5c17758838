"""``chainer-jo relabel``: corrects the labels of a user's images."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from chainer_jo.command_line import resume_hint, say, start
from chainer_jo.data.array_cache import cache
from chainer_jo.errors import UserError
from chainer_jo.relabel.flags import deciding, parse
from chainer_jo.relabel.judge.by_features import ByFeatures, ByProbabilities
from chainer_jo.relabel.judge.by_images import ByImages
from chainer_jo.relabel.read.labelled_images import labels_of
from chainer_jo.relabel.read.own_data import usual_size
from chainer_jo.relabel.show import report
from chainer_jo.relabel.show.outcome import Outcome, Relabeller, summary
from chainer_jo.relabel.write import corrected_set
from chainer_jo.relabel.write.corrected_labels import CorrectedLabels, drawn_to_judge
from chainer_jo.relabel.write.results_folder import LABELS, SOFT_LABELS, ResultsFolder
from chainer_jo.runs.store import RunStore


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process as `start` says."""
    start(lambda: parse(arguments), relabel)


def relabel(flags: argparse.Namespace) -> None:
    """Runs the command.

    Raises
    ------
    UserError
        for bad flags, files and images; at the end for a corrected set that was not written, as
        the new labels are in doubt.
    """
    sets, form = flags.own.sets, flags.own.form
    images = sets.train
    if flags.baseline and not sets.held_out:
        raise UserError("--baseline: expected with --validation or --test, which it is compared on")
    reviewed = flags.accept and labels_of(flags.accept, images, form)
    true = flags.true_labels and labels_of(flags.true_labels, images, form, others=True)
    _check_apart(flags)
    _check_form(flags)
    folder = ResultsFolder(flags.out, flags.own.fingerprints, deciding(flags))
    folder.check()
    if flags.apply:
        folder.check_apply(flags.apply)
    relabeller = _relabeller(flags)
    classes = sets.class_names
    shown = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
    say(f"{len(images):,} images of {len(classes)} classes ({shown})")
    say(*(f"{name}: {value}" for name, value in relabeller.about.items()), sep="\n", flush=True)
    if flags.dry_run:
        relabeller.plan()
        return
    folder.bind()
    outcome = relabeller.work()
    if outcome is None:
        print(f"time is up; {resume_hint()}")
        return
    labels = CorrectedLabels(images, outcome.labels.errors, reviewed, true, flags.min_probability)
    drawn = drawn_to_judge(flags.audit, len(images), flags.seed)
    _write(flags, folder, replace(outcome, labels=labels, audit=drawn))


def _relabeller(flags: argparse.Namespace) -> Relabeller:
    if flags.probabilities:
        return ByProbabilities(flags)
    if flags.from_scratch or flags.weights:
        return ByImages(flags)
    return ByFeatures(flags)


def _check_apart(flags: argparse.Namespace) -> None:
    """Raises UserError if something would be written into the data."""
    specs = filter(None, (flags.data, flags.validation, flags.test))
    named = [Path(spec).expanduser() for spec in specs]
    folders = [folder.resolve() for folder in named if folder.is_dir()]
    for flag, written in (("out", flags.out), ("apply", flags.apply)):
        if written and any(map(written.resolve().is_relative_to, folders)):
            raise UserError(f"--{flag} {written}: lies in the data, expected a folder elsewhere")


def _check_form(flags: argparse.Namespace) -> None:
    """Raises UserError for flags of a table if there is none."""
    sets = flags.own.sets
    listed = any(images.lines is not None for images in (sets.train, *sets.held_out.values()))
    if listed or flags.true_labels or flags.accept:
        return
    for flag in ("path_column", "label_column", "images"):
        if getattr(flags, flag) is not None:
            raise UserError(
                f"--{flag.replace('_', '-')} {getattr(flags, flag)}: expected with a table, "
                f"{flags.data} is class folders"
            )


def _write(flags: argparse.Namespace, folder: ResultsFolder, outcome: Outcome) -> None:
    """Writes the labels first: they took long, and the disk may be too full for the rest."""
    out, labels = flags.out, outcome.labels
    folder.write_labels(labels.table(), outcome.choice)
    labels.write_probabilities(out / SOFT_LABELS)
    network = [outcome.network.save(out)] if outcome.network else []
    try:
        size = usual_size(labels.images)
    except UserError:  # by features or probabilities no image has to be opened: grey squares
        size = 24
    page = report.write(outcome, flags.data, RunStore(out), size)
    say("", *summary(outcome), "", sep="\n")
    say("written:", out / LABELS, out / SOFT_LABELS, *network, page)
    if flags.apply:
        _apply(flags, folder, outcome)


def _apply(flags: argparse.Namespace, folder: ResultsFolder, outcome: Outcome) -> None:
    labels = outcome.labels
    by_the_method = flags.drop_unsure or (labels.changed & ~labels.judged).any()
    if outcome.doubt and by_the_method and not flags.despite_doubt:
        raise UserError(
            f"--apply {flags.apply}: not written, as the new labels are in doubt (see above), "
            "expected --despite-doubt, or --accept FILE with --min-probability 1 and without "
            "--drop-unsure"
        )
    copy = flags.copy or _is_unpacked(flags)
    content = f"{labels.digest(flags.drop_unsure)} copy={copy} drop_unsure={flags.drop_unsure}"
    if folder.to_apply(flags.apply, content):
        corrected_set.write(labels, flags.own.sets, flags.apply, copy, flags.drop_unsure)
    say("written:", flags.apply)


def _is_unpacked(flags: argparse.Namespace) -> bool:
    """True for images unpacked from a tar, in a cache that may be emptied."""
    return flags.own.sets.train.root.resolve().is_relative_to(cache().expanduser().resolve())
