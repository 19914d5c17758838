"""The paper's claims, and the word that results give each (`claim.Results`: the protocol).

::

    for claim in CLAIMS:
        words = [comparison.word for comparison in claim.comparisons(results)]
        print(claim.place, claim.statement, word_of(words))

The rule is in `claim`, the list in `statements`, the numbers in `comparisons`. All
three are frozen: a change needs an entry in docs/history.md.
"""

from chainer_jo.reproduction.claims.statements import SECTIONS, Claim

CLAIMS: tuple[Claim, ...] = tuple(claim for claims in SECTIONS.values() for claim in claims)
