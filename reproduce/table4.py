"""Table 4: the network, read off a forward pass of the network itself."""

from chainer_jo.commands import main
from chainer_jo.experiments.presets import Study
from chainer_jo.report.static_table import StaticTable, architecture_table


def table(study: Study) -> StaticTable:
    return architecture_table(study)


if __name__ == "__main__":
    main(table, __doc__)
