"""Table 4: the network architecture, measured in a forward pass."""

from chainer_jo.commands import main
from chainer_jo.report.static_table import architecture_table as table

if __name__ == "__main__":
    main(table, __doc__)
