"""From finished runs to what the paper shows: tables, figures, the report."""

from chainer_jo.experiments.presets import Study
from chainer_jo.report.claims import Claims
from chainer_jo.report.comparison import comparison_table
from chainer_jo.report.confidence import confidence_table
from chainer_jo.report.html import Report
from chainer_jo.report.sensitivity import sensitivity_table
from chainer_jo.report.static_table import StaticTable, architecture_table
from chainer_jo.report.table import Table

__all__ = [
    "Claims",
    "Report",
    "StaticTable",
    "Study",
    "Table",
    "architecture_table",
    "comparison_table",
    "confidence_table",
    "sensitivity_table",
]
