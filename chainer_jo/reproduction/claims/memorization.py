"""Figures 2 and 3: a high learning rate keeps a network from memorising noisy labels."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from chainer_jo.reproduction.claims import phases
from chainer_jo.reproduction.claims.claim import Claim, Results
from chainer_jo.reproduction.claims.decision import NOTABLE, Finding, not_inferior
from chainer_jo.reproduction.claims.methods import MEMORISED
from chainer_jo.reproduction.paper.settings import FIGURE2_LEARNING_RATES
from chainer_jo.reproduction.paper.tables import TABLE1
from chainer_jo.reproduction.trials import Trials

NOISE_RATES = TABLE1.keys("noise_rate")
LOSS = "nats"
CLOSE_TO_ZERO = 0.1
"""Share of the first epoch's training loss below which a loss is called close to 0."""
CLEARLY_NATS = 0.1
"""Nats by which a training loss is clearly higher: less than half of the rise in label entropy
from r = 0.7 to 0.9, the smallest step."""
CLASSES = 10

_HIGH, _LOW = FIGURE2_LEARNING_RATES


def noise_entropy(rate: float) -> float:
    """Entropy (nats) of a label under symmetric noise (eq. 13), given the true label: the lowest
    mean training loss of a model that has memorised no corrupted label."""
    each = rate / CLASSES
    from scipy.special import entr

    return float(entr(1 - rate + each) + (CLASSES - 1) * entr(each))


def _low_rate_decreases(results: Results) -> Iterator[Finding]:
    accuracy = results.curve("figure2", learning_rate=_LOW)
    early, late = phases.second_quarter(accuracy), phases.end(accuracy)
    yield Finding(f"lr = {_LOW}, second quarter versus end", early, late, ties=True)


def _low_rate_falls(results: Results) -> Iterator[Finding]:
    accuracy = results.curve("figure2", learning_rate=_LOW)
    compared = f"lr = {_LOW}, peak versus end"
    yield Finding(compared, phases.peak(accuracy), phases.end(accuracy), by=NOTABLE)


def _high_rate_ends_higher(results: Results) -> Iterator[Finding]:
    high, low = (phases.end(results.curve("figure2", learning_rate=r)) for r in (_HIGH, _LOW))
    yield Finding(f"end, lr = {_HIGH} versus {_LOW}", high, low, ties=True)


def _high_rate_keeps(results: Results) -> Iterator[Finding]:
    high = results.curve("figure2", learning_rate=_HIGH)
    yield not_inferior(f"lr = {_HIGH}, end versus peak", phases.end(high), phases.peak(high))
    yield from _high_rate_ends_higher(results)


def _fits(results: Results) -> Iterator[Finding]:
    for rate in NOISE_RATES:
        loss = results.curve("figure3", noise_rate=rate)
        limit = phases.start(loss) * CLOSE_TO_ZERO
        compared = f"r = {rate}, a tenth of the first loss versus the last"
        yield Finding(compared, limit, phases.end(loss), unit=LOSS)


def _loss_rises(results: Results, by: float = 0.0) -> Iterator[Finding]:
    schedule = results.schedule("figure3")
    loss = {
        rate: phases.before_drop(results.curve("figure3", noise_rate=rate), schedule)
        for rate in NOISE_RATES
    }
    for lower, higher in pairwise(NOISE_RATES):
        compared = f"loss at r = {higher} versus {lower}"
        yield Finding(compared, loss[higher], loss[lower], by=by, unit=LOSS)


def _high_rate_does_not_fit(results: Results) -> Iterator[Finding]:
    schedule = results.schedule("figure3")
    for rate in NOISE_RATES:
        if rate > 0:
            loss = phases.before_drop(results.curve("figure3", noise_rate=rate), schedule)
            compared = f"r = {rate}, loss before the drop versus the entropy of the noise"
            yield Finding(compared, loss, Trials.of_all(noise_entropy(rate)), unit=LOSS)


FITTED = "every-noise-is-fitted"
"""The claim that refutations of the high learning rate need: where a preset was chosen to memorise
every noise, a high rate cannot keep it from that."""

CLAIMS = [
    Claim(
        "low-rate-falls",
        "Figure 2",
        "At a low learning rate (0.02), test accuracy decreases gradually.",
        "At the low learning rate, mean test accuracy of the second quarter of the training versus "
        "the end.",
        _low_rate_decreases,
        ("figure2",),
        rests_on=MEMORISED,
        bounds=_low_rate_falls,
        bounded_check=f"It ends more than {NOTABLE:g} points below its peak.",
    ),
    Claim(
        "high-rate-keeps",
        "Figure 2",
        "At a high learning rate (0.2), test accuracy ends high.",
        "Test accuracy at the end, high versus low learning rate.",
        _high_rate_ends_higher,
        ("figure2",),
        rests_on=FITTED,
        bounds=_high_rate_keeps,
        bounded_check="At the high learning rate, test accuracy also ends within "
        f"{NOTABLE:g} points of its peak.",
    ),
    Claim(
        FITTED,
        "Section 5.3",
        "The network has memorised the noisy labels when training ends, at high noise rates too.",
        "At every noise rate, the training loss ends below a tenth of the first epoch's loss.",
        _fits,
        ("figure3",),
    ),
    Claim(
        "loss-rises-with-noise",
        "Section 5.3",
        "While the learning rate is high, more noise means a clearly higher training loss.",
        "Before the first learning rate drop, the training loss is higher at each higher noise "
        "rate.",
        _loss_rises,
        ("figure3",),
        bounds=partial(_loss_rises, by=CLEARLY_NATS),
        bounded_check=f"It is more than {CLEARLY_NATS:g} nats higher.",
    ),
    Claim(
        "high-rate-does-not-memorize",
        "Section 6",
        "A high learning rate keeps the network from memorising noisy labels.",
        "Before the first learning rate drop, the training loss stays above the entropy of the "
        "noise at every noise rate above 0. A lower loss requires memorised labels.",
        _high_rate_does_not_fit,
        ("figure3",),
        rests_on=FITTED,
    ),
]
