"""Packed runs stand for the folders they were made of, and what is committed is made of them."""

import hashlib
import json
import lzma
import math
import shutil

import numpy as np
import pytest
from here import Here
from hostile import memory_below
from tiny import STUDY

from chainer_jo import files
from chainer_jo.data import digits
from chainer_jo.errors import UserError
from chainer_jo.reproduction.commands import pack
from chainer_jo.reproduction.running.run import Settings
from chainer_jo.reproduction.running.scheduler import Scheduler, pending, with_first_steps
from chainer_jo.reproduction.running.store import LONGEST_LINE, PACKED, RunStore, read_packed

EXPERIMENTS = with_first_steps([STUDY.joint("symmetric", 0.5, 0)])
LABELS = np.linspace(0, 1, 30, dtype=np.float32).reshape(3, 10)
SHA256 = hashlib.sha256(LABELS.tobytes()).hexdigest()


@pytest.fixture
def packed(tmp_path, capsys):
    """A store of two runs, and one of the same runs packed."""
    store = RunStore(tmp_path / "results" / "tiny")
    for k, experiment in enumerate(EXPERIMENTS):
        store.open(experiment)
        log = [{"epoch": 1, "test": 0.1 + k}]
        (store.folder(experiment) / "log.json").write_text(json.dumps(log))
        result = {"id": experiment.id, "state": "finished", "seconds": k}
        if experiment.relabelling:
            result["labels_sha256"] = store.save_labels(experiment, LABELS)
        store.save_result(experiment, result)
    for name in pack.OTHER_FILES:
        (store.root / name).parent.mkdir(exist_ok=True)
        (store.root / name).write_text("{}")
    pack.pack("test", ["--preset", "tiny", "--results", str(tmp_path / "results"),
                       "--reference", str(tmp_path / "packed")])  # fmt: skip
    assert "2 runs, 2 of them new, in 0.00 MB" in capsys.readouterr().out
    return store, RunStore(tmp_path / "packed" / "tiny")


def test_results_and_logs_are_those_of_the_folders(packed):
    store, other = packed
    assert not (other.root / "runs").exists()
    assert all((other.root / name).exists() for name in ("data.json", "cudnn/plans.json"))
    for experiment in EXPERIMENTS:
        assert other.result(experiment) == store.result(experiment)
        assert other.log(experiment) == store.log(experiment)
    assert [r["id"] for r in other.results()] == [r["id"] for r in store.results()]
    assert pending(EXPERIMENTS, other) == []
    unknown = STUDY.joint("symmetric", 0.5, 1)
    assert other.result(unknown) is None and other.log(unknown) == []


def test_labels_leave_their_checksum(packed):
    _, other = packed
    first, second = (other.result(experiment) for experiment in EXPERIMENTS)
    assert first["labels_sha256"] == SHA256 and "labels_sha256" not in second
    assert other.save_labels(EXPERIMENTS[0], LABELS) == SHA256


@pytest.fixture
def with_weights(packed):
    """The same stores, where each run has weights."""
    for experiment in EXPERIMENTS:
        (packed[0].folder(experiment) / "model.npz").write_bytes(experiment.id.encode())
    return packed


def test_labels_and_weights_of_packed_runs_are_kept(with_weights, capsys):
    store, other = with_weights
    first, second = (experiment.id for experiment in EXPERIMENTS)
    before = (other.root / PACKED).read_bytes()
    assert other.lost_labels(EXPERIMENTS[0])
    for run_id in (second, first):
        pack.pack("test", [*flags(store, other), "--keep", run_id])
    assert "labels and weights, 3 files, 0.00 MB" in capsys.readouterr().out
    kept = [f"{first}/labels.npz", f"{first}/model.npz", f"{second}/model.npz"]
    assert (other.root / PACKED).read_bytes() == before
    np.testing.assert_array_equal(other.soft_labels(EXPERIMENTS[0]), LABELS)
    sums = dict(line.split()[::-1] for line in (other.root / "runs/SHA256SUMS").open())
    assert list(sums) == kept
    for name in kept:
        content = (other.root / "runs" / name).read_bytes()
        assert content == (store.root / "runs" / name).read_bytes()
        assert sums[name] == hashlib.sha256(content).hexdigest()


def test_times_may_differ_from_the_packed_run(with_weights):
    store, other = with_weights
    files.write_json(store.folder(EXPERIMENTS[1]) / "log.json",
                     [{"epoch": 1, "test": 1.1, "elapsed_time": 9.0}])  # fmt: skip
    result = {"id": EXPERIMENTS[1].id, "state": "finished", "seconds": 9}
    store.save_result(EXPERIMENTS[1], result)
    store.keep_arrays(EXPERIMENTS[1], other.root)
    assert (other.folder(EXPERIMENTS[1]) / "model.npz").exists()


@pytest.mark.parametrize("change, said", [
    (lambda folder: (folder / "model.npz").unlink(), "expected a finished run with model.npz and"),
    (lambda folder: (folder / "labels.npz").unlink(), "expected a finished run with model.npz and"),
    (lambda folder: (folder / "result.json").unlink(), "expected a finished run with model.npz"),
])  # fmt: skip
def test_a_run_without_all_its_arrays_is_not_kept(with_weights, capsys, change, said):
    store, other = with_weights
    change(store.folder(EXPERIMENTS[0]))
    assert said in refused(capsys, store, other, EXPERIMENTS[0].id)


def test_a_run_with_other_numbers_or_unknown_is_not_kept(with_weights, capsys):
    store, other = with_weights
    first = EXPERIMENTS[0]
    assert "expected a run packed in" in refused(capsys, store, other, "unknown")
    kept = store.result(first)
    store.save_result(first, {**kept, "last": {"test": 0.5}})
    assert "other numbers than" in refused(capsys, store, other, first.id)
    files.write_json(store.folder(first) / "log.json", [{"epoch": 1, "test": 0.2}])
    store.save_result(first, kept)
    assert "other numbers than" in refused(capsys, store, other, first.id)
    store.save_labels(first, LABELS[::-1])
    assert "labels.npz: damaged" in refused(capsys, store, other, first.id)


def refused(capsys, store, other, run_id):
    """The line that ends ``--keep``, which has written nothing."""
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):
        pack.main("test", [*flags(store, other), "--keep", run_id])
    assert not (other.root / "runs").exists()
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_plans_of_two_gpus_stay_side_by_side(packed):
    store, other = packed
    for gpu, graph in (("A", "one"), ("B", "one"), ("B", "two")):
        files.write_json(store.root / "cudnn" / "plans.json", {gpu: {graph: {}}})
        pack.pack("test", flags(store, other))
    kept = files.read_json(other.root / "cudnn" / "plans.json")
    assert kept == {"A": {"one": {}}, "B": {"one": {}, "two": {}}}


def test_a_run_done_again_counts(packed):
    _, other = packed
    result = {"id": EXPERIMENTS[1].id, "state": "finished", "seconds": 7}
    other.save_result(EXPERIMENTS[1], result)
    assert other.result(EXPERIMENTS[1]).items() >= result.items()
    assert [r["seconds"] for r in other.results() if r["id"] == result["id"]] == [7]


def test_packing_again_gives_the_same_file(packed):
    store, other = packed
    before = (other.root / PACKED).read_bytes()
    assert store.pack(other.root) == (2, 0)
    assert (other.root / PACKED).read_bytes() == before
    assert other.pack(store.root) == (2, 2)
    assert (store.root / PACKED).read_bytes() == before


def flags(store, other):
    return ["--preset", "tiny", "--results", str(store.root.parent),
            "--reference", str(other.root.parent)]  # fmt: skip


def test_what_is_packed_stays_beside_what_comes(packed, tmp_path, capsys):
    _, other = packed
    before = {result["id"]: result for result in other.results()}
    store, more = RunStore(tmp_path / "more" / "tiny"), STUDY.joint("symmetric", 0.5, 1)
    for experiment in (more, EXPERIMENTS[1]):
        store.open(experiment)
        store.save_result(experiment, {"id": experiment.id, "state": "finished", "seconds": 9})
    pack.pack("test", flags(store, other))
    assert "3 runs, 1 of them new, in 0.00 MB" in capsys.readouterr().out
    seconds = {result["id"]: result["seconds"] for result in other.results()}
    assert seconds == {EXPERIMENTS[0].id: 0, EXPERIMENTS[1].id: 9, more.id: 9}
    assert other.result(EXPERIMENTS[0]) == before[EXPERIMENTS[0].id]


def test_runs_on_other_data_are_not_packed_together(packed, capsys):
    store, other = packed
    found = {"data": "digits", "fingerprint": "another"}
    (store.root / "data.json").write_text(json.dumps(found))
    before = (other.root / PACKED).read_bytes()
    with pytest.raises(SystemExit) as end:
        pack.main("test", flags(store, other))
    error = capsys.readouterr().err
    assert end.value.code == 2 and error.count("\n") == 1
    assert error.startswith(f"error: {other.root}/data.json: the runs packed there are of")
    assert (other.root / PACKED).read_bytes() == before
    assert files.read_json(other.root / "data.json") == {}


def test_runs_with_a_noise_of_ones_own_are_packed_too(packed):
    """Here nobody knows it: only the script that made them does."""
    store, other = packed
    description = {**EXPERIMENTS[0].to_dict(), "noise": {"kind": "next", "rate": 0.3}}
    run_id = f"cross-entropy-nx30-s0-{files.json_digest(description)[:10]}"
    result = with_digest({"id": run_id, "log_sha256": files.json_digest([])})
    for name, value in (("experiment", description), ("result", result)):
        files.write_json(store.root / "runs" / run_id / f"{name}.json", value)
    pack.pack("test", flags(store, other))
    assert read_packed(other.root)[run_id] == {
        "experiment": description, "result": result, "log": [],
    }  # fmt: skip


def test_work_beside_packed_runs_leaves_them_packed(packed):
    _, other = packed
    more = STUDY.baseline("cross_entropy", "symmetric", 0.5, 0)
    pool = Here(other, digits.load, Settings(), 1, threads=1)
    assert Scheduler(other, pool).work([*EXPERIMENTS, more])
    assert [path.name for path in (other.root / "runs").iterdir()] == [more.id]
    assert len(other.results()) == 3
    with pytest.raises(UserError, match=f"{EXPERIMENTS[0].id}: packed"):
        other.delete(EXPERIMENTS[0])


def test_epochs_of_a_packed_run_that_is_done_again_are_those_of_the_new_one(packed):
    """Its labels are gone, and a second step is to be trained on them."""
    _, other = packed
    first = EXPERIMENTS[0]
    epochs = first.optimization.epochs
    with other.lock(first):
        assert (other.epochs_done(first), other.epochs_left(first)) == (0, epochs)
        files.write_json(other.folder(first) / "log.json", [{"epoch": 1, "test": 0.5}])
        other.snapshot(first).touch()
    assert (other.epochs_done(first), other.epochs_left(first)) == (1, epochs - 1)
    assert other.log(first) == [{"epoch": 1, "test": 0.1}], "which led to the result that counts"
    other.save_result(first, {"id": first.id})  # of before: its log is still there
    assert (other.epochs_done(first), other.epochs_left(first)) == (0, epochs)


def with_digest(result):
    return {**result, "sha256": files.json_digest(result)}


def lines(root):
    return lzma.open(root / PACKED, "rt").read().splitlines()


@pytest.mark.parametrize("content", [
    b"no xz", lzma.compress(b"no json\n"), lzma.compress(b"{}\n"), lzma.compress(b"[]\n"),
    lzma.compress(b'{"a": 1}')[:-9], lzma.compress(b"[" * 50_000), lzma.compress(b"3\n"),
    lzma.compress(b'{"result": {"id": 3}, "experiment": 3, "log": 3}\n'),
])  # fmt: skip
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / PACKED).write_bytes(content)
    said = rf"{PACKED}: damaged \(.*\); expected the file as it was packed$"
    with pytest.raises(UserError, match=said):
        RunStore(tmp_path).results()


def test_a_line_that_would_fill_the_memory_is_not_read_to_its_end(tmp_path, monkeypatch):
    packer = lzma.LZMACompressor(preset=0)
    (tmp_path / PACKED).write_bytes(packer.compress(b" " * 2**28) + packer.flush())
    refused = pytest.raises(UserError, match=rf"{PACKED}: damaged .Expecting value.*as it was")
    with memory_below(4 * LONGEST_LINE), refused:
        RunStore(tmp_path).results()


@pytest.mark.parametrize("name, text", [("result.json", "[]"), ("log.json", "3")])
def test_json_of_another_kind_is_named(packed, name, text):
    store, _ = packed
    (store.folder(EXPERIMENTS[0]) / name).write_text(text)
    with pytest.raises(UserError, match=rf"{name}: an? \w+ in JSON, expected a (dict|list)"):
        store.pack(store.root)


CHANGES = pytest.mark.parametrize("part, change", [
    ("experiment", lambda run: run["experiment"].update(seed=1)),
    ("result", lambda run: run["result"].update(seconds=2)),
    ("log", lambda run: run["log"][0].update(test=0.3)),
    ("log", lambda run: run["log"].clear()),
])  # fmt: skip


def read_all(store):
    store.results()
    store.features()
    for experiment in EXPERIMENTS:
        store.log(experiment)


@CHANGES
def test_what_was_changed_in_a_run_is_named(packed, part, change):
    """A single number that keeps the file readable."""
    store, other = packed
    folder = store.folder(EXPERIMENTS[1])
    paths = [folder / f"{name}.json" for name in ("experiment", "result", "log")]
    run = {path.stem: json.loads(path.read_text()) for path in paths}
    change(run)
    for path in paths:
        path.write_text(json.dumps(run[path.stem]))
    said = rf"{part}.json: damaged \(.*; expected its folder removed, which has its run done again$"
    for use in (read_all, lambda store: store.pack(other.root)):
        with pytest.raises(UserError, match=said):
            use(store)
    shutil.rmtree(folder)
    read_all(store)
    assert pending(EXPERIMENTS, store) == [EXPERIMENTS[1]]


@CHANGES
def test_what_was_changed_in_a_packed_run_is_named(packed, part, change):
    _, other = packed
    runs = [json.loads(line) for line in lines(other.root)]
    change(runs[1])
    text = "".join(json.dumps(run) + "\n" for run in runs)
    (other.root / PACKED).write_bytes(lzma.compress(text.encode()))
    with pytest.raises(UserError, match=rf"{PACKED}: damaged \(.*expected the file as it was"):
        read_all(other)


def test_layout_is_no_change(packed):
    store, _ = packed
    for path in store.folder(EXPERIMENTS[1]).glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    read_all(store)


def test_changed_labels_are_named(packed):
    store, _ = packed
    store.save_labels(EXPERIMENTS[0], LABELS[::-1])
    said = "labels.npz: damaged .changed since.*expected it removed, which has its run done again"
    with pytest.raises(UserError, match=said):
        store.soft_labels(EXPERIMENTS[0])
    (store.folder(EXPERIMENTS[0]) / "labels.npz").unlink()
    assert store.lost_labels(EXPERIMENTS[0])


def test_numbers_that_are_none_have_digests_too(packed):
    store, _ = packed
    result = {"id": EXPERIMENTS[1].id, "state": "finished", "last": {"test": math.nan, "n": 0.1}}
    store.save_result(EXPERIMENTS[1], result)
    assert math.isnan(store.result(EXPERIMENTS[1])["last"]["test"])


def test_a_run_begun_again_while_its_log_is_read_is_no_damage(packed, monkeypatch):
    store, _ = packed
    read_json = files.read_json

    def begun_again_before(path, *args, **kwargs):
        if path.name == "log.json":
            store.reset(EXPERIMENTS[1])
        return read_json(path, *args, **kwargs)

    monkeypatch.setattr(files, "read_json", begun_again_before)
    assert store.log(EXPERIMENTS[1]) == []


@pytest.mark.parametrize("digest", ["", None, 0, False, [], {}, "missing"])
@pytest.mark.parametrize("key", ["sha256", "log_sha256"])
def test_a_result_without_a_digest_is_refused(packed, key, digest):
    """It would hide any change of its numbers."""
    store, other = packed
    run = read_packed(other.root)[EXPERIMENTS[1].id]
    result = {name: value for name, value in run["result"].items() if name not in ("sha256", key)}
    result["seconds"] = 99
    if key == "log_sha256":
        result = with_digest(result | ({} if digest == "missing" else {key: digest}))
    elif digest != "missing":
        result[key] = digest
    files.write_json(store.folder(EXPERIMENTS[1]) / "result.json", result)
    text = json.dumps({**run, "result": result}) + "\n"
    (other.root / PACKED).write_bytes(lzma.compress(text.encode()))
    for each, name in ((store, "(result|log).json"), (other, PACKED)):
        said = f"{name}: damaged .no checksum, as of an older version.; expected"
        with pytest.raises(UserError, match=said):
            read_all(each)


def test_changed_weights_are_not_kept(with_weights, capsys):
    store, other = with_weights
    result = {"id": EXPERIMENTS[1].id, "state": "finished"}
    store.save_result(EXPERIMENTS[1], result)  # with the weights' digest
    store.pack(other.root)
    store.keep_arrays(EXPERIMENTS[1], other.root)
    shutil.rmtree(other.root / "runs")
    (store.folder(EXPERIMENTS[1]) / "model.npz").write_bytes(b"of another run")
    assert "model.npz: damaged (changed since" in refused(capsys, store, other, EXPERIMENTS[1].id)


def test_nothing_to_pack_is_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        pack.main("test", ["--results", str(tmp_path)])
    (line,) = capsys.readouterr().err.splitlines()
    assert "no finished run" in line
