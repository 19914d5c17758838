"""Entry points of the scripts: read the flags, run what is missing, write the outputs."""

import functools
import os

# Figures are only written. A process that a notebook starts lacks the notebook's backend.
os.environ["MPLBACKEND"] = "agg"

from chainer_jo.reproduction.commands import app
from chainer_jo.reproduction.commands.script_flags import Clothing1M, HumanLabels, InMemory

main = functools.partial(app.main, family=InMemory())
clothing1m_main = functools.partial(app.main, family=Clothing1M())
human_labels_main = functools.partial(app.main, family=HumanLabels())

__all__ = ["clothing1m_main", "human_labels_main", "main"]
