"""The paper's two steps on images with noisy labels, in folders named by class or in a table. A
GPU is advisable; a stopped run resumes. `chainer-jo relabel` is better for fewer images."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from chainer_jo import files
from chainer_jo.command_line import Parser, start
from chainer_jo.data.decoding import decode
from chainer_jo.data.labelled_data import UNKNOWN, Labelled, LabelledData
from chainer_jo.devices import resolve_device
from chainer_jo.errors import Limits, UserError
from chainer_jo.method.noisy_split import split
from chainer_jo.relabel.read.label_table import write
from chainer_jo.relabel.read.labelled_images import read_sets
from chainer_jo.reproduction.experiments.presets import PAPER, Study
from chainer_jo.reproduction.paper.settings import hyper_parameters
from chainer_jo.reproduction.running.run import Computation
from chainer_jo.reproduction.running.starting_labels import check_results
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.running.worker import execute

PARAMETERS = hyper_parameters("symmetric", 0.5)  # alpha, beta, learning rate: noise is unknown
count = Limits(int, 1)
parser = Parser(description=__doc__)
parser.add_argument("data", metavar="DATA", help="folder, or CSV with columns path and label")
parser.add_argument("--out", required=True, type=Path, help="new folder of labels.csv and the runs")
parser.add_argument("--side", type=count, default=32, help="pixels of a side; default: 32")
parser.add_argument("--epochs", type=count, default=200, help="of the first step; default: 200")
parser.add_argument("--device", default="auto", help="cpu, cuda or cuda:N; auto: cuda if available")


def work(flags):
    """Trains both steps, and writes the corrected labels of the training images."""
    computing, store = Computation(resolve_device(flags.device)), RunStore(flags.out)
    preset = replace(PAPER, time_scale=flags.epochs / 200, real_noise=PARAMETERS)
    second = Study(preset, "own").joint("real", 0.0, trial=0)
    steps = second.first_step, second
    if flags.out.exists() and any(flags.out.iterdir()) and not store.folder(steps[0]).exists():
        raise UserError(f"--out {flags.out}: not empty, expected a new folder")
    images = read_sets(flags.data).train
    names = np.array(images.class_names)
    pixels = np.stack([decode(file, flags.side, flags.side) for file in images.files()])
    labelled = Labelled(pixels, images.given, np.full_like(images.given, UNKNOWN))
    rows, held_out = split(images.given, len(names), np.random.default_rng(0))
    sets = labelled.take(rows), labelled.take(held_out)  # both have noisy labels
    data = LabelledData("own", images.class_names, *sets, None)
    check_results(steps, store, data)
    for step in steps:
        state, _ = execute(step, store, data, computing, lambda run: print(run.log[-1], flush=True))
        print(step.id, state)
        if state != "finished":
            raise UserError(f"--out {flags.out}: {step.id} is {state}, expected it finished")
    corrected, table = names[store.soft_labels(steps[0]).argmax(axis=1)], io.StringIO()
    write(table, {"path": images.paths[rows], "label": corrected})
    if not (path := flags.out / "labels.csv").exists():  # else it is of these runs, perhaps edited
        files.write_text(path, table.getvalue())


if __name__ == "__main__":
    start(parser.parse_args, work)
