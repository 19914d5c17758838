"""The runs behind Figures 2 to 6, by the names that the paper gives their curves."""

from chainer_jo.experiments.experiment import Experiment
from chainer_jo.experiments.presets import Study
from chainer_jo.paper import TABLE1, settings

#: Noise rate of Figure 2, which the paper does not state.
FIGURE2_NOISE_RATE = 0.5
FIGURE3_NOISE_RATES = TABLE1.keys("noise_rate")
#: Update rules of Figure 4 and the number of labels that each updates in an epoch, None for all.
FIGURE4_RULES = {"soft": None, "all": None, **{f"top{k}": k for k in settings.FIGURE4_TOPS}}
#: Labels of Figures 5 and 6: noise kind and rate.
FIGURE5_LABELS = {
    "ground_truth": ("symmetric", 0.0),
    "symmetric_0.3": ("symmetric", 0.3),
    "symmetric_0.5": ("symmetric", 0.5),
    "pseudo": ("pseudo", 0.0),
}


def figure2_run(
    study: Study, learning_rate: float, trial: int, noise_rate: float = FIGURE2_NOISE_RATE
) -> Experiment:
    """Cross entropy with a constant learning rate."""
    return study.plain("symmetric", noise_rate, trial, learning_rate, settings.FIGURE2_EPOCHS)


def figure3_run(study: Study, noise_rate: float, trial: int) -> Experiment:
    """Cross entropy for 600 epochs, with a learning rate that is divided by 10 twice."""
    schedule = settings.FIGURE3_SCHEDULE
    return study.plain(
        "symmetric", noise_rate, trial, schedule.learning_rate, schedule.epochs, schedule.drops
    )


def figure4_run(study: Study, rule: str, trial: int) -> Experiment:
    """The second step on the labels that 1500 epochs of one of `FIGURE4_RULES` end with."""
    kind = {"soft": "soft", "all": "hard"}.get(rule, "top")
    return study.joint(
        "symmetric", settings.FIGURE4_NOISE_RATE, trial,
        epochs=settings.FIGURE4_EPOCHS, rule=kind, top=FIGURE4_RULES[rule],
    )  # fmt: skip


def figure5_run(study: Study, labels: str, stage: str, trial: int) -> Experiment:
    """Training on `FIGURE5_LABELS` as they are (``initial``) or as the first step leaves them."""
    kind, rate = FIGURE5_LABELS[labels]
    if stage == "initial":
        return study.baseline("cross_entropy", kind, rate, trial)
    return study.joint(kind, rate, trial)
