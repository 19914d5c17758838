"""The report: one self-contained HTML page of all tables, figures and claims."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from chainer_jo import files
from chainer_jo.paper import captions
from chainer_jo.report.claims import AGAIN, RULE, one_image, read
from chainer_jo.report.grid import prose
from chainer_jo.report.headline import headline
from chainer_jo.report.html_claims import claims_html, folded
from chainer_jo.report.output import Output, Page, TableOrFigure, write_all
from chainer_jo.report.template import policy
from chainer_jo.report.words import of_the_paper, trained_on
from chainer_jo.runs.presets import Study
from chainer_jo.runs.provenance import known
from chainer_jo.runs.store import RunStore

TITLE = "Joint Optimization Framework for Learning with Noisy Labels"


@dataclass(frozen=True)
class Report(Output):
    """Writes ``report.html`` from the verdicts, and the tables and figures of ``builds``, written
    so far; requires no run."""

    study: Study
    builds: Sequence[Callable[[Study], TableOrFigure]]

    name = "report"

    def text(self, store: RunStore, origin: dict) -> str:
        """The contents of the page, in one line."""
        written = self._written(store, origin, store.root)
        return (
            f"report of {len(written.tables)} tables, {len(written.figures)} figures and "
            f"{written.number_of_claims} claims"
        )

    def write(self, store: RunStore, origin: dict, folder: Path, figures: Path) -> list[Path]:
        """Writes the page; returns its path."""
        written = self._written(store, origin, folder)
        return write_all(folder / self.name, {".html": _page(self.study, origin, written, figures)})

    def repeated(self, folder: Path) -> Sequence[TableOrFigure]:
        """The tables and figures that are in a results folder."""
        outputs = (build(self.study) for build in self.builds)
        return [output for output in outputs if (folder / f"{output.name}.md").exists()]

    def _written(self, store: RunStore, origin: dict, folder: Path) -> _Written:
        """The tables, figures and claims in a results folder so far."""
        shown: dict[str, list[tuple[int, _Item]]] = {"table": [], "figure": []}
        for output in self.repeated(folder):
            item = _Item(output.name, output.data(store, origin), output.page(store, origin))
            shown[output.kind].append((output.number, item))
        tables, figures = ([item for _, item in sorted(s)] for s in shown.values())
        claims = ""
        if verdicts := read(folder):
            with files.expected(folder / "claims.json", AGAIN):
                claims = claims_html(verdicts, f"{RULE} {one_image(self.study)}".strip())
        return _Written(tables, figures, claims, len(verdicts), known(folder))


class _Item(NamedTuple):
    """A table or figure."""

    anchor: str
    data: dict
    page: Page


class _Written(NamedTuple):
    tables: list[_Item]
    figures: list[_Item]
    claims: str
    number_of_claims: int
    provenance: dict


#: Tables and figures at the top of the page.
FIRST = ("table1", "figure2")


def _page(study: Study, origin: dict, written: _Written, figures: Path) -> str:
    setting = f"preset {origin['preset']}, data {origin['data']}"
    items = [*written.tables, *written.figures]
    html = {
        item.anchor: _table(item) if item in written.tables else _figure(item, figures)
        for item in items
    }
    rest = [item for item in written.tables if item.anchor not in FIRST]
    for item in items:  # whole tables are shown
        if item.anchor not in FIRST and not (item in rest and item.data["complete"]):
            html[item.anchor] = folded(_title(item), html[item.anchor])
    sections = [
        ("result", "Main result",
         _result(study, written) + "".join(html.get(anchor, "") for anchor in FIRST)),
        ("claims", "Claims of the paper and verdicts of these runs", written.claims),
        ("tables", "Tables", _contents(rest) + "".join(html[item.anchor] for item in rest)),
        ("figures", "Figures",
         "".join(html[item.anchor] for item in written.figures if item.anchor not in FIRST)),
        ("provenance", "Provenance", _provenance(origin, written)),
    ]  # fmt: skip
    body = "\n".join(
        f'<section id="{key}"><h2>{escape(title)}</h2>\n{content or _NOTHING}\n</section>'
        for key, title, content in sections
    )
    links = "".join(f'<li><a href="#{key}">{escape(title)}</a></li>' for key, title, _ in sections)
    css = resources.files(__package__).joinpath("report.css").read_text()
    style = f"<style>\n{css}</style>"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{policy(style)}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(TITLE)}: {escape(setting)}</title>
{style}
</head>
<body>
<a class="skip" href="#result">Skip to the result</a>
<header class="top">
<p class="kicker">A reproduction in Chainer</p>
<h1>{escape(TITLE)}</h1>
<p class="setting">Preset <b>{escape(origin["preset"])}</b>
on data set <b>{escape(origin["data"])}</b>, precision {escape(origin["precision"])}</p>
</header>
<nav aria-label="Contents"><ol class="short">{links}</ol></nav>
<main>
{body}
</main>
</body>
</html>
"""


_NOTHING = "<p>Nothing yet.</p>"


def _title(item: _Item) -> str:
    badge = "" if item.data["complete"] else ' <span class="badge">unfinished</span>'
    return f"{escape(item.page.name)}: {escape(item.page.caption)}{badge}"


def _contents(items: Sequence[_Item]) -> str:
    links = "".join(f'<li><a href="#{p.anchor}">{escape(p.page.name)}</a></li>' for p in items)
    return f'<nav aria-label="Tables"><ol class="short">{links}</ol></nav>\n' * bool(links)


def _result(study: Study, written: _Written) -> str:
    """The headline, its setting, and the unfinished outputs."""
    preset = study.preset
    no_table: dict = {"cells": []}
    table1 = next((item.data for item in written.tables if item.anchor == "table1"), no_table)
    lead = headline(table1, trained_on(study)) or f"{preset.name}: {preset.summary}."
    on = prose(trained_on(study))
    if preset.name == "paper" and study.data == preset.reference_data:
        scope = "Data, network and schedules are the paper’s."
    elif preset.name == "paper":
        scope = f"Network and schedules are the paper’s; the data are {on}."
    else:
        beside = ", in [brackets] throughout," if of_the_paper(study.data) else ""
        but = prose(preset.summary) if study.of_the_preset else f"preset {preset.name}, on {on}"
        scope = (
            f"<strong>Not the paper’s setting</strong>: {but}. The paper’s numbers{beside} are for "
            "all of CIFAR-10, the full network and the full schedules. Trends can be compared; "
            "absolute accuracies cannot."
        )
    unfinished = [
        item.page.name for item in (*written.tables, *written.figures) if not item.data["complete"]
    ]
    if unfinished:
        scope += f" Unfinished, with some runs missing: {escape(', '.join(unfinished))}."
    return f'<p class="lead">{prose(lead)}</p>\n<p class="scope">{scope}</p>\n'


def _table(item: _Item) -> str:
    grids = "\n".join(
        f'<div class="scroll" tabindex="0" role="region" aria-labelledby="{item.anchor}-title">'
        f"{grid.html()}</div>"
        for grid in item.page.grids
    )
    return f'<article id="{item.anchor}" class="table">{_caption(item)}{grids}</article>\n'


def _figure(item: _Item, figures: Path) -> str:
    anchor, page = item.anchor, item.page
    image = figures / f"{anchor}.png"
    if not image.exists():
        return ""
    encoded = base64.b64encode(image.read_bytes()).decode()
    grids = "\n".join(f'<div class="scroll">{grid.html()}</div>' for grid in page.grids)
    return f"""<article id="{anchor}" class="figure">
<figure><img src="data:image/png;base64,{encoded}" alt="{escape(_in_words(item.data))}">
<figcaption>{_caption(item._replace(page=replace(page, notes=())))}{_in_the_paper(item)}
</figcaption></figure>
{grids}</article>
"""


def _in_the_paper(item: _Item) -> str:
    caption = captions.FIGURES.get(item.data["figure"], "")
    return f'<p class="note">In the paper: {prose(caption)}</p>' * bool(caption)


def _caption(item: _Item) -> str:
    anchor, data, page = item
    badge = "" if data["complete"] else ' <span class="badge">unfinished</span>'
    notes = "".join(f'<p class="note">{prose(note)}</p>' for note in page.notes)
    return (
        f'<h3 id="{anchor}-title">{escape(page.name)}{badge}</h3>'
        f"<p>{prose(page.caption)}</p>{notes}"
    )


def _in_words(data: dict) -> str:
    """The alternative text of a figure."""
    if "description" in data:
        return data["description"]
    ends = [
        f"{curve['label']} ends at {curve['mean']:.3g}" if curve["epochs"] else
        f"{curve['label']} has no epochs yet"
        for curve in data["curves"]
    ]  # fmt: skip
    return f"Curves of {data['axis']} over epochs: {'; '.join(ends)}."


def _provenance(origin: dict, written: _Written) -> str:
    provenance = written.provenance
    if not provenance:
        return ""
    data = provenance["data"] or {}
    versions = [" ".join(pair) for each in provenance["versions"] for pair in each.items()]
    rows = {
        "Data set": data.get("data"),
        "Fingerprint": data.get("fingerprint"),
        "Commit": ", ".join(commit or "unknown" for commit in provenance["commits"]),
        "Versions": ", ".join(dict.fromkeys(versions)),
        "Device": ", ".join(provenance["devices"]),
        "Engine": ", ".join(provenance["engines"]),
        "Precision": origin["precision"],
        "Seeds": ", ".join(map(str, provenance["seeds"])),
        "Runs": f"{provenance['runs']} finished, {provenance['hours']:g} hours in total",
    }
    listed = "".join(
        f"<div><dt>{name}</dt><dd>{escape(str(value))}</dd></div>\n"
        for name, value in rows.items()
        if value
    )
    return folded(escape(f"{rows['Runs']}, on {rows['Device']}"), f"<dl>{listed}</dl>")
