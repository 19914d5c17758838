"""What is committed as reference, and that computing something leaves it alone."""

import functools
import hashlib
import inspect
import re
import shutil
from dataclasses import replace

import pytest
from processes import ROOT, run

from chainer_jo import files
from chainer_jo.data import clothing1m, clothing1m_standin
from chainer_jo.reproduction.commands import script_flags
from chainer_jo.reproduction.commands.script_flags import InMemory
from chainer_jo.reproduction.experiments.clothing1m_presets import (
    CLOTHING1M_DIGITS,
    Clothing1MStudy,
)
from chainer_jo.reproduction.experiments.clothing1m_presets import CLOTHING1M_STANDIN as STANDIN
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import PRESETS, Study
from chainer_jo.reproduction.running import store as runs_store
from chainer_jo.reproduction.running.provenance import collect
from chainer_jo.reproduction.running.store import RunStore, read_packed
from chainer_jo.reproduction.tables_and_figures import plot
from chainer_jo.reproduction.tables_and_figures.clothing1m_outputs import table3
from chainer_jo.reproduction.tables_and_figures.output import Results

REFERENCE = ROOT / "results" / "reference"
FOLDERS = [path.parent.name for path in REFERENCE.glob("*/table1.json")]


pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or run(["git", "-C", ROOT, "rev-parse"], None).returncode != 0,
    reason="not in a git checkout",
)


def test_what_scripts_compute_and_what_is_committed_share_no_place():
    computed = script_flags.parse("test", ["--device", "cpu"], InMemory())
    for folder in (computed.results, computed.figures):
        for preset in PRESETS:
            run(["git", "-C", ROOT, "check-ignore", f"{folder}/{preset}/table1.md"])
    listed = run(["git", "-C", ROOT, "ls-files", "results", "figures"]).stdout.splitlines()
    assert any(path.startswith("results/reference/digits/") for path in listed)
    assert all(path.split("/")[1] in ("reference", "README.md") for path in listed)


@pytest.fixture(scope="module", autouse=True)
def read_once():
    """All folders' packed runs stay in memory, where scripts keep one folder's."""
    with pytest.MonkeyPatch.context() as patch:
        once = functools.cache(runs_store._read_packed.__wrapped__)
        patch.setattr(runs_store, "_read_packed", once)
        yield


def made_in(folder):
    """The study that committed results were made in, and the results."""
    table = files.read_json(REFERENCE / folder / "table1.json")
    store = RunStore(REFERENCE / folder)
    results = Results(store, table["preset"], table["data"], table["precision"])
    features = store.features()
    study = Study(
        PRESETS[results.preset],
        results.data,
        max(len(cell["runs"]) for cell in table["cells"]),
        precision=results.precision,
        features=next(iter(features), None),
    )
    return study, results


def of_the_rates(study, part, store):
    """The study with the noise rates that what is committed of a table or figure shows."""
    made = files.read_json(store.root / f"{part.name}.json", missing={})
    shown = {cell["column"].get("noise_rate") for cell in made.get("cells", [])} - {None}
    for curve in made.get("curves", []):
        shown |= {float(rate) for rate in re.findall(r"\br=([\d.]+)", curve["label"])}
    return replace(study, noise_rates=tuple(sorted(shown)) or None)


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_is_committed_follows_from_the_runs_that_are(folder, tmp_path, monkeypatch):
    """Byte for byte, but for drawings, which another matplotlib makes otherwise."""
    monkeypatch.setattr(plot, "png_and_pdf", lambda canvas: {})
    store, figures = RunStore(REFERENCE / folder), ROOT / "figures" / "reference" / folder
    known = files.read_json(store.root / "provenance.json")
    study, results = made_in(folder)
    assert known == collect(store.root) and known["data"]["data"] == results.data
    script, human_noise = __import__("all"), __import__("human_noise")
    builds = (*script.OUTPUTS, human_noise.table)
    shown = [build(of_the_rates(study, build(study), store)) for build in builds]
    for part in (*shown, script.claims(study)):
        if not list(store.root.glob(f"{part.name}.*")):
            continue
        if part.name == "corrected_labels" and results.data != "digits":
            continue  # CIFAR-10's images are not here
        for made in part.write(results, tmp_path, tmp_path / "figures"):
            there = store.root if made.parent == tmp_path else figures
            assert made.read_bytes() == (there / made.name).read_bytes(), made.name


def test_weights_and_labels_are_those_of_packed_runs():
    """Those whose digests are listed, in 10 MB at most; labels with the digest in their result."""
    kept = set(REFERENCE.glob("*/runs/*/*.npz"))
    listed = {}
    for sums in REFERENCE.glob("*/runs/SHA256SUMS"):
        for digest, name in (line.split("  ") for line in sums.read_text().splitlines()):
            listed[sums.parent / name] = digest
    assert kept and listed == {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in kept}
    assert sum(path.stat().st_size for path in kept) < 10e6
    for path in kept:
        store = RunStore(path.parents[2])
        packed = Experiment.from_dict(read_packed(store.root)[path.parent.name]["experiment"])
        assert path.name != "labels.npz" or store.soft_labels(packed) is not None


def test_table_3_follows_from_the_runs_that_are_committed(tmp_path):
    store = RunStore(REFERENCE / f"{CLOTHING1M_DIGITS.name}-{STANDIN}")
    table = files.read_json(store.root / "table3.json")
    per_class = inspect.signature(clothing1m_standin.write).parameters["train"].default
    assert CLOTHING1M_DIGITS.train_images == per_class * len(clothing1m.CLASS_NAMES)
    results = Results(store, table["preset"], table["data"], table["precision"])
    part = table3(Clothing1MStudy(CLOTHING1M_DIGITS, STANDIN, load=None))
    for made in part.write(results, tmp_path, tmp_path):
        assert made.read_bytes() == (store.root / made.name).read_bytes(), made.name


def test_the_status_and_the_page_of_all_results_are_up_to_date(tmp_path):
    for path, text in __import__("overview").texts().items():
        assert path.read_text() == text, f"{path}: stale, expected tools/overview.py to be run"
    for name in ("runs.jsonl.xz", "data.json"):  # a folder of runs alone
        shutil.copy(REFERENCE / "half-cifar10" / name, tmp_path)
    found = __import__("committed").Reference("half-cifar10", tmp_path, tmp_path / "figures")
    assert (found.data, found.precisions) == ("cifar10", "mixed")


def test_links_of_all_pages_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "results" / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", page.read_text())
        assert len(links) > 20 or page.parent.name == "docs"
        for target, anchor in links:
            path = (page.parent / target).resolve() if target else page
            assert path.exists(), f"{page}: {target}"
            if anchor:
                text = re.findall(r"^#+ (.*)$", path.read_text().lower(), re.MULTILINE)
                anchors = [re.sub(r"[^\w\- ]", "", each).replace(" ", "-") for each in text]
                assert anchor in anchors, f"{page}: {target}#{anchor}"  # as GitHub makes them
