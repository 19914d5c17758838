"""The paper's claims, and the word that results give each (`claim.Results`: the protocol).

::

    for claim in itertools.chain(*SECTIONS.values()):
        words = [comparison.word for comparison in claim.compare(Pairs(results))]
        print(claim.place, claim.statement, word_of(words))

`claim` has the rule, `statements` the list, `comparisons` the numbers. All three are frozen: a
change needs an entry in docs/history.md.
"""
