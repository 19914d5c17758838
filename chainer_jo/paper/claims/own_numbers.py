"""The paper's own numbers, held against its claims."""

from collections.abc import Mapping, Sequence

from chainer_jo.paper import settings, tables
from chainer_jo.paper.claims.claim import Claim
from chainer_jo.paper.trials import EQUAL, Trials


class PrintedResults:
    """The printed tables as `claim.Results`: each number is of one trial. Curves have no numbers in
    the paper."""

    premises: Sequence[str] = ()

    def trials(self, kind: str, **keys) -> Trials:
        table = getattr(tables, kind.upper(), None)
        number = table and table.value(**{name: keys[name] for name in table.names})
        return Trials({} if number is None else {0: number})

    def curve(self, kind: str, logged: str = "", **keys) -> Mapping[int, Sequence[float] | None]:
        return {}

    def schedule(self, name: str) -> tuple[int, Sequence[int]]:
        schedules = {
            "second_step": settings.CIFAR_SECOND_STEP,
            "figure3": settings.FIGURE3_SCHEDULE,
        }
        return schedules[name].epochs, schedules[name].drops


def contradicting(claim: Claim) -> list[str]:
    """The claim's comparisons that come out on the wrong side with the numbers that the paper
    prints."""
    found = claim.findings(PrintedResults())
    return [
        finding.compared
        for finding in found
        if finding.difference.finished and finding.difference.mean < finding.by - EQUAL
    ]
