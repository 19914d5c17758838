"""What `chainer-jo relabel` refuses: one line, exit code 2, and nothing of the user's touched."""

import re
from pathlib import Path

import numpy as np
import pytest
from own_images import SHORT, make, one_line, read, relabel, run, write
from PIL import Image

pytestmark = pytest.mark.usefixtures("own_set")
ODD = "images/04, é.png"


@pytest.mark.parametrize("apply, words", [
    ("new/out", "--out {out} is or lies in it"), ("new/x/../out/", "--out {out} is or lies in it"),
    ("new", "--out {out} is or lies in it"), ("new/out/model.npz/set", "model.npz is a name"),
    ("new/out/labels.csv", "labels.csv is a name"),
    ("new/out/report.html", "report.html is a name"),
])  # fmt: skip
def test_the_set_is_not_written_over_or_among_the_results(apply, words, own_set, tmp_path, capsys):
    """Known before anything is trained."""
    out, apply = tmp_path / "new" / "out", tmp_path / apply
    assert relabel(own_set, out, "--apply", apply, *SHORT, "--dry-run") == 2
    assert one_line(capsys).startswith(f"error: --apply {apply}: {words.format(out=out)}")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no other")
def test_a_set_that_cannot_be_written_is_refused_before_training(own_set, tmp_path, capsys):
    out = tmp_path / "out"
    assert relabel(own_set, out, "--apply", "/proc/x", *SHORT) == 2
    assert one_line(capsys).startswith("error: file '/proc/x': ") and not out.exists()


@pytest.fixture
def class_folders(tmp_path):
    for root in ("set", "right"):
        for name in "ab":
            (tmp_path / root / name).mkdir(parents=True)
            Image.new("RGB", (8, 8)).save(tmp_path / root / name / "1.png")
    return tmp_path / "set", "--test", tmp_path / "right"


@pytest.mark.parametrize("root", ["set", "right"])
@pytest.mark.parametrize("flag", ["--out", "--apply"])
def test_nothing_is_written_into_the_data(flag, root, class_folders, tmp_path, capsys):
    """Class folders, in which the next command would find what this one wrote."""
    inside = tmp_path / root / "new"
    folders = {"--out": tmp_path / "out", flag: inside}
    assert run("relabel", *class_folders, *(w for pair in folders.items() for w in pair)) == 2
    assert f"error: {flag} {inside}: is inside the data" in one_line(capsys)
    assert not inside.exists()


def test_nothing_is_written_among_the_images_of_a_table(own_set, tmp_path, capsys):
    assert relabel(own_set, own_set / "images", *SHORT) == 2
    assert "images: is inside the data, expected a folder elsewhere" in one_line(capsys)
    assert relabel(own_set, own_set.parent / "out", "--features", "Auto") == 2
    assert "--features Auto: no file, expected an .npz or .npy, or auto" in one_line(capsys)
    table = tmp_path / "table.csv"
    table.write_bytes((own_set / "labels.csv").read_bytes())
    words = ("--images", own_set, "--out", own_set / "images/new", *SHORT)
    assert run("relabel", table, *words) == 2
    assert "images/new: is inside the data" in one_line(capsys)
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:6]))
    assert run("relabel", table, *words[:2], "--out", tmp_path / "out", *SHORT) == 2
    assert f"data '{table}': 5 images in 3 folds: expected at least two" in one_line(capsys)
    words = ("--validation", own_set / "labels.csv", "--out", own_set / "images/new", *SHORT)
    assert run("relabel", make(tmp_path / "set") / "labels.csv", *words) == 2
    assert "images/new: is inside the data" in one_line(capsys)


@pytest.mark.parametrize("name, said", [
    ("n" * 300, "File name too long|no such (file|folder)"),
    ("n\udce9", "^error: {flag} .*a name in UTF-8"),
])  # fmt: skip
@pytest.mark.parametrize("flag", ["DATA", "--out", "--apply", "--test", "--images"])
def test_a_path_that_cannot_be(flag, name, said, own_set, tmp_path, capsys):
    named = {"DATA": own_set / "labels.csv", "--out": tmp_path / "out", flag: tmp_path / name}
    words = [word for pair in named.items() for word in pair if word != "DATA"]
    assert run("relabel", *words, "--dry-run", *SHORT) == 2
    assert re.search(said.format(flag=flag), one_line(capsys))


@pytest.mark.parametrize("flag", ["--path-column", "--label-column", "--images"])
def test_flags_of_tables_are_refused_without_one(flag, class_folders, tmp_path, capsys):
    assert run("relabel", *class_folders, "--out", tmp_path / "out", flag, "name") == 2
    assert f"error: {flag} name: expected with a table" in one_line(capsys)


def test_data_that_were_put_right_are_taken(tmp_path, capsys):
    """Before anything was computed a folder is nobody's. An image of a test set, which is seen
    after training, would else take hours of training with it."""
    root, right, out = make(tmp_path / "set"), make(tmp_path / "right"), tmp_path / "out"
    (right / ODD).write_bytes(b"no image")
    command = (root, out, "--test", right / "labels.csv", *SHORT)
    assert relabel(*command) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "image cannot be decoded" in line and "line 6" in line
    assert [path.name for path in out.iterdir()] == ["data.json"]
    rows = (right / "labels.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (right / "labels.csv").write_text("".join(rows[:5] + rows[6:]), encoding="utf-8")
    assert relabel(*command) == 0
    assert len(read(out / "labels.csv")) == 60


@pytest.mark.parametrize("flags, words", [
    (["--alpha", "-1"], ["--alpha -1"]),
    (["--beta", "inf"], ["--beta inf"]),
    (["--learning-rate", "0"], ["--learning-rate 0"]),
    (["--learning-rate", "inf"], ["--learning-rate inf"]),
    (["--epochs", "0"], ["--epochs 0: expected a whole number of at least 1"]),
    (["--seed", "-1"], ["--seed -1: expected a whole number of at least 0"]),
    (["--audit", "-1"], ["--audit -1: expected a whole number of at least 0"]),
    (["--min-probability", "nan"], ["--min-probability nan: expected a number in [0, 1]"]),
    (["--features", "no.npz"], ["no.npz"]),
    (["--features", "./pixels"], ["./pixels"]),
    (["--copy"], ["--copy", "--apply"]),
    (["--true-labels", "no.csv"], ["no.csv"]),
    (["--validation", "no"], ["no"]),
    (["--prior", "none"], ["--prior"]),
    (["--threads", "0"], ["--threads 0: expected a whole number of at least 1"]),
    (["--flap"], ["--flap"]),
    (["--apply", ""], ["an argument is empty", "--apply ''"]),
    (["--features", "pixels", "--probabilities", "x"], ["--probabilities", "without --features"]),
])  # fmt: skip
def test_wrong_flags_are_one_line(flags, words, own_set, tmp_path, capsys):
    assert relabel(own_set, tmp_path / "out", *flags) == 2
    line = one_line(capsys)
    assert all(word in line for word in words), line


def test_rows_without_paths_are_of_one_set(own_set, tmp_path, capsys):
    """As many test images as others would get the others' rows."""
    np.save(tmp_path / "features.npy", np.load(own_set / "features.npz")["features"])
    test = make(tmp_path / "test") / "labels.csv"
    words = ("--features", tmp_path / "features.npy", "--test", test)
    assert relabel(own_set, tmp_path / "out", *words) == 2
    assert "features.npy': an .npy has no paths" in (line := one_line(capsys)), line
    assert "tell the test set from the training set" in line


def test_columns_of_numbered_classes_are_named(tmp_path, capsys):
    """Some sort 10 before 2, others 2 before 10."""
    root = make(tmp_path / "set")
    rows = [(row["path"], str(i % 11)) for i, row in enumerate(read(root / "labels.csv"))]
    write(root / "labels.csv", [("path", "label"), *rows])
    names, given = sorted({label for _, label in rows}), [label for _, label in rows]
    p, paths = np.equal.outer(given, names) + 0.01, [path for path, _ in rows]
    command = (root, tmp_path / "out", "--probabilities", file := tmp_path / "p.npz")
    np.savez(file, probabilities=p, paths=paths)
    assert relabel(*command) == 2
    assert "expected an .npz with an array 'class_names' of text" in one_line(capsys)
    more = np.insert(p, 3, 0, axis=1)
    np.savez(file, probabilities=more, paths=paths, class_names=[*names[:3], "none", *names[3:]])
    assert relabel(*command) == 2
    assert "no image has labels ['none']; leave them out" in one_line(capsys)
    np.savez(file, probabilities=p, paths=paths, class_names=[*names[:-1], names[0]])
    assert relabel(*command) == 2 and "'0'], expected each once" in one_line(capsys)
    np.savez(file, probabilities=p, paths=paths, class_names=names)
    assert relabel(*command) == 0
    assert {row["changed"] for row in read(tmp_path / "out" / "labels.csv")} == {"no"}
