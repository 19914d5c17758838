"""The flags of ``chainer-jo relabel``."""

from __future__ import annotations

import argparse
from pathlib import Path

from chainer_jo import files
from chainer_jo.command_line import Parser
from chainer_jo.errors import UserError
from chainer_jo.relabel import limits
from chainer_jo.relabel.read.class_folders import is_utf8
from chainer_jo.relabel.read.label_table import TableForm
from chainer_jo.relabel.read.own_data import OwnData
from chainer_jo.runs.computing_flags import add_computing_flags, resolve_computing_flags

DESCRIPTION = """\
Correct the labels of your own images.

DATA is a CSV or TSV with columns 'path' and 'label', a folder or tar of class folders, or a folder
with Hugging Face's metadata.csv. Images of up to 64 pixels are learnt from scratch, larger ones
from ResNet-50 (--resnet50-weights) or from features that any model computed of them (--features).

FOLDER gets labels.csv, soft_labels.npz, report.html to look at, and model.npz for
'chainer-jo predict'. DATA is only read. The same command goes on where it was stopped.
"""
EXAMPLES = """\
examples:
  chainer-jo example digits                                  images with wrong labels, to try it on
  chainer-jo relabel digits/labels.csv --out corrected
  chainer-jo relabel photos/ --out corrected --features embeddings.npz --apply photos-corrected
"""


#: Flags whose values decide the labels; flags that name files do so by the content.
DECIDING = ("size", "flip", "alpha", "beta", "learning_rate", "epochs", "prior", "seed")
DECIDING_FILES = ("features", "probabilities", "weights")
#: Flags of training and of the evaluation of networks.
OF_TRAINING: tuple[str, ...] = ("features", "size", "flip", "weights", "baseline", "validation")
OF_TRAINING += ("test", "alpha", "beta", "epochs", "learning_rate", "prior")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Reads the command line: a field for each flag, resolved as by `resolve_computing_flags`;
    ``own``, the data that the flags name; ``keeps``, True if an interrupted command can be resumed.

    Raises
    ------
    UserError
        for an unknown flag, or a value that the flag does not take.
    """
    parser = Parser(
        prog="chainer-jo relabel",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("data", metavar="DATA", help="images with labels in doubt")
    add("--out", required=True, type=Path, metavar="FOLDER", help="folder for everything written")
    sets = parser.add_argument_group("what is known")
    add = sets.add_argument
    add("--validation", metavar="SET", help="images with right labels, in the same forms, "
        "for an accuracy")  # fmt: skip
    add("--test", metavar="SET", help="images with right labels, for a test accuracy")
    add("--true-labels", metavar="FILE", help="a CSV with the right labels of DATA's images or of "
        "some; nothing is trained on it: precision, recall and accuracy are computed")  # fmt: skip
    table = parser.add_argument_group("how a table is written")
    add = table.add_argument
    add("--path-column", metavar="NAME", help="default: path, or file_name")
    add("--label-column", metavar="NAME", help="default: label")
    add("--images", metavar="ROOT", help="folder that the paths are below, those of --validation, "
        "--test and --true-labels, too; default: the folder of the table")  # fmt: skip
    seen = parser.add_argument_group("how images are seen")
    add = seen.add_argument
    add("--features", default="auto", metavar="auto|FILE", help="an .npz with 'features' (n, d) of "
        "any model and the images' 'paths' (n,), or an .npy in the order of the table; auto: the "
        "images themselves")  # fmt: skip
    add("--probabilities", metavar="FILE", help="the same with 'probabilities' (n, classes) by a "
        "model that was not trained on the images' labels; nothing is trained")  # fmt: skip
    add("--resnet50-weights", dest="weights", metavar="FILE",
        help="ImageNet ResNet-50, npz or safetensors, for images of over 64 pixels")  # fmt: skip
    add("--size", type=int, metavar="PIXELS", help="resize images to PIXELS by PIXELS, 8 to 64; "
        "default: as they are")  # fmt: skip
    add("--flip", action="store_true", help="a mirrored image is of the same class: right for most "
        "photographs, wrong for writing")  # fmt: skip
    method = parser.add_argument_group("the method")
    add = method.add_argument
    add("--alpha", type=float, help="weight of the prior; default: the paper's")
    add("--beta", type=float, help="weight of the entropy; default: the paper's")
    add("--learning-rate", type=float, help="of the first step; default: the paper's, for features "
        "0.3")  # fmt: skip
    add("--epochs", type=int, help="of the first step; default: 70, for ResNet-50 10, for features "
        "12; the second step's follow")  # fmt: skip
    add("--prior", choices=("labels", "uniform"), default="labels", help="how many images of each "
        "class there are: as the labels say, which is the default, or the same number")  # fmt: skip
    add("--seed", type=int, default=0, help="of everything random; default: 0")
    add("--baseline", action="store_true", help="also train on the labels as given, and compare on "
        "the images of --validation and --test")  # fmt: skip
    review = parser.add_argument_group("what the eye says")
    add = review.add_argument
    add("--audit", type=int, default=50, metavar="N", help="images drawn at random, to be judged "
        "in report.html for a share of wrong labels beside the estimate; default: 50")  # fmt: skip
    add("--accept", metavar="FILE", help="reviewed.csv of the report, or another table of paths "
        "and labels: these labels are taken, whatever the method says")  # fmt: skip
    after = parser.add_argument_group("afterwards")
    add = after.add_argument
    add("--min-probability", type=float, default=0.0, metavar="P", help="take a new label only if "
        "it is more probable than this; 1: only what was reviewed; default: 0")  # fmt: skip
    add("--apply", type=Path, metavar="DEST",
        help="also write the set with corrected labels, as links to the images")  # fmt: skip
    add("--copy", action="store_true", help="with --apply: copies of the images, not links")
    add("--drop-unsure", action="store_true", help="with --apply: without the images whose label "
        "is called wrong and stays")  # fmt: skip
    add("--despite-doubt", action="store_true", help="with --apply: also where the result is in "
        "doubt")  # fmt: skip
    how = parser.add_argument_group("how it is computed")
    add_computing_flags(how.add_argument)
    how.add_argument("--dry-run", action="store_true",
                     help="say what would be run and how long it takes; run nothing")  # fmt: skip
    flags = parser.parse_args(arguments)
    _check(flags)
    resolve_computing_flags(flags)
    form = TableForm.of(flags.path_column, flags.label_column, flags.images)
    flags.keeps = flags.features == "auto"
    flags.own = OwnData(flags.data, flags.validation, flags.test, form)
    return flags


def deciding(flags: argparse.Namespace) -> dict[str, object]:
    """Flags that decide the labels, by name; of a file the digest of its content.

    Raises UserError for a file that cannot be read.
    """
    values = {_written(name): getattr(flags, name) for name in DECIDING}
    for name in DECIDING_FILES:
        file = getattr(flags, name)
        values[_written(name)] = file if file in (None, "auto") else files.digest(file)
    return values


def _written(name: str) -> str:
    """Name of a flag on the command line, without dashes, by the name of its field."""
    return "resnet50-weights" if name == "weights" else name.replace("_", "-")


def _check(flags: argparse.Namespace) -> None:
    for name in ("data", "validation", "test", "images", "out", "apply"):
        path = getattr(flags, name)
        if path is not None and not is_utf8(str(path)):
            shown = "DATA" if name == "data" else f"--{name}"
            raise UserError(f"{shown} {str(path)!r}: expected a name in UTF-8")
    given = {
        name: value for name in limits.LIMITS if (value := getattr(flags, name, None)) is not None
    }
    limits.check(given, lambda name: f"--{_written(name)}")
    for name in ("copy", "drop_unsure", "despite_doubt"):
        if getattr(flags, name) and flags.apply is None:
            raise UserError(
                f"--{_written(name)}: expected with --apply DEST, the set that is written"
            )
    if flags.features != "auto" and (flags.size or flags.flip or flags.weights):
        raise UserError("--features: expected without --size, --flip and --resnet50-weights")
    if flags.time_budget and (flags.features != "auto" or flags.probabilities):
        raise UserError(
            "--time-budget: expected without --features and --probabilities, by which it takes "
            "seconds to minutes, and nothing is kept in between"
        )
    for name in OF_TRAINING:
        value = getattr(flags, name)
        left_out = value in ("auto", "labels") or value is None or value is False
        if flags.probabilities and not left_out:
            raise UserError(f"--probabilities: expected without --{_written(name)}")
