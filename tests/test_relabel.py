"""`chainer-jo relabel` and `example` as a user meets them: files, pages, lines, exit codes."""

import shutil
from importlib import metadata

import numpy as np
import own_images
import pytest
from own_images import DARK, LIGHT, ODD, content, make, one_line, read, relabel, run

from chainer_jo.relabel.outcome.trained_network import TrainedNetwork
from chainer_jo.relabel.show import report
from chainer_jo.relabel.write.label_files import COLUMNS

pytestmark = pytest.mark.usefixtures("own_set")


def test_every_image_is_in_the_table_with_all_that_came_with_it(by_features, own_set):
    out = by_features
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


def test_the_report_has_every_changed_image(by_features):
    out = by_features
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
    words = (*own_images.by_features(own_set), "--true-labels", own_set / "true.csv")
    monkeypatch.setattr(report, "MOST_EMBEDDED", 10)
    assert relabel(own_set, out, *words) == 0
    shown, pictures = content(out / "report.html"), out / "report-pictures"
    assert 'id="sheet0"' not in (out / "report.html").read_text(encoding="utf-8")
    assert shown["folder"] == pictures.name
    sheets = -(-len(shown["rows"]) // shown["cells"])
    assert {path.name for path in pictures.iterdir()} == {f"{i}.png" for i in range(sheets)}
    assert (pictures / "0.png").read_bytes()[1:4] == b"PNG"
    (pictures / "of-the-user.txt").write_text("stays")

    monkeypatch.undo()
    assert relabel(own_set, out, *words) == 0
    assert [path.name for path in pictures.iterdir()] == ["of-the-user.txt"]
    assert "folder" not in content(out / "report.html")


def test_wrong_labels_are_found(by_features, own_set):
    true = {row["path"]: row["label"] for row in read(own_set / "true.csv")}
    rows = read(by_features / "labels.csv")
    wrong = {row["path"] for row in rows if row["given"] != true[row["path"]]}
    surest = sorted(rows, key=lambda row: float(row["probability_given"]))[: len(wrong) + 1]
    assert wrong < {row["path"] for row in surest if row["changed"] == "yes"}
    unsure = {row["given"] for row in surest if row["path"] not in wrong}
    assert unsure == {ODD}, "alone of its class"
    # Chainer gives weights in the order of their hashes, which differ from process to process.
    with np.load(by_features / "model.npz") as archive:
        assert archive.files == sorted(archive.files)


@pytest.mark.parametrize("use", ["validation", "test"])
def test_features_of_two_sets_with_one_path_are_refused(use, own_set, tmp_path, capsys):
    """They would be those of the training images."""
    other = shutil.copytree(own_set, tmp_path / "other")
    words = (*own_images.by_features(own_set), f"--{use}", other / "labels.csv")
    assert relabel(own_set, tmp_path / "out", *words) == 2
    assert f"'images/00, é.png' is in the train and in the {use} set" in one_line(capsys)
    (tmp_path / "link").symlink_to(own_set)
    assert relabel(own_set, tmp_path / "out", f"--{use}", tmp_path / "link/labels.csv") == 2
    line = one_line(capsys)
    assert f"in the train and in the {use} set (there '{own_set}/images/00, é.png')" in line


def test_a_network_on_the_labels_as_given_is_asked_for(
    own_set, tmp_path, capsys, caplog, monkeypatch
):
    probabilities, usual = [], TrainedNetwork.of_features

    def of_features(network, features):
        probabilities.append(usual(network, features))
        return probabilities[-1]

    def row_of_the_test_set():
        (row,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("| test")]
        return [cell.strip() for cell in row.split("|")]

    monkeypatch.setattr(TrainedNetwork, "of_features", of_features)
    other = make(tmp_path / "other", wrong=0, prefix="other ")
    sets = [np.load(root / "features.npz") for root in (own_set, other)]
    both = {name: np.concatenate([each[name] for each in sets]) for name in sets[0]}
    np.savez(tmp_path / "both.npz", **both)
    words = "--features", tmp_path / "both.npz", "--test", other / "labels.csv"
    words = *words, *own_images.BY_FEATURES
    assert relabel(own_set, tmp_path / "out", *words) == 0
    assert row_of_the_test_set()[2:4] == ["60", ""]
    assert "--test: 60 of 60 images have the features of a training image" in caplog.text
    assert relabel(own_set, tmp_path / "out", "--baseline", *words) == 0
    assert all(0 <= float(cell) <= 100 for cell in row_of_the_test_set()[3:5])
    assert (probabilities[-2] != probabilities[-1]).any()
    assert relabel(own_set, tmp_path / "no", "--baseline") == 2
    assert "--baseline: expected with --validation or --test" in one_line(capsys)


def test_a_network_on_the_labels_as_given_is_compared_on_parts_of_the_data(tmp_path, capsys):
    folders = "train/a", "train/b\nb", "test/a", "test/b\nb"
    paths = [f"{folder}/{i}.png" for folder in folders for i in range(3)]
    for path in paths:
        (tmp_path / "set" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / path).touch()
    np.savez(tmp_path / "f.npz", features=np.eye(len(paths)), paths=paths)
    words = ("--features", tmp_path / "f.npz", "--baseline", "--dry-run", "--out", tmp_path / "out")
    assert run("relabel", tmp_path / "set", *words) == 0
    assert r"6 images of 2 classes (a, b\nb)" in capsys.readouterr().out


def test_probabilities_of_any_model(own_set, tmp_path, capsys):
    rows, true = read(own_set / "labels.csv"), read(own_set / "true.csv")
    names = [LIGHT, ODD, DARK]
    seen = np.full((60, 3), 0.05)
    seen[np.arange(60), [names.index(row["label"]) for row in true]] = 0.9
    paths, out = [row["path"] for row in rows], tmp_path / "out"
    np.savez(tmp_path / "p.npz", probabilities=seen[::-1], paths=paths[::-1], class_names=names)
    words = ("--probabilities", tmp_path / "p.npz", "--true-labels", own_set / "true.csv")
    assert relabel(own_set, out, *words) == 0
    assert "to 100.0 % (60 true labels known)" in capsys.readouterr().out
    assert not (out / "model.npz").exists()
    changed = [row["changed"] == "yes" for row in read(out / "labels.csv")]
    assert changed == [r["label"] != t["label"] for r, t in zip(rows, true, strict=True)]
    assert relabel(own_set, out, *words, "--epochs", "3") == 2
    assert "--probabilities: expected without --epochs" in one_line(capsys)
    for flag in (("--prior", "uniform"), ("--test", own_set / "labels.csv")):
        assert relabel(own_set, tmp_path / "out", *words, *flag) == 2
        assert f"--probabilities: expected without {flag[0]}" in one_line(capsys)
    seen[7], seen[9, 0] = 0, -0.9
    np.savez(tmp_path / "p.npz", probabilities=seen, paths=paths, class_names=names)
    assert relabel(own_set, tmp_path / "other", *words) == 2
    said = one_line(capsys)
    assert "negative numbers, or zeros alone (2 times)" in said and "(line 9)" in said
    assert not (tmp_path / "other").exists()


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
