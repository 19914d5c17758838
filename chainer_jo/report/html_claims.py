"""Claims and verdicts as HTML; each verdict has a sign and words, not only a colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from chainer_jo.paper.claims import claim as verdicts
from chainer_jo.report.grid import prose

_SIGNS = {
    verdicts.HOLDS: ("holds", "✓"),
    verdicts.IN_PART: ("part", "◐"),
    verdicts.DOES_NOT_HOLD: ("fails", "✗"),
    verdicts.TIE: ("tie", "="),
    verdicts.PREMISE: ("tie", "✓"),
    verdicts.NO_PREMISE: ("tie", "–"),
    verdicts.UNDECIDED: ("open", "?"),
    verdicts.TOO_FEW_TRIALS: ("open", "○"),
    verdicts.NOT_ALL_RUN: ("open", "○"),
    verdicts.NOT_RUN: ("open", "○"),
}
_DECIDED = (
    verdicts.HOLDS, verdicts.IN_PART, verdicts.DOES_NOT_HOLD, verdicts.TIE, verdicts.PREMISE,
)  # fmt: skip


def claims_html(claims: Sequence[Mapping], rule: str) -> str:
    """Counts of verdicts, decided claims by group, and all other claims, folded."""
    counts = Counter(claim["verdict"] for claim in claims)
    counted = {v: f"{counts[v]} {v}" for v in verdicts.VERDICTS if counts[v]}
    tally = " ".join(_badge(verdict, text) for verdict, text in counted.items())
    decided = [claim for claim in claims if claim["verdict"] in _DECIDED]
    groups = "\n".join(
        f"<h3>{prose(group)}</h3>\n{_all(c for c in decided if c['group'] == group)}"
        for group in dict.fromkeys(claim["group"] for claim in decided)
    )
    rest = [claim for claim in claims if claim not in decided]
    still = ", ".join(text for verdict, text in counted.items() if verdict not in _DECIDED)
    return (
        f"<p>Verdicts on {len(claims)} testable statements of the paper: {tally}"
        f"</p>\n{groups}\n"
        + folded(f"Undecided or not run: {still}", _all(rest))
        + folded("Rules for verdicts", f"<p>{prose(rule)}</p>")
    )


def folded(summary: str, content: str, anchor: str = "") -> str:
    """A <details> element with a summary (HTML); empty without content."""
    name = f' id="{anchor}"' if anchor else ""
    return f"<details{name}><summary>{summary}</summary>\n{content}\n</details>\n" * bool(content)


def _all(claims: Iterable[Mapping]) -> str:
    return "\n".join(map(_claim, claims))


def _badge(verdict: str, text: str) -> str:
    css_class, sign = _SIGNS[verdict]
    sign = f'<span aria-hidden="true">{sign}</span>'
    return f'<span class="verdict {css_class}">{sign} {escape(text)}</span>'


def _claim(claim: Mapping) -> str:
    """One claim: verdict, statement and place; below them the comparisons and their numbers."""
    verdict, label = claim["verdict"], claim["label"]
    place = f'<span class="place">{escape(claim["place"])}</span>'
    summary = f"{_badge(verdict, label)} {prose(claim['statement'])} {place}"
    compared = f"<p><b>Compared:</b> {prose(claim['check'])}</p>\n"
    if verdict != verdicts.NOT_RUN:
        rows = "".join(map(_finding, claim["findings"]))
        # With a single comparison, the count would repeat its row.
        why = [*claim["tally"] * (len(claim["findings"]) > 1), *claim["notes"]]
        reason = ": ".join(filter(None, (label[:1].upper() + label[1:], "; ".join(why)))) + "."
        table = f'<table class="findings">{_HEAD}<tbody>{rows}</tbody></table>'
        compared += f'<div class="scroll">{table}</div>\n<p>{prose(reason)}</p>'
    return folded(summary, compared, escape(claim["id"]))


_HEAD = "<thead><tr>{}</tr></thead>".format(
    "".join(f'<th scope="col">{n}</th>' for n in ("compared", "numbers", "difference", ""))
)


def _finding(finding: Mapping) -> str:
    """A row: the comparison, both numbers, their difference with its interval, the outcome."""
    numbers = "" if finding["sides"] == finding["outcome"] else finding["sides"]
    texts = numbers, finding["difference_in_words"], finding["remark"]
    cells = "".join(f"<td>{prose(text)}</td>" for text in texts)
    return f'<tr><th scope="row">{prose(finding["what"])}</th>{cells}</tr>'
