"""Table 1: cross entropy and the joint method on CIFAR-10 with symmetric noise (SN-CIFAR)."""

from chainer_jo.commands import main
from chainer_jo.experiments.presets import Study
from chainer_jo.paper import tables
from chainer_jo.report.comparison_table import comparison_table
from chainer_jo.report.table import Table


def table(study: Study) -> Table:
    return comparison_table(study, tables.TABLE1, "symmetric")


if __name__ == "__main__":
    main(table, __doc__)
