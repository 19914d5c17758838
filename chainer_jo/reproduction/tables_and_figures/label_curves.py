"""Curves of Figures 5 and 6: training on initial and updated labels of different noise."""

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
    first step. Without features there are no pseudo labels, and their curves are left out."""
    names = {"ground_truth": "ground truth", "pseudo": "pseudo labels"}
    curves = []
    for stage in ("initial", "updated"):
        for labels, (noise, rate) in LABELS.items():
            if (noise == "pseudo" and not study.features) or (
                labels == "ground_truth" and stage == "updated"
            ):
                continue
            name, trials = names.get(labels, f"SN, r={rate:g}"), study.figure_trials()
            if stage == "initial":
                runs = [study.baseline("cross_entropy", noise, rate, trial) for trial in trials]
            else:
                runs = [study.joint(noise, rate, trial) for trial in trials]
            label = name if stage == "initial" else f"{name}, updated"
            curves.append(Curve(label, runs, name, {"labels": labels, "stage": stage}))
    rates = ", ".join(f"{rate:g}" for _, rate in LABELS.values() if rate)
    pseudo, kinds, missing = "no pseudo labels", "true and noisy labels", MISSING
    if study.features:
        pseudo, missing = "pseudo labels", ""
        kinds = f"true, noisy and pseudo labels ({clusters(study.features)})"
    conditions = f"second step on symmetric noise r = {rates} and {pseudo}"
    caption = (
        f"{what} in the second step on {kinds}, before and after the updates of the first step; "
        f"{trained_on(study)}."
    )
    return Figure(number, caption, key, curves, conditions, missing=missing, study=study)
