"""``chainer-jo relabel``: corrects the labels of a user's images."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from chainer_jo import files
from chainer_jo.command_line import Parser, say, start
from chainer_jo.data.array_cache import cache
from chainer_jo.devices import resolve_device
from chainer_jo.errors import UserError
from chainer_jo.relabel.judge.by_features import ByFeatures, ByProbabilities
from chainer_jo.relabel.judge.settings import LIMITS, Recipe, check_limits
from chainer_jo.relabel.read.image_features import COMPUTED, usual_size
from chainer_jo.relabel.read.label_table import TableForm
from chainer_jo.relabel.read.labelled_images import LabelledSets, labels_of, read_sets
from chainer_jo.relabel.show import report
from chainer_jo.relabel.show.outcome import LabelCorrector, Outcome, summary
from chainer_jo.relabel.write import corrected_set
from chainer_jo.relabel.write.corrected_labels import CorrectedLabels, drawn_to_judge
from chainer_jo.relabel.write.results_folder import LABELS, SOFT_LABELS, ResultsFolder

USAGE = "chainer-jo relabel DATA --out FOLDER [--apply DEST] [flags]"
DESCRIPTION = """\
DATA      a folder or tar of class folders, or a CSV or TSV with columns 'path' and 'label'
FOLDER    receives labels.csv, report.html, soft_labels.npz and model.npz
DEST      receives a copy of the set with corrected labels; DATA is never changed

Most users need no further flags: the command computes features of the images itself.
--features FILE.npz uses features of your own model. The same command resumes a stopped computation
of features.
"""
EXAMPLES = """\
examples:
  chainer-jo example digits                                  writes an example set with noisy labels
  chainer-jo relabel digits/labels.csv --out corrected
  chainer-jo relabel photos/ --out corrected --apply photos-corrected
"""


#: Flags whose values decide the labels; flags that name files do so by the content.
RECIPE = ("alpha", "beta", "learning_rate", "epochs", "prior")
DECIDING = (*RECIPE, "seed")
DECIDING_FILES = ("features", "probabilities")
#: Flags of training and of the evaluation of networks.
OF_TRAINING = ("features", "baseline", "validation", "test", *RECIPE)


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process as `start` says."""
    start(lambda: parse(arguments), relabel)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parses the command line into one field per flag; ``form``, of the table that DATA may be;
    ``keeps``, True if an interrupted command can be resumed.

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
    add = group("small networks on features")
    add("--features", default="auto", metavar="auto|pixels|builtin|FILE", help="pixels; builtin: "
        "features of EfficientNet-Lite0; auto (default): whichever of both predicts the labels "
        "better; or a file: an .npz with 'features' (n, d) of any model and 'paths' (n,), or an "
        ".npy in the order of the table")  # fmt: skip
    add("--probabilities", metavar="FILE", help="like --features FILE, with 'probabilities' (n, "
        "classes) of a model that was not trained on the labels of DATA; no network "
        "is trained")  # fmt: skip
    add = group("hyper-parameters of the method")
    add("--alpha", type=float, help=f"weight of the prior term L_p; default: {Recipe.alpha}")
    add("--beta", type=float, help=f"weight of the entropy term L_e; default: {Recipe.beta}")
    add("--learning-rate", type=float, help=f"learning rate; default: {Recipe.learning_rate}")
    add("--epochs", type=int, help=f"epochs of each step; default: {Recipe.epochs}")
    add("--prior", choices=("labels", "uniform"), default="labels", help="class distribution: "
        "frequencies of the noisy labels (default) or uniform")  # fmt: skip
    add("--seed", type=int, default=0, help="random seed; default: 0")
    add = group("computation")
    add("--device", default="auto", help="of built-in features: cpu, cuda or cuda:N; auto: cuda if "
        "available")  # fmt: skip
    add("--threads", type=int, default=1, help="threads of training; default: 1")
    add("--dry-run", action="store_true", help="show settings and estimated time; compute nothing")
    flags = parser.parse_args(arguments)
    _check(flags, parser.get_default)
    flags.device = resolve_device(flags.device)
    flags.form = TableForm.of(flags.path_column, flags.label_column, flags.images)
    flags.keeps = flags.features in COMPUTED
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
    return name.replace("_", "-")


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
    if flags.probabilities and (name := first(*OF_TRAINING)):
        raise UserError(f"--probabilities: expected without {name}")


def relabel(flags: argparse.Namespace) -> None:
    """Runs the command.

    Raises UserError for bad flags, files and images; at the end for a corrected set that was not
    written, as the new labels are in doubt.
    """
    form = flags.form
    sets = read_sets(flags.data, flags.validation, flags.test, form)
    images = sets.train
    if flags.baseline and not sets.held_out:
        raise UserError("--baseline: expected with --validation or --test")
    reviewed = flags.accept and labels_of(flags.accept, images, form)
    true = flags.true_labels and labels_of(flags.true_labels, images, form, others=True)
    _check_apart(flags)
    _check_form(flags, sets)
    folder = ResultsFolder(flags.out, sets.fingerprints, deciding(flags))
    folder.check()
    if flags.apply:
        folder.check_apply(flags.apply)
    corrector = _corrector(flags, sets)
    classes = sets.class_names
    shown = ", ".join(classes[:5]) + (", ..." if len(classes) > 5 else "")
    say(f"{len(images):,} images of {len(classes)} classes ({shown})")
    say(*(f"{name}: {value}" for name, value in corrector.about.items()), sep="\n", flush=True)
    if flags.dry_run:
        corrector.plan()
        return
    folder.bind(flags.apply)
    outcome = corrector.work()
    labels = CorrectedLabels(images, outcome.labels.errors, reviewed, true, flags.min_probability)
    drawn = drawn_to_judge(flags.audit, len(images), flags.seed)
    outcome = replace(outcome, labels=labels, audit=drawn)
    _write(flags, folder, outcome)
    if flags.apply:
        _apply(flags, folder, sets, outcome)


def _corrector(flags: argparse.Namespace, sets: LabelledSets) -> LabelCorrector:
    if flags.probabilities:
        return ByProbabilities(sets.train, flags.probabilities)
    given = {name: value for name in RECIPE if (value := getattr(flags, name)) is not None}
    others = {name: getattr(flags, name) for name in ("seed", "device", "threads", "baseline")}
    return ByFeatures(sets, flags.features, Recipe.scaled(**given), **others)


def _check_apart(flags: argparse.Namespace) -> None:
    """Raises UserError if something would be written into the data."""
    specs = filter(None, (flags.data, flags.validation, flags.test))
    named = [Path(spec).expanduser() for spec in specs]
    folders = [folder.resolve() for folder in named if folder.is_dir()]
    for flag, written in (("out", flags.out), ("apply", flags.apply)):
        if written and any(map(written.resolve().is_relative_to, folders)):
            raise UserError(f"--{flag} {written}: is inside the data, expected a folder elsewhere")


def _check_form(flags: argparse.Namespace, sets: LabelledSets) -> None:
    """Raises UserError for flags of a table if there is none."""
    listed = any(images.lines is not None for images in sets.by_use.values())
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
    page = report.write(outcome, flags.data, out, size)
    say("", *summary(outcome), "", sep="\n")
    say("written:", out / LABELS, out / SOFT_LABELS, *network, page)


def _apply(
    flags: argparse.Namespace, folder: ResultsFolder, sets: LabelledSets, outcome: Outcome
) -> None:
    labels = outcome.labels
    by_the_method = flags.drop_unsure or (labels.changed & ~labels.judged).any()
    if outcome.doubt and by_the_method and not flags.despite_doubt:
        raise UserError(
            f"--apply {flags.apply}: not written because the new labels are in doubt (see above), "
            "expected --despite-doubt, or --accept FILE with --min-probability 1 and without "
            "--drop-unsure"
        )
    # Images unpacked from a tar are in a cache that may be emptied.
    root, cached = sets.train.root.resolve(), cache().expanduser().resolve()
    copy = flags.copy or root.is_relative_to(cached)
    content = f"{labels.digest(flags.drop_unsure)} copy={copy} drop_unsure={flags.drop_unsure}"
    if folder.to_apply(flags.apply, content):
        corrected_set.write(labels, sets, flags.apply, copy, flags.drop_unsure)
    say("written:", flags.apply)
