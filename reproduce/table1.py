"""Table 1: cross entropy and the joint method on CIFAR-10 with symmetric noise (SN-CIFAR)."""

from functools import partial

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.paper.tables import TABLE1
from chainer_jo.reproduction.tables_and_figures.table_layouts import comparison_table

table = partial(comparison_table, printed=TABLE1, noise="symmetric")

if __name__ == "__main__":
    main(table, __doc__)
