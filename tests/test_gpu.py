"""On a GPU: the engine against float64 NumPy, graphs against calls. Skipped where there is none."""

import importlib
import json
import os
import shutil
import sys
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import chainer
import joint_step
import numpy as np
import pytest
import small_project
import workload
from fake_cudnn import conv, dgrad, wgrad
from float64_functions import batch_norm_relu_gradients
from processes import run
from tiny import STUDY

from chainer_jo.data import digits
from chainer_jo.engine.backend import EPS, Unavailable, choose_backend
from chainer_jo.engine.cuda import candidates, cudnn_library, kernels
from chainer_jo.engine.cuda.candidates import TOLERANCE
from chainer_jo.engine.cuda.cudnn import FUSIONS, load
from chainer_jo.engine.cuda.graph_step import GraphStep
from chainer_jo.method import augmentation, extensions
from chainer_jo.method.algorithm1 import Optimization, first_step
from chainer_jo.method.cnn_crf import CNNCRF
from chainer_jo.method.extensions import Paused
from chainer_jo.method.images import NetworkInput
from chainer_jo.method.iterator import Batch
from chainer_jo.method.objectives import Classifier, ForwardCorrection, JointObjective
from chainer_jo.method.optimizers import FlatMomentumSGD
from chainer_jo.method.preact_resnet import PreActResNet
from chainer_jo.method.soft_labels import LabelStore
from chainer_jo.runs.run import Run, Settings
from chainer_jo.runs.store import RunStore


def obstacle() -> str:
    """Why these tests cannot run here; empty if they can."""
    if not chainer.backends.cuda.available:
        return "needs a CUDA GPU and CuPy"
    try:
        cudnn_library.load("fp32")
    except Unavailable as error:
        return f"needs a CUDA GPU with cuDNN: {error}"
    return ""


OBSTACLE = obstacle()
if OBSTACLE and os.environ.get("CHAINER_JO_NEEDS_GPU"):  # where nothing else is asked for
    raise RuntimeError(OBSTACLE)
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(OBSTACLE), reason=OBSTACLE)]

cupy = chainer.backends.cuda.cupy
#: The paper's network on 16 images; float64 NumPy takes a second or two for each step on them. At
#: the eighth step a class has a mean probability of 3e-41, zero on a GPU.
IMAGES, STEPS = 16, 5
SHAPES = [
    ((2, 8, 7, 5), (16, 8, 3, 3), 1, 1),
    ((1, 1, 7, 5), (3, 1, 3, 3), 2, 1),
    ((2, 3, 32, 32), (32, 3, 3, 3), 1, 1),
    ((8, 32, 32, 32), (64, 32, 3, 3), 2, 1),
    ((8, 32, 32, 32), (64, 32, 1, 1), 2, 0),
    ((8, 128, 8, 8), (128, 128, 3, 3), 1, 1),
]


def host(array):
    return np.asarray(chainer.backend.CpuDevice().send(array), np.float64)


def assert_close(name, ours, reference, tolerance):
    """In norm, relative to the reference's; one that is all zeros is met exactly."""
    ours, reference = host(ours), host(reference)
    assert ours.shape == reference.shape, name
    off, norm = np.linalg.norm(ours - reference), np.linalg.norm(reference)
    worst = np.unravel_index(np.abs(ours - reference).argmax(), ours.shape)
    assert off <= tolerance * norm, (
        f"{name} {ours.shape}: off by {off:.3g} of {norm:.3g}, allowed {tolerance * norm:.3g}; "
        f"at {tuple(map(int, worst))} {ours[worst]:.6g} for {reference[worst]:.6g}; "
        f"{np.isfinite(ours).mean():.2%} finite"
    )


@pytest.fixture
def rng():
    """The same draws in every run: a failure on a machine on loan can be looked at afterwards."""
    return np.random.default_rng(0)


@pytest.fixture(params=[FUSIONS, ()], ids=["fused", "unfused"])
def fused(request):
    return request.param


@pytest.fixture(params=TOLERANCE)
def backend(request, fused):
    made = load(request.param)
    made.fused = frozenset(fused)
    return made


def activation(backend, rng, *shape):
    return backend.as_activation(cupy.asarray(rng.standard_normal(shape), np.float32))


@pytest.mark.parametrize(("x_shape", "W_shape", "stride", "pad"), SHAPES)
def test_convolution_and_gradients(backend, rng, x_shape, W_shape, stride, pad):
    tolerance = TOLERANCE[backend.precision]
    x = activation(backend, rng, *x_shape)
    W = cupy.asarray(rng.standard_normal(W_shape), np.float32)
    geometry = [pad] * 2, [stride] * 2
    y = conv(host(x), host(W), *geometry)
    residual, gy = (activation(backend, rng, *y.shape) for _ in range(2))
    accumulate = activation(backend, rng, *x_shape)
    gx = dgrad(host(gy), host(W), x_shape, *geometry)
    for name, there, expected in (("y", None, y), ("y + residual", residual, y + host(residual))):
        assert_close(name, backend.conv2d(x, W, stride, pad, there), expected, tolerance)
    for name, there, expected in (
        ("gx", None, gx),
        ("gx + there", accumulate, gx + host(accumulate)),
    ):
        ours = backend.conv2d_grad_input(gy, W, x_shape, stride, pad, there)
        assert_close(name, ours, expected, tolerance)
    raw = backend.conv2d_grad_weight(x, gy, W_shape, stride, pad)
    gW = backend.gradient_of(W, raw, None)
    assert_close("gW", gW, wgrad(host(x), host(gy), W_shape, *geometry), tolerance)
    assert gW.dtype == np.float32 and gW.flags.c_contiguous


@pytest.mark.parametrize(("x_shape", "W_shape", "stride", "pad"), SHAPES[2:])
def test_convolution_with_batch_norm_in_evaluation(backend, rng, x_shape, W_shape, stride, pad):
    tolerance = TOLERANCE[backend.precision]
    x = activation(backend, rng, *x_shape)
    W = cupy.asarray(rng.standard_normal(W_shape), np.float32)
    gamma, beta, mean = (cupy.asarray(rng.standard_normal(W_shape[0]), np.float32) for _ in "123")
    var = mean**2 + np.float32(20)
    ours = backend.conv2d_batch_norm_relu_test(x, W, gamma, beta, stride, pad, mean, var)
    gamma64, beta64, mean64, var64 = (host(v)[:, None, None] for v in (gamma, beta, mean, var))
    y = conv(host(x), host(W), [pad] * 2, [stride] * 2)
    expected = np.maximum(gamma64 * (y - mean64) / np.sqrt(var64 + EPS) + beta64, 0)
    assert_close("folded", ours, expected, tolerance)
    y = backend.conv2d(x, W, stride, pad, None)
    unfolded = backend.batch_norm_relu_test(y, gamma, beta, mean, var)
    assert_close("folded, unfolded", ours, unfolded, tolerance)


@pytest.mark.parametrize("shape", [(8, 32, 32, 32), (8, 128, 8, 8), (2, 3, 7, 5), (1, 1, 7, 5)])
def test_batch_norm_relu_and_gradients(backend, rng, shape):
    tolerance = TOLERANCE[backend.precision]
    x, gy, accumulate = (activation(backend, rng, *shape) for _ in range(3))
    gamma, beta = (cupy.asarray(rng.standard_normal(shape[1]), np.float32) for _ in range(2))
    y, mean, inverse, saved = backend.batch_norm_relu_train(x, gamma, beta)
    var = cupy.maximum(1 / inverse**2 - EPS, 0).astype(np.float32)
    gx, ggamma, gbeta = backend.batch_norm_relu_grad(x, y, gamma, gy, saved, accumulate)
    tested = backend.batch_norm_relu_test(x, gamma, beta, mean, var)

    y64, gx64, ggamma64, gbeta64 = batch_norm_relu_gradients(*map(host, (x, gamma, beta, gy)))
    expected = (
        ("y", y, y64), ("y in test mode", tested, y64),
        ("mean", mean, host(x).mean(axis=(0, 2, 3))), ("var", var, host(x).var(axis=(0, 2, 3))),
        ("gx", gx, gx64 + host(accumulate)),
        ("ggamma", ggamma, ggamma64), ("gbeta", gbeta, gbeta64),
    )  # fmt: skip
    for name, ours, reference in expected:
        assert_close(name, ours, reference, tolerance)


@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_an_own_kernel_is_compared_with_cudnn(monkeypatch, caplog, rng, factor):
    """Right or wrong, the result is right: a wrong kernel is rejected in one line."""

    def launch(arrays):
        x, W = arrays["x"][:, None], arrays["W"][None, :, :, 0, 0, None, None]
        arrays["y"][...] = (x * W).sum(axis=2) * np.float32(factor)

    def launch_for(precision, operation, *arguments):
        return launch if operation == "convolution" else None

    monkeypatch.setattr(candidates, "OWN", (candidates.Candidate("jo_test", launch_for),))
    backend, n = load("fp32"), 3 if factor == 1 else 5  # shapes of no other test
    x, W = activation(backend, rng, n, 8, 3, 5), cupy.asarray(rng.random((8, 8, 1, 1)), np.float32)
    for _ in range(2):
        y = backend.conv2d(x, W, 1, 0, None)
        assert_close("y", y, conv(host(x), host(W), [0, 0], [1, 1]), TOLERANCE["fp32"])
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == (factor != 1)
    assert all("jo_test" in line and "differs from cuDNN by 0.1" in line for line in lines)


def paper_model(dtype=np.float32):
    """The paper's network with betas that keep most activations away from where ReLU bends.

    At zero a rounding error decides whether a gradient passes: from the usual start, float32 and
    float64 differ by some 5e-3 in stock Chainer already, and nothing could be told from that.
    """
    network = PreActResNet(rng=np.random.RandomState(3))
    model = Classifier(network, JointObjective(np.full(10, 0.1), 1.2, 0.8))
    rng = np.random.default_rng(5)
    for name, param in sorted(model.namedparams()):
        if name.endswith("/beta"):
            param.array[...] = np.where(rng.random(param.size) < 0.75, 2.5, -2.5)
        param.array = param.array.astype(dtype)
    return model


def flat(model, attribute, factor=1.0):
    """An attribute of all parameters as one float64 vector."""
    params = [param for _, param in sorted(model.namedparams())]
    return np.concatenate([host(getattr(p, attribute)).ravel() for p in params]) * factor


def inputs(steps):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((steps, IMAGES, 3, 32, 32)).astype(np.float32)
    labels = rng.dirichlet(np.ones(10), (steps, IMAGES)).astype(np.float32)
    return x, labels


@pytest.fixture(scope="module")
def float64():
    """Logits and gradient of the first step, and parameters after STEPS, in float64 NumPy."""
    x, labels = (a.astype(np.float64) for a in inputs(STEPS))
    with chainer.using_config("jo_backend", None), chainer.using_config("dtype", np.float64):
        model = paper_model(np.float64)
        optimizer = chainer.optimizers.MomentumSGD(0.05, 0.9).setup(model)
        optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))
        logits = model.predictor(x[0]).array
        for step in range(STEPS):
            loss = model(x[step], labels[step])
            model.cleargrads()
            loss.backward()
            if step == 0:
                gradients = flat(model, "grad")
            optimizer.update()
    parameters = flat(model, "array")
    assert np.isfinite(loss.array) and np.isfinite(parameters).all()
    return logits, gradients, parameters


@pytest.mark.parametrize("precision", TOLERANCE)
def test_the_papers_network_and_its_first_updates(precision, float64):
    backend, tolerance = load(precision), TOLERANCE[precision]
    x, labels = map(cupy.asarray, inputs(STEPS))
    model = paper_model()
    model.to_device("@cupy:0")
    optimizer = FlatMomentumSGD(0.05, 0.9, 1e-4).setup(model)
    with chainer.using_config("jo_backend", backend):
        assert_close("logits", model.predictor(x[0]).array, float64[0], tolerance)
        for step in range(STEPS):
            optimizer.update(model, x[step], labels[step])
            if step == 0:
                gradients = flat(model, "grad", 1 / backend.loss_scale)
                assert_close("gradients", gradients, float64[1], tolerance)
    assert_close("parameters", flat(model, "array"), float64[2], tolerance)


def test_network_input_is_the_hosts(rng):
    images = rng.integers(256, size=(40, 32, 32, 3), dtype=np.uint8)
    mean = augmentation.mean_image(images)
    indices = rng.integers(40, size=128)
    draws = augmentation.draw(rng, 128, 4, True)
    expected = augmentation.apply(images[indices], mean, *draws, 4)
    batch = Batch(*map(cupy.asarray, (indices, *draws)))
    ours = kernels.network_input(*map(cupy.asarray, (images, mean)), batch, 4)
    assert np.array_equal(ours.get(), expected)
    plain = kernels.network_input(*map(cupy.asarray, (images, mean)))
    assert np.array_equal(plain.get(), augmentation.normalise(images, mean))


def test_the_kernels_of_labels_and_optimizer_are_the_hosts(rng):
    target, rows = rng.random((50, 10), np.float32), rng.random((64, 10), np.float32)
    indices = rng.integers(50, size=64)  # some of them twice
    ours = cupy.asarray(target)
    kernels.write_rows(ours, cupy.asarray(indices), cupy.asarray(rows))
    target[indices] = rows
    assert np.array_equal(ours.get(), target)

    arrays = [rng.standard_normal(int(n)).astype(np.float32) for n in rng.integers(1, 5000, 300)]
    flat = cupy.empty(sum(a.size for a in arrays), np.float32)
    kernels.gather([cupy.asarray(a) for a in arrays], flat, 1 / 1024)
    assert np.array_equal(flat.get(), np.concatenate(arrays) / np.float32(1024))

    for place in (0, flat.size - 1):
        assert kernels.all_finite(flat)
        flat[place] = np.inf
        assert not kernels.all_finite(flat)
        flat[place] = 0

    updated = []
    for xp in (np, cupy):
        optimizer = FlatMomentumSGD(0.1, 0.9, 1e-4)
        generator = np.random.default_rng(0)
        optimizer.parameters, optimizer.velocity, optimizer.gradients, optimizer._scratch = (
            xp.asarray(generator.standard_normal(5000), np.float32) for _ in range(4)
        )
        optimizer._device_lr, optimizer._sent_lr = xp.empty(1, np.float32), None
        optimizer.step()
        updated.append(chainer.backend.CpuDevice().send(optimizer.parameters))
    assert np.array_equal(*updated)


#: What `train` ends with.
TRAINED = "parameters", "velocity", "labels", "probabilities"
PRIOR, MATRIX = np.full(10, 0.1), np.eye(10) * 0.5 + 0.05
OBJECTIVES = {
    "joint": lambda: JointObjective(PRIOR, 1.2, 0.8),
    "cross entropy": lambda: JointObjective(PRIOR),
    "forward": lambda: ForwardCorrection(MATRIX),
    "cnn-crf": lambda: CNNCRF(MATRIX, PRIOR, 1000),
}


def train(folder, precision, graph, epochs=4, objective="joint"):
    """A small run with a label update and a drop of the learning rate: what it ends with."""
    objective = OBJECTIVES[objective]()
    rng = np.random.default_rng(1)
    images = rng.integers(256, size=(200, 16, 16, 3), dtype=np.uint8)
    send = chainer.get_device("@cupy:0").send
    noisy = rng.integers(10, size=200).astype(np.int32)
    classes = 10 * objective.heads
    network = PreActResNet(3, classes, (1, 1), (16, 32), np.random.RandomState(0))
    model = Classifier(network, objective)
    model.to_device("@cupy:0")
    store = LabelStore(noisy, 10, "soft", average=2, xp=cupy)
    mean = augmentation.mean_image(images)
    train_images = NetworkInput(send(images), send(mean), 2)
    sgd = Optimization(epochs, 0.05, drops=(2,), batch_size=64, pad=2)
    labels = {"noisy_labels": noisy, "true_labels": noisy}
    trainer = first_step(
        model, train_images, store, sgd, 2, epochs, seed=7, **labels, graph=graph, out=folder
    )
    updater, reports = trainer.updater, []
    trainer.extend(extensions.Evaluation(model, {"test": (train_images, noisy)}, graph))
    trainer.extend(
        lambda t: reports.append(dict(t.observation)), name="keep", trigger=(1, "epoch"), priority=0
    )
    with chainer.using_config("jo_backend", load(precision)):
        trainer.run()
    assert bool(updater.replays) == graph
    updater_state = updater.get_optimizer("main")
    arrays = (
        updater_state.parameters,
        updater_state.velocity,
        store.soft_labels,
        store.probabilities,
    )
    return [a.get() for a in arrays], reports


@pytest.mark.parametrize(
    ("objective", "precision", "times"),
    [
        *(("joint", precision, 2) for precision in TOLERANCE),
        *((objective, "mixed", 1) for objective in OBJECTIVES if objective != "joint"),
    ],
)
def test_calls_and_replays_agree_bit_for_bit(tmp_path, objective, precision, times):
    """Every objective of the tables is captured whole; replayed again it gives the same again."""
    epochs = 4 if times > 1 else 2
    called, reports = train(tmp_path / "called", precision, False, epochs, objective)
    assert all(np.isfinite(array).all() for array in called)
    for name in ("replayed", "again")[:times]:
        replayed, same_reports = train(tmp_path / name, precision, True, epochs, objective)
        for what, ours, theirs in zip(TRAINED, replayed, called, strict=True):
            assert np.array_equal(ours, theirs), f"{name}: {what} off by {abs(ours - theirs).max()}"
        assert reports == same_reports


def test_memory_stays_flat_over_many_replays(tmp_path):
    train(tmp_path / "warm", "mixed", True, epochs=2)
    cupy.get_default_memory_pool().free_all_blocks()
    free = cupy.cuda.runtime.memGetInfo()[0]
    for turn in range(5):
        train(tmp_path / str(turn), "mixed", True, epochs=2)
    cupy.get_default_memory_pool().free_all_blocks()
    assert free - cupy.cuda.runtime.memGetInfo()[0] < 16 << 20


def trained(root, *settings):
    """The log of a small run that pauses after each epoch, with these settings in turn."""
    store, experiment, pauses = RunStore(root), STUDY.first_step("symmetric", 0.5, 0), 0
    while True:
        now = replace(settings[pauses % len(settings)], deadline=0.0)
        with store.lock(experiment), suppress(Paused):
            Run(experiment, digits.load(), store, now).finish()
            return store.log(experiment)
        pauses += 1


def test_a_run_may_change_its_device_after_any_epoch(tmp_path):
    """But for rounding nothing changes: 4e-7 of the losses, where the velocity of other elements
    made 3e-3 of it."""
    on_gpu, called, on_cpu = (
        Settings("cuda"), Settings("cuda", graph=False), Settings("cpu", engine="stock")
    )  # fmt: skip
    logs = [
        [{k: v for k, v in entry.items() if k != "elapsed_time"} for entry in log]
        for log in (
            trained(tmp_path / "gpu", on_gpu),
            trained(tmp_path / "called", called),
            trained(tmp_path / "both", on_gpu, on_cpu),
        )
    ]
    whole, same, mixed = logs
    assert whole == same
    for expected, entry in zip(whole, mixed, strict=True):
        assert entry["loss"] == pytest.approx(expected["loss"], rel=1e-5), entry["epoch"]
        for name in ("validation", "test"):  # of the running averages
            assert entry[name] == pytest.approx(expected[name], abs=0.02), entry["epoch"]


def wheel(folder, name, version, module):
    """A wheel of an installed module or package."""
    source, info = Path(importlib.import_module(module).__file__), f"{name}-{version}.dist-info"
    package = source.name == "__init__.py"
    files = source.parent.rglob("*") if package else [source]
    root = source.parent.parent if package else source.parent
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for file in files:
            if file.is_file() and file.suffix != ".pyc":
                archive.write(file, file.relative_to(root))
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\n"
                         f"Version: {version}\n")  # fmt: skip
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
                         "Root-Is-Purelib: true\nTag: py3-none-any\n")  # fmt: skip
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def loan(tmp_path):
    """What is carried to a machine on loan: the project, smaller, and wheels of what is missing
    there. Returns a function that calls the session in a bare folder."""
    small_project.project(tmp_path / "project")
    small_project.reference(tmp_path / "project")
    for folder in ("wheels", "absent"):
        (tmp_path / folder).mkdir()
    wheel(tmp_path / "wheels", "chainer", "7.8.1", "chainer")
    wheel(tmp_path / "wheels", "nvidia_cudnn_frontend", "1.28.0", "cudnn")
    for name in ("chainer", "cudnn"):
        text = f"raise ModuleNotFoundError({f'No module named {name!r}'!r})\n"
        (tmp_path / "absent" / f"{name}.py").write_text(text)
    path = os.pathsep.join([str(tmp_path / "absent"), os.environ.get("PYTHONPATH", "")])
    bare = {**os.environ, "PYTHONPATH": path}
    missing = run([sys.executable, "-c", "import chainer"], 1, env=bare)
    assert "No module named 'chainer'" in missing.stderr

    def session(name, **variables):
        project = shutil.copytree(tmp_path / "project", tmp_path / name / "project")
        variables = {
            "PYTHON": sys.executable, "PYTHONPATH": path, "WHEELS": tmp_path / "wheels",
            "OUT": tmp_path / name / "out", "DATA": "digits", "RESERVE": 10, "SMOKE": 900,
            "CHAINER_JO_COMMIT": "0123456789ab", **variables,
        }  # fmt: skip
        env = {**os.environ, **{key: str(value) for key, value in variables.items()}}
        said = run([project / "benchmarks" / "gpu_session.sh", 60], env=env, timeout=3600).stdout
        return project, said, (tmp_path / name / "out" / "summary.txt").read_text()

    return session


def test_two_calls_of_a_session_on_bare_machines_end_with_a_table(loan, tmp_path):
    """The smoke test, Table 1 at one noise rate, then on another machine the other rate by two
    processes, a part of the benchmark, a test."""
    table = "reproduce/table1.py --trials 1 --noise-rates 0.5"
    project, said, summary = loan("first", STEPS="smoke results", RUNS=table)
    assert "smoke: exit code 0" in summary, said[-6000:]
    smoke = json.loads((project / "gpu-session" / "smoke.json").read_text())
    assert all(smoke[precision]["replayed"]["replays"] for precision in smoke)
    assert "results with --precision mixed\n" in summary
    assert "table1: exit code 0" in summary, said[-6000:]
    back = tmp_path / "first" / "out"
    assert len(list(back.iterdir())) <= 8
    assert all(path.stat().st_size <= 16 << 20 for path in back.iterdir())

    project, said, summary = loan(
        "second", FROM=back, RUNS=f"reproduce/nothing.py\n{table} 0.7 --jobs 2",
        BENCHMARK="--only chainer_jo/mixed-graph chainer_jo/fp32-graph --rounds 1",
        TESTS="tests/test_gpu.py::test_network_input_is_the_hosts",
    )  # fmt: skip
    assert "files of an earlier session are back in their places" in said
    assert "smoke: passed in an earlier session" in summary
    assert "6 runs, 3 to do" in said, "those of the first call have come back"
    assert "nothing: exit code 2" in summary, "one that fails costs the others nothing"
    for step in ("table1", "benchmark", "tests"):
        assert f"{step}: exit code 0" in summary, said[-6000:]
    (path,) = (project / "results").glob("paper*/table1.json")
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["trials"]]
    assert len(cells) >= 8, "two methods, best and last, test and recovery at r = 0.5 and 0.7"
    assert all(0 <= cell["mean"] <= 100 for cell in cells)
    done = sorted((path.parent / "runs").glob("*/result.json"))
    results = [json.loads(result.read_text()) for result in done]
    plans = {(run["id"].split("-sn")[0], run["provenance"]["choices"]) for run in results}
    assert len(results) == 6 and len(plans) == 3, "those of the first call's runs of each kind"
    provenance = results[0]["provenance"]
    assert (provenance["engine"], provenance["commit"]) == ("cudnn", "0123456789ab")
    assert provenance["versions"]["cuDNN"].startswith("9.")
    steps = json.loads((project / "gpu-session" / "train_step.json").read_text())
    assert "chainer_jo/mixed-graph" in {entry["name"] for entry in steps["entries"]}, summary


@pytest.mark.skipif(not shutil.which("compute-sanitizer"), reason="needs compute-sanitizer")
def test_compute_sanitizer_finds_nothing_in_a_small_step(tmp_path):
    program = Path(__file__).with_name("small_step_on_gpu.py")
    # Libraries probe for what a device has by calls that fail: those are no errors of a kernel.
    command = [
        "compute-sanitizer", "--report-api-errors", "no", "--error-exitcode", "9",
        sys.executable, program,
    ]  # fmt: skip
    assert "ERROR SUMMARY: 0 errors" in run(command).stdout


def test_a_refused_capture_is_not_timed_as_a_graph(monkeypatch):
    monkeypatch.setattr(GraphStep, "_capture", lambda *arguments: None)
    with pytest.raises(workload.Missing, match="no step was captured"):
        joint_step.joint_step(workload.load("digits", 4), "cudnn", "fp32", "cuda", graph=True)


def test_backends_choose_cudnn_here():
    chosen = choose_backend("cuda", "mixed")
    assert (chosen.name, chosen.precision) == ("cudnn", "mixed")
