"""Table 3: cross entropy and the joint method on Clothing1M, with Figures 7 and 8 and the claim
about Clothing1M."""

from functools import partial

from chainer_jo.reproduction.commands import clothing1m_main
from chainer_jo.reproduction.tables_and_figures.claims_page import Claims
from chainer_jo.reproduction.tables_and_figures.clothing1m_outputs import figure7, figure8, table3

if __name__ == "__main__":
    clothing1m_main([table3, figure7, figure8, partial(Claims, builds=[table3])], __doc__)
