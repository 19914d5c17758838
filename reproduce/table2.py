"""Table 2: four methods on CIFAR-10 with asymmetric noise (AN-CIFAR)."""

from functools import partial

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.paper.tables import TABLE2
from chainer_jo.reproduction.tables_and_figures.table_layouts import comparison_table

table = partial(comparison_table, printed=TABLE2, noise="asymmetric")

if __name__ == "__main__":
    main(table, __doc__)
