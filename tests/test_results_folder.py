"""The results folder while a command computes: what others write there meanwhile is kept."""

import pytest

from chainer_jo.errors import UserError
from chainer_jo.relabel.write.results_folder import LABELS, ResultsFolder

DATA = {"train": "0123456789abcdef"}


def begun(path, seed=0):
    folder = ResultsFolder(path, DATA, {"seed": seed})
    folder.check()
    folder.bind(None)
    return folder


def test_two_commands_with_other_flags_do_not_mix_their_results(tmp_path):
    first, second = begun(tmp_path, 0), begun(tmp_path, 1)
    first.write_labels("first", {})
    with pytest.raises(UserError, match="were made with --seed 0, now it is 1"):
        second.write_labels("second", {})
    assert (tmp_path / LABELS).read_text() == "first"


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
