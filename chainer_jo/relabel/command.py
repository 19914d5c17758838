"""``chainer-jo relabel``: corrects the labels of a user's images."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from chainer_jo import files
from chainer_jo.command_line import Parser, resume_hint, say, start
from chainer_jo.data.array_cache import cache
from chainer_jo.errors import UserError
from chainer_jo.relabel.judge.by_features import ByFeatures, ByProbabilities
from chainer_jo.relabel.judge.by_images import ByImages
from chainer_jo.relabel.judge.settings import LIMITS, check_limits
from chainer_jo.relabel.read.image_features import COMPUTED
from chainer_jo.relabel.read.label_table import TableForm
from chainer_jo.relabel.read.labelled_images import labels_of
from chainer_jo.relabel.read.own_data import OwnData, usual_size
from chainer_jo.relabel.show import report
from chainer_jo.relabel.show.outcome import Outcome, Relabeller, summary
from chainer_jo.relabel.write import corrected_set
from chainer_jo.relabel.write.corrected_labels import CorrectedLabels, drawn_to_judge
from chainer_jo.relabel.write.results_folder import LABELS, SOFT_LABELS, ResultsFolder
from chainer_jo.runs.computing_flags import add_computing_flags, resolve_computing_flags
from chainer_jo.runs.store import RunStore

USAGE = "chainer-jo relabel DATA --out FOLDER [--apply DEST] [flags]"
DESCRIPTION = """\
DATA      a folder or tar of class folders, or a CSV or TSV with columns 'path' and 'label'
FOLDER    receives labels.csv, report.html, soft_labels.npz and model.npz
DEST      receives a copy of the set with corrected labels; DATA is never changed

Most users need no further flags: the command computes features of the images itself.
--features FILE.npz uses features of your own model. --from-scratch trains the paper's network on
the images, which requires tens of thousands of small images. The same command resumes a stopped
computation.
"""
EXAMPLES = """\
examples:
  chainer-jo example digits                                  writes an example set with noisy labels
  chainer-jo relabel digits/labels.csv --out corrected
  chainer-jo relabel photos/ --out corrected --apply photos-corrected
"""


#: Flags whose values decide the labels; flags that name files do so by the content.
DECIDING: tuple[str, ...] = ("from_scratch", "size", "flip", "alpha", "beta", "learning_rate")
DECIDING += ("epochs", "prior", "seed")
DECIDING_FILES = ("features", "probabilities", "weights")
#: Flags of training and of the evaluation of networks.
OF_TRAINING: tuple[str, ...] = ("features", "from_scratch", "size", "flip", "weights", "baseline")
OF_TRAINING += ("validation", "test", "alpha", "beta", "epochs", "learning_rate", "prior")


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process as `start` says."""
    start(lambda: parse(arguments), relabel)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parses the command line into one field per flag, resolved by `resolve_computing_flags`;
    ``own``, the data that the flags name; ``keeps``, True if an interrupted command can be resumed.

    Raises UserError for an unknown flag, or a value that the flag does not take.
    """
    parser = Parser(
        prog="chainer-jo relabel",
        usage=USAGE,
        description=DESCRIPTION,
        epilog=EXAMPLES,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def group(title: str) -> Callable[..., argparse.Action]:
        return parser.add_argument_group(title).add_argument

    add = parser.add_argument
    add("data", metavar="DATA", help="images with noisy labels")
    add("--out", required=True, type=Path, metavar="FOLDER", help="folder of all output files")
    add("--apply", type=Path, metavar="DEST",
        help="also write the set with corrected labels, as links to the images")  # fmt: skip
    add = group("review and corrected set")
    add("--accept", metavar="FILE", help="use the labels of reviewed.csv (saved by the report) or "
        "of another table of paths and labels instead of the method's")  # fmt: skip
    add("--audit", type=int, default=50, metavar="N", help="random images for manual review in "
        "report.html, which measures the share of wrong labels; default: 50")  # fmt: skip
    add("--min-probability", type=float, default=0.0, metavar="P", help="change a label only if "
        "the new label has a higher probability than P; 1: only reviewed labels; "
        "default: 0")  # fmt: skip
    add("--copy", action="store_true", help="with --apply: copy the images instead of linking them")
    add("--drop-unsure", action="store_true", help="with --apply: leave out images whose label was "
        "judged wrong but not replaced")  # fmt: skip
    add("--despite-doubt", action="store_true", help="with --apply: write the set even if the "
        "result is in doubt")  # fmt: skip
    add = group("sets with correct labels")
    add("--validation", metavar="SET", help="images with correct labels in a format of DATA; "
        "reports a validation accuracy")  # fmt: skip
    add("--test", metavar="SET", help="images with correct labels; reports a test accuracy")
    add("--baseline", action="store_true", help="also train on the noisy labels and compare on "
        "--validation and --test")  # fmt: skip
    add("--true-labels", metavar="FILE", help="CSV with correct labels of all or some images of "
        "DATA, used only to compute precision, recall and label accuracy, never to "
        "train")  # fmt: skip
    add = group("columns of DATA as a table")
    add("--path-column", metavar="NAME", help="default: path, or file_name")
    add("--label-column", metavar="NAME", help="default: label")
    add("--images", metavar="ROOT", help="root folder of the paths, also in --validation, --test "
        "and --true-labels; default: the folder of the table")  # fmt: skip
    add = group("small networks on features (the default)")
    add("--features", default="auto", metavar="auto|pixels|builtin|FILE", help="pixels; builtin: "
        "features of EfficientNet-Lite0; auto (default): whichever of both predicts the labels "
        "better; or a file: an .npz with 'features' (n, d) of any model and 'paths' (n,), or an "
        ".npy in the order of the table")  # fmt: skip
    add("--probabilities", metavar="FILE", help="like --features FILE, with 'probabilities' (n, "
        "classes) of a model that was not trained on the labels of DATA; no network "
        "is trained")  # fmt: skip
    add = group("training on the images (minutes to days)")
    add("--from-scratch", action="store_true", help="train the paper's network on the images")
    add("--size", type=int, metavar="PIXELS", help="with --from-scratch: resize images to PIXELS x "
        "PIXELS, 8 to 64; default: original size")  # fmt: skip
    add("--flip", action="store_true", help="with --from-scratch: augment by mirroring, which "
        "suits most photographs but not writing")  # fmt: skip
    add("--resnet50-weights", dest="weights", metavar="FILE",
        help="fine-tune ResNet-50 with these ImageNet weights (npz or safetensors), on images "
        "larger than 64 pixels; chainer-jo features only computes its features")  # fmt: skip
    add = group("hyper-parameters of the method")
    add("--alpha", type=float, help="weight of the prior term L_p; default: the paper's")
    add("--beta", type=float, help="weight of the entropy term L_e; default: the paper's")
    add("--learning-rate", type=float, help="learning rate of the first step; default: 0.3 on "
        "features, else the paper's")  # fmt: skip
    add("--epochs", type=int, help="epochs of the first step, which also scale the second; "
        "default: 12 on features, 70 from scratch, 10 for ResNet-50")  # fmt: skip
    add("--prior", choices=("labels", "uniform"), default="labels", help="class distribution: "
        "frequencies of the noisy labels (default) or uniform")  # fmt: skip
    add("--seed", type=int, default=0, help="random seed; default: 0")
    add = group("computation")
    add_computing_flags(add)
    add("--dry-run", action="store_true",
        help="show the planned runs and their estimated time; compute nothing")  # fmt: skip
    flags = parser.parse_args(arguments)
    _check(flags, parser.get_default)
    resolve_computing_flags(flags)
    form = TableForm.of(flags.path_column, flags.label_column, flags.images)
    flags.keeps = flags.features in COMPUTED
    flags.own = OwnData(flags.data, flags.validation, flags.test, form)
    return flags


def deciding(flags: argparse.Namespace) -> dict[str, object]:
    """Flags that decide the labels, by name; of a file the digest of its content.

    Raises UserError for a file that cannot be read.
    """
    values = {_written(name): getattr(flags, name) for name in DECIDING}
    for name in DECIDING_FILES:
        file = getattr(flags, name)
        values[_written(name)] = file if file in (None, *COMPUTED) else files.digest(file)
    return values


def _written(name: str) -> str:
    """Name of a flag on the command line, without dashes, by the name of its field."""
    return "resnet50-weights" if name == "weights" else name.replace("_", "-")


def _check(flags: argparse.Namespace, default: Callable[[str], object]) -> None:
    for name in ("data", "validation", "test", "images", "out", "apply"):
        path = getattr(flags, name)
        if path is not None and not files.is_utf8(str(path)):
            shown = "DATA" if name == "data" else f"--{name}"
            raise UserError(f"{shown} {str(path)!r}: expected a name in UTF-8")
    given = {name: value for name in LIMITS if (value := getattr(flags, name, None)) is not None}
    check_limits(given, lambda name: f"--{_written(name)}")

    def first(*names: str) -> str:
        """The first of these flags that is given, as it is written; or empty."""
        given = (name for name in names if getattr(flags, name) != default(name))
        return next((f"--{_written(name)}" for name in given), "")

    if flags.apply is None and (name := first("copy", "drop_unsure", "despite_doubt")):
        raise UserError(f"{name}: expected with --apply DEST")
    by_images = first("from_scratch", "weights")
    if by_images and first("features"):
        raise UserError(f"--features: expected without {by_images}")
    if flags.from_scratch and flags.weights:
        raise UserError("--from-scratch: expected without --resnet50-weights")
    if not flags.from_scratch and not flags.probabilities and (name := first("size", "flip")):
        raise UserError(
            f"{name}: expected with --from-scratch; features use the original images at a fixed "
            "size"
        )
    if flags.time_budget and not by_images:
        raise UserError(
            "--time-budget: expected with --from-scratch or --resnet50-weights; features and "
            "probabilities take seconds to minutes"
        )
    if flags.probabilities and (name := first(*OF_TRAINING)):
        raise UserError(f"--probabilities: expected without {name}")


def relabel(flags: argparse.Namespace) -> None:
    """Runs the command.

    Raises UserError for bad flags, files and images; at the end for a corrected set that was not
    written, as the new labels are in doubt.
    """
    sets, form = flags.own.sets, flags.own.form
    images = sets.train
    if flags.baseline and not sets.held_out:
        raise UserError("--baseline: expected with --validation or --test")
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
    return ByImages(flags) if flags.from_scratch or flags.weights else ByFeatures(flags)


def _check_apart(flags: argparse.Namespace) -> None:
    """Raises UserError if something would be written into the data."""
    specs = filter(None, (flags.data, flags.validation, flags.test))
    named = [Path(spec).expanduser() for spec in specs]
    folders = [folder.resolve() for folder in named if folder.is_dir()]
    for flag, written in (("out", flags.out), ("apply", flags.apply)):
        if written and any(map(written.resolve().is_relative_to, folders)):
            raise UserError(f"--{flag} {written}: is inside the data, expected a folder elsewhere")


def _check_form(flags: argparse.Namespace) -> None:
    """Raises UserError for flags of a table if there is none."""
    listed = any(images.lines is not None for images in flags.own.sets.by_use.values())
    if listed or flags.true_labels or flags.accept:
        return
    for name in ("path_column", "label_column", "images"):
        if (value := getattr(flags, name)) is not None:
            raise UserError(
                f"--{_written(name)} {value}: expected with a table, but {flags.data} has class "
                "folders"
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
            f"--apply {flags.apply}: not written because the new labels are in doubt (see above), "
            "expected --despite-doubt, or --accept FILE with --min-probability 1 and without "
            "--drop-unsure"
        )
    # Images unpacked from a tar are in a cache that may be emptied.
    root, cached = flags.own.sets.train.root.resolve(), cache().expanduser().resolve()
    copy = flags.copy or root.is_relative_to(cached)
    content = f"{labels.digest(flags.drop_unsure)} copy={copy} drop_unsure={flags.drop_unsure}"
    if folder.to_apply(flags.apply, content):
        corrected_set.write(labels, flags.own.sets, flags.apply, copy, flags.drop_unsure)
    say("written:", flags.apply)
