"""`chainer-jo relabel` again in one folder: stopped, on other data, twice at once."""

import errno
import itertools
import json
import os
import shutil
from pathlib import Path

import pytest
from own_images import SHORT, make, one_line, read, relabel
from own_images import by_features as features_of

from chainer_jo.errors import UserError
from chainer_jo.relabel.estimate import training
from chainer_jo.relabel.write.results_folder import LABELS, MADE, ResultsFolder

pytestmark = pytest.mark.usefixtures("own_set")


@pytest.mark.parametrize("name", ["data.json", "results.json"])
def test_a_record_that_is_nested_too_deep_is_one_line(name, own_set, corrected, tmp_path, capsys):
    out = shutil.copytree(corrected, tmp_path / "out")
    (out / name).write_text("[" * 50_000)
    assert relabel(own_set, out, *SHORT) == 2
    line = one_line(capsys)
    assert f"{name}: not readable as JSON (" in line and "restore or remove it" in line


def test_another_command_on_the_same_folder_with_other_labels(
    own_set, tmp_path, capsys, monkeypatch
):
    """Begun while this one trains, when nothing is there yet that tells whose folder it is."""
    out, other = tmp_path / "out", make(tmp_path / "other", wrong=6)
    usual = training.estimate_errors

    def meanwhile(*arguments, **shown):
        monkeypatch.setattr(training, "estimate_errors", usual)
        assert relabel(other, out, *features_of(other)) == 0
        capsys.readouterr()
        return usual(*arguments, **shown)

    monkeypatch.setattr(training, "estimate_errors", meanwhile)
    assert relabel(own_set, out, *features_of(own_set)) == 2
    said = "data.json: another command has begun here with other images or labels"
    assert said in one_line(capsys)
    given = [row["given"] for row in read(out / "labels.csv")]
    assert given == [row["label"] for row in read(other / "labels.csv")]


def test_interrupted_by_features_it_begins_again(own_set, tmp_path, capsys, monkeypatch):
    def interrupted(*_, **shown):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "estimate_errors", interrupted)
    assert relabel(own_set, tmp_path / "out", *features_of(own_set)) == 130
    hint = "the same command starts again from the beginning"
    assert capsys.readouterr().err.strip() == f"interrupted; {hint}"


def test_other_data_in_the_same_folder_are_refused(by_features, own_set, tmp_path, capsys):
    other = make(tmp_path / "other", wrong=6)
    for flags in ([], ["--dry-run"]):
        assert relabel(other, by_features, *features_of(other), *flags) == 2
        line = one_line(capsys)
        assert line.startswith(f"error: {by_features}/data.json: the results there are of")
    moved = shutil.copytree(own_set, tmp_path / "moved")
    assert relabel(moved, by_features, *features_of(moved)) == 0


def test_a_full_disk_at_the_end_costs_nothing(own_set, tmp_path, monkeypatch, capsys):
    """Whichever file is one too many: one line, what is there is whole, and the rest follows."""
    command = (own_set, out := tmp_path / "out", *features_of(own_set))
    assert relabel(*command) == 0
    complete = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    names = ("labels.csv", "soft_labels.npz", "model.npz", "report.html")
    replace = os.replace

    for full in names:
        for name in names:
            (out / name).unlink()

        def fails(source, target, full=full):
            if Path(target).name == full:
                raise OSError(errno.ENOSPC, "No space left on device")
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", fails)
            assert relabel(*command) == 2
            line = one_line(capsys)
            assert full in line and "No space left on device" in line
            patch.setattr(os, "replace", replace)
            there = {p.name for p in out.iterdir() if p.is_file()}
            before = itertools.takewhile(lambda name, full=full: name != full, names)
            assert there == {"data.json", "results.json", *before}
            assert relabel(*command) == 0
        for name in ("labels.csv", "report.html"):
            assert (out / name).read_bytes() == complete[name]


DATA = {"train": "0123456789abcdef"}


def begun(path, seed=0):
    folder = ResultsFolder(path, DATA, {"seed": seed})
    folder.bind(None)
    return folder


def test_two_commands_with_other_flags_do_not_mix_their_results(tmp_path):
    first, second = begun(tmp_path, 0), begun(tmp_path, 1)
    first.write_labels("first", {})
    with pytest.raises(UserError, match="were made with --seed 0, now it is 1"):
        second.write_labels("second", {})
    assert (tmp_path / LABELS).read_text() == "first"


def test_results_of_a_flag_that_is_gone_are_not_overwritten(tmp_path):
    """Earlier versions could train on images."""
    begun(tmp_path).write_labels("first", {})
    made = json.loads((tmp_path / MADE).read_text())
    made["flags"]["from-scratch"] = True
    (tmp_path / MADE).write_text(json.dumps(made))
    with pytest.raises(UserError, match="made with --from-scratch True, now it is left out"):
        begun(tmp_path)


def test_labels_that_are_edited_while_a_command_computes_are_kept(tmp_path):
    begun(tmp_path).write_labels("first", {})
    again = begun(tmp_path)
    (tmp_path / LABELS).write_text("edited")
    with pytest.raises(UserError, match="was changed since it was written"):
        again.write_labels("first", {})
    assert (tmp_path / LABELS).read_text() == "edited"


def test_the_same_command_twice_at_once_ends_twice(tmp_path):
    both = begun(tmp_path), begun(tmp_path)
    for folder in both:
        folder.write_labels("the same", {})
    assert (tmp_path / LABELS).read_text() == "the same"
