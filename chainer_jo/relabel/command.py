"""``chainer-jo relabel``: corrects the labels of a user's images."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from chainer_jo import files
from chainer_jo.command_line import Parser, start
from chainer_jo.errors import UserError
from chainer_jo.relabel.estimate.recipe import COMPUTED, LIMITS, Recipe, check_limits
from chainer_jo.relabel.read.label_table import TableForm

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
#: Flags of training, of which a command needs none.
RECIPE = ("alpha", "beta", "learning_rate", "epochs", "prior")


def main(arguments: list[str] | None = None) -> None:
    """Entry point; ends the process as `start` says."""
    start(lambda: parse(arguments), _work)


def _work(flags: argparse.Namespace) -> None:
    from chainer_jo.relabel import correction  # imports Chainer, which help and refusals do without

    correction.relabel(flags)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parses the command line into one field per flag; ``recipe``, flags of training by name;
    ``form``, of the table that DATA may be; ``keeps``, True if an interrupted command can be
    resumed; ``command``, paths by their last part.

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
    add("--accept", action="append", default=[], metavar="FILE", help="use the labels of "
        "reviewed.csv (saved by the report) or of another table of paths and labels instead of the "
        "method's; several times: for an image in several files the last one counts")  # fmt: skip
    add("--audit", type=int, default=50, metavar="N", help="random images for manual review in "
        "report.html, which measures the share of wrong labels; default: 50")  # fmt: skip
    add("--min-probability", type=float, default=0.0, metavar="P", help="change a label only if "
        "the new label has a higher probability than P; 1: only reviewed labels; "
        "default: 0")  # fmt: skip
    add("--copy", action="store_true", help="with --apply: copy the images instead of linking them")
    add("--drop-unsure", action="store_true", help="with --apply: leave out images whose label was "
        "estimated to be wrong but not replaced")  # fmt: skip
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
    add_table_flags(parser)
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
    add("--prior", choices=("labels", "uniform"), default="labels", help="class distribution "
        "p: mean of the labels, in each epoch of the new ones (default), or uniform")  # fmt: skip
    add("--seed", type=int, default=0, help="random seed; default: 0")
    add = group("computation")
    add("--device", default="auto", help="of built-in features: cpu, cuda or cuda:N; auto: cuda if "
        "available")  # fmt: skip
    add("--threads", type=int, default=1, help="threads of training, which rarely gains from more "
        "than one; default: 1")  # fmt: skip
    add("--dry-run", action="store_true", help="show settings and estimated time; compute nothing")
    flags = parser.parse_args(arguments)
    _check(flags, parser.get_default)
    flags.recipe = {name: getattr(flags, name) for name in RECIPE}
    flags.form = form_of(flags)
    flags.keeps = flags.features in COMPUTED
    words = sys.argv[1:] if arguments is None else map(str, arguments)
    last = (re.sub(r"^(--[\w-]+=|).*/(?=.)", r"\1", word) for word in words)
    flags.command = shlex.join(["chainer-jo", "relabel", *last])
    return flags


def add_table_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that `form_of` reads."""
    add = parser.add_argument_group("columns of DATA as a table").add_argument
    add("--path-column", metavar="NAME", help="default: path, or file_name")
    add("--label-column", metavar="NAME", help="default: label")
    add("--label-columns", metavar="A,B,...", help="several labels an image, for example "
        "from different people; cells may be empty")  # fmt: skip
    add("--images", metavar="ROOT", help="root folder of the paths, also of further tables; "
        "default: the folder of the table")  # fmt: skip


def form_of(flags: argparse.Namespace) -> TableForm:
    """Form of the table that DATA may be. Raises UserError for bad names of columns."""
    if flags.label_column and flags.label_columns:
        raise UserError("--label-column: expected without --label-columns")
    several = _names(flags.label_columns)
    return TableForm.of(flags.path_column, flags.label_column, flags.images, several)


def _names(columns: str | None) -> tuple[str, ...]:
    """Names of --label-columns; none without the flag. Raises UserError for empty or equal ones."""
    names = () if columns is None else tuple(name.strip() for name in columns.split(","))
    if not all(names) or len({name.casefold() for name in names}) < len(names):
        raise UserError(f"--label-columns {columns!r}: expected different names, as in a,b,c")
    return names


def _written(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _check(flags: argparse.Namespace, default: Callable[[str], object]) -> None:
    for name in ("data", "validation", "test", "images", "out", "apply"):
        path = getattr(flags, name)
        if path is not None and not files.is_utf8(str(path)):
            shown = "DATA" if name == "data" else f"--{name}"
            raise UserError(f"{shown} {str(path)!r}: expected a name in UTF-8")
    given = {name: value for name in LIMITS if (value := getattr(flags, name, None)) is not None}
    check_limits(given, _written)

    def first(*names: str) -> str:
        """The first of these flags that is given, as it is written; or empty."""
        given = (name for name in names if getattr(flags, name) != default(name))
        return next(map(_written, given), "")

    if flags.apply is None and (name := first("copy", "drop_unsure", "despite_doubt")):
        raise UserError(f"{name}: expected with --apply DEST")
    of_training = ("features", "baseline", "validation", "test", *RECIPE)
    if flags.probabilities and (name := first(*of_training)):
        raise UserError(f"--probabilities: expected without {name}")
