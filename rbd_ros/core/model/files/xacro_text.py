"""xacro → URDF text by the library `xacro`, with file and line of origin of each element.

This file has all uses of the library's internals (2.0, 2.1): `parse`, replaced during expansion to track the origin of
elements through macros; the function of `$(find NAME)`, replaced by the search of `package://`; and `filestack`, which
names the file of an error.
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
COMMANDS = "xacro:"    # by prefix, as in the library: its namespace has several names
DECLARED = "xacro:arg"
ARGUMENT = re.compile(r"\$\(arg\s+([^\s()]+)|xacro\.arg\(\s*[\"']([^\"']+)")    # uses of an argument
PATH = re.compile(r"(.*?\.xacro)(?:\s+(\S+:=.*)?)?", re.DOTALL)
_LOCK = threading.Lock()    # the library's state is global


class Expanded(str):
    """XML text with the origins of its elements, `12 of 'macros.xacro'`, in document order."""

    __slots__ = ("places",)
    places: tuple[str, ...]


def split(path: str) -> tuple[str, str | None]:
    """File and arguments of `robot.xacro name:=value …`; arguments None if not a xacro file."""
    match = PATH.fullmatch(path)
    return (match[1], match[2] or "") if match else (path, None)


def expanded(path: str, values: str) -> Expanded:
    """URDF text of a xacro file with arguments `name:=value …`. Raises `RbdError` naming file and macro."""
    try:
        import xacro
        from xacro import substitution_args as substitution
    except ImportError:
        raise RbdError(f"'{shortened(path, 200)}' is a xacro file, and the package xacro is not installed: install it, "
                       f"or expand the file first (`xacro {Path(path).name} > robot.urdf`)") from None
    arguments = _arguments(path, values)
    with _LOCK:
        reading = _Reading(xacro)
        parse, xacro.parse = xacro.parse, reading.parse
        find, substitution._eval_find = substitution._eval_find, lambda name: str(package_folder(name, path))
        try:
            document = xacro.process_file(path, mappings=dict(arguments))
        except Exception as error:    # Python expressions in the file may raise any exception
            unread = "".join(f"; no argument '{shortened(name, 60)}' in what was read"
                             for name in arguments if name not in reading.names)
            raise RbdError(f"cannot expand '{shortened(path, 200)}': {_reason(error, xacro, path)}{unread}") from None
        finally:
            xacro.parse, substitution._eval_find = parse, find
    for name in arguments:
        if name not in reading.names:
            raise unknown_name("xacro argument", name, sorted(reading.names), f"'{shortened(path, 200)}'")
    return reading.text(document.documentElement)


def _arguments(path: str, values: str) -> dict[str, str]:
    try:
        words = shlex.split(values)
    except ValueError as error:
        raise RbdError(f"'{shortened(path, 200)}': arguments {shortened(values, 80)}: {error}") from None
    arguments = {}
    for word in words:
        name, sign, value = word.partition(":=")
        if not sign or not name:
            raise RbdError(f"'{shortened(path, 200)}': expected arguments NAME:=VALUE, got '{shortened(word, 80)}'")
        arguments[name] = value
    return arguments


def _reason(error: Exception, xacro: ModuleType, path: str) -> str:
    """Message of an error, with macro and file."""
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
    """Files read during one expansion: origins of elements and names of arguments."""

    def __init__(self, xacro: ModuleType) -> None:
        self._xacro = xacro
        self.places: list[str] = []
        self.names: set[str] = set()    # of arguments used in the files

    def parse(self, source: Any, filename: str | None = None) -> Any:
        """As `xacro.parse`, with the index of the origin as an attribute of elements other than xacro's commands."""
        if source is not None or filename is None:
            return minidom.parseString(source) if isinstance(source, str) else source
        try:
            data = Path(filename).read_bytes()
        except OSError as error:
            raise self._xacro.XacroException(f"cannot read '{filename}': {error.strerror}") from None
        self.names.update(name for groups in ARGUMENT.findall(data.decode(errors="replace")) for name in groups if name)
        return _Builder(self, os.path.basename(filename)).parseString(data)

    def text(self, root: minidom.Element) -> Expanded:
        """Text of an expanded document, without the index attributes."""
        places = []
        for element in [root, *root.getElementsByTagName("*")]:
            mark = element.getAttribute(MARK)
            places.append(self.places[int(mark)] if mark else "?")
            if mark:
                element.removeAttribute(MARK)
        expanded = Expanded(root.toxml())
        expanded.places = tuple(places)
        return expanded


class _Builder(expatbuilder.ExpatBuilderNS):
    """Document builder that records origins of elements and declared arguments in `reading`."""

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
