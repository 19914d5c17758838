"""Packed runs stand for the folders they were made of, and what is committed is made of them."""

import fcntl
import hashlib
import json
import lzma
import math
import os
import shutil
from threading import Thread

import numpy as np
import pack
import pytest
from here import compute
from tiny import STUDY, record

from chainer_jo import files
from chainer_jo.command_line import exit_codes
from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.reproduction.running.run import Computation
from chainer_jo.reproduction.running.scheduler import pending, with_first_steps
from chainer_jo.reproduction.running.store import PACKED, RunStore, read_packed

EXPERIMENTS = FIRST, SECOND = with_first_steps([STUDY.joint("symmetric", 0.5, 0)])
LABELS = np.linspace(0, 1, 30, dtype=np.float32).reshape(3, 10)
SHA256 = hashlib.sha256(LABELS.tobytes()).hexdigest()


def flags(store, other):
    return ["--preset", "tiny", "--results", str(store.root.parent),
            "--reference", str(other.root.parent)]  # fmt: skip


def refused(capsys, *words):
    """The line that ends the command."""
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"), exit_codes():
        pack.main(list(words))
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_commands_that_pack_into_one_folder_wait_for_each_other(packed):
    store, other = packed
    with files.to_lock(other.root / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = Thread(target=pack.main, args=[flags(store, other)])
        waiting.start()
        waiting.join(1)
        assert waiting.is_alive()
        (left := other.root / f"{PACKED}0123cdef.tmp").touch()  # by a kill
    waiting.join()
    assert not left.exists()


def not_kept(capsys, store, other, run_id):
    """The line that ends ``--keep``, which has written nothing."""
    line = refused(capsys, *flags(store, other), "--keep", run_id)
    assert not (other.root / "runs").exists()
    return line


@pytest.fixture
def packed(tmp_path, capsys):
    """A store of two runs with weights, and one of the same runs packed."""
    store, other = (RunStore(tmp_path / name / "tiny") for name in ("results", "packed"))
    for k, experiment in enumerate(EXPERIMENTS):
        folder = store.open(experiment)
        files.write_json(folder / "log.json", [{"epoch": 1, "test": 0.1 + k}])
        labels = {}
        if experiment.relabelling:
            labels["labels_sha256"] = store.save_labels(experiment, LABELS)
        record(store, experiment, seconds=k, nan=math.nan, **labels)
        (folder / "model.npz").write_bytes(experiment.id.encode())
    for name in pack.OTHER_FILES:
        files.write_json(store.root / name, {})
    pack.main(flags(store, other))
    assert "2 runs, 2 of them new, in 0.00 MB" in capsys.readouterr().out
    return store, other


def test_results_and_logs_are_those_of_the_folders(packed):
    store, other = packed
    assert not (other.root / "runs").exists()
    assert all((other.root / name).exists() for name in ("data.json", "cudnn/plans.json"))
    for experiment in EXPERIMENTS:
        assert repr(other.result(experiment)) == repr(store.result(experiment))
        assert other.log(experiment) == store.log(experiment)
    assert [r["id"] for r in other.results()] == [r["id"] for r in store.results()]
    assert pending(EXPERIMENTS, other) == []
    unknown = STUDY.joint("symmetric", 0.5, 1)
    assert other.result(unknown) is None and other.log(unknown) == []
    assert other.result(FIRST)["labels_sha256"] == SHA256
    assert "labels_sha256" not in other.result(SECOND)
    assert other.save_labels(FIRST, LABELS) == SHA256


def test_labels_and_weights_of_packed_runs_are_kept(packed, capsys):
    """Times may differ from the packed run's."""
    store, other = packed
    files.write_json(store.folder(SECOND) / "log.json",
                     [{"epoch": 1, "test": 1.1, "elapsed_time": 9.0}])  # fmt: skip
    record(store, SECOND, seconds=9, last={"recovery": 0.5})  # packed runs of before lack it
    before = (other.root / PACKED).read_bytes()
    assert other.lost_labels(FIRST)
    for run_id in (SECOND.id, FIRST.id):
        pack.main([*flags(store, other), "--keep", run_id])
    assert "labels and weights, 3 files, 0.00 MB" in capsys.readouterr().out
    kept = [f"{FIRST.id}/labels.npz", f"{FIRST.id}/model.npz", f"{SECOND.id}/model.npz"]
    assert (other.root / PACKED).read_bytes() == before
    np.testing.assert_array_equal(other.soft_labels(FIRST), LABELS)
    sums = dict(line.split()[::-1] for line in (other.root / "runs/SHA256SUMS").open())
    assert list(sums) == kept
    for name in kept:
        content = (other.root / "runs" / name).read_bytes()
        assert content == (store.root / "runs" / name).read_bytes()
        assert sums[name] == hashlib.sha256(content).hexdigest()
    (other.root / "runs/SHA256SUMS").write_text("no digest\n")
    with pytest.raises(UserError, match="SHA256SUMS: damaged .* a digest and a name in each line"):
        pack.main([*flags(store, other), "--keep", FIRST.id])


def damage_weights(store):
    store.save_result(FIRST, store.result(FIRST))  # with their digest
    (store.folder(FIRST) / "model.npz").write_bytes(b"of another run")


#: What is done to a run before it is to be kept, and the words that refuse it.
NOT_KEPT = {
    "no weights": (lambda store: os.unlink(store.folder(FIRST) / "model.npz"), "a finished run"),
    "no labels": (lambda store: os.unlink(store.folder(FIRST) / "labels.npz"), "a finished run"),
    "no result": (lambda store: store.reset(FIRST), "a finished run with model.npz and labels"),
    "others": (lambda store: record(store, FIRST, last={"test": 0.5}), "other numbers than"),
    "other labels": (lambda store: store.save_labels(FIRST, LABELS[::-1]), "labels.npz: damaged"),
    "other weights": (damage_weights, "model.npz: changed since"),
}


@pytest.mark.parametrize("kind", NOT_KEPT)
def test_a_run_with_other_numbers_or_arrays_is_not_kept(packed, capsys, kind):
    store, other = packed
    assert "expected a run packed in" in not_kept(capsys, store, other, "unknown")
    change, words = NOT_KEPT[kind]
    change(store)
    assert words in not_kept(capsys, store, other, FIRST.id)


def test_plans_of_two_gpus_stay_side_by_side(packed):
    store, other = packed
    for gpu, graph in (("A", "one"), ("B", "one"), ("B", "two")):
        files.write_json(store.root / "cudnn" / "plans.json", {gpu: {graph: {}}})
        pack.main(flags(store, other))
    kept = files.read_json(other.root / "cudnn" / "plans.json")
    assert kept == {"A": {"one": {}}, "B": {"one": {}, "two": {}}}


def test_packing_again_gives_the_same_file(packed):
    store, other = packed
    before = (other.root / PACKED).read_bytes()
    assert pack.pack(store, other.root) == (2, 0)
    assert (other.root / PACKED).read_bytes() == before
    assert pack.pack(other, store.root) == (2, 2)
    assert (store.root / PACKED).read_bytes() == before


def test_what_is_packed_stays_beside_what_comes(packed, tmp_path, capsys):
    _, other = packed
    before = other.result(FIRST)
    store, more = RunStore(tmp_path / "more" / "tiny"), STUDY.joint("symmetric", 0.5, 1)
    for experiment in (more, SECOND):
        files.write_json(store.open(experiment) / "log.json", [{"epoch": 1, "test": 1.1}])
        record(store, experiment, seconds=9)
    pack.main(flags(store, other))
    assert "3 runs, 1 of them new, in 0.00 MB" in capsys.readouterr().out
    seconds = {result["id"]: result["seconds"] for result in other.results()}
    assert seconds == {FIRST.id: 0, SECOND.id: 9, more.id: 9} and other.result(FIRST) == before


def test_packed_numbers_are_not_replaced(packed, capsys):
    """Labels and weights that are kept may belong to them."""
    store, other = packed
    before = (other.root / PACKED).read_bytes()
    files.write_json(store.open(SECOND) / "log.json", [{"epoch": 1, "test": 0.9}])
    record(store, SECOND)
    line = refused(capsys, *flags(store, other))
    assert f"{SECOND.id}: other numbers than {other.root / PACKED} has, expected the same" in line
    assert (other.root / PACKED).read_bytes() == before


def test_runs_on_other_data_are_not_packed_together(packed, capsys):
    store, other = packed
    files.write_json(store.root / "data.json", {"data": "digits", "fingerprint": "another"})
    before = (other.root / PACKED).read_bytes()
    line = refused(capsys, *flags(store, other))
    assert line.startswith(f"error: {other.root}/data.json: the runs packed there are of")
    assert (other.root / PACKED).read_bytes() == before
    assert files.read_json(other.root / "data.json") == {}


def test_nothing_to_pack_is_one_line(tmp_path, capsys):
    assert "no finished run" in refused(capsys, "--results", str(tmp_path))


def test_runs_with_a_noise_of_ones_own_are_packed_too(packed):
    """Here nobody knows it: only the script that made them does."""
    store, other = packed
    description = {**FIRST.to_dict(), "noise": {"kind": "next", "rate": 0.3}}
    run_id = f"cross-entropy-nx30-s0-{files.json_digest(description)[:10]}"
    result = with_digest({"id": run_id, "log_sha256": files.json_digest([])})
    for name, value in (("experiment", description), ("result", result)):
        files.write_json(store.root / "runs" / run_id / f"{name}.json", value)
    pack.main(flags(store, other))
    expected = {"experiment": description, "result": result, "log": []}
    assert read_packed(other.root)[run_id] == expected


def test_work_beside_packed_runs_leaves_them_packed(packed):
    _, other = packed
    more = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0)
    assert compute([*EXPERIMENTS, more], other, digits.load(), Computation())
    assert [path.name for path in (other.root / "runs").iterdir()] == [more.id]
    result = record(other, SECOND, seconds=7)  # a run that is done again counts
    assert other.result(SECOND).items() >= result.items() and len(other.results()) == 3
    assert [r["seconds"] for r in other.results() if r["id"] == SECOND.id] == [7]
    with pytest.raises(UserError, match=f"{FIRST.id}: packed"):
        other.delete(FIRST)


def test_epochs_of_a_packed_run_that_is_done_again_are_those_of_the_new_one(packed):
    """Its labels are gone, and a second step is to be trained on them."""
    _, other = packed
    epochs = FIRST.optimization.epochs
    with other.lock(FIRST):
        assert (other.epochs_done(FIRST), other.epochs_left(FIRST)) == (0, epochs)
        files.write_json(other.folder(FIRST) / "log.json", [{"epoch": 1, "test": 0.5}])
        other.snapshot(FIRST).touch()
    assert (other.epochs_done(FIRST), other.epochs_left(FIRST)) == (1, epochs - 1)
    assert other.log(FIRST) == [{"epoch": 1, "test": 0.1}], "which led to the result that counts"
    other.save_result(FIRST, {"id": FIRST.id})  # of before: its log is still there
    assert (other.epochs_done(FIRST), other.epochs_left(FIRST)) == (0, epochs)


def with_digest(result):
    return {**result, "sha256": files.json_digest(result)}


def edited(change):
    """Damage to a JSON file that keeps it readable: a single number, unlike another layout."""

    def damage(content):
        value = json.loads(content)
        return json.dumps(change(value) or value).encode()

    return damage


def packed_again(change):
    def damage(content):
        first, second = lzma.decompress(content).splitlines()
        return lzma.compress(first + b"\n" + edited(change)(second) + b"\n")

    return damage


RESULT, LOG, CHANGED = "result.json", "log.json", "damaged .changed since"
AGAIN = r".*; remove its folder, its run is then done again$"
#: File, damage, and the words about it.
DAMAGES = [
    ("experiment.json", edited(lambda run: run.update(seed=1)), "damaged .another des" + AGAIN),
    (RESULT, edited(lambda result: result.update(seconds=2)), CHANGED + AGAIN),
    (RESULT, edited(lambda result: result | {"sha256": None}), "damaged .no checksum" + AGAIN),
    (RESULT, edited(lambda result: result.update(id="x")), "damaged .result of x, not of" + AGAIN),
    (RESULT, lambda _: b"{", "not readable as JSON"),
    (RESULT, lambda _: b"[]", "a list in JSON, expected a dict"),
    (LOG, edited(lambda log: log[0].update(test=0.3)), CHANGED + AGAIN),
    (LOG, edited(list.clear), CHANGED + AGAIN),
    (LOG, lambda _: b"3", "a int in JSON, expected a list"),
    *((PACKED, damage, "damaged .*; expected the file as it was packed$") for damage in (
        packed_again(lambda run: run["experiment"].update(seed=1)),
        packed_again(lambda run: run["result"].update(seconds=2)),
        packed_again(lambda run: run["log"].clear()),
        packed_again(lambda run: run["result"].pop("sha256") and run),
        *(lambda _, content=content: content for content in (
            b"no xz", lzma.compress(b"no json\n"), lzma.compress(b"{}\n"), lzma.compress(b"3\n"),
            lzma.compress(b'{"a": 1}')[:-9], lzma.compress(b"[" * 50_000),
        )),
    )),
]  # fmt: skip


def read_all(store):
    store.results()
    store.features()
    for experiment in EXPERIMENTS:
        store.log(experiment)


@pytest.mark.parametrize("name, damage, words", DAMAGES)
def test_a_damaged_file_is_named_until_it_is_removed(packed, name, damage, words):
    store, other = packed
    used, folder = (other, other.root) if name == PACKED else (store, store.folder(SECOND))
    read_all(used)
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    with pytest.raises(UserError, match=f"{name}: {words}"):
        read_all(used)
    if name != PACKED:
        shutil.rmtree(folder)
        read_all(store)
        assert pending(EXPERIMENTS, store) == [SECOND]


def test_a_result_without_a_digest_of_its_log_is_refused(packed):
    """It would hide any change of the log."""
    store, _ = packed
    path = store.folder(SECOND) / "result.json"
    result = {k: v for k, v in json.loads(path.read_text()).items() if k[-6:] != "sha256"}
    files.write_json(path, with_digest(result))
    with pytest.raises(UserError, match="log.json: damaged .no checksum"):
        read_all(store)


def test_changed_labels_are_named(packed):
    store, _ = packed
    store.save_labels(FIRST, LABELS[::-1])
    said = "labels.npz: damaged .changed since.*; remove it, its run is then done again"
    with pytest.raises(UserError, match=said):
        store.soft_labels(FIRST)
    (store.folder(FIRST) / "labels.npz").unlink()
    assert store.lost_labels(FIRST)


def test_a_run_begun_again_while_its_log_is_read_is_no_damage(packed, monkeypatch):
    store, _ = packed
    read_json = files.read_json

    def begun_again_before(path, *args, **kwargs):
        if path.name == "log.json":
            store.reset(SECOND)
        return read_json(path, *args, **kwargs)

    monkeypatch.setattr(files, "read_json", begun_again_before)
    assert store.log(SECOND) == []
