"""The launch files, and what can be read from their text without launch_ros."""
from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FILES = sorted((CHECKOUT / "launch").glob("*.launch.py"))
SHARED = CHECKOUT / "rbd_ros" / "nodes" / "base" / "launching.py"
each_file = pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])


def calls(path: Path, function: str) -> list[dict[str, Any]]:
    """Arguments of each call of `function` in a file: literals, and the syntax tree of what is none."""
    tree = compile(path.read_text(), str(path), "exec", flags=ast.PyCF_ONLY_AST)
    return [{str(index): literal(value) for index, value in enumerate(call.args)}
            | {str(item.arg): literal(item.value) for item in call.keywords}
            for call in ast.walk(tree) if isinstance(call, ast.Call) and getattr(call.func, "id", "") == function]


def literal(tree: ast.expr) -> Any:
    try:
        return ast.literal_eval(tree)
    except ValueError:
        return tree


def shared(path: Path) -> list[dict[str, Any]]:
    """The arguments that this file takes from those that several have."""
    tree = ast.parse(SHARED.read_text())
    [table] = [item.value for item in tree.body if isinstance(item, ast.AnnAssign) and item.target.id == "SHARED"]
    known = {key.value: {"0": key.value} | {name.value: literal(value) for name, value in zip(
        entry.keys, entry.values, strict=True)} for key, entry in zip(table.keys, table.values, strict=True)}
    for argument in known.values():
        if isinstance(argument.get("choices"), ast.Name):    # BOOLEAN
            argument["choices"] = ["true", "false"]
    return [known[name] for call in calls(path, "declare") for name in call.values()]
