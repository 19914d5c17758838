"""The README's numbers in prose, against the committed results."""

import re

from processes import ROOT

from chainer_jo import files
from chainer_jo.runs.presets import DIGITS, HALF, PAPER, Study

REFERENCE = ROOT / "results" / "reference"
#: What there is at the paper's own scale: on the official images, and on JPEG files.
AT_SCALE = "paper-mixed"
AT_SCALE_JPEG = "paper-cifar10-jpeg-mixed"


def words(*path: str) -> str:
    return re.sub(r"\s+", " ", ROOT.joinpath(*path).read_text())


def the_cell(preset: str, table: int | str, **where) -> dict:
    """The one whose row and column are so."""
    name = table if isinstance(table, str) else f"table{table}"
    cells = files.read_json(REFERENCE / preset / f"{name}.json")["cells"]
    (found,) = [c for c in cells if where.items() <= {**c["row"], **c["column"]}.items()]
    return found


def what_jpeg_costs(official: str, jpeg: str) -> list[float]:
    """In points of test accuracy, of all cells of Table 1 that both have."""
    cells = [
        (of["mean"], the_cell(jpeg, 1, **of["row"], **of["column"])["mean"])
        for of in files.read_json(REFERENCE / official / "table1.json")["cells"]
        if of["column"]["accuracy"] == "test"
    ]
    return [of - other for of, other in cells if None not in (of, other)]


def how_far_from_the_paper() -> tuple[float, float]:
    """Of all test accuracies at the paper's scale, the furthest below and above the paper's."""
    cells = files.read_json(REFERENCE / AT_SCALE / "table1.json")["cells"]
    found = [
        c["mean"] - c["paper"] for c in cells if c["column"]["accuracy"] == "test" and c["trials"]
    ]
    assert len(found) == 6
    return -min(found), max(found)


def test_the_readme_says_how_half_differs_from_the_paper():
    def described(preset):
        study = Study(preset, "cifar10")
        steps = study.joint("symmetric", 0.5, 0), study.joint("symmetric", 0.5, 0).first_step
        epochs = " + ".join(str(step.optimization.epochs) for step in steps)
        average = steps[1].relabelling.average
        return preset.image_shape[0], sum(preset.network.units), epochs, average

    (size, units, epochs, average), theirs = map(described, (HALF, PAPER))
    their_size, their_units, their_epochs, their_average = theirs
    said = words("README.md")
    assert (
        f"{size} x {size} pixels instead of {their_size} x {their_size}, {units} residual units "
        f"instead of {their_units}, flips but no crops, JPEG files, {epochs} epochs instead of "
        f"{their_epochs}, labels averaged over {average} epochs instead of {their_average}, "
        "bfloat16."
    ) in said
    assert HALF.flip and not HALF.pad and HALF.precision == "mixed"
    assert f"accuracy on {HALF.validation_images:,} validation images" in said
    assert f"batches of {DIGITS.batch_size}:" in said


def test_the_readme_says_how_close_it_is_at_the_papers_scale():
    below, above = how_far_from_the_paper()
    costs = what_jpeg_costs(AT_SCALE, AT_SCALE_JPEG)
    assert (
        f"test accuracies are between {below:.1f} points below the paper's and {above:.1f} above. "
        f"On JPEG files they are {min(costs):.1f} to {max(costs):.1f} points lower"
    ) in words("README.md")


def test_the_readme_says_how_right_the_digits_labels_become():
    rows = (ROOT / "benchmarks" / "results" / "label_errors.md").read_text().splitlines()
    cells = [row.split(" | ") for row in rows if re.match(r"\| digits, symmetric 0.[24] ", row)]
    found = sorted(tuple(round(float(row[column])) for column in (1, 3)) for row in cells)
    (low, low_after), (high, high_after) = found
    assert (f"{low} and {high} % right labels became {low_after} and {high_after} %") in words(
        "README.md"
    )
