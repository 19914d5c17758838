"""Figure 7: images whose labels the joint method reassigned from Hoodie to T-shirt."""

from chainer_jo.reproduction.commands import clothing1m_main
from chainer_jo.reproduction.tables_and_figures.clothing1m_outputs import figure7

if __name__ == "__main__":
    clothing1m_main(figure7, __doc__)
