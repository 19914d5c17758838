"""What the paper says, claim by claim, held against results (`Results`: what to supply).

::

    for claim in CLAIMS:
        verdict = claim.decide(results)
        print(claim.place, claim.statement, verdict.label, verdict.reason, sep="\\n")

When a difference decides, and when several do together, is in `decision`.
"""

from chainer_jo.paper.claims import (
    hyper_parameters,
    made_labels,
    memorization,
    methods,
    soft_labels,
)
from chainer_jo.paper.claims.claim import (
    DOES_NOT_HOLD,
    HOLDS,
    NO_PREMISE,
    NOT_ALL_RUN,
    NOT_RUN,
    TIE,
    TOO_FEW_TRIALS,
    UNDECIDED,
    VERDICTS,
    Claim,
    Results,
    Verdict,
)

CLAIMS: tuple[Claim, ...] = (
    *memorization.CLAIMS,
    *soft_labels.CLAIMS,
    *methods.CLAIMS,
    *hyper_parameters.CLAIMS,
    *made_labels.CLAIMS,
)

__all__ = [
    "CLAIMS",
    "DOES_NOT_HOLD",
    "HOLDS",
    "NO_PREMISE",
    "NOT_ALL_RUN",
    "NOT_RUN",
    "TIE",
    "TOO_FEW_TRIALS",
    "UNDECIDED",
    "VERDICTS",
    "Claim",
    "Results",
    "Verdict",
]
