"""The paper's two steps on images with noisy labels, in folders named by class or in a table. A
GPU is advisable; a stopped run resumes. `chainer-jo relabel` is better for fewer images."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from chainer_jo.command_line import Parser, start
from chainer_jo.data.decoding import decode
from chainer_jo.data.labelled_data import UNKNOWN, Labelled, LabelledData
from chainer_jo.method.noisy_split import split
from chainer_jo.relabel.read.label_table import write
from chainer_jo.relabel.read.labelled_images import read_sets
from chainer_jo.reproduction.experiments.presets import PAPER, Study
from chainer_jo.reproduction.paper.settings import hyper_parameters
from chainer_jo.reproduction.running.run import Settings
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.running.worker import execute

PARAMETERS = hyper_parameters("symmetric", 0.5)  # alpha, beta, learning rate: noise is unknown
parser = Parser(description=__doc__)
parser.add_argument("data", metavar="DATA", help="folder, or CSV with columns path and label")
parser.add_argument("--out", required=True, type=Path, help="folder of labels.csv and of both runs")
parser.add_argument("--side", type=int, default=32, help="pixels of a side; default: 32")
parser.add_argument("--epochs", type=int, default=200, help="of the first step; default: 200")
parser.add_argument("--device", default="cuda", help="cuda (default), cuda:N or cpu")


def work(flags):
    """Trains both steps, and writes the corrected labels of the training images."""
    images, store = read_sets(flags.data).train, RunStore(flags.out)
    names, settings = np.array(images.class_names), Settings(flags.device)
    pixels = np.stack([decode(file, flags.side, flags.side) for file in images.files()])
    labelled = Labelled(pixels, images.given, np.full_like(images.given, UNKNOWN))
    rows, held_out = split(images.given, len(names), np.random.default_rng(0))
    sets = labelled.take(rows), labelled.take(held_out)  # both have noisy labels
    data = LabelledData("own", images.class_names, *sets, None)
    preset = replace(PAPER, time_scale=flags.epochs / 200, real_noise=PARAMETERS)
    second = Study(preset, "own").joint("real", 0.0, trial=0)
    for step in (second.first_step, second):
        state, _ = execute(step, store, data, settings, lambda run: print(run.log[-1], flush=True))
        print(step.id, state)
    corrected = names[store.soft_labels(second.first_step).argmax(axis=1)]
    with (flags.out / "labels.csv").open("w", newline="") as file:
        write(file, {"path": images.paths[rows], "label": corrected})


if __name__ == "__main__":
    start(parser.parse_args, work)
