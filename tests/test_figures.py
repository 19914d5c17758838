"""Figures 1 to 6: drawn at any moment, with the data behind them, from the runs they name."""

import csv
import importlib
import os
from dataclasses import replace

import numpy as np
import pytest
from tiny import STUDY

from chainer_jo import files
from chainer_jo.reproduction.experiments.presets import HALF, Study
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures import plot
from chainer_jo.reproduction.tables_and_figures.curves import Curve
from chainer_jo.reproduction.tables_and_figures.figure import Figure
from chainer_jo.reproduction.tables_and_figures.first_step_images import Captioned, draw_images
from chainer_jo.reproduction.tables_and_figures.output import Setting

SETTING = Setting("tiny", "digits", "fp32")
STUDY = replace(STUDY, trials=2, features="pixels")


def figure_of(number, study=STUDY):
    return importlib.import_module(f"figure{number}").figure(study)


def log(store, experiment, values, key="test", state=None):
    """Pretends that a run has got as far as ``values``, and ended in ``state``."""
    epochs = [{"epoch": n, key: value} for n, value in enumerate(values, 1)]
    files.write_json(store.open(experiment) / "log.json", epochs)
    if state:
        store.save_result(experiment, {"id": experiment.id, "state": state})


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "results")


@pytest.fixture
def runs():
    return [STUDY.plain("symmetric", 0.5, trial, 0.2, 60) for trial in range(3)]  # 3 epochs


def write(figure, store, tmp_path):
    return figure.write(store, SETTING, store.root, tmp_path / "figures")


def rows_of(figure, store, monkeypatch):
    """The data behind a figure, whose drawing is made into no files."""
    monkeypatch.setattr(plot, "png_and_pdf", lambda canvas: {})
    return list(csv.DictReader(figure.extra_files(store, SETTING)[".csv"].splitlines()))


def test_means_spread_and_csv(store, runs, monkeypatch):
    for run, values in zip(runs, ([0.1, 0.2, 0.3], [0.3, 0.4, 0.5], [0.2, 0.6]), strict=True):
        log(store, run, values, state="finished" if len(values) == 3 else None)
    figure = Figure(2, "A caption.", "test", [Curve("lr=0.2", runs)], "symmetric noise r = 0.5")
    rows = rows_of(figure, store, monkeypatch)
    assert len(rows) == 8
    assert {row["preset"] for row in rows} == {"tiny"}
    assert {row["data"] for row in rows} == {"digits"}
    assert [row["test accuracy (%)"] for row in rows if row["seed"] == "1"] == ["30", "40", "50"]
    by_epoch = {row["epoch"]: (row["mean"], row["std"]) for row in rows}
    assert by_epoch == {"1": ("20", "10"), "2": ("40", "20"), "3": ("40", "14.1421")}
    text = figure.text(store, SETTING)
    assert "40.0 ± 14.1" in text
    assert "2 of 3" in text
    assert "symmetric noise r = 0.5; means over 3 trials, standard deviation shaded." in text
    uneven = replace(figure, curves=[*figure.curves, Curve("lr=0.02", runs[:1])])
    assert "means over at most 3 trials, standard" in uneven.text(store, SETTING)


@pytest.mark.parametrize(("lengths", "state", "expected"), [
    ((3, 3, 3), "finished", ""),
    ((3, 3, 1), "finished", "2 of 3 trials"),
    ((2, 1, 0), "finished", "2 of 3 epochs"),
    ((0, 0, 0), "finished", "no epochs yet"),
    ((3, 1, 1), "diverged", "1 of 3 diverged"),
])  # fmt: skip
def test_legend_says_what_is_not_there_yet(store, runs, lengths, state, expected):
    for run, length in zip(runs, lengths, strict=True):
        if length:
            log(store, run, [0.5] * length, state=state if length == 3 else None)
    assert Curve("lr=0.2", runs).read(store, "test").state == expected


def test_diverged_trials_are_neither_averaged_nor_waited_for(store, runs):
    log(store, runs[0], [0.9, 0.9], state="diverged")
    log(store, runs[1], [0.5, 0.4, 0.3], state="finished")
    series = Curve("lr=0.2", runs).read(store, "test")
    assert list(series.trials) == [1]
    assert (series.by_epoch[0].mean, series.by_epoch[0].std) == (50, None)
    second = STUDY.joint("symmetric", 0.5, 0)
    log(store, second.first_step, [0.1], state="diverged")
    series = Curve("joint", [second]).read(store, "test")
    assert series.complete and series.state == "1 of 1 diverged"


@pytest.mark.parametrize("number", range(1, 7))
def test_written_whole_before_anything_has_run(store, tmp_path, number):
    figure = figure_of(number)
    paths = write(figure, store, tmp_path)
    assert all(path.exists() for path in paths)
    assert (tmp_path / "figures" / f"figure{number}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "figures" / f"figure{number}.pdf").read_bytes().startswith(b"%PDF")
    assert not list(tmp_path.rglob("*.tmp"))
    assert figure.text(store, SETTING).startswith(f"**Figure {number}.** ")


def test_drawn_again_only_changes_with_the_data(store, runs, tmp_path):
    figure = Figure(2, "", "test", [Curve("lr=0.2", runs)], "")

    def drawn():
        return {path.name: path.read_bytes() for path in write(figure, store, tmp_path)}

    log(store, runs[0], [0.5])
    first = drawn()
    assert drawn() == first
    log(store, runs[0], [0.5, 0.6])
    after = drawn()
    assert all(after[name] != content for name, content in first.items())


@pytest.mark.parametrize("epoch", ["0", "", "abc"])
def test_the_source_date_changes_no_drawing(epoch, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    before = plot.png_and_pdf(plot.Canvas((1, 1)))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    assert plot.png_and_pdf(plot.Canvas((1, 1))) == before
    assert os.environ["SOURCE_DATE_EPOCH"] == epoch


def test_dollars_in_the_names_of_classes_are_no_mathematics(store, runs):
    """The text between two dollars would be a formula, and this one has two superscripts."""
    names = "US$^b^c → US$_a ✓"
    drawn = draw_images([Captioned(np.zeros((2, 2)), names)], (1, 1), (3, 3), names, names)
    assert drawn[".png"].startswith(b"\x89PNG")
    figure = Figure(2, "", "test", [Curve(names, runs)], names)
    assert figure.extra_files(store, SETTING)[".pdf"].startswith(b"%PDF")


def test_the_papers_curves():
    labels = {n: [curve.label for curve in figure_of(n).curves] for n in range(2, 7)}
    assert labels[2] == ["lr=0.2", "lr=0.02"]
    assert labels[3] == [f"r={rate}" for rate in ("0", "0.1", "0.3", "0.5", "0.7", "0.9")]
    assert [label.partition(" (")[0] for label in labels[4]] == [
        "soft label", "hard label, all", "top 50", "top 500", "top 5000",
    ]  # fmt: skip
    assert labels[5] == labels[6] and len(labels[5]) == 7
    assert figure_of(5).experiments == figure_of(6).experiments
    other = figure_of(2, replace(STUDY, noise_rates=(0.3, 0.7)))
    assert {e.noise.rate for e in other.experiments} == {0.3, 0.7}
    assert "r = 0.3, 0.7" in other.conditions
    drops = dict.fromkeys([STUDY.epochs(200), STUDY.epochs(400)], "lr/10")
    lines = {}, drops, {STUDY.epochs(70): "updates start"}
    assert tuple(figure_of(n).vertical_lines for n in (2, 3, 4)) == lines


def test_without_features_the_other_curves_are_drawn(store, tmp_path):
    figure = figure_of(5, replace(STUDY, features=None))
    assert [c.label for c in figure.curves if "pseudo" in c.label] == []
    assert len(figure.curves) == 5
    assert "--resnet50-weights" in figure.missing
    assert "\n" not in figure.missing
    assert not figure_of(5).missing
    write(figure, store, tmp_path)


def test_figure4_counts_labels_and_names_the_papers_numbers(store):
    figure = figure_of(4)
    assert "top 500 (here 40)" in [curve.label for curve in figure.curves]
    assert STUDY.labels(500) == 40
    second_steps = {e for e in figure.experiments if e.first_step}
    assert {e.first_step for e in second_steps} <= set(figure.experiments)
    printed = {(c.row["rule"], c.column["accuracy"]): c.paper for c in figure.side_table.cells}
    assert {key: value for key, value in printed.items() if value} == {
        ("soft", "test"): 86.0, ("soft", "recovery"): 86.0,
        ("top500", "test"): 85.7, ("top500", "recovery"): 85.9,
    }  # fmt: skip
    for experiment in second_steps:
        for run, scores in ((experiment, {"test": 0.5}), (experiment.first_step, {})):
            result = {"state": "finished", "last": {**scores, "recovery": 0.25}}
            store.save_result(run, {"id": run.id, **result})
    text = figure.text(store, replace(SETTING, data="cifar10"))
    assert "50.0 ± 0.0 [85.7]" in text
    assert "25.0 ± 0.0 [85.9]" in text


def drawn(figure, store, monkeypatch):
    """The axes of a figure, and what is inside and above them."""
    kept = []
    monkeypatch.setattr(plot, "png_and_pdf", lambda canvas: kept.append(canvas) or {})
    figure.extra_files(store, SETTING)
    axes, *further = kept[0].axes[0], *kept[0].axes[0].child_axes
    return axes, further


def test_notes_of_epochs_that_are_close_are_below_each_other(store, monkeypatch):
    figure = importlib.import_module("learning_curves").figure(Study(HALF, "cifar10-jpeg"))
    axes, _ = drawn(figure, store, monkeypatch)
    places = {text.get_position()[0]: text.get_position()[1] for text in axes.texts[:3]}
    assert [*places] == [*figure.vertical_lines] == [10, 18, 20]
    assert places[10] == places[18] > places[20]


@pytest.mark.parametrize("ends", [(0.95, 0.945, 0.5, 0.8, 0.65), (0.95, 0.9, 0.85, 0.8, 0.75)])
def test_curves_that_lie_on_each_other_are_magnified(ends, store, monkeypatch):
    """Two rules end within a point, the others far below; or each ends close to the next one, so
    that all would be in the window, which would not magnify."""
    figure, start = figure_of(4), STUDY.epochs(70)
    for curve, end in zip(figure.curves, ends, strict=True):
        for run in curve.experiments:
            log(store, run, [0.3] * start + [end] * (curve.length - start), key="recovery")
    axes, (_, *windows) = drawn(figure, store, monkeypatch)
    assert axes.lines and len(windows) == (ends[1] == 0.945)
    for window in windows:
        assert [round(line.get_ydata()[-1], 1) for line in window.lines] == [95.0, 94.5]
        low, high = window.get_ylim()
        assert 90 < low < 94.5 and 95 < high < 98
