"""xacro → URDF text, by the library `xacro`, with the file and line that each element comes from.

All that leans on the inside of that library (2.0, 2.1) is here: `parse`, which is replaced while a file is expanded, so
that elements carry their places through all macros; what `$(find NAME)` calls, likewise, so that it finds what
`package://` does; and `filestack`, which names the file of an error.
"""
from __future__ import annotations

import os
import re
import shlex
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from xml.dom import expatbuilder, minidom

from ...errors import RbdError, shortened, unknown_name
from .packages import package_folder

MARK = "rbd_place"
COMMANDS = "xacro:"    # the library looks at the prefix, too: several names of its namespace are in use
DECLARED = "xacro:arg"
ARGUMENT = re.compile(r"\$\(arg\s+([^\s()]+)|xacro\.arg\(\s*[\"']([^\"']+)")    # where one is used
PATH = re.compile(r"(.*?\.xacro)(?:\s+(\S+:=.*)?)?", re.DOTALL)
_LOCK = threading.Lock()    # the library's state is global


class Expanded(str):
    """XML text that knows, in document order, where its elements come from: `12 of 'macros.xacro'`."""

    __slots__ = ("places",)
    places: tuple[str, ...]


def split(path: str) -> tuple[str, str | None]:
    """The file and the arguments of `robot.xacro name:=value …`; None for those of what is no xacro file."""
    found = PATH.fullmatch(path)
    return (found[1], found[2] or "") if found else (path, None)


def expanded(path: str, given: str) -> Expanded:
    """The URDF that a file makes of arguments `name:=value …`. Raises `RbdError` naming file and macro."""
    try:
        import xacro
        from xacro import substitution_args as inside
    except ImportError:
        raise RbdError(f"'{shortened(path, 200)}' is a xacro file, and the package xacro is not installed: install it, "
                       f"or expand the file first (`xacro {Path(path).name} > robot.urdf`)") from None
    arguments = _arguments(path, given)
    with _LOCK:
        reading = _Reading(xacro)
        parse, xacro.parse = xacro.parse, reading.parse
        find, inside._eval_find = inside._eval_find, lambda name: str(package_folder(name, path))
        try:
            document = xacro.process_file(path, mappings=dict(arguments))
        except Exception as error:    # the library raises what its Python expressions raise
            unread = "".join(f"; no argument '{shortened(name, 60)}' in what was read"
                             for name in arguments if name not in reading.names)
            raise RbdError(f"cannot expand '{shortened(path, 200)}': {_reason(error, xacro, path)}{unread}") from None
        finally:
            xacro.parse, inside._eval_find = parse, find
    for name in arguments:
        if name not in reading.names:
            raise unknown_name("xacro argument", name, sorted(reading.names), f"'{shortened(path, 200)}'")
    return reading.text(document.documentElement)


def _arguments(path: str, given: str) -> dict[str, str]:
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise RbdError(f"'{shortened(path, 200)}': arguments {shortened(given, 80)}: {error}") from None
    found = {}
    for word in words:
        name, sign, value = word.partition(":=")
        if not sign or not name:
            raise RbdError(f"'{shortened(path, 200)}': expected arguments NAME:=VALUE, got '{shortened(word, 80)}'")
        found[name] = value
    return found


def _reason(error: Exception, xacro: ModuleType, path: str) -> str:
    """What happened, in which macro and file."""
    text = " ".join(str(error).split()).replace(f"{RbdError}: ", "") or type(error).__name__
    if isinstance(error, RecursionError):
        text = "macros or files that contain themselves"
    macros = [macro.body.getAttribute("name") for macro in getattr(error, "macros", ()) or ()]
    stack = getattr(xacro, "filestack", None) or [path]
    where = [f"in macro '{name}'" for name in macros[:3]]
    if stack[-1] and stack[-1] != path:
        where.append(f"in '{stack[-1]}'")
    return shortened(", ".join([text, *where]), 400)


class _Reading:
    """The files that are read while one is expanded."""

    def __init__(self, xacro: ModuleType) -> None:
        self._xacro = xacro
        self.places: list[str] = []
        self.names: set[str] = set()    # of arguments that they mention

    def parse(self, given: Any, filename: str | None = None) -> Any:
        """As `xacro.parse`; elements that are no commands of xacro get the number of their place."""
        if given is not None or filename is None:
            return minidom.parseString(given) if isinstance(given, str) else given
        try:
            data = Path(filename).read_bytes()
        except OSError as error:
            raise self._xacro.XacroException(f"cannot read '{filename}': {error.strerror}") from None
        self.names.update(name for groups in ARGUMENT.findall(data.decode(errors="replace")) for name in groups if name)
        return _Builder(self, os.path.basename(filename)).parseString(data)

    def text(self, root: minidom.Element) -> Expanded:
        """The text of an expanded document, without the marks."""
        places = []
        for element in [root, *root.getElementsByTagName("*")]:
            mark = element.getAttribute(MARK)
            places.append(self.places[int(mark)] if mark else "?")
            if mark:
                element.removeAttribute(MARK)
        made = Expanded(root.toxml())
        made.places = tuple(places)
        return made


class _Builder(expatbuilder.ExpatBuilderNS):
    """A document whose elements know where they start; `reading` gets to know of places and declared arguments."""

    def __init__(self, reading: _Reading, file: str) -> None:
        super().__init__()
        self._places, self._names, self._file = reading.places, reading.names, file

    def start_element_handler(self, name: str, attributes: list[str]) -> None:
        super().start_element_handler(name, attributes)
        element = cast(minidom.Element, self.curNode)
        if not element.tagName.startswith(COMMANDS):
            element.setAttribute(MARK, str(len(self._places)))
            self._places.append(f"{self.getParser().CurrentLineNumber} of '{self._file}'")
        elif element.tagName == DECLARED:
            self._names.add(element.getAttribute("name"))
