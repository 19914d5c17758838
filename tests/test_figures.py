"""Figures 1 to 6: drawn at any moment, with the data behind them, from the runs they name."""

import csv
import importlib
import os
from dataclasses import replace

import numpy as np
import pytest
from tiny import STUDY, results

from chainer_jo import files
from chainer_jo.reproduction.experiments.presets import HALF, PAPER, Study
from chainer_jo.reproduction.running.store import RunStore
from chainer_jo.reproduction.tables_and_figures import plot
from chainer_jo.reproduction.tables_and_figures.curves import Curve, events_of
from chainer_jo.reproduction.tables_and_figures.figure import Figure
from chainer_jo.reproduction.tables_and_figures.first_step_images import Captioned, draw_images

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


def test_means_spread_and_csv(store, runs, monkeypatch):
    for run, values in zip(runs, ([0.1, 0.2, 0.3], [0.3, 0.4, 0.5], [0.2, 0.6]), strict=True):
        log(store, run, values, state="finished" if len(values) == 3 else None)
    figure = Figure(2, "A caption.", "test", [Curve("lr=0.2", runs)], "symmetric noise r = 0.5")
    monkeypatch.setattr(plot, "png_and_pdf", lambda canvas: {})
    rows = list(csv.DictReader(figure.extra_files(results(store))[".csv"].splitlines()))
    assert len(rows) == 8
    assert {(row["preset"], row["data"]) for row in rows} == {("tiny", "digits")}
    assert [row["test accuracy (%)"] for row in rows if row["seed"] == "1"] == ["30", "40", "50"]
    by_epoch = {row["epoch"]: (row["mean"], row["std"]) for row in rows}
    assert by_epoch == {"1": ("20", "10"), "2": ("40", "20"), "3": ("40", "14.1421")}
    text = figure.text(results(store))
    assert "40.0 ± 14.1" in text and "2 of 3" in text
    assert "symmetric noise r = 0.5; means over 3 trials, thin lines: trials." in text
    uneven = replace(figure, curves=[*figure.curves, Curve("lr=0.02", runs[:1])])
    assert "means over at most 3 trials, thin" in uneven.text(results(store))


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
    paths = figure.write(results(store), store.root, tmp_path / "figures")
    assert all(path.exists() for path in paths)
    drawing = tmp_path / "figures" / f"figure{number}.png"
    assert drawing.read_bytes().startswith(b"\x89PNG")
    assert drawing.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert not list(tmp_path.rglob("*.tmp"))
    assert figure.text(results(store)).startswith(f"**Figure {number}.** ")


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
    assert figure.extra_files(results(store))[".pdf"].startswith(b"%PDF")


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


def test_without_features_the_other_curves_are_drawn():
    figure = figure_of(5, replace(STUDY, features=None))
    assert len(figure.curves) == 5 and not any("pseudo" in c.label for c in figure.curves)
    assert "--resnet50-weights" in figure.missing and "\n" not in figure.missing
    assert not figure_of(5).missing


def test_figure4_counts_labels_and_names_the_papers_numbers(store):
    figure = figure_of(4)
    assert "top 500 (here 40)" in [curve.label for curve in figure.curves]
    assert STUDY.labels(500) == 40
    for study in (STUDY, replace(STUDY, data="of other size")):  # k is of the preset's images
        said = "the paper's share of the labels" in figure_of(4, study).conditions
        assert said == study.of_the_preset
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
    text = figure.text(results(store, "cifar10"))
    assert "50.0 ± 0.0 [85.7]" in text and "25.0 ± 0.0 [85.9]" in text


def drawn(figure, store, monkeypatch):
    """The axes of a figure, from top to bottom."""
    kept = []
    monkeypatch.setattr(plot, "png_and_pdf", lambda canvas: kept.append(canvas) or {})
    figure.extra_files(results(store))
    return kept[0].axes


def test_events_are_of_all_curves_or_of_those_that_have_them():
    drops = [(STUDY.epochs(epoch), "lr/10", set(range(6))) for epoch in (200, 400)]
    assert events_of(figure_of(3).curves) == drops
    (update,) = events_of(figure_of(4).curves)
    assert update[:2] == (STUDY.epochs(70), "updates start")
    assert events_of(figure_of(2).curves) == []
    learning = importlib.import_module("learning_curves").figure(Study(HALF, "cifar10-jpeg"))
    assert {event.text: event.curves for event in events_of(learning.curves)} == {
        "lr/10": {0, 2}, "updates start": {1},
    }  # fmt: skip


def test_events_and_the_papers_numbers_are_in_the_legend(store, monkeypatch):
    """The paper's numbers, at its own scale only, are dashed lines of the second step's length."""
    build = importlib.import_module("learning_curves").figure
    for preset, heights in ((PAPER, [85.0, 55.3, 89.8]), (HALF, [])):
        figure = build(Study(preset, "cifar10-jpeg", 1))
        axes, *_ = drawn(figure, store, monkeypatch)
        names = [text.get_text() for text in axes.figure.legends[0].get_texts()]
        assert {"lr/10", "updates start"} < {*names}
        assert ("paper: best, last" in names) == bool(heights)
        dashed = [lines.get_segments()[0].tolist() for lines in axes.collections]
        assert dashed == [[[0, y], [120, y]] for y in heights]


def test_learning_curves_have_a_panel_for_each_noise_rate(store, monkeypatch):
    build = importlib.import_module("learning_curves").figure
    figure = build(replace(STUDY, noise_rates=(0.5, 0.7)))
    panels = drawn(figure, store, monkeypatch)
    assert [axes.get_title("left") for axes in panels] == ["r=0.5", "r=0.7"]
    assert panels[0].lines[0].get_color() == panels[1].lines[0].get_color()
    title = panels[0].figure.legends[0].get_title().get_text().replace("\xa0", " ")
    assert title == "Learning curves: test accuracy, symmetric noise r = 0.5, 0.7"


def test_the_entropy_of_the_noise_is_drawn_until_the_first_drop(store, monkeypatch):
    """Figure 3: under symmetric noise of r = 0.9 a label has 2.27 nats. A second panel has the
    small losses, on a logarithmic axis."""
    figure = figure_of(3)
    for curve in figure.curves:
        for run in curve.experiments:
            log(store, run, [0.01] * curve.length, key="cross_entropy")
    linear, small = drawn(figure, store, monkeypatch)
    ends = [lines.get_segments()[0].tolist() for lines in linear.collections]
    assert len(ends) == 5 and not small.collections
    assert ends[-1] == [[0, pytest.approx(2.265, abs=1e-3)], [STUDY.epochs(200), ends[-1][1][1]]]
    assert (linear.get_yscale(), small.get_yscale()) == ("linear", "log")


def test_a_single_trial_has_moving_means(store, runs, monkeypatch):
    """Means over a twentieth of the epochs, as the claims have them."""
    run = Study(HALF, "digits").plain("symmetric", 0.5, 0, 0.2, 160)
    log(store, run, [0.2, 0.4] * 20)
    figure = Figure(2, "", "test", [Curve("lr=0.2", [run])], "", moving_means=True)
    (axes,) = drawn(figure, store, monkeypatch)
    assert len(axes.lines[0].get_ydata()) == 40
    np.testing.assert_allclose(axes.lines[1].get_ydata(), 30)
    assert axes.lines[1].get_xdata().tolist() == [n + 1.5 for n in range(39)]
    log(store, run, [0.2])
    (axes,) = drawn(figure, store, monkeypatch)
    assert [len(line.get_ydata()) for line in axes.lines[:2]] == [1, 0]


def test_trials_are_thin_lines(store, runs, monkeypatch):
    for run, value in zip(runs, (0.3, 0.4, 0.8), strict=True):
        log(store, run, [value] * 3)
    figure = Figure(2, "", "test", [Curve("lr=0.2", runs)], "", limits=(10, 90))
    (axes,) = drawn(figure, store, monkeypatch)
    *trials, mean = axes.lines
    assert [line.get_ydata()[-1] for line in trials] == [30, 40, 80]
    assert mean.get_ydata()[-1] == pytest.approx(50)
    assert all(line.get_linewidth() < mean.get_linewidth() for line in trials)
    assert axes.get_ylim() == (10, 90)


def test_the_kl_divergence_has_a_panel_of_its_own(store, monkeypatch):
    """Figure 6, for the curves on updated labels, in the colours of their cross entropy."""
    figure = figure_of(6)
    for curve in figure.curves:
        for run in curve.experiments:
            epochs = [{"cross_entropy": 1.0, "classification": 0.5}] * curve.length
            files.write_json(store.open(run) / "log.json", epochs)
    linear, small, divergences = drawn(figure, store, monkeypatch)
    means = [line for line in divergences.lines if line.get_marker() not in ("None", None)]
    assert len(means) == 3 and "KL" in divergences.get_ylabel() and "KL" not in small.get_ylabel()
    assert {line.get_color() for line in means} < {line.get_color() for line in linear.lines}


def figure4_of(store, *ends):
    """Figure 4, whose rules end at these label accuracies."""
    figure, start = figure_of(4), STUDY.epochs(70)
    for curve, end in zip(figure.curves, ends, strict=True):
        for run in curve.experiments:
            log(store, run, [0.3] * start + [end] * (curve.length - start), key="recovery")
    return figure


def test_the_highest_label_accuracies_are_magnified(store, monkeypatch):
    """Two rules end within a point, the others far below."""
    whole, top = drawn(figure4_of(store, 0.95, 0.945, 0.5, 0.8, 0.65), store, monkeypatch)
    ends = {line.get_color(): round(line.get_ydata()[-1], 1) for line in top.lines[:6]}
    assert [*ends.values()] == [95.0, 94.5]
    assert [*ends] == [*dict.fromkeys(line.get_color() for line in whole.lines)][:2]
    low, high = top.get_ylim()
    assert 90 < low < 94.5 and 95 < high < 98


def test_a_panel_that_would_not_magnify_is_left_out(store, monkeypatch):
    """No rule ends close to the best one."""
    assert len(drawn(figure4_of(store, 0.95, 0.88, 0.85, 0.8, 0.75), store, monkeypatch)) == 1
