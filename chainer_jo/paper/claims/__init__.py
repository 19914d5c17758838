"""Claims of the paper, held against results (`claim.Results`: what to supply).

::

    for claim in CLAIMS:
        verdict = claim.decide(results)
        print(claim.place, claim.statement, verdict.label, verdict.reason, sep="\\n")

`decision` has the rule by which differences decide, alone and together.
"""

from chainer_jo.paper.claims import (
    hyper_parameters,
    made_labels,
    memorization,
    methods,
    parts,
    soft_labels,
)
from chainer_jo.paper.claims.claim import Claim

GROUPS: dict[str, tuple[Claim, ...]] = {
    "A high learning rate": tuple(memorization.CLAIMS),
    "The joint method and others": tuple(methods.CLAIMS),
    "Its labels and its parts": (*soft_labels.CLAIMS, *parts.CLAIMS),
    "Its hyper parameters": tuple(hyper_parameters.CLAIMS),
    "Labels that a network made": tuple(made_labels.CLAIMS),
}
CLAIMS: tuple[Claim, ...] = tuple(claim for claims in GROUPS.values() for claim in claims)
