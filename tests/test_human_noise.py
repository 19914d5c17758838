"""reproduce/human_noise.py on a stand-in for CIFAR-10_human.pt: made labels of the digits."""

import hashlib
import io
import json
import os
import pickle
import zipfile
from functools import partial

import human_noise
import numpy as np
import pytest
from pack import pack
from processes import ROOT
from script_runs import in_this_process, refused, run
from tiny import STUDY

from chainer_jo.data import cifar10n, digits
from chainer_jo.method import forward_correction  # noqa: F401  (its objective)
from chainer_jo.method.label_sources import LabelFiles
from chainer_jo.method.objectives import OBJECTIVES
from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import PRESETS, Study
from chainer_jo.reproduction.running.scheduler import with_first_steps
from chainer_jo.reproduction.running.store import RunStore, read_packed

DATA = digits.load()
TRUE = DATA.train.labels.astype(np.int64)
#: Two of ten labels are the next class, elsewhere in each set.
SETS = {
    name: (TRUE + (np.arange(len(TRUE)) % 10 // 2 == i)) % 10
    for i, name in enumerate(cifar10n.LABEL_SETS.values())
}
TRIAL = "--trials", "1"


def zipped(true):
    """A file as the published one: a zip of a pickle of arrays, by NumPy 1."""
    pickled = pickle.dumps({"clean_label": true, **SETS}, 2)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled.replace(b"numpy._core.", b"numpy.core."))
    return file.getvalue()


RAW = zipped(TRUE)


def publish(patch, path, raw=RAW):
    """Writes a file of these bytes as if it were the published one."""
    patch.setattr(cifar10n, "SIZE", len(raw))
    patch.setattr(cifar10n, "SHA256", hashlib.sha256(raw).hexdigest())
    path.write_bytes(raw)
    return path


run = partial(run, human_noise.table, main=human_noise.human_labels_main)


@pytest.fixture(scope="module")
def computed(tmp_path_factory):
    """A folder with the computed table, without the file of labels."""
    folder = tmp_path_factory.mktemp("human")
    with pytest.MonkeyPatch.context() as patch, in_this_process():
        file = publish(patch, folder / "human.pt")
        assert run(folder, *TRIAL, "--labels", str(file)) == 0
        file.unlink()
        yield folder


def test_every_number_is_beside_its_twin(computed):
    results = computed / "results" / "tiny"
    page = json.loads((results / "human_noise.json").read_text())
    cells = {tuple((c["row"] | c["column"]).values()): c for c in page["cells"]}
    assert page["complete"] and len(cells) == len(page["cells"]) == 2 + 3 * (3 + 3 * (6 + 6 + 3))
    for (*place, origin), each in cells.items():
        if origin == "difference":
            human, drawn = (cells[*place, name]["mean"] for name in ("human", "drawn"))
            assert each["mean"] == pytest.approx(human - drawn, abs=1e-6)
    (run_id,) = cells["worse", "joint", "best on test", "test", "drawn"]["runs"]
    log = json.loads((results / "runs" / run_id / "log.json").read_text())
    best = max(epoch["test"] for epoch in log)
    assert cells["worse", "joint", "best on test", "test", "drawn"]["mean"] == 100 * best
    assert human_noise.CHOSEN in human_noise.PAIRS
    text = (results / "human_noise.md").read_text()
    assert all(words in text for words in ("CC BY-NC 4.0", "An addition", "SOP+", "93.24"))


def test_finished_runs_are_shown_without_the_file(computed, tmp_path, monkeypatch, capsys):
    root, packed = (folder / "results" / "tiny" for folder in (computed, tmp_path))
    page = (root / "human_noise.md").read_text()
    assert run(computed, *TRIAL, "--dry-run") == 0
    assert "26 runs, 0 to do" in capsys.readouterr().out
    assert pack(RunStore(root), packed) == (26, 26)
    assert run(tmp_path, *TRIAL, "--no-runs") == 0
    assert (packed / "human_noise.md").read_text() == page
    for name, each in read_packed(packed).items():
        assert Experiment.from_dict(each["experiment"]).id == name
        assert "-human-" in name or "-drawn-" in name
    publish(monkeypatch, tmp_path / "other.pt", RAW + b"\0")  # whose runs are others
    assert run(computed, *TRIAL, "--dry-run") == 0
    assert "26 runs, 26 to do" in capsys.readouterr().out


def test_half_computes_the_choice_and_then_the_rest_with_the_chosen_pair():
    page = json.loads((ROOT / "results/reference/half-cifar10/human_noise.json").read_text())
    choice = [cell for cell in page["cells"] if cell["row"].get("score") == "validation"]
    assert all(cell["trials"] for cell in choice) == human_noise.DECIDED
    runs = with_first_steps(human_noise.table(Study(PRESETS["half"], "cifar10", 1)).experiments)
    assert len(runs) == (26 if human_noise.DECIDED else 4)
    chosen = max(choice, key=lambda cell: cell["mean"]) if human_noise.DECIDED else choice[0]
    assert chosen["column"] == vars(human_noise.CHOSEN)


@pytest.mark.parametrize("kind", ["human-worse", "drawn-worse"])
def test_training_and_validation_labels_are_noisy(kind, tmp_path, monkeypatch):
    file = publish(monkeypatch, tmp_path / "human.pt")
    assert list(cifar10n.read(file, TRUE)) == ["aggre", "worse", "random1", "random2", "random3"]
    experiment, files = STUDY.baseline("forward", kind, 0.0, 0), LabelFiles(people=str(file))
    noise, every = experiment.noise, np.arange(len(TRUE))
    given, again, other = (
        noise.source.labels(DATA, every, noise, seed, files) for seed in (0, 0, 1)
    )
    split = experiment.split(DATA, files)
    kept = DATA.first("train", STUDY.preset.train_per_class)
    label_of = dict(zip(map(bytes, DATA.train.images[kept]), given[kept], strict=True))
    for part in (split.train, split.evaluation_sets["validation"]):
        assert [label_of[bytes(image)] for image in part.images] == part.labels.tolist()
        assert (part.labels != part.true_labels).any()
    test = split.evaluation_sets["test"]
    np.testing.assert_array_equal(test.labels, test.true_labels)
    of_three = split.train.labels[split.train.true_labels == 3]
    transition = OBJECTIVES["forward"](experiment, split).transition
    np.testing.assert_allclose(transition[3], np.bincount(of_three, minlength=10) / len(of_three))
    np.testing.assert_array_equal(given, again)
    assert (given == SETS["worse_label"]).all() == (given == other).all() == (kind[0] == "h")
    assert set((given - TRUE) % 10) == {0, 1}
    assert np.mean(given != TRUE) == pytest.approx(0.2, abs=0.04)


BAD = {
    "left out": None, "absent": lambda path: None, "a pipe": os.mkfifo, "a folder": os.mkdir,
    "a link to itself": lambda path: path.symlink_to(path), "a byte": b"0", "text": b"0,1,2\n",
    "cut": RAW[:-1], "longer": RAW + b"\0", "a bit": b"Q" + RAW[1:], "zeros": bytes(len(RAW)),
    "large": bytes(4 * cifar10n.SIZE),
    "published: another order": zipped(TRUE[::-1].copy()), "published: fewer": zipped(TRUE[1:]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_other_files_are_one_line_before_any_run(name, tiny, tmp_path, monkeypatch, capsys):
    raw, path = BAD[name], tmp_path / "human.pt"
    if isinstance(raw, bytes):
        publish(monkeypatch, path, raw if "published" in name else RAW).write_bytes(raw)
    elif raw:
        raw(path)
    flags, where = (("--labels", str(path)), path) if raw else ((), "--labels (not given)")
    assert run(tmp_path, *flags) == 2 and refused(capsys).startswith(f"error: {where}: ")
    assert not (tmp_path / "results" / "tiny" / "runs").exists()
