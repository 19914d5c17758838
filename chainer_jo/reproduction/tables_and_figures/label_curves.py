"""Curves of Figures 5 and 6: training on initial and updated labels of different noise."""

from collections.abc import Callable
from functools import partial

from chainer_jo.reproduction.experiments.experiment import Experiment
from chainer_jo.reproduction.experiments.presets import Study
from chainer_jo.reproduction.experiments.words import clusters, trained_on
from chainer_jo.reproduction.tables_and_figures.curves import Curve
from chainer_jo.reproduction.tables_and_figures.figure import Figure

#: Kind and rate of the noise, by name.
LABELS = {
    "ground_truth": ("symmetric", 0.0),
    "symmetric_0.3": ("symmetric", 0.3),
    "symmetric_0.5": ("symmetric", 0.5),
    "pseudo": ("pseudo", 0.0),
}
MISSING = (
    "pseudo labels: no features of these images, so the curves are left out; expected "
    "--resnet50-weights FILE or --features FILE.npz"
)


def label_figure(study: Study, number: int, what: str, key: str) -> Figure:
    """Figure 5 or 6: ``key`` (in words ``what``) in the second step, on labels before and after the
    first step.

    Without features there are no pseudo labels, and their curves are left out.
    """
    names = {"ground_truth": "ground truth", "pseudo": "pseudo labels"}
    curves = []
    for stage in ("initial", "updated"):
        for labels, (noise, rate) in LABELS.items():
            if (noise == "pseudo" and not study.features) or (
                labels == "ground_truth" and stage == "updated"
            ):
                continue
            name = names.get(labels, f"SN, r={rate:g}")
            run: Callable[..., Experiment]
            if stage == "initial":
                label, run = name, partial(study.baseline, "cross_entropy")
            else:
                label, run = f"{name}, updated", study.joint
            runs = [run(noise, rate, trial) for trial in study.figure_trials()]
            curves.append(Curve(label, runs, name, {"labels": labels, "stage": stage}))
    rates = ", ".join(f"{rate:g}" for _, rate in LABELS.values() if rate)
    pseudo = "pseudo labels" if study.features else "no pseudo labels"
    conditions = f"second step on symmetric noise r = {rates} and {pseudo}"
    missing = "" if study.features else MISSING
    kinds = "true and noisy labels"
    if study.features:
        kinds = f"true, noisy and pseudo labels ({clusters(study.features)})"
    caption = (
        f"{what} in the second step on {kinds}, before and after the updates of the first step; "
        f"{trained_on(study)}."
    )
    return Figure(number, caption, key, curves, conditions, missing=missing, study=study)
