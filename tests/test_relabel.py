"""`chainer-jo relabel` and `example` as a user meets them: files, pages, lines, exit codes."""

import csv
import importlib
import shutil
from dataclasses import replace
from importlib import metadata

import numpy as np
import pytest
from chainer import serializers
from own_images import (
    BY_FEATURES,
    DARK,
    LIGHT,
    ODD,
    SHORT,
    TRAINING,
    content,
    make,
    one_line,
    read,
    run,
)
from PIL import Image

from chainer_jo.method.resnet50 import ResNet50
from chainer_jo.relabel.command import parse
from chainer_jo.relabel.judge import by_images, settings
from chainer_jo.relabel.judge.folds import folds
from chainer_jo.relabel.judge.label_errors import find_label_errors
from chainer_jo.relabel.show import report
from chainer_jo.relabel.write.corrected_labels import COLUMNS
from chainer_jo.relabel.write.trained_network import TrainedNetwork

pytestmark = pytest.mark.usefixtures("own_set")


@pytest.mark.parametrize("which", ["corrected", "by_features"])
def test_every_image_is_in_the_table_with_all_that_came_with_it(which, own_set, request):
    out = request.getfixturevalue(which)
    given, rows = read(own_set / "labels.csv"), read(out / "labels.csv")
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


def test_pictures_of_many_images_lie_beside_the_report(own_set, by_features, tmp_path, monkeypatch):
    out = shutil.copytree(by_features, tmp_path / "out")
    words = (
        "--features",
        own_set / "features.npz",
        "--true-labels",
        own_set / "true.csv",
        *BY_FEATURES,
    )
    monkeypatch.setattr(report, "MOST_EMBEDDED", 10)
    assert run("relabel", own_set / "labels.csv", "--out", out, *words) == 0
    shown, pictures = content(out / "report.html"), out / "report-pictures"
    assert 'id="sheet0"' not in (out / "report.html").read_text(encoding="utf-8")
    assert shown["folder"] == pictures.name
    sheets = -(-len(shown["rows"]) // shown["cells"])
    assert {path.name for path in pictures.iterdir()} == {f"{i}.png" for i in range(sheets)}
    assert (pictures / "0.png").read_bytes()[1:4] == b"PNG"
    (pictures / "of-the-user.txt").write_text("stays")

    monkeypatch.undo()
    assert run("relabel", own_set / "labels.csv", "--out", out, *words) == 0
    assert [path.name for path in pictures.iterdir()] == ["of-the-user.txt"]
    assert "folder" not in content(out / "report.html")


def test_wrong_labels_are_found(by_features, own_set):
    true = {row["path"]: row["label"] for row in read(own_set / "true.csv")}
    rows = read(by_features / "labels.csv")
    wrong = {row["path"] for row in rows if row["given"] != true[row["path"]]}
    surest = sorted(rows, key=lambda row: float(row["probability_given"]))[: len(wrong) + 1]
    assert wrong < {row["path"] for row in surest if row["changed"] == "yes"}
    assert {row["given"] for row in surest if row["path"] not in wrong} == {
        ODD
    }  # alone of its class


def test_every_image_is_judged_by_a_network_that_was_trained_without_it(corrected, own_set):
    rows, network = read(corrected / "labels.csv"), TrainedNetwork.load(corrected)
    names = network.class_names
    given = np.array([names.index(row["given"]) for row in rows])
    parts = folds(given, len(network.members), 0)
    images = [str(own_set / row["path"]) for row in rows]
    seen = np.stack([TrainedNetwork(network.about, [m]).of_images(images) for m in network.members])
    expected = find_label_errors(seen[parts, np.arange(len(rows))], given, names)
    found = [names.index(row["new"]) for row in rows]
    np.testing.assert_array_equal(found, expected.new)
    # What they say together is what `predict` says.
    np.testing.assert_allclose(network.of_images(images), seen.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("flags", [("--learning-rate", "10"), ("--alpha", "1e9")])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_features_that_make_training_diverge_are_one_line(flags, own_set, tmp_path, capsys):
    words = ("--features", own_set / "features.npz", "--device", "cpu", *flags)
    assert run("relabel", own_set / "labels.csv", "--out", tmp_path / "out", *words) == 2
    (line,) = [x for x in capsys.readouterr().err.splitlines() if x.startswith("error")]
    assert "training diverged with learning rate" in line and "expected a smaller one" in line
    assert f"{flags[0][2:].replace('-', ' ')} {float(flags[1]):g}" in line
    assert not (tmp_path / "out" / "labels.csv").exists()


@pytest.mark.parametrize("use", ["validation", "test"])
def test_features_of_two_sets_with_one_path_are_refused(use, own_set, tmp_path, capsys):
    """They would be those of the training images."""
    other = shutil.copytree(own_set, tmp_path / "other")
    words = ("--features", own_set / "features.npz", f"--{use}", other / "labels.csv", *BY_FEATURES)
    assert run("relabel", own_set / "labels.csv", "--out", tmp_path / "out", *words) == 2
    assert f"'images/00, é.png' is in the train and in the {use} set, expected" in one_line(capsys)


@pytest.mark.parametrize("way", ["images", "features"])
def test_a_network_on_the_labels_as_given_is_asked_for(way, own_set, tmp_path, capsys, monkeypatch):
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
        sets = [np.load(root / "features.npz") for root in (own_set, other)]
        both = {name: np.concatenate([each[name] for each in sets]) for name in sets[0]}
        np.savez(tmp_path / "both.npz", **both)
        words = ("--features", tmp_path / "both.npz", *BY_FEATURES)
    words = ("--test", other / "labels.csv", *words)
    assert run("relabel", own_set / "labels.csv", "--out", tmp_path / "out", *words) == 0
    assert row_of_the_test_set()[2:4] == ["60", ""]
    assert (
        run("relabel", own_set / "labels.csv", "--out", tmp_path / "out", "--baseline", *words) == 0
    )
    assert all(0 <= float(cell) <= 100 for cell in row_of_the_test_set()[3:5])
    assert (compared[0] != compared[1]).any()
    assert run("relabel", own_set / "labels.csv", "--out", tmp_path / "no", "--baseline") == 2
    assert "--baseline: expected with --validation or --test" in one_line(capsys)


def test_a_network_on_the_labels_as_given_is_compared_on_parts_of_the_data(tmp_path, capsys):
    image = Image.new("L", (8, 8))
    paths = [
        f"{part}/{name}/{i}.png" for part in ("train", "test") for name in "ab" for i in range(3)
    ]
    for path in paths:
        (tmp_path / "set" / path).parent.mkdir(parents=True, exist_ok=True)
        image.save(tmp_path / "set" / path)
    np.savez(tmp_path / "f.npz", features=np.eye(len(paths)), paths=paths)
    words = ("--features", tmp_path / "f.npz", "--baseline", "--dry-run", "--out", tmp_path / "out")
    assert run("relabel", tmp_path / "set", *words) == 0
    assert "6 images of 2 classes" in capsys.readouterr().out


def test_probabilities_of_any_model(own_set, tmp_path, capsys):
    rows, true = read(own_set / "labels.csv"), read(own_set / "true.csv")
    names = [LIGHT, ODD, DARK]
    seen = np.full((60, 3), 0.05)
    seen[np.arange(60), [names.index(row["label"]) for row in true]] = 0.9
    paths, out = [row["path"] for row in rows], tmp_path / "out"
    np.savez(tmp_path / "p.npz", probabilities=seen[::-1], paths=paths[::-1], class_names=names)
    words = ("--probabilities", tmp_path / "p.npz", "--true-labels", own_set / "true.csv")
    assert run("relabel", own_set / "labels.csv", "--out", out, *words) == 0
    assert "to 100.0 % (60 true labels known)" in capsys.readouterr().out
    assert not (out / "model.npz").exists() and not (out / "runs").exists()
    changed = {row["path"] for row in read(out / "labels.csv") if row["changed"] == "yes"}
    assert changed == {
        r["path"] for r, t in zip(rows, true, strict=True) if r["label"] != t["label"]
    }
    assert run("relabel", own_set / "labels.csv", "--out", out, *words, "--epochs", "3") == 2
    assert "--probabilities: expected without --epochs" in one_line(capsys)
    for flag in (("--prior", "uniform"), ("--test", own_set / "labels.csv")):
        assert run("relabel", own_set / "labels.csv", "--out", tmp_path / "out", *words, *flag) == 2
        assert f"--probabilities: expected without {flag[0]}" in one_line(capsys)
    seen[7], seen[9, 0] = 0, -0.9
    np.savez(tmp_path / "p.npz", probabilities=seen, paths=paths, class_names=names)
    assert run("relabel", own_set / "labels.csv", "--out", tmp_path / "other", *words) == 2
    said = one_line(capsys)
    assert "negative numbers, or zeros alone (2 times)" in said and "(line 9)" in said
    assert not (tmp_path / "other").exists()


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


def test_nothing_is_run_or_written_to_say_what_would_be(own_set, tmp_path, capsys):
    out = tmp_path / "out"
    assert run("relabel", own_set / "labels.csv", "--out", out, "--dry-run", *SHORT) == 0
    said = capsys.readouterr().out
    assert "new labels, 1 of 3\n" in said and "network on them, 3 of 3\n" in said
    assert "6 runs, 6 to do, in about ? (not known on this device until" in said
    assert "photographs: features (without" in said
    words = ("--features", own_set / "features.npz", "--dry-run")
    assert run("relabel", own_set / "labels.csv", "--out", out, *words) == 0
    assert not out.exists()


@pytest.mark.parametrize("given, threads", [([], 1), (["--threads", "2"], 2)])
def test_the_smallest_images_are_learnt_on_one_thread(
    given, threads, own_set, tmp_path, monkeypatch
):
    monkeypatch.setattr("chainer_jo.runs.computing_flags.usable_cores", lambda: 4)
    options = "--from-scratch", "--jobs", 1, "--device", "cpu", *given
    words = own_set / "labels.csv", "--out", tmp_path / "out", *options
    found = parse([str(word) for word in words])
    by_images.ByImages(found)
    assert (found.jobs, found.threads) == (1, threads)


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
