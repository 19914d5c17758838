"""Another loss, as a further row of Table 1: generalised cross entropy (Zhang and Sabuncu 2018).

Z. Zhang, M. Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy
Labels", NeurIPS 2018, eq. 6.
"""

from dataclasses import replace

import quick  # noqa: F401  (first: it imports chainer_jo, which mends what Chainer lacks)

# isort: split
import chainer.functions as F

from chainer_jo.method.objectives import OBJECTIVES, Objective
from chainer_jo.reproduction.commands import main
from chainer_jo.reproduction.paper.tables import METHODS, TABLE1
from chainer_jo.reproduction.tables_and_figures.table_layouts import comparison_table


class GeneralizedCrossEntropy(Objective):
    """Mean of (1 - s_y^q) / q: cross entropy as q falls to 0, the mean absolute error at q = 1."""

    q = 0.7

    def forward(self, logits, labels):
        log_s = F.log_softmax(logits)
        self.probabilities = F.exp(log_s).array
        s_y_to_q = F.exp(self.q * F.sum(log_s * labels, axis=1))  # labels (n, c) are one-hot
        loss = F.mean((1 - s_y_to_q) / self.q)
        self.terms = {"loss": loss.array}
        return loss


OBJECTIVES["gce"] = lambda run, split: GeneralizedCrossEntropy()
METHODS["gce"] = "Generalized CE"
ROWS = {("gce", *keys): None for method, *keys in TABLE1.cells if method == "cross_entropy"}


def table(study):
    printed = replace(TABLE1, number=16, cells={**TABLE1.cells, **ROWS})
    return comparison_table(study, printed, "symmetric")


if __name__ == "__main__":
    main(table, __doc__)
