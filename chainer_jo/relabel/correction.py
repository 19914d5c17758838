"""Work of ``chainer-jo relabel``: corrects the labels of a user's images."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

import numpy as np

from chainer_jo import files
from chainer_jo.command_line import print_safely
from chainer_jo.data.labelled_data import UNKNOWN
from chainer_jo.devices import resolve_device
from chainer_jo.errors import UserError, escaped
from chainer_jo.relabel.by_features import ByFeatures, ByProbabilities
from chainer_jo.relabel.estimate.recipe import COMPUTED, Recipe
from chainer_jo.relabel.outcome.corrected_labels import CorrectedLabels, drawn_for_review
from chainer_jo.relabel.outcome.outcome import Outcome
from chainer_jo.relabel.read.labelled_images import LabelledSets, labels_of, read_sets
from chainer_jo.relabel.show import report
from chainer_jo.relabel.show.summary import summary
from chainer_jo.relabel.write import corrected_set, label_files, network_file
from chainer_jo.relabel.write.results_folder import (
    LABELS,
    PICTURES,
    REPORT,
    SOFT_LABELS,
    ResultsFolder,
)


def relabel(flags: argparse.Namespace) -> None:
    """Runs the command with the flags that `command.parse` gives. Raises UserError for bad flags,
    files and images; at the end for a set that was not written, as the new labels are in doubt."""
    form = flags.form
    sets = read_sets(flags.data, flags.validation, flags.test, form)
    images = sets.train
    if flags.baseline and not sets.held_out:
        raise UserError("--baseline: expected with --validation or --test")
    reviewed = np.full(len(images), UNKNOWN)
    for file in flags.accept:
        found = labels_of(file, images, form)
        reviewed = np.where(found == UNKNOWN, reviewed, found)
    true = flags.true_labels and labels_of(flags.true_labels, images, form, others=True)
    _check_apart(flags, sets)
    _check_form(flags, sets)
    fingerprints = {use: each.fingerprint for use, each in sets.by_use.items()}
    decided = deciding(flags)
    folder = ResultsFolder(flags.out, fingerprints, decided)
    if flags.apply:
        folder.check_apply(flags.apply)
    corrector = _corrector(flags, sets)
    files.check_unchanged(f"features {flags.features!r}", decided, deciding(flags))
    classes = images.class_names
    shown = ", ".join(map(escaped, classes[:5])) + (", ..." if len(classes) > 5 else "")
    print_safely(f"{len(images):,} images of {len(classes)} classes ({shown})")
    about = [f"{name}: {value}" for name, value in corrector.about.items()]
    print_safely(*about, sep="\n", flush=True)
    if flags.dry_run:
        corrector.plan()
        return
    folder.bind(flags.apply)
    outcome = corrector.work()
    labels = CorrectedLabels(images, outcome.labels.errors, reviewed, true, flags.min_probability)
    drawn = drawn_for_review(flags.audit, len(images), flags.seed)
    outcome = replace(outcome, labels=labels, audit=drawn)
    _write(flags, folder, outcome)
    if flags.apply:
        _apply(flags, folder, sets, outcome)


def deciding(flags: argparse.Namespace) -> dict[str, object]:
    """Flags that decide the labels, by name; of a file the digest of its content. Raises UserError
    for a file that cannot be read."""
    values = {name.replace("_", "-"): value for name, value in flags.recipe.items()}
    values["seed"] = flags.seed
    for name in ("features", "probabilities"):
        file = getattr(flags, name)
        if file not in (None, *COMPUTED) and (os.path.isdir(file) or not os.path.exists(file)):
            computed = f", or {', '.join(COMPUTED)}" if name == "features" else ""
            raise UserError(f"--{name} {file}: no file, expected an .npz or .npy{computed}")
        values[name] = file if file in (None, *COMPUTED) else files.digest(file)
    return values


def _corrector(flags: argparse.Namespace, sets: LabelledSets) -> ByFeatures | ByProbabilities:
    device = resolve_device(flags.device)
    if flags.probabilities:
        return ByProbabilities(sets.train, flags.probabilities)
    given = {name: value for name, value in flags.recipe.items() if value is not None}
    others = {name: getattr(flags, name) for name in ("seed", "threads", "baseline")}
    return ByFeatures(sets, flags.features, Recipe.scaled(**given), device=device, **others)


def _check_apart(flags: argparse.Namespace, sets: LabelledSets) -> None:
    """Raises UserError if something would be written into the data: into class folders, or into a
    folder, other than the table's own, in which a table has images."""
    specs = filter(None, (flags.data, flags.validation, flags.test))
    folders = [each.resolve() for each in map(files.expanded, specs) if each.is_dir()]
    for images in sets.by_use.values():
        own = files.expanded(images.source).parent.resolve()
        below = {os.path.dirname(path) for path in images.paths if images.lines}
        folders += {(images.root / folder).resolve() for folder in below} - {own}
    for flag, path in (("out", flags.out), ("apply", flags.apply)):
        if path and any(map(path.resolve().is_relative_to, folders)):
            raise UserError(f"--{flag} {path}: is inside the data, expected a folder elsewhere")


def _check_form(flags: argparse.Namespace, sets: LabelledSets) -> None:
    """Raises UserError for flags of a table if there is none."""
    listed = any(images.lines for images in sets.by_use.values())
    if listed or flags.true_labels or flags.accept:
        return
    for name in ("path-column", "label-column", "label-columns", "images"):
        if value := getattr(flags, name.replace("-", "_")):
            raise UserError(
                f"--{name} {value}: expected with a table, but {flags.data} has class folders"
            )


def _write(flags: argparse.Namespace, folder: ResultsFolder, outcome: Outcome) -> None:
    """Writes the labels first: they took long, and the disk may be too full for the rest."""
    out, labels = flags.out, outcome.labels
    folder.write_labels(label_files.table(labels), outcome.choice)
    label_files.write_probabilities(labels, out / SOFT_LABELS)
    network = [network_file.save(outcome.network, out)] if outcome.network else []
    page = report.write(outcome, flags.data, out / REPORT, out / PICTURES, flags.command)
    print_safely("", *summary(outcome), "", sep="\n")
    print_safely("written:", out / LABELS, out / SOFT_LABELS, *network, page)


def _apply(
    flags: argparse.Namespace, folder: ResultsFolder, sets: LabelledSets, outcome: Outcome
) -> None:
    labels = outcome.labels
    by_the_method = flags.drop_unsure or (labels.changed & ~labels.reviewed).any()
    if outcome.doubt and by_the_method and not flags.despite_doubt:
        raise UserError(
            f"--apply {flags.apply}: not written because the new labels are in doubt (see above), "
            "expected --despite-doubt, or --accept FILE with --min-probability 1 and without "
            "--drop-unsure"
        )
    # Images unpacked from a tar are in a cache that may be emptied.
    kept = files.expanded(flags.data), flags.form.folder(flags.data)
    copy = flags.copy or sets.train.root not in kept
    content = f"{labels.digest(flags.drop_unsure)} copy={copy} drop_unsure={flags.drop_unsure}"
    left_out = labels.unsure & flags.drop_unsure
    number = int((~left_out).sum()) + len(sets.others) + bool(sets.train.lines)
    if folder.to_apply(flags.apply, content, number):
        corrected_set.write(labels, sets, flags.apply, copy, flags.drop_unsure)
        print_safely("written:", flags.apply)
    else:
        print_safely("unchanged, as written before with the same labels:", flags.apply)
