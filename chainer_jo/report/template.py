"""Pages that hold their own style and script, and may load and run nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources

#: Pictures within the page, those that its script unpacks, and files that it links to.
_IMAGES = "data: blob: 'self' file:"


def filled(package: str, name: str, content: dict, **parts: str) -> str:
    """The page of a template in this package: ``content`` as JSON for its script, ``parts`` of HTML
    by their names, and its `policy`."""
    template = resources.files(package).joinpath(name).read_text("utf-8")
    # In the script that holds it, "</script" would end it and "<!--<script" hide its end.
    parts["content"] = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    parts["policy"] = policy(template)
    # In one go: what is put in is not looked at again.
    return re.sub(r"{{(\w+)}}", lambda found: parts[found[1]], template)


def policy(template: str) -> str:
    """What a browser lets a page do, a ``<meta>``: should a text that comes from elsewhere get into
    it unescaped, it runs no code, restyles nothing and calls nobody.

    Parameters
    ----------
    template : of the page, before such texts are in it. The styles and scripts found there are
        allowed by their hashes; "'unsafe-inline'" would allow all that comes in.
    """
    allowed = {"img": _IMAGES, "style": "'none'", "script": "'none'"}
    for tag, text in re.findall(r"<(style|script)>(.*?)</\1>", template, re.DOTALL):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        allowed[tag] = f"'sha256-{digest}'"
    sources = "".join(f"; {kind}-src {source}" for kind, source in allowed.items())
    return (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"base-uri 'none'; form-action 'none'{sources}\">"
    )
