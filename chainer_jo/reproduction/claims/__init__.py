"""The paper's claims: `claim` has the rule, `statements` the list, `comparisons` the numbers. All
three are frozen: a change needs an entry in docs/history.md. ::

    for claim in itertools.chain(*SECTIONS.values()):
        words = [comparison.word for comparison in claim.compare(Pairs(results))]
        print(claim.place, claim.statement, word_of(words))
"""
