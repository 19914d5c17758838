"""The method as a plain Chainer program: digits of which half get a label drawn at random.

Here the second step, too, keeps its learning rate; the paper's begins at 0.2, divided by 10 twice.
"""

import chainer_jo  # noqa: F401  (first: it mends what Chainer lacks)

# isort: split
import numpy as np
from chainer.training.extensions import LogReport, PrintReport

from chainer_jo.data import digits
from chainer_jo.engine.backend import choose_backend, use_backend
from chainer_jo.method import augmentation, extensions, noise
from chainer_jo.method.algorithm1 import Optimization, first_step, second_step
from chainer_jo.method.images import Images
from chainer_jo.method.objectives import Classifier, JointObjective
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.soft_labels import SoftLabels

use_backend(choose_backend("cpu"))  # oneDNN where it is installed, else Chainer's functions
data = digits.load()
true, classes = data.train.labels, data.num_classes
noisy = noise.symmetric(true, 0.5, classes, np.random.default_rng(0))
mean = augmentation.mean_image(data.train.images)
train, test = Images(data.train.images, mean, pad=1), Images(data.test.images, mean)
reported = {"noisy_labels": noisy, "true_labels": true}


def network(alpha=0.0, beta=0.0):
    """A new network with the loss L = L_c + alpha L_p + beta L_e."""
    objective = JointObjective(np.full(classes, 1 / classes), alpha, beta)
    return Classifier(PreActResNet(1, classes, (1, 1), (16, 48)), objective)


def sgd(epochs, rate):
    return Optimization(epochs, rate, batch_size=64, pad=1, flip=False)


def run(trainer, shown=True):
    """Trains, and prints the accuracies of each epoch."""
    evaluated = {"test": (test, data.test.labels)}
    trainer.extend(extensions.Evaluation(trainer.updater.model, evaluated))
    trainer.extend(LogReport())
    if shown:
        trainer.extend(PrintReport(["epoch", "loss", "accuracy/noisy", "test", "recovery"]))
    trainer.run()


if __name__ == "__main__":
    labels, first = SoftLabels(noisy, classes, "soft", average=5), sgd(epochs=70, rate=0.04)
    run(first_step(network(1.2, 0.8), train, labels, first, 25, 70, **reported, out="result1"))
    second = sgd(epochs=42, rate=0.02)
    run(second_step(network(), train, labels, second, **reported, out="result2"))
