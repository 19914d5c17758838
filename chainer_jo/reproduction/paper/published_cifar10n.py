"""Test accuracy (%) that others published for CIFAR-10N, as quoted; not a table of the paper.

Reported: J. Wei et al., "Learning with Noisy Labels Revisited: A Study Using Real-World Human
Annotations", ICLR 2022 (arXiv 2110.12088), and its leaderboard. Replicated: Hudovernik et al.,
ReScience C 2026 (doi 10.5281/zenodo.18401497), table 2, three runs. Both take the best epoch on the
test set. The networks are as the replication inferred them.
"""

LABEL_SETS = ("aggre", "random1", "worse")
SOURCES = ("reported", "replicated")
_TEXT = """
    CE, ResNet-34                 : 87.77 85.02 77.69  91.70 90.20 83.91
    Forward T, ResNet-34          : 88.24 86.88 79.79  –     –     –
    Co-teaching, ResNet-34        : 91.20 –     83.83  91.93 90.69 80.92
    ELR, ResNet-34                : 92.38 –     83.58  93.00 92.20 87.89
    CAL, ResNet-34                : 91.97 90.93 85.36  91.84 91.10 84.82
    PES (semi), ResNet-34         : 94.66 95.06 92.68  94.64 95.20 92.58
    DivideMix, 2 PreAct ResNet-18 : 95.01 95.16 92.56  95.62 95.72 93.10
    SOP+, PreAct ResNet-18        : 95.61 95.28 93.24  96.04 95.70 92.89
"""
_LINES = (line.partition(":") for line in _TEXT.strip().splitlines())
#: Method with its network, and its numbers; – where there is none.
ROWS = [(label.strip(), numbers.split()) for label, _, numbers in _LINES]
