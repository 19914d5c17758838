"""Three small training steps on a GPU, for compute-sanitizer: see test_gpu.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import chainer_jo  # noqa: E402, F401, I001  (before chainer)
import chainer  # noqa: E402
import numpy as np  # noqa: E402

from chainer_jo.engine.cuda.cudnn import load  # noqa: E402
from chainer_jo.method.objectives import Classifier, JointObjective  # noqa: E402
from chainer_jo.method.preact_resnet import PreActResNet  # noqa: E402
from chainer_jo.method.images import NetworkInput  # noqa: E402
from chainer_jo.method.iterator import BatchIterator  # noqa: E402
from chainer_jo.method.soft_labels import SoftLabels  # noqa: E402
from chainer_jo.method.optimizers import FlatMomentumSGD  # noqa: E402
from chainer_jo.method.updater import JointUpdater  # noqa: E402


def main() -> None:
    device = chainer.get_device("@cupy:0")
    rng = np.random.default_rng(0)
    images = device.send(rng.integers(256, size=(40, 8, 8, 3), dtype=np.uint8))
    labels = rng.integers(10, size=40).astype(np.int32)
    network = PreActResNet(3, 10, (1, 1), (16, 32), np.random.RandomState(0))
    model = Classifier(network, JointObjective(np.full(10, 0.1), 1.2, 0.8))
    model.to_device(device)
    updater = JointUpdater(
        BatchIterator(40, 16, 0, 1, 2, True, device.send),
        FlatMomentumSGD(0.1, 0.9, 1e-4).setup(model),
        NetworkInput(images, device.send(np.zeros((8, 8, 3), np.float32)), 2),
        SoftLabels(labels, 10, "soft", xp=device.xp),
        device.send(labels),
        device.send(labels),
    )
    with chainer.using_config("jo_backend", load("mixed")), chainer.Reporter():
        for _ in range(3):
            updater.update()
    assert bool(device.xp.isfinite(updater.get_optimizer("main").parameters).all())


if __name__ == "__main__":
    main()
