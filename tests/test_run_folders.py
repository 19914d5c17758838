"""Runs' folders with a user's notes in them, or with links to places outside: the package changes
and removes its own files only."""

import contextlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import STUDY, record

from chainer_jo import files
from chainer_jo.data import array_cache
from chainer_jo.engine.cuda import cudnn_choices
from chainer_jo.engine.cuda.cudnn_choices import NAME
from chainer_jo.errors import UserError
from chainer_jo.relabel.show import report
from chainer_jo.reproduction.experiments.experiment import Noise
from chainer_jo.reproduction.running.scheduler import remove_temporaries
from chainer_jo.reproduction.running.store import RunStore

RUN = replace(
    STUDY.baseline("forward", "symmetric", 0.3, 0), noise=Noise("pseudo", features="pixels")
)
NOTES = ("notes.txt", "photo.png", "snapshot-of-mine", "draft.tmp", "labels.csv")
WRITTEN = ("log.json", "labels.npz", "model.npz", "snapshot.npz", "model.npz0123abcd.tmp")


@pytest.fixture
def store(tmp_path):
    """A store with a finished run, all files that a run can leave, and a user's notes."""
    store = RunStore(tmp_path / "results")
    folder = store.open(RUN)
    files.write_json(folder / "log.json", [])
    record(store, RUN)
    for name in (*NOTES, *WRITTEN[1:]):
        (folder / name).write_text("kept")
    (folder / "model.npz.d").mkdir()
    return store


def names(store):
    return {path.name for path in store.folder(RUN).iterdir()}


def test_a_users_notes_stay_in_a_deleted_run(store):
    store.delete(RUN)
    assert names(store) == {"experiment.json", "lock", "model.npz.d", *NOTES}


def test_only_checkpoints_and_temporary_files_of_a_finished_run_are_removed(store):
    before = names(store)
    remove_temporaries([RUN], store)
    assert names(store) == before - {"snapshot.npz", "model.npz0123abcd.tmp"} | {"lock"}


def use_lock(context):
    with context:
        pass


RUN_LINK, LOCK_LINK = "a link, expected a folder", "symbolic links"
#: Path, what uses it, and the words that refuse a link in its place.
LINKS = [
    (f"runs/{RUN.id}", lambda store: store.delete(RUN), RUN_LINK),
    (f"runs/{RUN.id}", lambda store: use_lock(store.lock(RUN)), RUN_LINK),
    (f"runs/{RUN.id}", lambda store: remove_temporaries([RUN], store), None),
    (f"runs/{RUN.id}/log.json", lambda store: store.delete(RUN), None),
    ("pseudo_labels", lambda store: store.delete(RUN), None),
    ("report-pictures", lambda store: report._remove_sheets(store.root / "report-pictures"),
     f"report-pictures: {RUN_LINK}"),
    (f"runs/{RUN.id}/lock", lambda store: use_lock(store.lock(RUN)), LOCK_LINK),
    ("cudnn/lock", lambda store: use_lock(cudnn_choices._locked(store.root / NAME)), LOCK_LINK),
    ("a.lock", lambda store: array_cache.cached_folder("a", Path.touch, Path.stat), LOCK_LINK),
]  # fmt: skip


@pytest.mark.parametrize("path, use, words", LINKS)
def test_files_behind_a_link_stay(path, use, words, store, tmp_path, monkeypatch):
    monkeypatch.setattr(array_cache, "cache", lambda: store.root)
    path, outside = store.root / path, tmp_path / "mine"
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        shutil.move(path, outside)
    elif path.suffix or path.name == "lock":
        outside.write_text("years of work")
    else:
        outside.mkdir()
        for name in (f"pixels-{RUN.seed}.npz", "2019.jpeg"):
            (outside / name).write_text("mine")
    path.symlink_to(outside)
    before = {p: p.is_file() and p.read_bytes() for p in (outside, *outside.rglob("*"))}
    with pytest.raises(UserError, match=words) if words else contextlib.nullcontext():
        use(store)
    assert {p: p.is_file() and p.read_bytes() for p in (outside, *outside.rglob("*"))} == before


def test_what_a_lock_file_has_in_it_stays(store):
    path = store.folder(RUN) / "lock"
    path.write_text("kept")
    use_lock(store.lock(RUN))
    assert path.read_text() == "kept"
