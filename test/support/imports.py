"""Imports that stand in a file of Python."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def imports(path: Path) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Each one anywhere in it, and whether it stands at the top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in _statements(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, node in tree.body


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Without the expressions in them, which hold no imports and are most of a tree."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, part, ()):
            yield child
            yield from _statements(child)
