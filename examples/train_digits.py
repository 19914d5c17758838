"""The method as a plain Chainer program: digits of which half get a label drawn at random.

Here the second step, too, keeps its learning rate; the paper's begins at 0.2, divided by 10 twice.
"""

import chainer_jo  # noqa: F401  (first: it mends what Chainer lacks)

# isort: split
import numpy as np
from chainer import training
from chainer.training.extensions import LogReport, PrintReport

from chainer_jo.data import digits
from chainer_jo.engine.backend import choose_backend, use_backend
from chainer_jo.method import augmentation, extensions, noise
from chainer_jo.method.images import NetworkInput
from chainer_jo.method.iterator import BatchIterator
from chainer_jo.method.objectives import Classifier, JointObjective
from chainer_jo.method.optimizers import FlatMomentumSGD
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.soft_labels import LabelStore
from chainer_jo.method.updater import JointUpdater

use_backend(choose_backend("cpu"))  # oneDNN where it is installed, else Chainer's functions
data = digits.load()
true, classes = data.true_labels, data.num_classes
noisy = noise.symmetric(true, 0.5, classes, np.random.default_rng(0))
mean = augmentation.mean_image(data.train_images)
train, test = NetworkInput(data.train_images, mean, pad=1), NetworkInput(data.test_images, mean)


def trainer_of(labels, epochs, rate, number=1, alpha=0.0, beta=0.0, update_from=None, out="."):
    """Trains a new network; from an epoch on, if one is given, it updates the labels as well."""
    objective = JointObjective(np.full(classes, 1 / classes), alpha, beta)
    model = Classifier(PreActResNet(1, classes, (1, 1), (16, 48)), objective)
    optimizer = FlatMomentumSGD(rate, weight_decay=1e-4).setup(model)
    batches = BatchIterator(len(true), 64, seed=0, step=number, pad=1, flip=False)
    updater = JointUpdater(batches, optimizer, train, labels, noisy, true)
    trainer = training.Trainer(updater, (epochs, "epoch"), f"{out}/result{number}")
    trainer.extend(extensions.Evaluation(model, {"test": (test, data.test_labels)}))
    if update_from:
        trainer.extend(extensions.LabelUpdate(update_from, epochs, true))
    trainer.extend(LogReport())
    return trainer


if __name__ == "__main__":
    columns = ["epoch", "loss", "accuracy/noisy", "test", "recovery"]
    labels = LabelStore(noisy, classes, "soft", average=5)
    first = trainer_of(labels, epochs=70, rate=0.04, alpha=1.2, beta=0.8, update_from=25)
    first.extend(PrintReport(columns))
    first.run()
    second = trainer_of(LabelStore(labels.soft_labels, classes), epochs=42, rate=0.02, number=2)
    second.extend(PrintReport(columns))
    second.run()
