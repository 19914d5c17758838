"""The README's numbers in prose, against the committed results."""

import re

from processes import ROOT

from chainer_jo import files

REFERENCE = ROOT / "results" / "reference"
#: What there is at the paper's own scale: on the official images, and on JPEG files.
AT_SCALE = "paper-mixed"
AT_SCALE_JPEG = "paper-cifar10-jpeg-mixed"


def words(*path: str) -> str:
    return re.sub(r"\s+", " ", ROOT.joinpath(*path).read_text())


def table1(folder: str) -> dict[tuple, dict]:
    """The cells of test accuracies that have run, by method, score and noise rate."""
    cells = files.read_json(REFERENCE / folder / "table1.json")["cells"]
    return {
        (*cell["row"].values(), cell["column"]["noise_rate"]): cell
        for cell in cells
        if cell["column"]["accuracy"] == "test" and cell["trials"]
    }


def test_the_readme_says_how_close_it_is_at_the_papers_scale():
    official, jpeg = table1(AT_SCALE), table1(AT_SCALE_JPEG)
    apart = [cell["mean"] - cell["paper"] for cell in official.values()]
    costs = [official[key]["mean"] - jpeg[key]["mean"] for key in official.keys() & jpeg.keys()]
    assert len(apart) == 6 and costs
    assert (
        f"test accuracies are between {-min(apart):.1f} points below the paper's and "
        f"{max(apart):.1f} above. On JPEG files they are {min(costs):.1f} to {max(costs):.1f} "
        "points lower"
    ) in words("README.md")


def test_the_readme_says_how_right_the_digits_labels_become():
    rows = (ROOT / "benchmarks" / "results" / "label_errors.md").read_text().splitlines()
    cells = [row.split(" | ") for row in rows if re.match(r"\| digits, symmetric 0.[24] ", row)]
    found = sorted(tuple(round(float(row[column])) for column in (1, 3)) for row in cells)
    (low, low_after), (high, high_after) = found
    said = f"{low} and {high} % right labels became {low_after} and {high_after} %"
    assert said in words("README.md")
