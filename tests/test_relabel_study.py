"""How runs on people's own images are sized, and how settings are chosen among."""

from dataclasses import replace

import numpy as np
import pytest

from chainer_jo.datasets.labelled_data import Labelled, LabelledData
from chainer_jo.errors import UserError
from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import DIGITS, HALF, PAPER, Study
from chainer_jo.experiments.task import Task
from chainer_jo.paper import settings as paper
from chainer_jo.relabel.study import batch_size, small_images
from chainer_jo.relabel.tuning import surely_best


@pytest.mark.parametrize(
    "preset, side, number",
    [(PAPER, 32, 45_000), (HALF, 32, 10_000), (DIGITS, 8, 1348)],
)
def test_networks_are_those_of_the_presets(preset, side, number):
    assert small_images("own", side, number).network == preset.network


def test_schedules_keep_the_papers_proportions():
    study = small_images("own", 8, 1348)
    digits = Study(DIGITS, "own")
    first, expected = study.first_step(study.candidates[0]), digits.first_step("symmetric", 0.5, 0)
    assert (first.optimization, first.relabelling) == (expected.optimization, expected.relabelling)
    second = digits.joint("symmetric", 0.5, 0)
    assert study.second_step(first).optimization == second.optimization
    assert study.baseline().optimization == second.optimization
    whole = small_images("own", 32, 45_000, epochs=paper.CIFAR_FIRST_STEP.epochs, flip=True)
    first = whole.first_step(whole.candidates[0])
    expected = Study(PAPER, "own").first_step("symmetric", 0.5, 0)
    assert (first.optimization, first.relabelling) == (expected.optimization, expected.relabelling)


@pytest.mark.parametrize("epochs", [1, 2, 7])
def test_few_epochs_are_enough_for_every_length(epochs):
    study = small_images("own", 8, 100, epochs)
    for experiment in (*study.tuning(), study.baseline()):
        assert experiment.optimization.epochs >= 1
        if experiment.relabelling:
            assert 1 <= experiment.relabelling.start <= experiment.relabelling.stop


def test_batches():
    assert batch_size(45_000, 128) == 128 and batch_size(1617, 128) == 64
    assert batch_size(300, 128) == 16 and batch_size(5, 128) == 5


def test_a_choice_is_left_only_for_what_is_surely_better():
    assert surely_best([0.60, 0.66, 0.55], 180) == 0
    assert surely_best([0.60, 0.66, 0.55], 18_000) == 1
    assert surely_best([None, 0.2, 0.3], 10) == 2
    assert surely_best([0.1, None], 10) == 0
    assert surely_best([0.0, 1.0], 1) == 0  # one image says nothing
    assert surely_best([0.1, 0.9, None], 100) == 1


def test_a_uniform_prior_is_asked_for_by_name():
    study = small_images("own", 8, 30)
    labels = np.repeat(np.int32([0, 1]), (24, 6))
    images = Labelled(np.zeros((30, 8, 8, 3), np.uint8), labels, np.full(30, -1, np.int32))
    data = LabelledData("own", ("a", "b"), images, images, None)
    np.testing.assert_allclose(Task(study.baseline(), data).prior, (0.8, 0.2))
    uniform = replace(study, prior="uniform")
    task = Task(uniform.baseline(), data)
    np.testing.assert_allclose(task.prior, (0.5, 0.5))
    assert set(task.evaluation_sets) == {"validation"}
    assert "prior" not in study.baseline().to_dict()  # ids of finished runs stay what they were
    assert Experiment.from_dict(uniform.baseline().to_dict()) == uniform.baseline()
    with pytest.raises(UserError, match="prior 'flat'"):
        replace(study, prior="flat").baseline()
