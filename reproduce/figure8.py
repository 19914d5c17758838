"""Figure 8: images whose labels the joint method reassigned from T-shirt to Hoodie."""

from chainer_jo.reproduction.commands import clothing1m_main
from chainer_jo.reproduction.tables_and_figures.clothing1m_outputs import figure8

if __name__ == "__main__":
    clothing1m_main(figure8, __doc__)
