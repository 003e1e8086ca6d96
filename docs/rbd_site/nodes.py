"""`.. node:: NAME`: topics and services of a node from its docstrings, its parameters from its table.

`.. interfaces:: msg`: the files of a kind, with their comments.
"""
from __future__ import annotations

import importlib
import inspect
import math
import re
import sys
from typing import Any

from .api import Lines
from .plain_text import inline, to_rst
from .repository import CHECKOUT


def node_class(name: str) -> Any:
    """The class of an executable: that of its module which has a table of parameters."""
    module = importlib.import_module(f"rbd_ros.nodes.{name}")
    (found,) = [value for value in vars(module).values()
                if inspect.isclass(value) and value.__module__ == module.__name__ and hasattr(value, "table")]
    return found


def nodes() -> list[str]:
    """Executables with a table of parameters."""
    files = sorted((CHECKOUT / "rbd_ros" / "nodes").glob("*.py"))
    return [file.stem for file in files if re.search(r"^    table\b.*=", file.read_text(encoding="utf-8"), re.M)]


class Node(Lines):
    optional_arguments = 0

    def text(self) -> list[str]:
        (name,) = self.arguments
        made = node_class(name)
        lines = []
        for base in made.__mro__:
            text = inspect.cleandoc(sys.modules[base.__module__].__doc__ or "")
            if base is made or (base.__module__.startswith("rbd_ros.nodes.") and "in," in text):
                if base is not made:
                    title = f"As every {base.__module__.split('.')[-1].replace('_', ' ')}"
                    lines += [title, "~" * len(title), ""]
                lines += to_rst(text)
        return [*lines, "Parameters", "~" * 10, "", *parameters(made.table)]


def parameters(table: Any) -> list[str]:
    lines = [".. list-table::", "    :header-rows: 1", "    :widths: 24 12 12 52", "    :class: parameters", "",
             "    * - name", "      - default", "      - values", "      - what it is"]
    for row in table:
        more = " *Read-only.*" if row.read_only else ""
        lines += [f"    * - ``{row.name}``", f"      - {code(row.default)}", f"      - {values(row)}",
                  f"      - {one_line(inline(row.description, lambda name: None, ()))}{more}"]
    return [*lines, ""]


def values(row: Any) -> str:
    kind = {"bool": "bool", "string": "text", "strings": "texts", "number": "number", "numbers": "numbers"}[row.kind]
    if row.kind == "numbers":
        kind = f"{row.count} numbers" if row.count else f"number, or one per {row.per}"
    if row.choices:
        kind += ": " + ", ".join(code(choice) for choice in row.choices)
    if row.lower > -math.inf and row.upper < math.inf:
        kind += f", {row.lower:g} to {row.upper:g}"
    elif row.lower > -math.inf:
        kind += f", ≥ {row.lower:g}"
    elif row.upper < math.inf:
        kind += f", ≤ {row.upper:g}"
    return kind


def code(value: Any) -> str:
    if isinstance(value, str):
        return f"``{value}``" if value else "empty"
    if isinstance(value, (tuple, list)):
        return f"``[{', '.join(map(str, value))}]``"
    return f"``{str(value).lower() if isinstance(value, bool) else value}``"


def one_line(text: str) -> str:
    return " ".join(text.split())


class Interface(Lines):
    def text(self) -> list[str]:
        lines = []
        for kind in self.arguments:
            for file in sorted((CHECKOUT / "rbd_interfaces" / kind).glob(f"*.{kind}")):
                content = file.read_text(encoding="utf-8").rstrip()
                lines += [file.stem, "~" * len(file.stem), "", ".. code-block:: text", "",
                          *("    " + line for line in content.splitlines()), ""]
        return lines


def setup(app: Any) -> None:
    app.add_directive("node", Node)
    app.add_directive("interfaces", Interface)
