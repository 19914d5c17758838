"""What is committed as reference, and that computing something leaves it alone."""

import json
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace

import committed
import pytest
import readme_regions
import results_page
from processes import ROOT, run

from chainer_jo import files
from chainer_jo.commands import flags
from chainer_jo.commands.image_sources import InMemory
from chainer_jo.data import clothing1m, clothing1m_standin
from chainer_jo.paper.tables import TABLE1
from chainer_jo.report import plot
from chainer_jo.report.clothing1m import table3
from chainer_jo.report.headline import headline
from chainer_jo.runs.presets import CLOTHING1M_DIGITS, PRESETS, Study
from chainer_jo.runs.presets import CLOTHING1M_STANDIN as STANDIN
from chainer_jo.runs.provenance import collect
from chainer_jo.runs.store import RunStore

REFERENCE = ROOT / "results" / "reference"
RATES = TABLE1.keys("noise_rate")
FOLDERS = [path.parent.name for path in REFERENCE.glob("*/table1.json")]


def git(*words: str) -> subprocess.CompletedProcess:
    return run(["git", "-C", ROOT, *words], code=None)


pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or git("rev-parse").returncode != 0, reason="not in a git checkout"
)


def test_what_scripts_compute_and_what_is_committed_share_no_place():
    computed = flags.parse("test", ["--device", "cpu"], InMemory())
    for folder in (computed.results, computed.figures):
        for preset in PRESETS:
            assert git("check-ignore", f"{folder}/{preset}/table1.md").returncode == 0
    listed = git("ls-files", "results", "figures").stdout.splitlines()
    assert any(path.startswith("results/reference/digits/") for path in listed)
    assert all(path.split("/")[1] in ("reference", "README.md") for path in listed)


def made_in(folder):
    """The study that committed results were made in, and what they say of it."""
    table = files.read_json(REFERENCE / folder / "table1.json")
    origin = {key: table[key] for key in ("preset", "data", "precision")}
    features = RunStore(REFERENCE / folder).features()
    study = Study(
        PRESETS[origin["preset"]],
        origin["data"],
        max(len(cell["runs"]) for cell in table["cells"]),
        precision=origin["precision"],
        features=next(iter(features), None),
    )
    return study, origin


def of_the_rates(study, part, store):
    """The study with the noise rates that what is committed of a table or figure shows."""
    made = files.read_json(store.root / f"{part.name}.json", missing={})
    shown = {cell["column"].get("noise_rate") for cell in made.get("cells", [])} - {None}
    for curve in made.get("curves", []):
        shown |= {float(rate) for rate in re.findall(r"\br=([\d.]+)", curve["label"])}
    return replace(study, noise_rates=tuple(sorted(shown)) or None)


def table1_of(numbers):
    """The JSON of a Table 1: means by method, score, accuracy and noise rate."""
    return {
        "table": 1,
        "preset": "half",
        "data": "cifar10",
        "precision": "mixed",
        "cells": [
            {"row": {"method": method, "score": score},
             "column": {"accuracy": accuracy, "noise_rate": rate},
             "mean": mean, "paper": 50.0, "trials": [mean] * 2, "runs": []}
            for (method, score, accuracy, rate), mean in numbers.items()
        ],
    }  # fmt: skip


FILLED = {
    ("noisy_labels", "initial", "recovery", 0.5): 55.04,
    ("cross_entropy", "best", "test", 0.5): 69.0,
    ("cross_entropy", "last", "test", 0.5): 48.4,
    ("joint", "last", "test", 0.5): 72.9,
    ("joint", "last", "recovery", 0.5): 54.0,
}


def test_the_readme_has_table_1_in_short_where_there_are_runs(tmp_path):
    folder = tmp_path / "half"
    folder.mkdir()
    unrun = {(*key[:-1], 0.7): None for key in FILLED}
    alone = {(*key[:-1], 0.9): None if key[0] == "joint" else n for key, n in FILLED.items()}
    (folder / "table1.json").write_text(json.dumps(table1_of(FILLED | unrun | alone)))
    found = committed.Reference("half", folder, tmp_path)
    rows = readme_regions.table1([found]).splitlines()
    assert rows[2].replace("\N{NO-BREAK SPACE}", " ") == (
        "| 50 % | 55.0 → 54.0 | 69.0 → 48.4 | 72.9 | 50.0 | 50.0 → 50.0 | 50.0 |"
    )
    assert rows[3].replace("\N{NO-BREAK SPACE}", " ") == (
        "| 90 % | 55.0 → - | 69.0 → 48.4 | - | 50.0 | 50.0 → 50.0 | 50.0 |"
    )
    assert not rows[4]
    assert "At noise rates of 50 % fewer labels are right afterwards." in " ".join(rows)


def test_the_first_sentence_is_of_the_nearest_noise_rate_that_is_whole():
    alone = FILLED | {("joint", "last", "test", 0.5): None}
    assert headline(table1_of(alone), "these images") == ""
    noisier = {(*key[:-1], rate): n + 1 for key, n in FILLED.items() for rate in (0.7, 0.9)}
    assert headline(table1_of(alone | noisier), "these images") == (
        "On these images, with 70 % of the labels redrawn at random, cross entropy reaches a test "
        "accuracy of 70.0 % at its best epoch and 49.4 % at its last. The joint method ends at "
        "73.9 %. The paper has 78.4, 36.6 and 86.0 %, at its own scale."
    )


def test_curves_without_epochs_are_not_named():
    half = committed.Reference("half", ROOT, ROOT)
    vars(half)["preset"], vars(half)["data"] = "half", "cifar10"
    vars(half)["curves"] = [{"label": name, "epochs": n} for name, n in (("a", 2), ("b", 0))]
    assert readme_regions._curves(half).endswith('half of its resolution: a">')


def cells(filled, planned=5):
    """Of a table over noise rates: how many of the planned trials of each have finished."""
    return [
        {
            "column": {"noise_rate": rate},
            "trials": [50.0] * n,
            "runs": [f"{rate}-{k}" for k in range(planned)],
        }
        for rate, n in filled.items()
    ]


@pytest.mark.parametrize("filled, flags, counted", [
    (dict.fromkeys(RATES, 3), "", " (3)"),
    ({0.5: 3}, " --noise-rates 0.5", " (3)"),
    ({0.1: 0, 0.5: 3}, " --noise-rates 0.5", " (3; 1 of 2 settings)"),
    ({0.1: 1, 0.5: 1, 0.7: 0}, " --noise-rates 0.1 0.5 --trials 1", " (1; 2 of 3 settings)"),
    (dict.fromkeys(RATES, 1) | {0.5: 4}, " --trials 4", " (1 to 4)"),
])  # fmt: skip
def test_what_part_of_a_table_there_is_and_which_command_makes_it(filled, flags, counted):
    assert readme_regions._part(cells(filled), "half") == flags
    assert results_page._filled({"cells": cells(filled)}) == counted


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_committed_follows_from_the_runs_that_are(folder, tmp_path, monkeypatch):
    """Byte for byte, but for drawings, which another matplotlib makes otherwise."""
    monkeypatch.setattr(plot, "png_and_pdf", lambda canvas: {})
    store, figures = RunStore(REFERENCE / folder), ROOT / "figures" / "reference" / folder
    known = files.read_json(store.root / "provenance.json")
    study, origin = made_in(folder)
    assert known == collect(store.root) and known["data"]["data"] == origin["data"]
    # The report is of a folder.
    shutil.copy(store.root / "provenance.json", tmp_path)
    if figures.exists():
        shutil.copytree(figures, tmp_path / "figures")
    script = __import__("all")
    shown = [build(of_the_rates(study, build(study), store)) for build in script.OUTPUTS]
    for part in (*shown, script.claims(study), script.report(study)):
        if not list(store.root.glob(f"{part.name}.*")):
            continue
        for made in part.write(store, origin, tmp_path, tmp_path / "figures"):
            there = store.root if made.parent == tmp_path else figures
            assert made.read_bytes() == (there / made.name).read_bytes(), made.name


def test_table_3_follows_from_the_runs_that_are_committed(tmp_path):
    store = RunStore(REFERENCE / f"{CLOTHING1M_DIGITS.name}-{STANDIN}")
    table = json.loads((store.root / "table3.json").read_text())
    clothing1m_standin.write(tmp_path)
    data = clothing1m.load(tmp_path, STANDIN)
    preset = replace(CLOTHING1M_DIGITS, train_images=len(data.train))
    origin = {key: table[key] for key in ("preset", "data", "precision")}
    part = table3(Study(preset, STANDIN, load=lambda: data))
    for made in part.write(store, origin, tmp_path, tmp_path):
        assert made.read_bytes() == (store.root / made.name).read_bytes(), made.name


def test_the_status_and_the_page_of_all_results_are_up_to_date():
    for path, text in __import__("overview").texts().items():
        assert path.read_text() == text, f"{path}: stale, expected reproduce/overview.py to be run"


@pytest.fixture
def overview(monkeypatch, capsys):
    """Runs the script that writes them, which is to end early; gives its exit code and output."""

    def call(script, *flags):
        monkeypatch.setattr(sys, "argv", [str(script), *flags])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(script), run_name="__main__")
        return end.value.code, "".join(capsys.readouterr())

    return call


def test_a_flag_of_the_script_that_writes_them_writes_nothing(overview):
    page, script = ROOT / "results" / "README.md", ROOT / "reproduce" / "overview.py"
    before = page.stat().st_mtime_ns
    code, said = overview(script, "--help")
    assert code == 0 and "Writes results/README.md" in said
    said = "error: unrecognized arguments: --prset (--help lists the flags)\n"
    assert overview(script, "--prset") == (2, said)
    assert page.stat().st_mtime_ns == before


@pytest.mark.parametrize("folder, origin, said", [
    ("", None, "no results; expected a folder for each preset"),
    ("half", None, "no runs; expected them packed by reproduce/pack.py"),
    ("half", {"runs": 0}, "no runs; expected them packed by reproduce/pack.py"),
    ("whole", None, "no preset; expected one of paper, half, digits"),
])  # fmt: skip
def test_a_folder_of_results_without_runs_is_named_in_one_line(
    overview, tmp_path, folder, origin, said
):
    (tmp_path / "reproduce").mkdir()
    script = shutil.copy(ROOT / "reproduce" / "overview.py", tmp_path / "reproduce")
    results = tmp_path / "results" / "reference" / folder
    results.mkdir(parents=True)
    if origin:
        (results / "provenance.json").write_text(json.dumps(origin))
    assert overview(script) == (2, f"error: {results}: {said}\n")


def test_links_of_all_pages_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "results" / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", page.read_text())
        assert len(links) > 20 or page.parent.name == "docs"
        for target, anchor in links:
            path = (page.parent / target).resolve() if target else page
            assert path.exists(), f"{page}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
                assert anchor in map(slug, headings), f"{page}: {target}#{anchor}"


def test_a_region_that_is_not_there_is_an_error():
    text = "a\n<!-- x: by a script -->\nold\n<!-- end of x -->\nb\n"
    assert readme_regions.fill(text, "x", "new").split("\n")[2:5] == ["", "new", ""]
    with pytest.raises(ValueError, match="0 regions 'y'"):
        readme_regions.fill(text, "y", "new")


@pytest.mark.parametrize("label, findings, expected", [
    ("a tie within 0.6 points", [("ties", 0.1), ("supports", 2.0)],
     "[a tie within 0.6 points](reference/half/claims.md#a-tie-within-06-points-x), 1 of 2, "
     "+0.1 to +2 points"),
    ("does not hold (1 diverged)", [("refutes", -3.0), ("undecided", None)],
     "[does not hold (1 diverged)](reference/half/claims.md#does-not-hold-1-diverged-x), 0 of 2, "
     "-3 points"),
    ("holds", [("supports", 3.0)],
     "[holds](reference/half/claims.md#holds-x), on a premise, +3 points"),
])  # fmt: skip
def test_a_verdict_is_shown_with_its_comparisons_and_differences(label, findings, expected):
    claim = {"id": "x", "verdict": label.split(" (")[0], "label": label, "rests_on": "y",
             "findings": [{"outcome": o, "difference": d, "unit": "points", "premise": False}
                          for o, d in findings]}  # fmt: skip
    claim["findings"].append({"outcome": "supports", "difference": 99.0, "premise": True})
    half = committed.Reference("half", ROOT, ROOT)
    assert results_page._verdict(half, claim) == expected


def slug(heading):
    """As GitHub makes an anchor of it."""
    kept = (c for c in heading.lower() if c.isalnum() or c in "-_ ")
    return "".join(kept).replace(" ", "-")
