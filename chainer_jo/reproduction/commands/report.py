"""One HTML page of the Markdown and figures in a results folder (``reproduce/report.py``)."""

from __future__ import annotations

import base64
import re
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt

from chainer_jo import files
from chainer_jo.command_line import exit_codes, folders_parser, print_safely
from chainer_jo.errors import UserError
from chainer_jo.reproduction.commands.compare import origin
from chainer_jo.reproduction.experiments.words import slug

TITLE = "Joint Optimization Framework for Learning with Noisy Labels"
#: The page's order; other Markdown comes last, by name.
ORDER = ("table", "ablations", "figure", "learning_curves", "corrected_labels", "claims")
#: Results may come from others: the page loads and runs nothing.
POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
STYLE = """
:root { color-scheme: light dark; }
body { margin: 0 auto; padding: 1rem; max-width: 60rem; font: 1rem/1.5 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.25; }
table { display: block; overflow-x: auto; border-collapse: collapse; font-size: .85rem; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid #8886; text-align: left; }
img { max-width: 100%; background: #fff; }
"""


def main(description: str, argv: list[str] | None = None) -> None:
    """Entry point; ends the process with 2 for bad input."""
    with exit_codes():
        parser = folders_parser(description, results="results", figures="figures")
        flags = parser.parse_args(argv)
        folder = flags.results / flags.preset
        files.write_text(folder / "report.html", page(folder, flags.figures / flags.preset))
        print_safely("written:", folder / "report.html")


def page(folder: Path, figures: Path) -> str:
    """The tables, figures and claims that a results folder has as Markdown, with the PNG files of
    ``figures``. Raises UserError where the folder has no Markdown."""
    paths = sorted(folder.glob("*.md"), key=_place)
    if not paths:
        raise UserError(f"{folder}: no tables or figures, expected a results folder")
    links, sections = [], []
    for path in paths:
        with files.expected(path, "Markdown in UTF-8"):
            text = files.content(path).decode()
        anchor = escape(path.stem)
        named = re.match(r"(?:\*\*(.+?)\.\*\*|# (.+))", text)
        name = escape(named[1] or named[2] if named else path.stem)
        links.append(f'<li><a href="#{anchor}">{name}</a></li>')
        content = _html(text) + _picture(figures / f"{path.stem}.png", path, name)
        sections.append(f'<section id="{anchor}">\n{content}</section>')
    return "\n".join([
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(folder.name)}: {TITLE}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        f"<h1>{TITLE}</h1>\n<nav><ul>", *links, "</ul></nav>", *sections,
        f"<footer><p>{escape(folder.name)}: {escape(origin(folder))}</p></footer>",
        "</body>\n</html>\n",
    ])  # fmt: skip


def _place(path: Path) -> tuple[int, int, str]:
    kind, number = path.stem.rstrip("0123456789"), re.sub(r".*?(\d*)$", r"\1", path.stem)
    return ORDER.index(kind) if kind in ORDER else len(ORDER), int(number or 0), kind


def _html(text: str) -> str:
    """Markdown as HTML, with HTML in names escaped and no images; headings, one level down, have
    the anchors that `slug` gives them, and numbers of a cell stay on one line."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = markdown.parse(re.sub(r"(?<=[\d*]) (?=[±\[]\s?\d)|(?<=\d ±) ", "\xa0", text))
    for token, content in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{int(token.tag[1]) + 1}"
        if token.type == "heading_open" and content:
            token.attrSet("id", slug(content.content))
    html = markdown.renderer.render(tokens, markdown.options, {})
    return html.replace("&lt;br&gt;", "<br>")  # lines of a cell


def _picture(image: Path, markdown: Path, name: str) -> str:
    """An image, if there is one, with the description in the figure's JSON or else its name."""
    if not image.exists():
        return ""
    about = files.read_json(markdown.with_suffix(".json"), missing={}).get("description")
    encoded = base64.b64encode(files.content(image)).decode()
    alternative = escape(str(about)) if about else name
    return f'<p><img src="data:image/png;base64,{encoded}" alt="{alternative}"></p>\n'
