"""From finished runs to what the paper shows: tables and figures, and what every script does."""

from chainer_jo.experiments.presets import Study
from chainer_jo.report.app import main
from chainer_jo.report.comparison import comparison_table
from chainer_jo.report.table import Table

__all__ = ["Study", "Table", "comparison_table", "main"]
