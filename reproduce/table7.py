"""Table 7: validation accuracy with different alpha, beta and learning rate, AN-CIFAR at 0.2."""

from chainer_jo.commands import main
from chainer_jo.experiments.presets import Study
from chainer_jo.paper import tables
from chainer_jo.report.sensitivity_table import sensitivity_table
from chainer_jo.report.table import Table


def table(study: Study) -> Table:
    return sensitivity_table(study, tables.TABLE7)


if __name__ == "__main__":
    main(table, __doc__)
