"""What `chainer-jo relabel` refuses: one line, exit code 2, and nothing of the user's touched."""

import csv

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
    out = tmp_path / "out"
    out.mkdir()
    (out / "report.html").write_text("mine")
    assert run("relabel", root / "labels.csv", "--out", out, *SHORT) == 2
    assert "has a report.html of its own" in one_line(capsys)
    assert [path.name for path in out.iterdir()] == ["report.html"]


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


def test_data_that_were_put_right_are_taken(tmp_path):
    """Before anything was computed a folder is nobody's."""
    root, out = make(tmp_path / "set"), tmp_path / "out"
    damaged("unreadable", root)
    command = ("relabel", root / "labels.csv", "--out", out, *SHORT)
    assert run(*command) == 2
    rows = (root / "labels.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (root / "labels.csv").write_text("".join(rows[:5] + rows[6:]), encoding="utf-8")
    assert run(*command) == 0
    assert len(read(out / "labels.csv")) == 59


def damaged(kind, root):
    table = root / "labels.csv"
    rows = list(csv.reader(table.read_text(encoding="utf-8").splitlines()))
    match kind:
        case "missing":
            (root / rows[5][0]).unlink()
            return "image: No such file or directory", "line 6"
        case "unreadable":
            (root / rows[5][0]).write_bytes(b"no image")
            return "cannot be decoded", "line 6"
        case "twice":
            write(table, [*rows, rows[3]])
            return "a path twice", "lines 4 and 62"
        case "empty":
            table.write_text("")
            return "empty", "expected a header"
        case "header":
            write(table, [("file", "class"), *rows[1:]])
            return "the header is 'file,class'", "'path' or 'file_name' and 'label'"
        case "no rows":
            write(table, rows[:1])
            return "no rows", "expected one per image"
        case "one class":
            write(table, [rows[0], *((path, "cat", *rest) for path, _, *rest in rows[1:])])
            return "1 class ('cat')", "expected at least two"
        case "one each":
            write(table, [rows[0], *rows[1:4]])
            write(table, [rows[0], *((row[0], str(i), *row[2:]) for i, row in enumerate(rows[1:]))])
            return "60 images of 60 classes", "expected two or more"


@pytest.mark.parametrize(
    "kind",
    ["missing", "unreadable", "twice", "empty", "header", "no rows", "one class", "one each"],
)
def test_damage_is_named_in_one_line(kind, tmp_path, capsys):
    root = make(tmp_path / "set")
    words = damaged(kind, root)
    assert run("relabel", root / "labels.csv", "--out", tmp_path / "out", *SHORT) == 2
    line = one_line(capsys)
    assert all(word in line for word in words), line
    assert not (tmp_path / "out" / "labels.csv").exists()


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--size", "100"], ["--size 100", "8 to 64"]),
        (["--size", "4"], ["--size 4"]),
        (["--alpha", "-1"], ["--alpha -1"]),
        (["--beta", "inf"], ["--beta inf"]),
        (["--learning-rate", "0"], ["--learning-rate 0"]),
        (["--learning-rate", "inf"], ["--learning-rate inf"]),
        (["--epochs", "0"], ["--epochs 0"]),
        (["--features", "no.npz"], ["no.npz"]),
        (["--features", "no.npz", "--flip"], ["--features", "without", "--flip"]),
        (["--copy"], ["--copy", "--apply"]),
        (["--true-labels", "no.csv"], ["no.csv"]),
        (["--validation", "no"], ["no"]),
        (["--prior", "none"], ["--prior"]),
        (["--jobs", "0"], ["--jobs 0"]),
        (["--flap"], ["--flap"]),
    ],
)
def test_wrong_flags_are_one_line(flags, words, data, tmp_path, capsys):
    assert run("relabel", data / "labels.csv", "--out", tmp_path / "out", *flags) == 2
    line = one_line(capsys)
    assert all(word in line for word in words), line


def test_an_image_that_cannot_be_decoded_is_no_finished_job(tmp_path, capsys):
    root = make(tmp_path / "set")
    (root / "images" / "07, é.png").write_bytes(b"nothing")
    assert run("relabel", root / "labels.csv", "--out", tmp_path / "out", *SHORT) == 2
    said = capsys.readouterr().err
    assert "cannot be decoded: 'images/07, é.png' (line 9)" in said and "100%" not in said


def test_large_images_need_something_else(tmp_path, capsys):
    root = make(tmp_path / "set")
    for path in (root / "images").iterdir():
        Image.new("RGB", (65, 20)).save(path)
    assert run("relabel", root / "labels.csv", "--out", tmp_path / "out") == 2
    line = one_line(capsys)
    assert all(w in line for w in ("65 pixels", "--resnet50-weights", "--features", "--size 64"))
