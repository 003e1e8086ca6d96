"""XML → element tree with line numbers, refusing what a robot description has no use for.

Entities and document types are refused (they can grow a small file to gigabytes), and so are files that are very
large or very deeply nested. Namespaces are left as written: `xacro:include` stays `xacro:include`.
"""
from __future__ import annotations

import os
from pathlib import Path
from typing import cast
from xml.etree import ElementTree
from xml.parsers import expat

from ...errors import RbdError

MAX_BYTES = 64 * 2**20
MAX_DEPTH = 200


class Element(ElementTree.Element):
    """An element that knows the line it starts at."""

    line = 0


def read_text(path_or_xml: str | os.PathLike[str], kind: str = "URDF") -> tuple[str | bytes, str]:
    """The XML of a file's path, or the text itself, and a name for it in messages. kind: of the format, for these."""
    if not isinstance(path_or_xml, (str, os.PathLike)):
        raise RbdError(f"expected a {kind} file's path or its XML text, got {type(path_or_xml).__name__}")
    if isinstance(path_or_xml, str):
        if "<" in path_or_xml:
            return path_or_xml, f"{kind} text"
        if not path_or_xml.strip():
            raise RbdError(f"expected a {kind} file's path or its XML text, got an empty string")
    path = Path(path_or_xml)
    shown = str(path) if len(str(path)) <= 200 else f"{str(path)[:200]}…"
    if path.suffix == ".xacro":
        raise RbdError(f"'{shown}' is a xacro file: expand it first (`xacro {path.name} > robot.urdf`)")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise RbdError(f"cannot read {kind} '{shown}': {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAX_BYTES:
        raise RbdError(f"'{shown}' is larger than {MAX_BYTES >> 20} MiB: not a robot description")
    if not data.strip():
        raise RbdError(f"'{shown}' is empty, expected XML with the root element <robot>")
    return data, f"'{shown}'"


def parse_xml(text: str | bytes, source: str) -> Element:
    """The root element. Raises `RbdError` naming `source` and the line where it is not well-formed."""
    builder = ElementTree.TreeBuilder(element_factory=Element)
    parser = expat.ParserCreate()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise RbdError(f"{source}, line {parser.CurrentLineNumber}: <{tag[:60]}> is nested more than {MAX_DEPTH} "
                           "elements deep, too deep for a robot description")
        cast(Element, builder.start(tag, attributes)).line = parser.CurrentLineNumber

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def document_type(name: str, *rest: object) -> None:
        raise RbdError(f"{source}, line {parser.CurrentLineNumber}: <!DOCTYPE {name[:60]}> is not allowed: a robot "
                       "description needs no entities or document types; remove it")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = document_type
    try:
        parser.Parse(text.lstrip("\ufeff").strip() if isinstance(text, str) else text.lstrip(), True)
        return cast(Element, builder.close())
    except RbdError:
        raise
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise RbdError(f"{source} is not well-formed XML: {error}") from None
