"""A page that holds its own style and script, and may load and run nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources


def filled(content: dict, **html: str) -> str:
    """The template ``report.html`` with its style and `policy`, ``content`` as JSON for its script,
    and pieces of ``html``."""
    folder = resources.files(__package__)
    style, template = (folder.joinpath(n).read_text("utf-8") for n in ("page.css", "report.html"))
    template = template.replace("{{style}}", style)
    # In the script that holds it, "</script" would end it and "<!--<script" hide its end.
    html["content"] = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    html["policy"] = policy(template)
    # In one go: what is put in is not looked at again.
    return re.sub(r"{{(\w+)}}", lambda match: html[match[1]], template)


def policy(template: str) -> str:
    """Content security policy of a page, as a ``<meta>``: an unescaped text from elsewhere runs
    nothing, restyles nothing and calls nobody. Allowed are the style and script of the
    ``template``, by hashes ('unsafe-inline' would allow what gets in), and images that are in the
    page, unpacked by its script, or files beside it."""
    allowed = {"img": "data: blob: 'self' file:", "style": "'none'", "script": "'none'"}
    for tag, text in re.findall(r"<(style|script)>(.*?)</\1>", template, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        allowed[tag] = f"'sha256-{digest}'"
    sources = "".join(f"; {kind}-src {source}" for kind, source in allowed.items())
    return (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"base-uri 'none'; form-action 'none'{sources}\">"
    )
