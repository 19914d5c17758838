"""Table 3, Figures 7 and 8, from a real run on a tiny set in the layout."""

import csv
import dataclasses
import pickle
import shutil

import numpy as np
import pytest
from clothing1m_like import make_clothing1m_like
from here import Here
from processes import ROOT, environment, run
from script_runs import script
from tiny import record, results

from chainer_jo.data import clothing1m
from chainer_jo.errors import UserError
from chainer_jo.reproduction.commands import clothing1m_main as main
from chainer_jo.reproduction.experiments.clothing1m_presets import CLOTHING1M_DIGITS as DIGITS
from chainer_jo.reproduction.experiments.clothing1m_presets import CLOTHING1M_PAPER as PAPER
from chainer_jo.reproduction.experiments.clothing1m_presets import (
    CLOTHING1M_PRESETS,
    Clothing1MStudy,
)
from chainer_jo.reproduction.experiments.presets import REAL, Network, Study, pretrained
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures.clothing1m_outputs import figure7, table3

NAMES = list(clothing1m.CLASS_NAMES)
TABLE3 = ROOT / "reproduce" / "table3.py"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_clothing1m_like(
        tmp_path_factory.mktemp("data") / "tiny", train=3, validation=1, test=1, size=16
    )


@pytest.fixture(scope="module", autouse=True)
def short():
    """A tenth of the epochs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CLOTHING1M_PRESETS, "digits", dataclasses.replace(DIGITS, time_scale=0.4))
        yield


def flags(data, where, *more):
    where = ["--results", str(where / "results"), "--figures", str(where / "figures")]
    # On a busy machine threads wait for each other longer than they compute.
    how = ["--device", "cpu", "--threads", "1"]
    return ["--preset", "digits", "--data", str(data), *how, *where, *more]


def refused(capsys, build, *arguments):
    """The one line that a script which is given these ends with."""
    with pytest.raises(SystemExit) as ended:
        main(build, "Test.", list(arguments))
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_the_stand_in_is_made_and_clothing1m_is_asked_for(tmp_path, capsys):
    """On a machine that has neither."""
    words = flags("clothing1m-standin", tmp_path, "--dry-run")
    done = run([TABLE3, *words], env=environment(CHAINER_DATASET_ROOT=tmp_path))
    assert "3 runs, 3 to do" in done.stdout
    line = refused(capsys, table3, "--preset", "paper", "--precision", "mixed", "--device", "cpu")
    assert line.startswith("error: --precision mixed: expected fp32")
    line = refused(capsys, table3, "--preset", "paper", "--device", "cpu", "--dry-run")
    assert line.startswith("error: --data: expected the folder of Clothing1M")


@pytest.fixture(scope="module")
def written(data, tmp_path_factory):
    """Everything that table3.py writes; its data are loaded as in another process."""
    where, submit = tmp_path_factory.mktemp("written"), Here.submit

    def pickled(executor, work, *arguments):
        return submit(executor, pickle.loads(pickle.dumps(work)), *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Here, "submit", pickled)
        return where, script(TABLE3, *flags(data, where, "--workers", "0", "--jobs", "1"))


def test_into_a_pipe_goes_nothing_for_terminals(written, data):
    where, output = written
    assert "[3/3]" in output and "\x1b" not in output
    assert (where / "results/digits-tiny/table3.md").read_text().strip() in output
    # Without runs, too, though the quoted rows never have trials.
    assert "**Table 3.**" in script(TABLE3, *flags(data, where, "--no-runs"))


def test_figures_and_their_data_alone_and_in_seconds(written, data):
    """Figure 7 of any pair of classes."""
    where, _ = written
    for number in (7, 8):
        path = where / f"figures/digits-tiny/figure{number}"
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert path.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
        header = path.with_suffix(".csv").read_text().splitlines()[0]
        assert header == "preset,data,end,key,before,after,probability"
    words = flags(data, where, "--classes", "knitwear", "Sweater")
    done = script(TABLE3.with_name("figure7.py"), *words)
    assert "0 to do" in done and "from Knitwear to Sweater" in done
    with (where / "figures/digits-tiny/figure7.csv").open() as file:
        assert all(row["before"] == "Knitwear" for row in csv.DictReader(file))


def test_top_and_bottom_of_a_pair(data, tmp_path):
    """Labels made up: which four images are shown, in which order. Without the labels, what was
    drawn of them stays."""
    loaded = clothing1m.load(data)
    study = Clothing1MStudy(DIGITS, "tiny", load=lambda: loaded)
    figure, store = figure7(study), RunStore(tmp_path)
    record(store, figure.first_step, data=loaded.fingerprint())
    assert figure.write(results(store), tmp_path, tmp_path) == []
    hoodie, shirt = NAMES.index("Hoodie"), NAMES.index("T-shirt")
    members = np.flatnonzero(loaded.train.labels == hoodie)
    labels = np.eye(len(NAMES), dtype=np.float32)[loaded.train.labels]
    for i, probability in zip(members, np.linspace(0.6, 0.9, len(members)), strict=True):
        labels[i] = 0
        labels[i, [shirt, hoodie]] = probability, 1 - probability
    store.save_labels(figure.first_step, labels)
    content = figure.data(results(store))
    rows = content["images"]
    assert content["complete"] and content["moved"] == len(members)
    expected = [members[-1], members[-2], members[0]]
    assert [row["key"] for row in rows] == [loaded.train.images[i] for i in expected]
    assert [row["end"] for row in rows] == ["top", "top", "bottom"]
    assert rows[0]["probability"] == pytest.approx(0.9)


def test_the_paper_setting():
    study = Study(dataclasses.replace(PAPER, network=Network(weights="any")), "clothing1m")
    first, second = study.first_step(*REAL, 0), study.joint(*REAL, 0)
    base = study.baseline("cross_entropy", *REAL, 0)
    assert (first.data.resize, first.data.crop) == (256, 224)
    for experiment in (first, second, base):
        sgd = experiment.optimization
        assert (sgd.batch_size, sgd.momentum, sgd.weight_decay) == (32, 0.9, 1e-3)
        assert sgd.epochs == 10 and sgd.pad == 0 and not sgd.flip
    assert (first.alpha, first.beta, first.optimization.learning_rate) == (2.4, 0.8, 8e-4)
    assert first.optimization.drops == () and second.optimization.drops == (5,)
    assert second.optimization.learning_rate == 5e-4
    assert first.relabelling.start == 1 and first.relabelling.average is None
    assert second.first_step == first and base.optimization == second.optimization
    assert base.objective == second.objective == "cross_entropy"


@pytest.mark.parametrize(("more", "words"), [
    (["--preset", "half"], "--preset half: expected auto, paper, digits"),
    (["--data", "/nowhere/at/all"], "no such folder"),
    (["--noise-rates", "0.5"], "unrecognized arguments: --noise-rates"),
    (["--workers", "-1"], "--workers: -1: expected a whole number of at least 0"),
    (["--classes", "Hat", "Dress"], "class 'Hat': expected one of T-shirt"),
    (["--preset", "paper"], "ResNet-50 weights"),
    (["--preset", "paper", "--data", "cifar10"], "no such folder, expected Clothing1M's"),
    (["--shards", "2"], "unrecognized arguments: --shards 2"),
])  # fmt: skip
def test_bad_input_is_one_line_and_exit_code_2(more, words, data, tmp_path, capsys):
    line = refused(capsys, figure7, *flags(data, tmp_path, "--workers", "0", *more))
    assert line.startswith("error: ") and words in line


def test_no_training_image_of_a_class(data, tmp_path, capsys):
    folder = shutil.copytree(data, tmp_path / "tiny")
    path = folder / clothing1m.NOISY_LABELS
    lines = path.read_text().splitlines()
    path.write_text("\n".join(x[:-1] + "4" if x.endswith(" 3") else x for x in lines))
    line = refused(capsys, table3, *flags(folder, tmp_path, "--workers", "0"))
    assert "no training image is labelled" in line


def test_weights_are_part_of_the_description(tmp_path):
    with pytest.raises(UserError, match="ResNet-50 weights"):
        pretrained(None)
    ids = set()
    for weights in (b"one", b"two"):
        path = tmp_path / "weights.npz"
        path.write_bytes(weights)
        preset = dataclasses.replace(PAPER, network=pretrained(str(path)))
        experiment = Study(preset, "clothing1m").first_step(*REAL, 0)
        assert experiment.network.weights.startswith("original-")
        assert experiment == type(experiment).from_dict(experiment.to_dict())
        ids.add(experiment.id)
    assert len(ids) == 2
