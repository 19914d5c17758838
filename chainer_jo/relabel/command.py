"""``chainer-jo relabel``: the labels of people's own images, corrected."""

from __future__ import annotations

import argparse
from pathlib import Path

from chainer_jo import files
from chainer_jo.commands import app
from chainer_jo.datasets.image_files import ImageFiles
from chainer_jo.errors import UserError
from chainer_jo.experiments.store import RunStore
from chainer_jo.relabel import corrected_set, labelled_images, trained_network
from chainer_jo.relabel.by_features import ByFeatures
from chainer_jo.relabel.by_images import ByImages
from chainer_jo.relabel.by_probabilities import ByProbabilities
from chainer_jo.relabel.decoded_images import usual_size
from chainer_jo.relabel.flags import parse
from chainer_jo.relabel.outcome import Outcome, report, summary
from chainer_jo.relabel.report import NAME as REPORT
from chainer_jo.report.relabelled import Relabelled
from chainer_jo.training.many_ranks import Ranks

#: The file that says whose data a folder's results are of, and the folders with what was computed.
BOUND, COMPUTED = "data.json", ("runs",)
LABELS, SOFT_LABELS = "labels.csv", "soft_labels.npz"
WRITTEN = (LABELS, SOFT_LABELS, trained_network.NAME, REPORT)


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process as `app.start` says."""
    app.start(lambda: parse(arguments), relabel)


def relabel(flags: argparse.Namespace, ranks: Ranks) -> None:
    """The command, with its flags read.

    Raises
    ------
    UserError
        for everything that is wrong with what the flags name.
    """
    sets = flags.own.sets
    images = sets.train
    if flags.true_labels:
        images = labelled_images.true_labels(flags.true_labels, images, flags.own.form)
    _check_folders(flags)
    if flags.probabilities:
        way = ByProbabilities(flags)
    elif flags.features != "auto":
        way = ByFeatures(flags)
    else:
        way = ByImages(flags, ranks)
    classes = sets.class_names
    shown = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
    print(f"{len(images):,} images of {len(classes)} classes ({shown})")
    print(*(f"{name}: {value}" for name, value in way.about.items()), sep="\n", flush=True)
    _bind(flags)
    if flags.dry_run:
        way.plan()
        return
    outcome = way.work()
    if outcome is None:
        print(f"time is up; {app.go_on()}")
        return
    _write(flags, outcome.with_true_labels(images))


def _check_folders(flags: argparse.Namespace) -> None:
    """That nothing would be written into the data, or over a file that is somebody's own."""
    data = Path(flags.data).expanduser().resolve()
    for flag, folder in (("out", flags.out), ("apply", flags.apply)):
        if folder is None:
            continue
        if data.is_dir() and folder.resolve().is_relative_to(data):
            raise UserError(f"--{flag} {folder}: lies in the data, expected a folder elsewhere")
    if not (flags.out / BOUND).exists():
        for name in WRITTEN:
            if (flags.out / name).exists():
                raise UserError(
                    f"--out {flags.out}: has a {name} of its own, expected another folder"
                )
    if flags.apply is not None:
        _check_apply(flags.apply, flags.out)


def _check_apply(apply: Path, out: Path) -> None:
    """That the corrected set would be written to a place of its own."""
    if out.resolve().is_relative_to(apply.resolve()):
        raise UserError(f"--apply {apply}: --out {out} is or lies in it, expected another")
    for name in (BOUND, *COMPUTED, *WRITTEN):
        if apply.resolve().is_relative_to((out / name).resolve()):
            raise UserError(f"--apply {apply}: is kept for the results, expected another folder")
    if apply.exists() and (not apply.is_dir() or any(apply.iterdir())):
        raise UserError(f"--apply {apply}: not empty, expected a folder to be made")


def _bind(flags: argparse.Namespace) -> None:
    """Makes sure that the folder's results are of these data, or will be if anything is run.

    Raises UserError if they are of others.
    """
    path = flags.out / BOUND
    found = flags.own.fingerprints
    bound = files.read_json(path) if path.exists() else None
    there = any((flags.out / name).exists() for name in (*COMPUTED, *WRITTEN))
    if bound != found and bound and there:
        raise UserError(
            f"{path}: the results there are of data with fingerprints {_shown(bound)}, these have "
            f"{_shown(found)}; expected the same images and labels, or another --out folder"
        )
    if bound != found and not flags.dry_run:
        files.write_json(path, found)


def _shown(fingerprints: dict) -> str:
    return ", ".join(f"{use} {value}" for use, value in dict(fingerprints).items())


def _write(flags: argparse.Namespace, outcome: Outcome) -> None:
    """Everything, the labels first: what took long is there if the disk is full for the rest."""
    out, labels = flags.out, outcome.labels
    labels.write_table(out / LABELS)
    labels.write_probabilities(out / SOFT_LABELS)
    network = [outcome.network.save(out)] if outcome.network else []
    images = labels.images
    relabelled = Relabelled(
        images.class_names,
        ImageFiles(images.root, images.paths),
        labels.errors.given,
        labels.errors.new,
        labels.errors.probability_new,
    )
    page = report(outcome, flags.data, RunStore(out))
    page_path = page.write(out, relabelled, usual_size(images))
    print("", *summary(outcome), "", sep="\n")
    print("written:", out / LABELS, out / SOFT_LABELS, *network, page_path)
    if flags.apply:
        sets = flags.own.sets
        copy = flags.copy or _is_unpacked(flags)
        corrected_set.write(labels, sets, flags.apply, copy)
        print("written:", flags.apply)


def _is_unpacked(flags: argparse.Namespace) -> bool:
    """Whether the images are those of a tar, in a cache that may be emptied."""
    data = Path(flags.data).expanduser()
    return data.is_file() and flags.own.sets.train.lines is None
