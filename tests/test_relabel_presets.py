"""How runs on people's own images are sized."""

from dataclasses import replace

import numpy as np
import pytest

from chainer_jo.data.labelled_data import Labelled, LabelledData
from chainer_jo.errors import UserError
from chainer_jo.paper import settings as paper
from chainer_jo.relabel.judge.settings import batch_size, small_images
from chainer_jo.runs.experiment import Experiment
from chainer_jo.runs.presets import DIGITS, HALF, PAPER, REAL, Study
from chainer_jo.runs.run import make_task


def steps(study, left_out):
    """First and second step, and the second on the labels as given."""
    study = replace(study, left_out=left_out)
    second = study.joint(*REAL, 0)
    return second.first_step, second, study.baseline("cross_entropy", *REAL, 0)


@pytest.mark.parametrize(
    "preset, side, number", [(PAPER, 32, 45_000), (HALF, 32, 10_000), (DIGITS, 8, 1348)]
)
def test_networks_are_those_of_the_presets(preset, side, number):
    assert small_images(side, number).network == preset.network


def test_schedules_keep_the_papers_proportions():
    study = Study(small_images(8, 1348), "own")
    digits = Study(DIGITS, "own")
    second = study.joint(*REAL, 0)
    first = second.first_step
    expected = digits.first_step("symmetric", 0.5, 0)
    assert (first.optimization, first.relabelling) == (expected.optimization, expected.relabelling)
    assert second.optimization == digits.joint("symmetric", 0.5, 0).optimization
    assert steps(study, 0)[2].optimization == second.optimization
    preset = small_images(32, 45_000, epochs=paper.CIFAR_FIRST_STEP.epochs, flip=True)
    first = Study(preset, "own").first_step(*REAL, 0)
    expected = Study(PAPER, "own").first_step("symmetric", 0.5, 0)
    assert (first.optimization, first.relabelling) == (expected.optimization, expected.relabelling)


@pytest.mark.parametrize("epochs", [1, 2, 7])
def test_few_epochs_are_enough_for_every_length(epochs):
    study = Study(small_images(8, 100, epochs), "own")
    for experiment in steps(study, 0):
        assert experiment.optimization.epochs >= 1
        if experiment.relabelling:
            assert 1 <= experiment.relabelling.start <= experiment.relabelling.stop


def test_batches():
    assert batch_size(45_000, 128, 20) == 128 and batch_size(1617, 128, 20) == 64
    assert batch_size(300, 128, 20) == 16 and batch_size(5, 128, 20) == 5


def test_a_part_is_left_out_of_training_and_classified_instead():
    labels = np.int32([0, 1, 2, 0, 1, 0])
    pixels = np.arange(6, dtype=np.uint8).repeat(8 * 8 * 3).reshape(6, 8, 8, 3)
    images = Labelled(pixels, labels, np.full(6, -1, np.int32))
    parts = np.int8([0, 0, 1, 1, 2, 2])
    data = LabelledData("own", ("a", "b", "c"), images, images.take(np.arange(0)), None, parts)
    study = Study(small_images(8, 4), "own")
    task = make_task(steps(study, 1)[2], data)
    np.testing.assert_array_equal(task.train.labels, labels[parts != 1])
    np.testing.assert_array_equal(task.evaluation_sets["validation"].labels, labels[parts == 1])
    # The only image of the third class is left out: it keeps a prior.
    np.testing.assert_allclose(task.prior, [0.4, 0.4, 0.2])
    assert len({e.id for part in range(3) for e in steps(study, part)[:2]}) == 6
    assert make_task(steps(study, 0)[2], data).fingerprint != task.fingerprint


def test_a_uniform_prior_is_asked_for_by_name():
    study = Study(small_images(8, 30), "own")
    labels = np.repeat(np.int32([0, 1]), (24, 6))
    images = Labelled(np.zeros((30, 8, 8, 3), np.uint8), labels, np.full(30, -1, np.int32))
    parts = np.int8(np.arange(30) % 3)
    data = LabelledData("own", ("a", "b"), images, images.take(np.arange(0)), None, parts)
    np.testing.assert_allclose(make_task(steps(study, 0)[2], data).prior, (0.8, 0.2))
    uniform = replace(study, prior="uniform")
    task = make_task(steps(uniform, 0)[2], data)
    np.testing.assert_allclose(task.prior, (0.5, 0.5))
    assert set(task.evaluation_sets) == {"validation"}
    assert "prior" not in steps(study, 0)[2].to_dict()  # ids of finished runs stay what they were
    assert Experiment.from_dict(steps(uniform, 0)[2].to_dict()) == steps(uniform, 0)[2]
    with pytest.raises(UserError, match="prior 'flat'"):
        steps(replace(study, prior="flat"), 0)
