"""Three small training steps on a GPU, for compute-sanitizer: see test_gpu.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import chainer_jo  # noqa: E402, F401, I001  (before chainer)
import chainer  # noqa: E402
from test_gpu_runs import updater  # noqa: E402

from chainer_jo.engine.cuda.cudnn import load  # noqa: E402


def main() -> None:
    steps = updater(0, graph=False)
    with chainer.using_config("jo_backend", load("mixed")), chainer.Reporter():
        for _ in range(3):
            steps.update()
    assert bool(chainer.backends.cuda.cupy.isfinite(steps.get_optimizer("main").parameters).all())


if __name__ == "__main__":
    main()
