"""State diagrams in mermaid, which forges draw, as tables of transitions: the script that draws them is not here."""
from __future__ import annotations

import re
from typing import Any

from docutils import nodes

TRANSITION = re.compile(r"\s*(\S+) --> (\S+?)(?:: (.*))?$", re.MULTILINE)


def transitions(text: str) -> list[tuple[str, str, str]]:
    """(from, when, to); what differs by its source alone is one row."""
    found: dict[tuple[str, str], list[str]] = {}
    for source, target, when in TRANSITION.findall(text):
        found.setdefault((when, target), []).append(source.replace("[*]", "start"))
    return [(", ".join(sources), when, target) for (when, target), sources in found.items()]


def table(rows: list[tuple[str, ...]], head: tuple[str, ...]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (30, 50, 20)), cols=3)
    for kind, lines in ((nodes.thead, [head]), (nodes.tbody, rows)):
        group += kind("", *(nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in line))
                            for line in lines))
    return nodes.table("", group)


def replaced(app: Any, document: nodes.document) -> None:
    for block in list(document.findall(nodes.literal_block)):
        if block.get("language") == "mermaid":
            block.replace_self(table(transitions(block.astext()), ("from", "when", "to")))


def setup(app: Any) -> None:
    app.connect("doctree-read", replaced)
