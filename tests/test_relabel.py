"""`chainer-jo relabel`, `predict` and `example` as a user meets them: files, lines, exit codes."""

import csv
import errno
import importlib
import itertools
import json
import os
import shutil
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from chainer import serializers
from hostile import poison_npz, promise_npz
from own_images import (
    BY_FEATURES,
    DARK,
    LIGHT,
    ODD,
    SHORT,
    TRAINING,
    content,
    files_below,
    make,
    one_line,
    read,
    read_only,
    run,
)
from PIL import Image
from processes import names_in_utf8

from chainer_jo.method.resnet50 import ResNet50
from chainer_jo.relabel.command import parse
from chainer_jo.relabel.judge import by_images, settings, training
from chainer_jo.relabel.judge.folds import folds
from chainer_jo.relabel.judge.label_errors import find_label_errors
from chainer_jo.relabel.show import report
from chainer_jo.relabel.write.corrected_labels import COLUMNS
from chainer_jo.relabel.write.trained_network import TrainedNetwork
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.store import RunStore


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory):
    root, cache = (tmp_path_factory.mktemp(name) for name in ("data", "cache"))
    with read_only(root / "set", cache) as data:
        yield data


@pytest.fixture(scope="module")
def corrected(data, tmp_path_factory):
    """The folder that relabelling by images writes."""
    out = tmp_path_factory.mktemp("images") / "out"
    before = files_below(data)
    assert run("relabel", data / "labels.csv", "--out", out, *SHORT) == 0
    assert files_below(data) == before
    return out


@pytest.fixture
def out(corrected, tmp_path):
    """A copy of `corrected`."""
    return shutil.copytree(corrected, tmp_path / "out")


@pytest.fixture
def command(data, out):
    """The words that made it."""
    return "relabel", data / "labels.csv", "--out", out, *SHORT


@pytest.fixture(scope="module")
def by_features(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("features") / "out"
    words = ("--features", data / "features.npz", "--true-labels", data / "true.csv", *BY_FEATURES)
    assert run("relabel", data / "labels.csv", "--out", out, *words) == 0
    return out


@pytest.mark.parametrize("which", ["corrected", "by_features"])
def test_every_image_is_in_the_table_with_all_that_came_with_it(which, data, request):
    out = request.getfixturevalue(which)
    given, rows = read(data / "labels.csv"), read(out / "labels.csv")
    assert list(rows[0]) == [*COLUMNS, "annotator", "given:new"]
    assert [row["path"] for row in rows] == [row["path"] for row in given]
    assert [row["given"] for row in rows] == [row["label"] for row in given]
    assert [row["annotator"] for row in rows] == [row["annotator"] for row in given]
    assert {row["given:new"] for row in rows} == {"n/a"}
    with np.load(out / "soft_labels.npz", allow_pickle=False) as archive:
        labels, names = archive["labels"], archive["class_names"].tolist()
        assert archive["paths"].tolist() == [row["path"] for row in given]
    assert set(names) == {DARK, LIGHT, ODD}
    np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-4)
    for row, soft in zip(rows, labels, strict=True):
        assert row["new"] == names[soft.argmax()]
        assert float(row["probability_new"]) == pytest.approx(soft.max(), abs=1e-6)
        expected = soft[names.index(row["given"])]
        assert float(row["probability_given"]) == pytest.approx(expected, abs=1e-6)
        assert row["changed"] == ("no" if row["new"] == row["given"] else "yes")


@pytest.mark.parametrize("which", ["corrected", "by_features"])
def test_the_report_has_every_changed_image(which, request):
    out = request.getfixturevalue(which)
    text, shown = (out / "report.html").read_text(encoding="utf-8"), content(out / "report.html")
    assert "{{" not in text
    names, rows = shown["classes"], shown["rows"]
    listed = {row[0]: (names[row[1]], names[row[2]]) for row in rows[: shown["listed"]]}
    table = {row["path"]: row for row in read(out / "labels.csv")}
    for path, row in table.items():
        worth_a_look = "yes" in (row["changed"], row["wrong"])
        assert (listed.get(path) == (row["given"], row["new"])) == worth_a_look
    audited = {rows[i][0] for i in shown["audit"]}
    assert len(audited) == 50 and audited | set(listed) == {row[0] for row in rows}
    sheets = [text.count(f'id="sheet{i}"') for i in range(3)]
    assert sheets == [1, 0, 0] and shown["cells"] >= len(rows)


def test_pictures_of_many_images_lie_beside_the_report(data, by_features, tmp_path, monkeypatch):
    out = shutil.copytree(by_features, tmp_path / "out")
    words = ("--features", data / "features.npz", "--true-labels", data / "true.csv", *BY_FEATURES)
    monkeypatch.setattr(report, "MOST_EMBEDDED", 10)
    assert run("relabel", data / "labels.csv", "--out", out, *words) == 0
    shown, pictures = content(out / "report.html"), out / "report-pictures"
    assert 'id="sheet0"' not in (out / "report.html").read_text(encoding="utf-8")
    assert shown["folder"] == pictures.name
    sheets = -(-len(shown["rows"]) // shown["cells"])
    assert {path.name for path in pictures.iterdir()} == {f"{i}.png" for i in range(sheets)}
    assert (pictures / "0.png").read_bytes()[1:4] == b"PNG"
    (pictures / "of-the-user.txt").write_text("stays")

    monkeypatch.undo()
    assert run("relabel", data / "labels.csv", "--out", out, *words) == 0
    assert [path.name for path in pictures.iterdir()] == ["of-the-user.txt"]
    assert "folder" not in content(out / "report.html")


def test_wrong_labels_are_found(by_features, data):
    true = {row["path"]: row["label"] for row in read(data / "true.csv")}
    rows = read(by_features / "labels.csv")
    wrong = {row["path"] for row in rows if row["given"] != true[row["path"]]}
    surest = sorted(rows, key=lambda row: float(row["probability_given"]))[: len(wrong) + 1]
    assert wrong < {row["path"] for row in surest if row["changed"] == "yes"}
    assert {row["given"] for row in surest if row["path"] not in wrong} == {
        ODD
    }  # alone of its class


def test_every_image_is_judged_by_a_network_that_was_trained_without_it(corrected, data):
    rows, network = read(corrected / "labels.csv"), TrainedNetwork.load(corrected)
    names = network.class_names
    given = np.array([names.index(row["given"]) for row in rows])
    parts = folds(given, len(network.members), 0)
    images = [str(data / row["path"]) for row in rows]
    seen = np.stack([TrainedNetwork(network.about, [m]).of_images(images) for m in network.members])
    expected = find_label_errors(seen[parts, np.arange(len(rows))], given, names)
    found = [names.index(row["new"]) for row in rows]
    np.testing.assert_array_equal(found, expected.new)
    # What they say together is what `predict` says.
    np.testing.assert_allclose(network.of_images(images), seen.mean(axis=0), atol=1e-6)


def test_stopped_and_continued_is_the_same(corrected, data, tmp_path, capsys):
    command = ("relabel", data / "labels.csv", "--out", tmp_path / "out", *SHORT)
    assert run(*command, "--time-budget", "0.0001") == 0
    assert "time is up; the same command continues" in capsys.readouterr().out
    assert not (tmp_path / "out" / "labels.csv").exists()
    assert run(*command) == 0
    for name in ("labels.csv", "report.html"):
        assert (tmp_path / "out" / name).read_bytes() == (corrected / name).read_bytes()


@pytest.mark.parametrize("gone, runs", [(["model.npz"], 1), (["labels.npz", "model.npz"], 2)])
def test_what_is_read_at_the_end_and_gone_is_computed_again(
    gone, runs, corrected, out, command, capsys
):
    second = next((out / "runs").glob("second-step-*"))
    first = json.loads((second / "experiment.json").read_text())["first_step"]
    first = out / "runs" / Experiment.from_dict(first).id
    for name in gone:
        ((first if name == "labels.npz" else second) / name).unlink()
    assert run(*command, "--dry-run") == 0
    assert f"6 runs, {runs} to do" in capsys.readouterr().out
    assert run(*command) == 0
    for name in ("labels.csv", "report.html"):
        assert (out / name).read_bytes() == (corrected / name).read_bytes()


def test_images_rewritten_at_the_same_size_are_not_judged_by_networks_of_the_old_ones(
    out, command, capsys
):
    path = next((out / "runs").glob("second-step-*/result.json"))
    store, run_ = RunStore(out), json.loads((path.parent / "experiment.json").read_text())
    experiment = Experiment.from_dict(run_)
    store.save_result(experiment, {**store.result(experiment), "data": "others"})
    before = files_below(out)
    assert run(*command) == 2
    assert "trained on other pixels or labels" in one_line(capsys)
    assert files_below(out) == before


@pytest.mark.parametrize("damage", ["emptied", "pickled", "of another network"])
def test_a_runs_network_that_is_damaged_is_one_line(
    damage, corrected, out, command, tmp_path, capsys
):
    """Nothing in it is run: the folder may be somebody else's."""
    mark, path = tmp_path / "has run", next((out / "runs").glob("second-step-*/model.npz"))
    if damage == "emptied":
        path.write_bytes(b"")
    elif damage == "pickled":
        with np.load(path) as archive:
            poison_npz(path, archive.files[0], mark)
    else:
        np.savez(path, W=np.ones(3))
    assert run(*command) == 2
    line = one_line(capsys)
    assert f"{path}: damaged (" in line and "removed, which has its run done again" in line
    assert not mark.exists()
    path.unlink()
    assert run(*command) == 0
    assert (out / "labels.csv").read_bytes() == (corrected / "labels.csv").read_bytes()


@pytest.mark.parametrize("name", ["data.json", "results.json"])
def test_a_record_that_is_nested_too_deep_is_one_line(name, out, command, capsys):
    (out / name).write_text("[" * 50_000)
    assert run(*command) == 2
    line = one_line(capsys)
    assert f"{name}: not readable as JSON (" in line and "expected it whole, or removed" in line


@pytest.mark.parametrize("flags", [("--learning-rate", "10"), ("--alpha", "1e9")])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_features_that_make_training_diverge_are_one_line(flags, data, tmp_path, capsys):
    words = ("--features", data / "features.npz", "--device", "cpu", *flags)
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "out", *words) == 2
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.startswith("error")]
    assert "training diverged with learning rate" in line and "expected a smaller one" in line
    assert f"{flags[0][2:].replace('-', ' ')} {float(flags[1]):g}" in line
    assert not (tmp_path / "out" / "labels.csv").exists()


@pytest.mark.parametrize("use", ["validation", "test"])
def test_features_of_two_sets_with_one_path_are_refused(use, data, tmp_path, capsys):
    """They would be those of the training images."""
    other = shutil.copytree(data, tmp_path / "other")
    words = ("--features", data / "features.npz", f"--{use}", other / "labels.csv", *BY_FEATURES)
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "out", *words) == 2
    assert f"'images/00, é.png' is in the train and in the {use} set, expected" in one_line(capsys)


@pytest.mark.parametrize("way", ["images", "features"])
def test_a_network_on_the_labels_as_given_is_asked_for(way, data, tmp_path, capsys, monkeypatch):
    module, compared = importlib.import_module(f"chainer_jo.relabel.judge.by_{way}"), []
    usual = module.accuracies_of

    def accuracies_of(networks, right, predict):
        compared[:] = [each and predict(each, "test") for each in networks]
        return usual(networks, right, predict)

    def row_of_the_test_set():
        (row,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("| test")]
        return [cell.strip() for cell in row.split("|")]

    monkeypatch.setattr(module, "accuracies_of", accuracies_of)
    other, words = make(tmp_path / "other", wrong=0, prefix="other "), SHORT
    if way == "features":
        sets = [np.load(root / "features.npz") for root in (data, other)]
        both = {name: np.concatenate([each[name] for each in sets]) for name in sets[0]}
        np.savez(tmp_path / "both.npz", **both)
        words = ("--features", tmp_path / "both.npz", *BY_FEATURES)
    words = ("--test", other / "labels.csv", *words)
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "out", *words) == 0
    assert row_of_the_test_set()[2:4] == ["60", ""]
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "out", "--baseline", *words) == 0
    assert all(0 <= float(cell) <= 100 for cell in row_of_the_test_set()[3:5])
    assert (compared[0] != compared[1]).any()
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "no", "--baseline") == 2
    assert "--baseline: expected with --validation or --test" in one_line(capsys)


def test_a_network_on_the_labels_as_given_is_compared_on_parts_of_the_data(tmp_path, capsys):
    image = Image.new("L", (8, 8))
    paths = [
        f"{part}/{name}/{i}.png" for part in ("train", "test") for name in "ab" for i in (1, 2)
    ]
    for path in paths:
        (tmp_path / "set" / path).parent.mkdir(parents=True, exist_ok=True)
        image.save(tmp_path / "set" / path)
    np.savez(tmp_path / "f.npz", features=np.eye(len(paths)), paths=paths)
    words = ("--features", tmp_path / "f.npz", "--baseline", "--dry-run", "--out", tmp_path / "out")
    assert run("relabel", tmp_path / "set", *words) == 0
    assert "4 images of 2 classes" in capsys.readouterr().out


def test_probabilities_of_any_model(data, tmp_path, capsys):
    rows, true = read(data / "labels.csv"), read(data / "true.csv")
    names = [LIGHT, ODD, DARK]
    seen = np.full((60, 3), 0.05)
    seen[np.arange(60), [names.index(row["label"]) for row in true]] = 0.9
    paths, out = [row["path"] for row in rows], tmp_path / "out"
    np.savez(tmp_path / "p.npz", probabilities=seen[::-1], paths=paths[::-1], class_names=names)
    words = ("--probabilities", tmp_path / "p.npz", "--true-labels", data / "true.csv")
    assert run("relabel", data / "labels.csv", "--out", out, *words) == 0
    assert "to 100.0 % (60 true labels known)" in capsys.readouterr().out
    assert not (out / "model.npz").exists() and not (out / "runs").exists()
    changed = {row["path"] for row in read(out / "labels.csv") if row["changed"] == "yes"}
    assert changed == {
        r["path"] for r, t in zip(rows, true, strict=True) if r["label"] != t["label"]
    }
    assert run("relabel", data / "labels.csv", "--out", out, *words, "--epochs", "3") == 2
    assert "--probabilities: expected without --epochs" in one_line(capsys)
    for flag in (("--prior", "uniform"), ("--test", data / "labels.csv")):
        assert run("relabel", data / "labels.csv", "--out", tmp_path / "out", *words, *flag) == 2
        assert f"--probabilities: expected without {flag[0]}" in one_line(capsys)
    seen[7], seen[9, 0] = 0, -0.9
    np.savez(tmp_path / "p.npz", probabilities=seen, paths=paths, class_names=names)
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "other", *words) == 2
    said = one_line(capsys)
    assert "negative numbers, or zeros alone (2 times)" in said and "(line 9)" in said
    assert not (tmp_path / "other").exists()


def test_predict_from_features(by_features, data, tmp_path, capsys):
    assert run("predict", by_features, "--features", data / "features.npz") == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    true = {row["path"]: row["label"] for row in read(data / "true.csv")}
    assert np.mean([row["label"] == true[row["path"]] for row in rows]) > 0.9
    assert run("predict", by_features, data / "images") == 2
    assert "expected --features FILE.npz" in capsys.readouterr().err
    assert run("predict", by_features, "one.png", "--features", data / "features.npz") == 2
    assert "IMAGE 'one.png': expected none with --features" in one_line(capsys)
    np.savez(tmp_path / "short.npz", features=np.ones((1, 2)), paths=np.array(["a.png"]))
    assert run("predict", by_features, "--features", tmp_path / "short.npz") == 2
    assert "short.npz': 2 numbers each, expected 64" in one_line(capsys)


def test_another_command_on_the_same_folder_with_other_labels(data, tmp_path, capsys, monkeypatch):
    """Begun while this one trains, when nothing is there yet that tells whose folder it is."""
    out, other = tmp_path / "out", make(tmp_path / "other", wrong=6)
    words = ("--features", data / "features.npz", *BY_FEATURES)
    judge = training.judge

    def meanwhile(*arguments):
        monkeypatch.setattr(training, "judge", judge)
        second = ("--features", other / "features.npz", *BY_FEATURES)
        assert run("relabel", other / "labels.csv", "--out", out, *second) == 0
        capsys.readouterr()
        return judge(*arguments)

    monkeypatch.setattr(training, "judge", meanwhile)
    assert run("relabel", data / "labels.csv", "--out", out, *words) == 2
    assert "data.json: another command has begun here with other images or labels" in one_line(
        capsys
    )
    assert [row["given"] for row in read(out / "labels.csv")] == [
        row["label"] for row in read(other / "labels.csv")
    ]


def test_interrupted_by_features_it_begins_again(data, tmp_path, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "judge", interrupted)
    words = ("--features", data / "features.npz", *BY_FEATURES)
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "out", *words) == 130
    hint = "the same command starts again from the beginning"
    assert capsys.readouterr().err.strip() == f"interrupted; {hint}"


def test_other_data_in_the_same_folder_are_refused(by_features, data, tmp_path, capsys):
    other = make(tmp_path / "other", wrong=6)
    words = ("--features", other / "features.npz", *BY_FEATURES)
    for flags in ([], ["--dry-run"]):
        assert run("relabel", other / "labels.csv", "--out", by_features, *words, *flags) == 2
        line = one_line(capsys)
        assert line.startswith(f"error: {by_features}/data.json: the results there are of")
    moved = shutil.copytree(data, tmp_path / "moved")
    words = ("--features", moved / "features.npz", *BY_FEATURES)
    assert run("relabel", moved / "labels.csv", "--out", by_features, *words) == 0


def test_a_few_images_of_which_two_are_the_same(tmp_path):
    """They are in one part, which leaves less of the others to train on."""
    root = make(tmp_path / "few", number=12, wrong=0)
    first, *_, last = sorted((root / "images").iterdir())
    shutil.copy(first, last)
    for seed in range(2):
        words = ("--seed", seed, *SHORT)
        assert run("relabel", root / "labels.csv", "--out", tmp_path / f"{seed}", *words) == 0


def test_large_images_are_learnt_by_resnet50(tmp_path, monkeypatch, capsys):
    """From weights of ImageNet, here random ones; small, in two folds. Two images are the same."""
    monkeypatch.setattr(by_images, "FOLDS", 2)
    small = replace(settings.CLOTHING1M_PAPER, resize=36, crop=32)
    monkeypatch.setattr(settings, "CLOTHING1M_PAPER", small)
    serializers.save_npz(tmp_path / "resnet50.npz", ResNet50(rng=np.random.RandomState(0)))
    rng = np.random.default_rng(0)
    for i in range(12):
        (tmp_path / "photos" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        if i != 2:
            pixels = rng.integers(256, size=(70, 80, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"photos/{'ab'[i % 2]}/{i}.png")
    out, weights = tmp_path / "out", ("--resnet50-weights", tmp_path / "resnet50.npz")
    words = (*weights, *TRAINING, "--epochs", "1")
    assert run("relabel", tmp_path / "photos", "--out", out, *words, "--flip") == 2
    assert "--flip: expected with --from-scratch" in one_line(capsys)
    assert run("relabel", tmp_path / "photos", "--out", out, *words) == 0
    said = capsys.readouterr().out
    assert "the centre of 32: ResNet-50 from weights" in said and "photographs" not in said
    assert "identical or nearly identical images: 1 group, such as 'a/2.png', 'b/1.png'" in said
    assert "<td>a/2.png, b/1.png</td><td>a, b</td>" in (out / "report.html").read_text()
    assert run("predict", out, tmp_path / "photos") == 0
    found = {row["path"]: row for row in csv.DictReader(capsys.readouterr().out.splitlines())}
    path = str(tmp_path / "photos/a/0.png")
    assert len(found) == 12 and found[path]["label"] in ("a", "b")


def test_the_network_is_the_same_file_in_every_process(corrected):
    """Chainer gives weights in the order of their hashes, which differ from process to process."""
    with np.load(corrected / "model.npz") as archive:
        assert archive.files == sorted(archive.files)


def test_nothing_is_run_or_written_to_say_what_would_be(data, tmp_path, capsys):
    out = tmp_path / "out"
    assert run("relabel", data / "labels.csv", "--out", out, "--dry-run", *SHORT) == 0
    said = capsys.readouterr().out
    assert "new labels, 1 of 3\n" in said and "network on them, 3 of 3\n" in said
    assert "6 runs, 6 to do, in about ? (not known on this device until" in said
    assert "photographs: features (without" in said
    words = ("--features", data / "features.npz", "--dry-run")
    assert run("relabel", data / "labels.csv", "--out", out, *words) == 0
    assert not out.exists()


@pytest.mark.parametrize("given, threads", [([], 1), (["--threads", "2"], 2)])
def test_the_smallest_images_are_learnt_on_one_thread(given, threads, data, tmp_path, monkeypatch):
    monkeypatch.setattr("chainer_jo.runs.computing_flags.usable_cores", lambda: 4)
    options = "--from-scratch", "--jobs", 1, "--device", "cpu", *given
    words = data / "labels.csv", "--out", tmp_path / "out", *options
    found = parse([str(word) for word in words])
    by_images.ByImages(found)
    assert (found.jobs, found.threads) == (1, threads)


def test_a_full_disk_at_the_end_costs_nothing(data, tmp_path, monkeypatch, capsys):
    """Whichever file is one too many: one line, what is there is whole, and the rest follows."""
    words = ("--features", data / "features.npz", *BY_FEATURES)
    command = ("relabel", data / "labels.csv", "--out", tmp_path / "out", *words)
    assert run(*command) == 0
    written = [path for path in (tmp_path / "out").iterdir() if path.is_file()]
    complete = {path.name: path.read_bytes() for path in written}
    names = ("labels.csv", "soft_labels.npz", "model.npz", "report.html")
    replace = os.replace

    for full in names:
        for name in names:
            (tmp_path / "out" / name).unlink()

        def fails(source, target, full=full):
            if Path(target).name == full:
                raise OSError(errno.ENOSPC, "No space left on device")
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", fails)
            assert run(*command) == 2
            line = [x for x in capsys.readouterr().err.splitlines() if x.startswith("error")][0]
            assert full in line and "No space left on device" in line
            patch.setattr(os, "replace", replace)
            there = {p.name for p in (tmp_path / "out").iterdir() if p.is_file()}
            before = itertools.takewhile(lambda name, full=full: name != full, names)
            assert there == {"data.json", "results.json", *before}
            assert run(*command) == 0
        for name in ("labels.csv", "report.html"):
            assert (tmp_path / "out" / name).read_bytes() == complete[name]


def test_the_commands_say_what_they_are(tmp_path, capsys):
    assert run("--help") == 0
    assert "relabel DATA --out FOLDER" in capsys.readouterr().out
    assert run("--version") == 0
    assert capsys.readouterr().out == f"chainer-jo {metadata.version('chainer_jo')}\n"
    assert run() == 2 and run("relable") == 2
    assert "expected relabel, predict, features, example" in capsys.readouterr().err
    for command in ("relabel", "predict", "example"):
        assert run(command, "--help") == 0
        said = capsys.readouterr().out
        assert f"usage: chainer-jo {command}" in said
        assert max(map(len, said.splitlines())) <= 100 and "preset" not in said
    assert run("example", tmp_path / "digits") == 0
    said = capsys.readouterr().out
    assert "1,797 images" in said and "chainer-jo relabel" in said


def test_predict_takes_from_a_folder_what_relabel_does(corrected, data, tmp_path, capsys):
    """A Mac leaves hidden files that are called as images."""
    image = (data / "images" / "00, é.png").read_bytes()
    for name in ("b.png", "a/c.PNG", "d.txt", "._b.png", ".hidden/e.png", "__MACOSX/f.png"):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"" if name.startswith((".", "__")) else image)
    assert run("predict", corrected, tmp_path / "folder") == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    paths = [str(tmp_path / "folder" / name) for name in ("a/c.PNG", "b.png")]
    assert [row["path"] for row in rows] == paths
    assert run("predict", corrected, paths[1], tmp_path / "folder" / "a") == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    assert [row["path"] for row in rows] == paths[::-1]
    (tmp_path / "empty").mkdir()
    assert run("predict", corrected, tmp_path / "empty") == 2
    assert f"images in '{tmp_path / 'empty'}': none, expected files" in one_line(capsys)
    assert run("predict", corrected) == 2
    assert "IMAGE: none given" in one_line(capsys)


@names_in_utf8
@pytest.mark.parametrize("named", ["folder", "image"])
def test_predict_refuses_names_that_its_table_cannot_have(named, corrected, data, tmp_path, capsys):
    """The terminal may take only what is UTF-8."""
    path = tmp_path / "folder" / os.fsdecode(b"\xff.png")
    path.parent.mkdir()
    path.write_bytes((data / "images" / "00, é.png").read_bytes())
    assert run("predict", corrected, path if named == "image" else path.parent) == 2
    assert "expected a name in UTF-8" in one_line(capsys)


@pytest.mark.parametrize(
    "content", [None, b"", b"PK\x03\x04", "other", "deep", "large", "larger than any memory"]
)
def test_predict_without_a_network(content, tmp_path, capsys):
    """Or with a file that promises one of 4 TiB."""
    large = '{"classes": ["a", "b"], "features": 1048576, "hidden": 1048576}'
    about = {"other": '{"classes": ["a", "b"]}', "deep": "[" * 50_000, "large": large}
    if content in about:
        weights = {"0/weights/W": np.ones(1)}
        np.savez(tmp_path / "model.npz", about=np.array(about[content]), **weights)
    elif content == "larger than any memory":
        promise_npz(tmp_path / "model.npz", "0/weights/W", (2**40,), about=np.array(large))
    elif content is not None:
        (tmp_path / "model.npz").write_bytes(content)
    assert run("predict", tmp_path, "image.png") == 2
    assert "expected the folder that chainer-jo relabel wrote" in one_line(capsys)
    assert run("predict", tmp_path / "nowhere", "image.png") == 2
    line = one_line(capsys)
    assert "nowhere': no such folder, expected" in line and line.count("nowhere") == 1
