"""The paper's LaTeX source, cut into what the tests compare: places, captions, table cells."""

import re
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "paper"


@cache
def source() -> str:
    """The LaTeX source; skips the test where it is not at hand."""
    files = sorted(FOLDER.glob("*.tex"))
    if not files:
        pytest.skip(f"no LaTeX source of the paper in {FOLDER}")
    return files[0].read_text(encoding="utf-8")


def assert_own_words(text: str, in_a_row: int = 7) -> None:
    """No so many words in a row of `text` stand in the paper, numbers and all."""
    words = re.findall(r"\w+", text.lower())
    printed = " ".join(re.findall(r"\w+", source().lower()))
    for k in range(len(words) - in_a_row + 1):
        run = " ".join(words[k : k + in_a_row])
        assert f" {run} " not in printed, f"the paper's words: {run}"


def squeeze(text: str) -> str:
    return " ".join(text.split())


def _argument(text: str, command: str) -> str:
    """What stands in the braces after the first `command` in `text`."""
    start = text.index(command + "{") + len(command) + 1
    depth = 1
    for end in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return text[start:end]
    raise AssertionError(f"{command} is never closed")


def _floats(kind: str) -> list[str]:
    return re.findall(rf"\\begin{{{kind}\*?}}(.*?)\\end{{{kind}\*?}}", source(), re.DOTALL)


@cache
def places() -> dict[str, str]:
    """Text by place: "Abstract", "Section 5.1", "Appendix B"; captions as "Figure 2", "Table 1"."""
    found = {}
    for kind in ("figure", "table"):
        for i, body in enumerate(_floats(kind), 1):
            found[f"{kind.title()} {i}"] = squeeze(_argument(body, r"\caption"))
    running = re.sub(r"\\begin{(figure|table)(\*?)}.*?\\end{\1\2}", " ", source(), flags=re.DOTALL)
    found["Abstract"] = squeeze(running.split(r"\begin{abstract}")[1].split(r"\end{abstract}")[0])
    main, appendix = running.split(r"\appendix")
    section = subsection = 0
    for command, body in re.findall(
        r"\\(section|subsection){(.*?)(?=\\(?:sub)?section{|\Z)", main, re.DOTALL
    ):
        if command == "section":
            section, subsection = section + 1, 0
            found[f"Section {section}"] = squeeze(body)
        else:
            subsection += 1
            found[f"Section {section}.{subsection}"] = squeeze(body)
    for i, body in enumerate(re.split(r"\\section{", appendix)[1:]):
        found[f"Appendix {'ABCDEF'[i]}"] = squeeze(body)
    return found


def cells(number: int) -> list[list[tuple[str, bool]]]:
    """The lines of a table: each filled cell as its plain text and whether it is bold."""
    tabular = _floats("table")[number - 1].split(r"\begin{tabular}")[1].split(r"\end{tabular}")[0]
    body = tabular.split("\\hline", 1)[1].replace(r"\hline", "")
    lines = []
    for line in body.split(r"\\"):
        found = []
        for cell in re.split(r"(?<!\\)&", line):
            if r"\multicolumn" in cell:
                cell = cell[re.search(r"\\multicolumn{\d+}{[^}]*}{", cell).end() :].strip()[:-1]
            if plain(cell):
                found.append((plain(cell), r"\textbf" in cell or r"\bf" in cell))
        lines.append(found)
    return [line for line in lines if line]


def architecture() -> dict[str, list[str]]:
    """Numbers in the description of each part in Table 4: of residual units channels in, out, and,
    if there are several, their number."""
    described: dict[str, str] = {}
    for line in cells(4)[1:]:
        *name, description = (cell for cell, _ in line)
        key = name[0] if name else list(described)[-1]
        described[key] = f"{described.get(key, '')} {description}"
    return {name: re.findall(r"\d+", text) for name, text in described.items()}


def plain(latex: str) -> str:
    """LaTeX as the package's own strings write it."""
    for command, text in {r"\alpha": "α", r"\beta": "β", r"\%": "%"}.items():
        latex = latex.replace(command, text)
    latex = re.sub(r"~\\cite{\w*}", "", latex)
    latex = re.sub(r"\\text(?:bf|it){([^}]*)}|{\\bf ([^}]*)}", r"\1\2", latex)
    return squeeze(latex.replace("$", ""))
