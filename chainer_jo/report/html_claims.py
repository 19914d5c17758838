"""Claims and their verdicts as HTML; a verdict has a sign and words, never a colour alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape

from chainer_jo.paper.claims import DOES_NOT_HOLD, HOLDS, NOT_ENOUGH_RUNS
from chainer_jo.report.markdown_tables import prose

_SIGNS = {HOLDS: ("holds", "✓"), DOES_NOT_HOLD: ("fails", "✗"), NOT_ENOUGH_RUNS: ("open", "○")}
_LATEX = (
    (re.compile(r"~?\\cite\{[^}]*\}"), ""),
    (re.compile(r"\\([%#&_])"), r"\1"),
    (re.compile(r"\$([^$]*)\$"), r"\1"),
    (re.compile(r"\\eg"), "e.g."),
    (re.compile(r"~"), " "),
)


def plain(quote: str) -> str:
    """Words of the paper's LaTeX source as plain text."""
    for pattern, replacement in _LATEX:
        quote = pattern.sub(replacement, quote)
    return quote


def badge_html(verdict: str) -> str:
    """The verdict as a label."""
    look, sign = _SIGNS[verdict]
    return f'<span class="verdict {look}"><span aria-hidden="true">{sign}</span> {verdict}</span>'


def overview_html(
    claims: Sequence[Mapping], counts: Mapping[str, int], verdicts: Sequence[str]
) -> str:
    """How many claims have which verdict, and which."""
    tiles, lists = [], []
    for verdict in verdicts:
        look, sign = _SIGNS[verdict]
        tiles.append(
            f'<li class="{look}"><b>{counts[verdict]}</b> '
            f'<span><span aria-hidden="true">{sign}</span> {verdict}</span></li>'
        )
        links = ", ".join(
            f'<a href="#{claim["id"]}">{escape(_words(claim["id"]))}</a>'
            for claim in claims
            if claim["verdict"] == verdict
        )
        if links:
            lists.append(f"<div><dt>{badge_html(verdict)}</dt><dd>{links}</dd></div>")
    return (
        f"<p>Of {len(claims)} sentences of the paper that numbers can bear out or refute:</p>\n"
        f'<ul class="tiles">\n{"".join(tiles)}</ul>\n<dl class="overview">{"".join(lists)}</dl>'
    )


def claim_html(claim: Mapping) -> str:
    """One claim: verdict, quote, place, what was compared, and the numbers."""
    findings = []
    for finding in filter(None, claim["figures"].split("; ")):
        what, _, numbers = finding.rpartition(": ")
        sides = " against ".join(f"<b>{escape(n)}</b>" for n in numbers.split(" against "))
        findings.append(f"<li><span>{prose(what)}</span> <span>{sides}</span></li>")
    numbers = f'<ul class="findings">{"".join(findings)}</ul>' if findings else ""
    return f"""<article class="claim" id="{claim["id"]}">
<h3>{badge_html(claim["verdict"])} <span>{escape(_words(claim["id"]))}</span></h3>
<blockquote><p>{prose(plain(claim["quote"]))}</p>
<footer>{escape(claim["place"])}</footer></blockquote>
<p><b>Compared:</b> {prose(claim["check"])}</p>
{numbers}
<p class="reason"><b>Verdict:</b> {prose(claim["reason"])}.</p>
</article>"""


def _words(identifier: str) -> str:
    """``table6-breaks-down`` as "Table 6 breaks down"."""
    words = re.sub(r"\btable(\d+)", r"table \1", identifier.replace("-", " "))
    return words[0].upper() + words[1:]
