"""The README's numbers in prose, against the committed results."""

import re
import statistics

from processes import ROOT

from chainer_jo import files
from chainer_jo.reproduction.running.store import read_packed
from chainer_jo.reproduction.tables_and_figures import claims_page as claims

REFERENCE = ROOT / "results" / "reference"
#: Results at the paper's own scale: on the official images, and on JPEG files.
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


def claim(folder: str, name: str) -> dict:
    (found,) = (each for each in claims.read(REFERENCE / folder) if each["id"] == name)
    return found


def test_the_readme_says_how_close_it_is_at_the_papers_scale():
    official, jpeg = table1(AT_SCALE), table1(AT_SCALE_JPEG)
    below = [cell["paper"] - cell["mean"] for cell in jpeg.values()]
    costs = [official[key]["mean"] - jpeg[key]["mean"] for key in official.keys() & jpeg.keys()]
    assert len(below) == 10 and costs
    assert (
        f"test accuracies are {min(below):.1f} to {max(below):.1f} points below the paper's, and "
        f"{min(costs):.1f} to {max(costs):.1f} points below ours on the official images"
    ) in words("README.md")


def test_the_readme_says_how_long_the_table_at_the_top_takes():
    runs = read_packed(REFERENCE / AT_SCALE).values()
    noisy = [run["result"]["seconds"] for run in runs if "sn50" in run["result"]["id"]]
    assert len(noisy) == 3
    assert f"{sum(noisy) / 60:.1f} minutes on an H100" in words("README.md")


def drop(accuracies: list[float]) -> float:
    """Points between a curve's peak and its end, each a mean over a twentieth of its epochs."""
    n = len(accuracies) // 20
    smooth = [sum(accuracies[i : i + n]) / n for i in range(len(accuracies) - n + 1)]
    return max(smooth) - smooth[-1]


def test_the_readme_says_how_far_accuracy_drops_in_figure_2():
    curves = files.read_json(REFERENCE / AT_SCALE_JPEG / "figure2.json")["curves"]
    assert [curve["label"] for curve in curves] == ["lr=0.2", "lr=0.02"]
    runs = read_packed(REFERENCE / AT_SCALE_JPEG)
    logs = [runs[run]["log"] for curve in curves for run in curve["runs"]]
    high, low = ([drop([100 * entry["test"] for entry in log])] for log in logs)
    for folder in ("half", "digits"):
        kept = claim(folder, "high-rate-keeps")["findings"]
        high.append(-min(f["difference"] for f in kept))
        low += [f["difference"] for f in claim(folder, "low-rate-falls")["findings"]]
    high, low = ([f"{points:.1f}" for points in each] for each in (high, low))
    assert (
        f"In Figure 2 at 0.2, test accuracy ends {high[0]} points below its peak at the paper's "
        f"scale (JPEG), {high[1]} in `half`, {high[2]} in `digits`; "
        f"at 0.02 the drops are {low[0]}, {low[1]} and {low[2]} points"
    ) in words("README.md")


def test_the_readme_says_in_how_many_settings_labels_are_corrected():
    half, digits = (claim(folder, "labels-are-corrected") for folder in ("half", "digits"))
    assert half["label"] == "in part (8 of 10)" and digits["verdict"] == "holds"
    assert "in 8 of 10 settings of `half`; in `digits`, in 10 of 10" in words("README.md")


def test_the_readme_says_how_many_labels_of_images_become_correct():
    path = ROOT / "benchmarks/results/label_errors_of_images.json"
    records = files.read_json(path)["records"]

    def shares(rate):
        kind = f"CIFAR-10, symmetric {rate}", "relabel, auto"
        ours = [r for r in records if (r["task"], r["method"]) == kind]
        return [
            f"{100 * statistics.fmean(r[k] for r in ours):.1f}" for k in ("right_before", "right")
        ]

    (more_before, more_after), (before, after) = shares(0.2), shares(0.4)
    said = f"from {before} to {after} and {more_before} to {more_after} % on 10,000 CIFAR-10 images"
    assert said in words("README.md")
