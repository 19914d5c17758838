"""What `chainer-jo relabel` refuses: one line, exit code 2, and nothing of the user's touched."""

import csv
import re

import numpy as np
import pytest
from own_images import SHORT, files_below, make, one_line, read, read_only, run, write
from PIL import Image


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory):
    root, cache = (tmp_path_factory.mktemp(name) for name in ("data", "cache"))
    with read_only(root / "set", cache) as data:
        yield data


def test_a_file_of_ones_own_is_never_overwritten(tmp_path, capsys):
    """Least of all DATA, whose folder may be the one that is to be written to."""
    root = make(tmp_path / "set")
    before = files_below(root)
    assert run("relabel", root / "labels.csv", "--out", root, *SHORT) == 2
    assert "has a labels.csv of its own, expected another folder" in one_line(capsys)
    assert files_below(root) == before


@pytest.mark.parametrize("apply", ["out", "x/../out/", "."])
def test_the_set_is_not_written_over_what_is_written(apply, data, tmp_path, capsys):
    """Known before anything is trained."""
    out, apply = tmp_path / "new" / "out", tmp_path / "new" / apply
    command = ("relabel", data / "labels.csv", "--out", out, "--apply", apply, *SHORT)
    assert run(*command, "--dry-run") == 2
    assert one_line(capsys).startswith(f"error: --apply {apply}: --out {out} is or lies in it")


@pytest.mark.parametrize("name", ["runs", "runs/set", "labels.csv", "report.html"])
def test_the_set_is_not_written_among_the_results(name, data, tmp_path, capsys):
    """Known before anything is trained."""
    command = ("relabel", data / "labels.csv", "--out", tmp_path, "--apply", tmp_path / name)
    assert run(*command, *SHORT, "--dry-run") == 2
    assert one_line(capsys).startswith(f"error: --apply {tmp_path / name}: is kept for the results")


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
    assert f"error: {flag} {inside}: lies in the data" in one_line(capsys)
    assert not inside.exists()


@pytest.mark.parametrize("flag", ["DATA", "--out", "--apply", "--test"])
def test_a_path_that_cannot_be(flag, tmp_path, capsys):
    named = {"DATA": make(tmp_path / "set") / "labels.csv", "--out": tmp_path / "out"}
    named[flag] = tmp_path / ("n" * 300)
    words = [word for pair in named.items() for word in pair if word != "DATA"]
    assert run("relabel", *words, "--dry-run", *SHORT) == 2
    assert re.search("File name too long|no such file", one_line(capsys))


def test_a_root_of_images_that_is_not_there(tmp_path, capsys):
    data, root = make(tmp_path / "set") / "labels.csv", tmp_path / "nowhere"
    assert run("relabel", data, "--images", root, "--out", tmp_path / "out", *SHORT) == 2
    assert f"error: --images {str(root)!r}: no such folder" in one_line(capsys)


@pytest.mark.parametrize("flag", ["DATA", "--out", "--apply", "--test", "--images"])
def test_a_path_that_is_not_utf8(flag, tmp_path, capsys):
    named = {"DATA": make(tmp_path / "set") / "labels.csv", "--out": tmp_path / "out"}
    named[flag] = tmp_path / "n\udce9"
    words = [word for pair in named.items() for word in pair if word != "DATA"]
    assert run("relabel", *words, *SHORT) == 2
    assert f"error: {flag} " in (line := one_line(capsys)) and "a name in UTF-8" in line


def test_images_that_are_all_the_same_are_too_few(tmp_path, capsys):
    root = make(tmp_path / "set")
    images = sorted((root / "images").iterdir())
    for image in images[2:]:
        image.write_bytes(images[1].read_bytes())
    assert run("relabel", root / "labels.csv", "--out", tmp_path / "out", *SHORT) == 2
    assert "60 images, 2 of them not the same: expected 3 or more" in one_line(capsys)


@pytest.mark.parametrize("flag", ["--path-column", "--label-column", "--images"])
def test_flags_of_tables_are_refused_without_one(flag, class_folders, tmp_path, capsys):
    assert run("relabel", *class_folders, "--out", tmp_path / "out", flag, "name") == 2
    assert f"error: {flag} name: expected with a table" in one_line(capsys)
    assert not (tmp_path / "out").exists()


def test_data_that_were_put_right_are_taken(tmp_path):
    """Before anything was computed a folder is nobody's."""
    root, out = make(tmp_path / "set"), tmp_path / "out"
    (root / "images" / "04, é.png").write_bytes(b"no image")
    command = ("relabel", root / "labels.csv", "--out", out, *SHORT)
    assert run(*command) == 2
    rows = (root / "labels.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (root / "labels.csv").write_text("".join(rows[:5] + rows[6:]), encoding="utf-8")
    assert run(*command) == 0
    assert len(read(out / "labels.csv")) == 59


def test_images_that_are_seen_after_training_are_decoded_before_it(tmp_path, capsys):
    """An image of the test set would else take hours of training with it."""
    right = make(tmp_path / "right")
    (right / "images" / "04, é.png").write_bytes(b"no image")
    out, data = tmp_path / "out", make(tmp_path / "set") / "labels.csv"
    assert run("relabel", data, "--test", right / "labels.csv", "--out", out, *SHORT) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "image cannot be decoded" in line and "line 6" in line
    assert [path.name for path in out.iterdir()] == ["data.json"]


DAMAGE = {
    "missing": (lambda root, path: path.unlink(), ("image: No such file or directory", "line 6")),
    "unreadable": (
        lambda root, path: path.write_bytes(b"no image"),
        ("cannot be decoded", "line 6"),
    ),
    "no table": (lambda root, path: (root / "labels.csv").write_text(""), ("empty", "a header")),
    "no two of a class": (
        lambda root, path: each_of_its_own_class(root),
        ("60 images of 60 classes",),
    ),
}


def each_of_its_own_class(root):
    head, *rows = csv.reader((root / "labels.csv").read_text("utf-8").splitlines())
    write(root / "labels.csv", [head, *((row[0], str(i), *row[2:]) for i, row in enumerate(rows))])


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_in_one_line(kind, tmp_path, capsys):
    """Which kinds there are, test_label_table.py and test_labelled_images.py say."""
    root, (damage, words) = make(tmp_path / "set"), DAMAGE[kind]
    damage(root, root / "images" / "04, é.png")
    assert run("relabel", root / "labels.csv", "--out", tmp_path / "out", *SHORT) == 2
    said = capsys.readouterr().err
    line = said.splitlines()[-1]
    assert line.startswith("error: ") and all(word in line for word in words), said
    assert "100%" not in said and not (tmp_path / "out" / "labels.csv").exists()


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--from-scratch", "--size", "100"], ["--size 100", "8 to 64"]),
        (["--size", "4"], ["--size 4"]),
        (["--alpha", "-1"], ["--alpha -1"]),
        (["--beta", "inf"], ["--beta inf"]),
        (["--learning-rate", "0"], ["--learning-rate 0"]),
        (["--learning-rate", "inf"], ["--learning-rate inf"]),
        (["--epochs", "0"], ["--epochs 0: expected at least 1, a whole number"]),
        (["--seed", "-1"], ["--seed -1: expected at least 0, a whole number"]),
        (["--audit", "-1"], ["--audit -1: expected at least 0, a whole number"]),
        (["--min-probability", "nan"], ["--min-probability nan: expected 0 to 1"]),
        (["--features", "no.npz"], ["no.npz"]),
        (["--features", "no.npz", "--flip"], ["--flip: expected with --from-scratch"]),
        (["--size", "32"], ["--size: expected with --from-scratch"]),
        (["--flip"], ["--flip: expected with --from-scratch"]),
        (["--time-budget", "9"], ["--time-budget: expected with --from-scratch"]),
        (["--from-scratch", "--features", "pixels"], ["--features", "without --from-scratch"]),
        (["--from-scratch", "--resnet50-weights", "x"], ["--from-scratch", "without"]),
        (
            ["--from-scratch", "--probabilities", "x"],
            ["--probabilities", "without", "from-scratch"],
        ),
        (["--features", "./pixels"], ["./pixels"]),
        (["--copy"], ["--copy", "--apply"]),
        (["--true-labels", "no.csv"], ["no.csv"]),
        (["--validation", "no"], ["no"]),
        (["--prior", "none"], ["--prior"]),
        (["--jobs", "0"], ["--jobs 0"]),
        (["--flap"], ["--flap"]),
        (["--apply", ""], ["an argument is empty", "--apply ''"]),
    ],
)
def test_wrong_flags_are_one_line(flags, words, data, tmp_path, capsys):
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "out", *flags) == 2
    line = one_line(capsys)
    assert all(word in line for word in words), line


def test_large_images_are_not_learnt_from_scratch_as_they_are(tmp_path, capsys):
    root = make(tmp_path / "set")
    for path in (root / "images").iterdir():
        Image.new("RGB", (65, 20)).save(path)
    assert run("relabel", root / "labels.csv", "--out", tmp_path / "out", *SHORT) == 2
    line = one_line(capsys)
    assert all(word in line for word in ("65 pixels", "--from-scratch", "--size 64", "features"))
    (tmp_path / "x.npz").write_bytes(b"")
    words = ("--resnet50-weights", tmp_path / "x.npz", "--device", "cpu")
    small = make(tmp_path / "small")
    assert run("relabel", small / "labels.csv", "--out", tmp_path / "out", *words) == 2
    assert "images of over 64 pixels, these have 8; --from-scratch" in one_line(capsys)


def test_rows_without_paths_are_of_one_set(data, tmp_path, capsys):
    """As many test images as others would get the others' rows."""
    np.save(tmp_path / "features.npy", np.load(data / "features.npz")["features"])
    test = make(tmp_path / "test") / "labels.csv"
    words = ("--features", tmp_path / "features.npy", "--test", test)
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "out", *words) == 2
    assert "features.npy': an .npy has no paths" in (line := one_line(capsys)), line
    assert "beside a test set" in line


def test_a_file_of_the_results_named_for_their_folder(tmp_path, capsys):
    (tmp_path / "labels.csv").touch()
    assert run("predict", tmp_path / "labels.csv", "one.png") == 2
    assert "labels.csv': no such folder, expected the folder that" in one_line(capsys)


def test_columns_of_numbered_classes_are_named(tmp_path, capsys):
    """Some sort 10 before 2, others 2 before 10."""
    root = make(tmp_path / "set")
    rows = [(row["path"], str(i % 11)) for i, row in enumerate(read(root / "labels.csv"))]
    write(root / "labels.csv", [("path", "label"), *rows])
    names, given = sorted({label for _, label in rows}), [label for _, label in rows]
    arrays = {
        "probabilities": np.equal.outer(given, names) + 0.01,
        "paths": [path for path, _ in rows],
    }
    file = tmp_path / "p.npz"
    command = ("relabel", root / "labels.csv", "--out", tmp_path / "out", "--probabilities", file)
    np.savez(file, **arrays)
    assert run(*command) == 2
    assert "such as '10' have more than one order, expected an array 'class" in one_line(capsys)
    np.savez(file, **arrays, class_names=names)
    assert run(*command) == 0
    assert {row["changed"] for row in read(tmp_path / "out" / "labels.csv")} == {"no"}
