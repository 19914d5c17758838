"""Table 4: the network architecture, measured in a forward pass."""

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.tables_and_figures.static_table import architecture_table as table

if __name__ == "__main__":
    main(table, __doc__)
