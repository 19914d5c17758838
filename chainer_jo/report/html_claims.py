"""Claims and their verdicts as HTML; a verdict has a sign and words, never a colour alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from chainer_jo.paper.claims import (
    DOES_NOT_HOLD,
    HOLDS,
    NO_PREMISE,
    NOT_ALL_RUN,
    NOT_RUN,
    PREMISE,
    TIE,
    TOO_FEW_TRIALS,
    UNDECIDED,
    VERDICTS,
)
from chainer_jo.report.grid import prose
from chainer_jo.report.words import in_words

_SIGNS = {
    HOLDS: ("holds", "✓"),
    DOES_NOT_HOLD: ("fails", "✗"),
    TIE: ("tie", "="),
    PREMISE: ("tie", "✓"),
    NO_PREMISE: ("tie", "–"),
    UNDECIDED: ("open", "?"),
    TOO_FEW_TRIALS: ("open", "○"),
    NOT_ALL_RUN: ("open", "○"),
    NOT_RUN: ("open", "○"),
}


def badge_html(verdict: str, label: str) -> str:
    """The verdict as a label."""
    look, sign = _SIGNS[verdict]
    return f'<span class="verdict {look}"><span aria-hidden="true">{sign}</span> {label}</span>'


def overview_html(claims: Sequence[Mapping], counts: Mapping[str, int]) -> str:
    """How many claims have which verdict, and which."""
    tiles, lists = [], []
    for verdict in filter(counts.get, VERDICTS):
        look, sign = _SIGNS[verdict]
        tiles.append(
            f'<li class="{look}"><b>{counts[verdict]}</b> '
            f'<span><span aria-hidden="true">{sign}</span> {verdict}</span></li>'
        )
        links = ", ".join(
            f'<a href="#{claim["id"]}">{escape(in_words(claim["id"]))}</a>'
            for claim in claims
            if claim["verdict"] == verdict
        )
        lists.append(f"<div><dt>{badge_html(verdict, verdict)}</dt><dd>{links}</dd></div>")
    return (
        f"<p>Of {len(claims)} statements of the paper that numbers can bear out or refute:</p>\n"
        f'<ul class="tiles">\n{"".join(tiles)}</ul>\n<dl class="overview">{"".join(lists)}</dl>'
    )


def claim_html(claim: Mapping) -> str:
    """One claim: verdict, statement, place, what was compared, and the numbers."""
    findings = "".join(
        f"<li><span>{prose(finding['what'])}</span> <span>{_numbers(finding)}</span></li>"
        for finding in (claim["findings"] if claim["verdict"] != NOT_RUN else ())
    )
    compared = f'<ul class="findings">{findings}</ul>\n' if findings else ""
    return f"""<article class="claim" id="{claim["id"]}">
<h3>{badge_html(claim["verdict"], claim["label"])} <span>{escape(in_words(claim["id"]))}</span></h3>
<p>{prose(claim["statement"])} <span class="place">{escape(claim["place"])}</span></p>
<p><b>Compared:</b> {prose(claim["check"])}</p>
{compared}<p class="reason"><b>Verdict:</b> {prose(claim["reason"])}.</p>
</article>"""


def _numbers(finding: Mapping) -> str:
    if finding["numbers"] == finding["outcome"]:
        return escape(finding["outcome"])
    sides, comma, difference = finding["numbers"].partition(", ")
    sides = " against ".join(f"<b>{escape(side)}</b>" for side in sides.split(" against "))
    return f"{sides}{comma}{escape(difference)}; {finding['remark']}"
