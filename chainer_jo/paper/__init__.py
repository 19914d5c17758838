"""Every number printed in the paper, as data, each in one place.

``paper.TABLE1`` to ``paper.TABLE13`` are the tables, ``paper.text`` the numbers in the running
text, ``paper.settings`` the hyper parameters and schedules that experiments take from both::

    >>> from chainer_jo import paper
    >>> paper.TABLE1.value(method="joint", score="last", accuracy="test", noise_rate=0.5)
    89.8
    >>> paper.TABLE6.chosen["alpha"], paper.settings.CIFAR_SECOND_STEP.drops
    (0.8, (40, 80))
"""

from chainer_jo.paper import settings, text
from chainer_jo.paper.table import SensitivityTable, Table
from chainer_jo.paper.tables import (
    METHODS,
    TABLE1,
    TABLE2,
    TABLE3,
    TABLE4,
    TABLE4_CAPTION,
    TABLE4_LABEL,
    TABLE5,
    TABLE6,
    TABLE7,
    TABLE8,
    TABLE9,
    TABLE10,
    TABLE11,
    TABLE12,
    TABLE13,
    probability_range,
)

__all__ = [
    "METHODS",
    "TABLE1",
    "TABLE2",
    "TABLE3",
    "TABLE4",
    "TABLE4_CAPTION",
    "TABLE4_LABEL",
    "TABLE5",
    "TABLE6",
    "TABLE7",
    "TABLE8",
    "TABLE9",
    "TABLE10",
    "TABLE11",
    "TABLE12",
    "TABLE13",
    "SensitivityTable",
    "Table",
    "probability_range",
    "settings",
    "text",
]
