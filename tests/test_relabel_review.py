"""What the eye says, and that nothing of a user's is lost: audits, reviews, edited results."""

import os
import shutil
import tarfile

import numpy as np
import pytest
from chainer.dataset import download
from own_images import (
    BY_FEATURES,
    DARK,
    LIGHT,
    content,
    files_below,
    make,
    one_line,
    read,
    run,
    write,
)

from chainer_jo import __version__, files
from chainer_jo.errors import UserError
from chainer_jo.relabel.command import parse
from chainer_jo.relabel.correction import deciding
from chainer_jo.relabel.read import label_table
from chainer_jo.relabel.read.label_table import TableForm
from chainer_jo.relabel.show.summary import WRONG_OR_MORE
from chainer_jo.relabel.write import corrected_set
from chainer_jo.relabel.write.label_files import renamed
from chainer_jo.relabel.write.results_folder import MADE, ResultsFolder


@pytest.fixture
def relabel(own_set, tmp_path, capsys):
    """The command on the set by features; what it printed."""

    def call(*flags, code=0):
        words = ("--features", own_set / "features.npz", "--out", tmp_path / "out", *BY_FEATURES)
        assert run("relabel", own_set / "labels.csv", *words, *flags) == code
        return one_line(capsys) if code else capsys.readouterr().out

    return call


def test_estimates_are_in_the_terminal_the_report_and_the_arrays(relabel, tmp_path):
    said = relabel()
    with np.load(tmp_path / "out" / "soft_labels.npz") as arrays:
        share, by_class = float(arrays["share_wrong"]), arrays["share_wrong_by_class"]
        np.testing.assert_allclose(arrays["transition"].sum(axis=1), 1)
        np.testing.assert_allclose(arrays["network"].sum(axis=1), 1, rtol=1e-5)
    assert f"an estimated {100 * share:.1f} % of the given labels are {WRONG_OR_MORE}" in said
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"{100 * share:.1f} %" in page and f"{100 * by_class.max():.1f} %" in page
    assert f"chainer_jo {__version__}, " in page and "<code>chainer-jo relabel labels.csv" in page
    assert ("No warning" in page) != ('class="doubt"' in page)
    listed = content(tmp_path / "out" / "report.html")
    assert listed["estimate"] == share
    # The table can be sorted by how sure an error is.
    rows = read(tmp_path / "out" / "labels.csv")
    by_rank = sorted(rows, key=lambda row: int(row["rank"]))
    assert [int(row["rank"]) for row in by_rank] == list(range(1, 61))
    given = [float(row["probability_given"]) for row in by_rank]
    assert given == sorted(given)
    called = [row["path"] for row in by_rank if "yes" in (row["changed"], row["wrong"])]
    assert [row[0] for row in listed["rows"][: listed["listed"]]] == called
    changed = sum(row["changed"] == "yes" for row in rows)
    assert f"has {len(called)} images: {changed} whose label changed" in page


def test_images_that_nobody_can_open_are_grey_in_the_report(own_set, tmp_path):
    """By features they need not be opened."""
    root, out = make(tmp_path / "set"), tmp_path / "out"
    for image in (root / "images").iterdir():
        image.write_bytes(b"of another kind")
    features = "--features", root / "features.npz", *BY_FEATURES
    assert run("relabel", root / "labels.csv", *features, "--out", out) == 0
    assert (out / "report.html").exists() and len(read(out / "labels.csv")) == 60


def test_a_review_counts_whatever_the_method_says(relabel, own_set, tmp_path):
    relabel()
    before = read(tmp_path / "out" / "labels.csv")
    swapped = next(row for row in before if row["changed"] == "yes")
    kept = next(row for row in before if row["changed"] == "no" and row["given"] == DARK)
    reviewed = [(swapped["path"], swapped["given"]), (kept["path"], LIGHT)]
    write(tmp_path / "reviewed.csv", [("path", "label"), *reviewed])
    assert "2 labels reviewed by hand" in relabel("--accept", tmp_path / "reviewed.csv")
    after = {row["path"]: row for row in read(tmp_path / "out" / "labels.csv")}
    for path, label in reviewed:
        assert after[path]["new"] == label and after[path]["reviewed"] == "yes"
    others = [row for row in before if row["path"] not in dict(reviewed)]
    assert all(after[row["path"]]["new"] == row["new"] for row in others)
    relabel("--accept", tmp_path / "reviewed.csv", "--min-probability", "1")
    after = {row["path"]: row for row in read(tmp_path / "out" / "labels.csv")}
    changed = {path for path, row in after.items() if row["changed"] == "yes"}
    assert changed == {kept["path"]}
    write(tmp_path / "reviewed.csv", [("path", "label"), (kept["path"], "zebra")])
    assert "zebra" in relabel("--accept", tmp_path / "reviewed.csv", code=2)


def test_an_audit_is_counted_beside_the_estimate(relabel, own_set, tmp_path):
    assert "audit: 20 random images" in relabel("--audit", "20")
    page = content(tmp_path / "out" / "report.html")
    paths = [page["rows"][i][0] for i in page["audit"]]
    assert len(set(paths)) == 20
    true = {row["path"]: row["label"] for row in read(own_set / "true.csv")}
    given = {row["path"]: row["label"] for row in read(own_set / "labels.csv")}
    judged = [(path, true[path]) for path in paths]
    write(tmp_path / "reviewed.csv", [("path", "label"), *judged[:15]])
    said = relabel("--audit", "20", "--accept", tmp_path / "reviewed.csv")
    assert "audit: 5 of 20 random images" in said and "randomly drawn" not in said
    write(tmp_path / "rest.csv", [("path", "label"), *judged[15:]])
    wrong = sum(true[path] != given[path] for path in paths)
    files = ("--accept", tmp_path / "reviewed.csv", "--accept", tmp_path / "rest.csv")
    said = relabel("--audit", "20", *files)
    page = content(tmp_path / "out" / "report.html")
    reviewed = {path: page["classes"][label] for path, label in page["reviewed"]}
    assert reviewed == dict(judged)
    assert f"audit: {wrong} of 20 randomly drawn labels are wrong" in said


def test_no_column_of_ones_own_is_lost_or_stands_twice():
    columns = {"given": ["a"], "given:given": ["b"], "New": ["c"], "note": ["d"]}
    assert renamed(columns, ("given", "new")) == {
        "given:given": ["a"], "given:given:given": ["b"], "given:New": ["c"], "note": ["d"],
    }  # fmt: skip


def test_a_table_of_right_labels_says_which_column_they_are_in(tmp_path):
    """The column that was named is that of the given labels."""
    write(tmp_path / "both.csv", [("path", "label", "noisy"), ("1.png", "cat", "dog")])
    with pytest.raises(UserError, match=r"columns \['label', 'noisy'\], expected one of them"):
        label_table.read(tmp_path / "both.csv", TableForm.of(None, "noisy", None).or_usual())


def test_what_somebody_changed_and_results_of_other_flags_are_not_overwritten(relabel, tmp_path):
    out, labels = tmp_path / "out", tmp_path / "out" / "labels.csv"
    relabel()
    before = files_below(out)
    assert "made with --seed 0, now it is 7" in relabel("--seed", "7", code=2)
    assert "--alpha left out, now it is 1.0" in relabel("--alpha", "1", code=2)
    assert files_below(out) == before
    labels.write_text(labels.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    before = files_below(out)
    assert "labels.csv: was changed since it was written" in relabel(code=2)
    assert files_below(out) == before
    labels.rename(tmp_path / "mine.csv")
    relabel()
    (out / MADE).unlink()  # labels that were put there after an early stop
    assert "has a labels.csv of its own" in relabel(code=2)


def test_every_flag_that_decides_the_labels_counts(tmp_path):
    for number, name in enumerate(("a.npz", "b.npz")):
        (tmp_path / name).write_bytes(bytes([number]))
    a, b = str(tmp_path / "a.npz"), str(tmp_path / "b.npz")
    for flag, *values in (
        ("--alpha", "1", "2"), ("--beta", "1", "2"), ("--epochs", "5", "6"),
        ("--learning-rate", "0.1", "0.2"), ("--prior", "labels", "uniform"), ("--seed", "1", "2"),
        ("--features", a, b), ("--probabilities", a, b),
    ):  # fmt: skip
        one, other = (deciding(parse(["set.csv", "--out", "x", flag, value])) for value in values)
        assert [name for name in one if one[name] != other[name]] == [flag.removeprefix("--")]


def test_a_corrected_set_is_written_once_and_found_again(relabel, own_set, tmp_path, monkeypatch):
    # A disk for data of all kinds.
    monkeypatch.setattr(download, "_dataset_root", str(own_set.parent))
    apply = ("--apply", tmp_path / "sets" / "fixed", "--despite-doubt")
    relabel(*apply)
    images = tmp_path / "sets" / "fixed" / "images"
    links = {path.name: os.readlink(path) for path in images.iterdir()}
    assert len(links) == 60 and not any(map(os.path.isabs, links.values()))
    assert all((images / name).read_bytes() for name in links)
    before = files_below(tmp_path / "sets")
    assert f"with the same labels: {apply[1]}" in relabel(*apply)
    assert files_below(tmp_path / "sets") == before
    shutil.rmtree(images)  # a synchronisation that stopped half way
    assert "1 of the set's 61 files are there; remove them, and" in relabel(*apply, code=2)
    # What a kill leaves in a mounted folder.
    images.parent.rename(tmp_path / "set")
    images.parent.mkdir()
    (tmp_path / "set").rename(images.parent / ".chainer_jo-0123")
    monkeypatch.setattr(os.path, "ismount", lambda path: path == tmp_path / "sets/fixed")
    relabel(*apply)
    assert files_below(tmp_path / "sets").keys() == before.keys()
    path = read(tmp_path / "out" / "labels.csv")[2]["path"]
    write(tmp_path / "reviewed.csv", [("path", "label"), (path, "é")])
    words = relabel(*apply, "--accept", tmp_path / "reviewed.csv", code=2)
    assert "has the set with other labels" in words
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    assert "exists, expected a new or" in relabel("--apply", tmp_path / "other", code=2)


def test_no_set_is_written_while_its_labels_are_in_doubt(own_set, tmp_path, capsys):
    paths = [row["path"] for row in read(own_set / "labels.csv")]
    noise = np.random.default_rng(0).normal(size=(60, 4))
    np.savez(tmp_path / "noise.npz", features=noise, paths=paths)
    words = ["relabel", own_set / "labels.csv", "--features", tmp_path / "noise.npz", *BY_FEATURES]
    words += ["--out", tmp_path / "out", "--apply", tmp_path / "set"]
    assert run(*words) == 2
    out, error = capsys.readouterr()
    assert "may be no better" in out and error.splitlines()[-1].startswith("error: --apply")
    assert "--despite-doubt" in error and not (tmp_path / "set").exists()
    assert (tmp_path / "out" / "labels.csv").exists()
    reviewed = "--accept", tmp_path / "reviewed.csv", "--min-probability", "1"
    write(tmp_path / "reviewed.csv", [("path", "label"), (paths[2], "é")])
    assert run(*words, *reviewed, "--drop-unsure") == 2 and "--despite-doubt" in one_line(capsys)
    assert run(*words, *reviewed) == 0
    labels = {row["path"]: row["label"] for row in read(tmp_path / "set" / "labels.csv")}
    assert labels == {row["path"]: row["label"] for row in read(own_set / "labels.csv")} | {
        paths[2]: "é"
    }
    words[-1] = tmp_path / "other"
    assert run(*words, "--despite-doubt") == 0 and (tmp_path / "other" / "labels.csv").exists()


def test_images_with_unsure_labels_are_left_out(relabel, tmp_path):
    flags = "--min-probability", "1", "--apply", tmp_path / "set", "--despite-doubt"
    relabel(*flags, "--drop-unsure")
    rows = read(tmp_path / "out" / "labels.csv")
    unsure = {row["path"] for row in rows if row["wrong"] == "yes" and row["changed"] == "no"}
    assert unsure
    kept = {row["path"] for row in read(tmp_path / "set" / "labels.csv")}
    assert kept == {row["path"] for row in rows} - unsure
    assert not any((tmp_path / "set" / path).exists() for path in unsure)
    # One of them is judged right, and no longer unsure.
    judged = next((row["path"], row["given"]) for row in rows if row["path"] in unsure)
    write(tmp_path / "reviewed.csv", [("path", "label"), judged])
    accept = "--accept", tmp_path / "reviewed.csv"
    assert "the set with other labels" in relabel(*flags, "--drop-unsure", *accept, code=2)


@pytest.mark.parametrize("name, text", [
    ("data.json", '{"my": "own"}'), ("data.json", "[1]"), ("data.json", "null"),
    ("data.json", '{"train": "photos/train.csv"}'), (MADE, '{"accuracy": 0.93}'),
    (MADE, "[1]"), (MADE, '{"flags": "mine", "labels": ["x"]}'), ("model.npz", "x"),
    ("report.html", "x"), ("labels.csv", "x"),
])  # fmt: skip
def test_files_of_these_names_that_are_somebodys_own_stay(relabel, tmp_path, name, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text(text)
    before = files_below(tmp_path / "out")
    assert f"has a {name} of its own" in relabel(code=2)
    assert files_below(tmp_path / "out") == before
    with pytest.raises(UserError, match=f"{name} is a file, expected a folder"):
        ResultsFolder(tmp_path / "out" / name / "new", {}, {})


def test_a_disk_that_is_full_twice_leaves_labels_that_are_taken_for_ours(tmp_path, monkeypatch):
    def folder():
        return ResultsFolder(tmp_path, {"train": 16 * "0"}, {})

    folder().bind(None)
    folder().write_labels("one", {})
    save = files.write

    def full(path, content):
        if path.name == "labels.csv":
            raise UserError("no room")
        save(path, content)

    monkeypatch.setattr(files, "write", full)
    for text in ("two", "three"):
        with pytest.raises(UserError, match="no room"):
            folder().write_labels(text, {})
    monkeypatch.undo()
    folder().write_labels("four", {})


def test_a_set_that_was_written_before_that_was_kept_is_found(relabel, tmp_path, monkeypatch):
    write_set = corrected_set.write

    def killed(*arguments):
        write_set(*arguments)
        raise UserError("stopped")

    monkeypatch.setattr(corrected_set, "write", killed)
    apply = ("--apply", tmp_path / "fixed", "--despite-doubt")
    relabel(*apply, code=2)
    monkeypatch.undo()
    relabel(*apply)


def test_images_of_a_tar_are_copied_into_the_corrected_set(own_set, tmp_path):
    """They are unpacked into a cache, which may be emptied."""
    paths = [f"{name}/{i}.png" for name in "ab" for i in range(6)]
    images = sorted((own_set / "images").iterdir())
    with tarfile.open(tmp_path / "pets.tar", "w") as tar:
        for path, image in zip(paths, images, strict=False):
            tar.add(image, path)
    np.savez(tmp_path / "f.npz", features=np.eye(len(paths)), paths=paths)
    words = ("--features", tmp_path / "f.npz", "--out", tmp_path / "out", *BY_FEATURES)
    apply = ("--apply", tmp_path / "new", "--despite-doubt")
    assert run("relabel", tmp_path / "pets.tar", *words, *apply) == 0
    written = list((tmp_path / "new").rglob("*.png"))
    assert len(written) == len(paths) and not any(path.is_symlink() for path in written)
