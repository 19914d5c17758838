"""Table 12: how right the updated labels are, by their highest probability, AN-CIFAR at 0.4."""

from chainer_jo.commands import main
from chainer_jo.experiments.presets import Study
from chainer_jo.paper import tables
from chainer_jo.report.confidence_table import confidence_table
from chainer_jo.report.table import Table


def table(study: Study) -> Table:
    return confidence_table(study, tables.TABLE12, "asymmetric", 0.4)


if __name__ == "__main__":
    main(table, __doc__)
