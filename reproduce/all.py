"""All tables and figures on CIFAR-10 or the digits, cheapest first, then the claims."""

from functools import partial

import ablations
import corrected_labels
import figure1
import figure2
import figure3
import figure4
import figure5
import figure6
import learning_curves
import table1
import table2
import table4
import table5
import table6
import table7
import table8
import table9
import table10
import table11
import table12
import table13

from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.tables_and_figures.claims_page import Claims

TABLES = (table1, table2, table4, table5, table6, table7, table8, table9, table10, table11)
CONFIDENCE = (table12, table13)
FIGURES = (
    figure1, figure2, figure3, figure4, figure5, figure6, learning_curves, corrected_labels,
)  # fmt: skip
OUTPUTS = [
    *(script.table for script in (*TABLES, *CONFIDENCE, ablations)),
    *(script.figure for script in FIGURES),
]
claims = partial(Claims, builds=OUTPUTS)

if __name__ == "__main__":
    main([*OUTPUTS, claims], __doc__)
