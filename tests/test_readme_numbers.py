"""The README's numbers in prose, against the committed results."""

import re
import statistics

from processes import ROOT
from readme_regions import means, papers

from chainer_jo import files
from chainer_jo.reproduction.running.store import read_packed

REFERENCE = ROOT / "results" / "reference"
#: Results at the paper's own scale: on the official images, and on JPEG files.
AT_SCALE = "paper-mixed"
AT_SCALE_JPEG = "paper-cifar10-jpeg-mixed"


def words(path: str = "README.md") -> str:
    return re.sub(r"\s+", " ", (ROOT / path).read_text())


def both(folder: str, number: int = 1) -> tuple[dict, dict]:
    """Our numbers and the paper's, by method, score, accuracy and noise rate."""
    table = files.read_json(REFERENCE / folder / f"table{number}.json")
    return means(table), papers(table)


def test_the_readme_says_how_close_it_is_at_the_papers_scale():
    (official, _), (jpeg, paper) = both(AT_SCALE), both(AT_SCALE_JPEG)
    tested = [key for key in jpeg if key[2] == "test"]
    below = [paper[key] - jpeg[key] for key in tested]
    costs = [official[key] - jpeg[key] for key in tested if key in official]
    assert len(below) == 10 and costs
    assert (
        f"test accuracies are {min(below):.1f} to {max(below):.1f} points below the paper's, and "
        f"{min(costs):.1f} to {max(costs):.1f} points below ours on the official images"
    ) in words()


def test_the_readme_says_how_long_the_table_at_the_top_takes():
    runs = read_packed(REFERENCE / AT_SCALE).values()
    noisy = [run["result"]["seconds"] for run in runs if "sn50" in run["result"]["id"]]
    assert len(noisy) == 3
    assert f"{sum(noisy) / 60:.1f} minutes on an H100" in words()


def drops(accuracies: list[float]) -> list[float]:
    """Estimates of the points that a curve loses until its end: from its own peak, both means over
    a twentieth of its epochs; by eighths; from the second quarter; by a straight line from the
    third on."""
    n, window = len(accuracies), len(accuracies) // 20

    def mean(first: int, last: int) -> float:
        return statistics.fmean(accuracies[first:last])

    end = mean(n - window, n)
    eighths = [mean(i * n // 8, (i + 1) * n // 8) for i in range(8)]
    late = range(n // 3, n)
    line = statistics.linear_regression(late, [accuracies[epoch] for epoch in late])
    return [
        max(mean(i, i + window) for i in range(n - window + 1)) - end,
        max(eighths) - eighths[-1],
        mean(n // 4, n // 2) - end,
        -line.slope * (len(late) - 1),
    ]


def test_how_far_accuracy_drops_in_figure_2():
    (high, low) = files.read_json(REFERENCE / AT_SCALE_JPEG / "figure2.json")["curves"]
    assert (high["label"], low["label"]) == ("lr=0.2", "lr=0.02")
    log = read_packed(REFERENCE / AT_SCALE_JPEG)[high["runs"][0]]["log"]
    own, eighths, quarter, line = drops([100 * entry["test"] for entry in log])

    assert (
        f"drops by {own:.1f}. Less biased estimates are {eighths:.1f} (eighths of the epochs), "
        f"{quarter:.1f} (second quarter versus end) and {line:.1f} (straight line from epoch 41)"
    ) in words("docs/reproduction-notes.md")


def test_the_readme_says_what_is_left_of_the_gain_versus_the_best_epoch():
    def gains(folder: str, number: int, other: str) -> list[list[float]]:
        """Ours and the paper's, over the noise rates that have run."""
        ours, paper = both(folder, number)
        rates = [key[-1] for key in ours if key[:3] == ("joint", "last", "test")]
        return [
            [n["joint", "last", "test", r] - n[other, "best", "test", r] for r in rates]
            for n in (ours, paper)
        ]

    (full,), (paper,) = gains(AT_SCALE, 1, "cross_entropy")
    (entropy, paper1), (forward, paper2) = (
        gains("half", *of) for of in ((1, "cross_entropy"), (2, "forward"))
    )
    assert (
        f"{full:.1f} points at the paper's scale (r = 0.5), {min(entropy):.1f} to "
        f"{max(entropy):.1f} over cross entropy and {min(forward):.1f} to {max(forward):.1f} over "
        f"Forward in `half` (paper: {paper:.1f}, {min(paper1):.1f} to {max(paper1):.1f}, "
        f"{min(paper2):.1f} to {max(paper2):.1f})"
    ) in words()


def test_the_readme_says_how_many_labels_of_images_become_correct():
    records = files.read_json(ROOT / "benchmarks/results/label_errors_of_images.json")["records"]

    def shares(rate):
        kind = f"CIFAR-10, symmetric {rate}", "relabel, auto"
        ours = [r for r in records if (r["task"], r["method"]) == kind]
        means = (100 * statistics.fmean(r[k] for r in ours) for k in ("right_before", "right"))
        return "from {:.1f} to {:.1f}".format(*means)

    more = shares(0.2).removeprefix("from ")
    assert f"{shares(0.4)} and {more} % on 10,000 CIFAR-10 images" in words()
