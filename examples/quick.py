"""A preset of one's own, to see in seconds whether a thing runs; its numbers say nothing."""

from dataclasses import replace

from chainer_jo.reproduction.experiments.presets import DIGITS, PRESETS

PRESETS["quick"] = replace(
    DIGITS,
    name="quick",
    summary="40 training images per class, schedules a twentieth as long, one trial",
    train_images=360,
    train_per_class=40,
    test_per_class=20,
    time_scale=0.05,
    trials=(1, 1, 1),
)
