"""The kernels of one captured step of the paper's network, and what a few steps come to.

Run with tests/gpu_standin on the path; prints JSON.
"""

import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import chainer_jo  # noqa: E402, F401, I001  (before chainer)
import chainer  # noqa: E402
import numpy as np  # noqa: E402

from chainer_jo.functions.providers.cudnn import load  # noqa: E402
from chainer_jo.links import (  # noqa: E402
    CNNCRF,
    Classifier,
    ForwardCorrection,
    JointObjective,
    PreActResNet,
)
from chainer_jo.training.images import NetworkInput  # noqa: E402
from chainer_jo.training.iterator import BatchIterator  # noqa: E402
from chainer_jo.training.labels import LabelStore  # noqa: E402
from chainer_jo.training.optimizers import FlatMomentumSGD  # noqa: E402
from chainer_jo.training.updaters import JointUpdater  # noqa: E402

STEPS = 6
PRIOR = np.full(10, 0.1)
OBJECTIVES = {
    "joint": lambda: JointObjective(PRIOR, 1.2, 0.8),
    "cross_entropy": lambda: JointObjective(PRIOR),
    "forward": lambda: ForwardCorrection(np.eye(10) * 0.5 + 0.05),
    "cnn_crf": lambda: CNNCRF(np.eye(10) * 0.5 + 0.05, PRIOR, 1000),
}


def train(precision: str, objective: str, graph: bool) -> list[np.ndarray]:
    """Parameters, running averages and probabilities after STEPS steps on tiny images."""
    device = chainer.get_device("@cupy:0")
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(40, 8, 8, 3), dtype=np.uint8)
    labels = rng.integers(10, size=40).astype(np.int32)
    link = OBJECTIVES[objective]()
    network = PreActResNet(3, 10 * link.heads, (5, 5, 5), (4, 8, 8), np.random.RandomState(0))
    model = Classifier(network, link)
    model.to_device(device)
    store = LabelStore(labels, 10, "soft", xp=device.xp)
    updater = JointUpdater(
        BatchIterator(40, 4, 0, 1, 2, True, device.send),
        FlatMomentumSGD(0.01, 0.9, 1e-4).setup(model),
        NetworkInput(device.send(images), device.send(np.zeros((8, 8, 3), np.float32)), 2),
        store,
        device.send(labels),
        device.send(labels),
        device,
        graph,
    )
    with chainer.using_config("jo_provider", load(precision)), chainer.Reporter():
        for _ in range(STEPS):
            updater.update()
    arrays = [updater.get_optimizer("main").parameters, store.probabilities]
    for child in network.links():
        if hasattr(child, "avg_mean"):
            arrays += [child.avg_mean, child.avg_var]
    return [device.xp.asnumpy(a) for a in arrays]


def main(precision: str, objective: str) -> None:
    import cupy

    called = train(precision, objective, graph=False)
    replayed = train(precision, objective, graph=True)
    (captured,) = cupy.cuda.graphs
    print(json.dumps({
        "kernels": len(captured.kernels),
        "of": Counter(name.split(" ")[0] for name in captured.kernels).most_common(),
        "finite": all(bool(np.isfinite(a).all()) for a in called),
        "same": all(np.array_equal(a, b) for a, b in zip(called, replayed, strict=True)),
    }))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
