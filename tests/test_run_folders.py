"""Runs' folders with a user's notes in them, or with links to places outside: the package changes
and removes its own files only."""

import contextlib
import shutil
from dataclasses import replace

import pytest
from tiny import STUDY, record

from chainer_jo import files
from chainer_jo.data import array_cache
from chainer_jo.engine.cuda import cudnn_choices
from chainer_jo.errors import UserError
from chainer_jo.relabel.show import report
from chainer_jo.reproduction.experiments.experiment import Noise
from chainer_jo.reproduction.running.scheduler import remove_temporaries
from chainer_jo.reproduction.running.store import RunStore

RUN = STUDY.baseline("forward", "symmetric", 0.3, 0)
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


def test_nothing_is_written_or_removed_where_the_link_of_a_run_leads(store, tmp_path):
    outside = tmp_path / "outside"
    shutil.move(store.folder(RUN), outside)
    store.folder(RUN).symlink_to(outside)
    before = names(store)
    remove_temporaries([RUN], store)
    with pytest.raises(UserError, match="a link, expected a folder"):
        store.delete(RUN)
    with pytest.raises(UserError, match="a link, expected a folder"), store.lock(RUN):
        pass
    assert names(store) == before and store.result(RUN)["state"] == "finished"


def test_files_behind_links_to_logs_and_pseudo_labels_stay(store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    run = replace(RUN, noise=Noise("pseudo", features="pixels"))
    kept = [outside / "log.json", outside / "pixels-0.npz"]
    for path in kept:
        path.write_text("mine")
    log = store.open(run) / "log.json"
    log.symlink_to(kept[0])
    (store.root / "pseudo_labels").symlink_to(outside)
    store.delete(run)
    assert not log.is_symlink() and [path.read_text() for path in kept] == ["mine", "mine"]


@contextlib.contextmanager
def cache_lock(root):
    array_cache.cached_folder("some", lambda folder: None, lambda folder: folder.stat())
    yield


@pytest.mark.parametrize("path, lock", [
    (f"runs/{RUN.id}/lock", lambda root: RunStore(root).lock(RUN)),
    ("cudnn/lock", lambda root: cudnn_choices._locked(root / "cudnn" / "plans.json")),
    ("cache/some.lock", cache_lock),
])  # fmt: skip
def test_a_lock_that_is_a_link_is_refused_and_leaves_the_file(path, lock, tmp_path, monkeypatch):
    monkeypatch.setattr(array_cache, "cache", lambda: tmp_path / "cache")
    thesis, path = tmp_path / "thesis.tex", tmp_path / path
    thesis.write_text("years of work")
    path.parent.mkdir(parents=True)
    path.symlink_to(thesis)
    with pytest.raises(UserError, match="symbolic links"), lock(tmp_path):
        pass
    assert thesis.read_text() == "years of work"
    path.unlink()
    path.write_text("also kept")
    with lock(tmp_path):
        pass
    assert path.read_text() == "also kept"


def test_pictures_behind_a_link_in_the_place_of_a_reports_stay(tmp_path):
    photos, link = tmp_path / "photos", tmp_path / "report-pictures"
    photos.mkdir()
    (photos / "2019.jpeg").write_text("mine")
    link.symlink_to(photos)
    with pytest.raises(UserError, match="report-pictures: a link, expected a folder"):
        report._remove_sheets(link)
    assert (photos / "2019.jpeg").read_text() == "mine"
