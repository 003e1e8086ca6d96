"""XML → element tree with line numbers; refuses dangerous and oversized XML.

Refused: entities and document types (they can expand a small file to gigabytes), and files beyond limits of size,
depth and number of elements. Namespace prefixes are not resolved: `xacro:include` stays `xacro:include`.
"""
from __future__ import annotations

import os
import re
from pathlib import Path
from typing import cast
from xml.etree import ElementTree
from xml.parsers import expat

from ...errors import RbdError
from .packages import package_folder
from .xacro_text import Expanded, expanded, split

PACKAGE = "package://"
MAX_BYTES = 64 * 2**20
MAX_DEPTH = 200
MAX_ELEMENTS = 1_000_000


class Element(ElementTree.Element):
    """An element with the line it starts at: a number, or `12 of 'arm.xacro'` for elements from xacro."""

    line: int | str = 0


def read_text(path_or_xml: str | os.PathLike[str], kind: str = "URDF") -> tuple[str | bytes, str]:
    """XML of a file's path, or the text itself, and its name in messages. kind: the format's name in messages.

    `package://name/…` is resolved by `package_folder`; `file.xacro name:=value …` is expanded.
    """
    if not isinstance(path_or_xml, (str, os.PathLike)):
        raise RbdError(f"expected a {kind} file's path or its XML text, got {type(path_or_xml).__name__}")
    if isinstance(path_or_xml, str):
        if "<" in path_or_xml:
            return path_or_xml, f"{kind} text"
        if not path_or_xml.strip():
            raise RbdError(f"expected a {kind} file's path or its XML text, got an empty string")
    path_text = os.fsdecode(path_or_xml)
    name, arguments = split(in_package(path_text) if path_text.startswith(PACKAGE) else path_text)
    path = Path(name)
    shown = str(path) if len(str(path)) <= 200 else f"{str(path)[:200]}…"
    if arguments is not None and path.is_file():
        text = expanded(name, arguments)
        if len(text) > MAX_BYTES:
            raise RbdError(f"'{shown}' expands to more than {MAX_BYTES >> 20} MiB: not a robot description")
        return text, f"'{shown}'"
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


def file_of(path_or_xml: str | os.PathLike[str]) -> Path | None:
    """The file of a description given to `read_text`; None for text."""
    name = os.fsdecode(path_or_xml)
    if "<" in name:
        return None
    return Path(split(in_package(name) if name.startswith(PACKAGE) else name)[0])


def in_package(url: str, description: str | os.PathLike[str] | None = None) -> str:
    """File path of `package://name/path` by `package_folder`."""
    name, path = package_parts(url)
    try:
        return str(package_folder(name, description, path) / path)
    except RbdError as error:
        raise RbdError(f"'{url[:200]}': {error}") from None


def prefixes() -> list[str]:
    """Install prefixes: the folders in AMENT_PREFIX_PATH."""
    return [os.path.normpath(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]


def package_parts(url: str) -> tuple[str, str]:
    """Name and path of `package://name/path`; `RbdError` for a path outside the package."""
    name, _, rest = url.removeprefix(PACKAGE).partition("/")
    path = os.path.normpath(rest.lstrip("/"))
    if not re.fullmatch(r"\w[\w.+-]*", name) or path.split("/")[0] == "..":
        raise RbdError(f"'{url[:200]}': expected package://NAME/PATH with a path inside the package")
    return name, path


def parse_xml(text: str | bytes, source: str, what: str = "a robot description") -> Element:
    """Root element of XML text. Raises `RbdError` naming `source` and the line of an error; what: kind of file, for
    messages.
    """
    builder = ElementTree.TreeBuilder(element_factory=Element)
    parser = expat.ParserCreate()
    depth = count = 0
    places = iter(text.places) if isinstance(text, Expanded) else None

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > MAX_DEPTH:
            raise RbdError(f"{source}, line {parser.CurrentLineNumber}: <{tag[:60]}> is nested more than {MAX_DEPTH} "
                           f"elements deep, too deep for {what}")
        if count > MAX_ELEMENTS:
            raise RbdError(f"{source} has more than {MAX_ELEMENTS} elements, too many for {what}")
        cast(Element, builder.start(tag, attributes)).line = (
            next(places, 0) if places else parser.CurrentLineNumber)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag)

    def document_type(name: str, *rest: object) -> None:
        raise RbdError(f"{source}, line {parser.CurrentLineNumber}: <!DOCTYPE {name[:60]}> is not allowed: {what} "
                       "needs no entities or document types; remove it")

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
