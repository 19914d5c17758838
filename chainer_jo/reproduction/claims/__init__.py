"""The paper's claims and their verdicts over results (`claim.Results`: the protocol to supply).

::

    for claim in CLAIMS:
        verdict = claim.decide(results)
        print(claim.place, claim.statement, verdict.label, *verdict.tally, sep="\\n")

`decision` defines the rule for one comparison and for all comparisons of a claim.
"""

from chainer_jo.reproduction.claims import (
    ablations,
    hyper_parameters,
    made_labels,
    memorization,
    methods,
    soft_versus_hard,
)
from chainer_jo.reproduction.claims.claim import Claim

GROUPS: dict[str, tuple[Claim, ...]] = {
    "A high learning rate": tuple(memorization.CLAIMS),
    "The joint method versus other methods": tuple(methods.CLAIMS),
    "Soft labels and ablations": (*soft_versus_hard.CLAIMS, *ablations.CLAIMS),
    "Hyper parameters": tuple(hyper_parameters.CLAIMS),
    "Pseudo labels": tuple(made_labels.CLAIMS),
}
CLAIMS: tuple[Claim, ...] = tuple(claim for claims in GROUPS.values() for claim in claims)
