"""Table 12: how right the updated labels are, by their highest probability, AN-CIFAR at 0.4."""

from functools import partial

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.paper.tables import TABLE12
from chainer_jo.reproduction.tables_and_figures.table_layouts import confidence_table

table = partial(confidence_table, printed=TABLE12, noise="asymmetric", rate=0.4)

if __name__ == "__main__":
    main(table, __doc__)
