"""`.. api:: NAME …`: public names of `rbd_ros`, each with its signature and docstring.

`.. api-module:: PATH` lists the functions and classes of a module, `rbd_ros.lie.so3`, by the names users give them.
"""
from __future__ import annotations

import importlib
import inspect
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from rbd_ros.core.model import joints

from .plain_text import to_rst

PACKAGE = "rbd_ros"
# Values, whose own docstring is that of their type.
VALUES = {"COMPILED": "Whether numba compiles the kernels here; without it they run as plain Python.",
          "JOINT_TYPES": "Names of the types that a `JointSpec` may have."}
# A docstring that refers to that of its module, which is shown before it then.
REFERS = re.compile(r"\b(?:as|law|example) above\b")


class Lines(Directive, ABC):
    """A directive whose content is reStructuredText that `text` makes of its arguments."""

    required_arguments = 1
    optional_arguments = 200
    final_argument_whitespace = False

    @abstractmethod
    def text(self) -> list[str]:
        """The lines."""

    def run(self) -> list[nodes.Node]:
        made = nodes.section()
        made.document = self.state.document
        source = f"<{self.name} {self.arguments[0]}>"
        self.state.nested_parse(StringList(self.text(), source=source), self.content_offset, made, match_titles=True)
        return made.children


class Api(Lines):
    def text(self) -> list[str]:
        lines: list[str] = []
        for name in self.arguments:
            lines += documented(name, getattr(importlib.import_module(PACKAGE), name), PACKAGE)
        return lines


class ApiModule(Lines):
    optional_arguments = 0

    def text(self) -> list[str]:
        path = self.arguments[0]
        module: Any = importlib.import_module(PACKAGE)
        for part in path.split(".")[1:]:
            module = getattr(module, part)
        lines = to_rst(inspect.getdoc(module) or "", target)
        for name, value in public(module):
            lines += documented(name, value, path)
        return lines


def public(module: Any) -> Iterator[tuple[str, Any]]:
    """What a module offers: its `__all__` less modules, or the functions and classes that are its own."""
    listed = getattr(module, "__all__", None)
    for name in listed or sorted(vars(module)):
        value = getattr(module, name)
        own = (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == module.__name__
        inside = inspect.ismodule(value) or name.startswith(("_", "checked"))
        if not inside and (listed or own) and inspect.getdoc(value):
            yield name, value


def target(code: str) -> str | None:
    """Full name of what `code` in a docstring means, if it is a public name or a member of one."""
    name, _, member = code.removesuffix("()").partition(".")
    package = importlib.import_module(PACKAGE)
    if name not in package.__all__ or name in VALUES or name == "lie":
        return None
    found = getattr(package, name)
    if member and member not in dict(members(found)):
        return None
    return f"{PACKAGE}.{name}.{member}" if member else f"{PACKAGE}.{name}"


def documented(name: str, value: Any, module: str) -> list[str]:
    """A description of Sphinx's Python domain."""
    if name in VALUES:
        more = "\n\n" + (inspect.getdoc(joints) or "") if name == "JOINT_TYPES" else ""
        return described("data", f"{module}.{name}", VALUES[name] + more, [])
    if not inspect.isclass(value):
        return described("function", f"{module}.{name}{signature(value)}", doc(value), arguments(value))
    kind = "exception" if issubclass(value, BaseException) else "class"
    body: list[str] = []
    for member, what in members(value):
        if isinstance(what, property):
            body += described("property", member, doc(what), [])
        else:
            plain = what.__func__ if isinstance(what, (classmethod, staticmethod)) else what
            option = {classmethod: [":classmethod:"], staticmethod: [":staticmethod:"]}.get(type(what), [])
            bound = signature(plain, skip=not isinstance(what, staticmethod))
            body += described("method", member + bound, doc(plain), arguments(plain), option)
    shown = "" if kind == "exception" else signature(value)
    return described(kind, f"{module}.{name}{shown}", doc(value), arguments(value), body=body)


def described(kind: str, what: str, text: str, names: list[str], options: list[str] = [],  # noqa: B006
              body: list[str] = []) -> list[str]:  # noqa: B006
    inside = [*options, "", *to_rst(text, target, names), "", *body]
    return [f".. py:{kind}:: {what}", *("    " + line if line else "" for line in inside), ""]


def members(kind: Any) -> Iterator[tuple[str, Any]]:
    """Public methods and properties with a docstring, those of base classes of this project included."""
    if not inspect.isclass(kind):
        return
    seen = set()
    for base in kind.__mro__:
        if not base.__module__.startswith(PACKAGE):
            continue
        for name, value in vars(base).items():
            plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if (not name.startswith("_") and name not in seen and inspect.getdoc(plain)
                    and (inspect.isfunction(plain) or isinstance(value, property))):
                seen.add(name)
                yield name, value


def doc(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    if inspect.isclass(value):
        text = inspect.cleandoc(value.__doc__ or "")
        text = "" if text.startswith(f"{value.__name__}(") else text    # what dataclasses make up
    if REFERS.search(text):
        text = (inspect.getdoc(sys.modules[value.__module__]) or "") + "\n\n" + text
    return text


def signature(value: Any, skip: bool = False) -> str:
    """Arguments and defaults, without types: docstrings say shapes and units."""
    try:
        made = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    every = [each for each in made.parameters.values() if not each.name.startswith("_")]
    shown = [each.replace(annotation=inspect.Parameter.empty, default=plain(each.default)) for each in every[skip:]]
    return str(inspect.Signature(shown))


class Shown(str):
    """A default as it is written in a signature."""

    def __repr__(self) -> str:
        return str(self)


def plain(default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return default
    text = repr(default)
    return default if len(text) < 40 and "<" not in text and "\n" not in text else Shown("…")


def arguments(value: Any) -> list[str]:
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []


def setup(app: Any) -> None:
    app.add_directive("api", Api)
    app.add_directive("api-module", ApiModule)
