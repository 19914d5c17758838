"""The README's numbers in prose, against the committed results."""

import re
import statistics

from processes import ROOT
from readme_regions import means, papers

from chainer_jo import files
from chainer_jo.reproduction.running.store import read_packed
from chainer_jo.reproduction.tables_and_figures import claims_page as claims

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


def claim(folder: str, name: str) -> dict:
    (found,) = (each for each in claims.read(REFERENCE / folder) if each["id"] == name)
    return found


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

    def drop(folder: str, name: str) -> float:
        return abs(claim(folder, name)["bounded"]["findings"][0]["difference"])

    at_high, at_low = (
        [drop(folder, name) for folder in ("half", "digits")]
        for name in ("high-rate-keeps", "low-rate-falls")
    )
    assert (
        f"In Figure 2 at 0.2, test accuracy ends {at_high[0]:.1f} points below its peak in "
        f"`half` and {at_high[1]:.1f} in `digits`; at 0.02 the drops are "
        f"{at_low[0]:.1f} and {at_low[1]:.1f} points"
    ) in words()
    assert f"{min(own, eighths, quarter, line):.1f} to {own:.1f} points, by estimate" in words()
    assert (
        f"drops by {own:.1f}. Less biased estimates are {eighths:.1f} (eighths of the epochs), "
        f"{quarter:.1f} (second quarter versus end) and {line:.1f} (straight line from epoch 41)"
    ) in words("docs/reproduction-notes.md")


def test_the_readme_says_in_how_many_settings_labels_are_corrected():
    half, digits = (claim(folder, "labels-are-corrected") for folder in ("half", "digits"))
    assert half["label"] == "in part (8 of 10)" and digits["verdict"] == "holds"
    assert "in 8 of 10 settings of `half` and in 10 of 10 in `digits`" in words()
    clean, paper = (numbers["joint", "last", "recovery", 0.0] for numbers in both("half"))
    assert f"spoils clean labels, from 100 to {clean:.1f} % (paper: {paper:.1f})" in words()


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


def test_the_readme_says_how_far_ahead_of_forward_the_method_is():
    findings = claim("half", "asymmetric-test-is-clearly-better")["findings"]
    (last,) = (f for f in findings if f["what"].startswith("last, ours versus Forward"))
    low, high = last["interval"]
    said = f"{last['difference']:.2f} points ({low:.2f} to {high:.2f})"
    assert f"The gain is {said} at the last epoch of `half`" in words()
    assert f"holds: {said} over Forward" in words("docs/summary.md")


def test_the_readmes_verdicts_are_those_of_the_claims():
    said = {
        "symmetric-test-is-better": ("holds", "holds"),
        "symmetric-recovery-is-better": ("holds", "holds"),
        "high-rate-keeps": ("holds", "does not hold"),
        "high-rate-does-not-memorize": ("does not hold", "does not hold"),
        "asymmetric-ours-keeps": ("holds", "holds"),
        "asymmetric-test-is-clearly-better": ("holds", "undecided"),
        "asymmetric-recovery-is-clearly-better": ("in part", "undecided"),
    }
    for name, verdicts in said.items():
        assert tuple(claim(f, name)["verdict"] for f in ("half", "digits")) == verdicts, name


def test_the_readme_says_how_many_labels_of_images_become_correct():
    records = files.read_json(ROOT / "benchmarks/results/label_errors_of_images.json")["records"]

    def shares(rate):
        kind = f"CIFAR-10, symmetric {rate}", "relabel, auto"
        ours = [r for r in records if (r["task"], r["method"]) == kind]
        means = (100 * statistics.fmean(r[k] for r in ours) for k in ("right_before", "right"))
        return "from {:.1f} to {:.1f}".format(*means)

    more = shares(0.2).removeprefix("from ")
    assert f"{shares(0.4)} and {more} % on 10,000 CIFAR-10 images" in words()
