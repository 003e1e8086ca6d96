"""YAML from a file or a text, with errors that say which."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import RbdError


def read_yaml(path_or_text: str | os.PathLike[str], what: str) -> tuple[Any, str]:
    """The content of a YAML file, or of a text (which has a line break or a colon), and how to call it in messages.

    what: what it holds, "constraints" for instance. Raises `RbdError` where it cannot be read, is not YAML, or says
    something twice.
    """
    text, source = _read(path_or_text, what)
    try:
        import yaml
    except ImportError:
        raise RbdError(f"reading {what} needs the package pyyaml, which is not installed") from None
    try:
        _check_once(yaml.compose(text, yaml.SafeLoader), source)
        return yaml.safe_load(text), source
    except yaml.YAMLError as error:
        raise RbdError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


def _check_once(root: Any, source: str) -> None:
    """Raise `RbdError` for a key that a mapping has twice, of which YAML's own reader would take the last."""
    nodes, seen = [root], set()
    while nodes:
        node = nodes.pop()
        if node is None or id(node) in seen:    # nothing, or an alias
            continue
        seen.add(id(node))
        lines: dict[str, int] = {}
        for item in node.value if isinstance(node.value, list) else ():
            if not isinstance(item, tuple):
                nodes.append(item)
                continue
            key, line = item[0].value, item[0].start_mark.line + 1
            if isinstance(key, str) and key in lines:
                raise RbdError(f"{source}, line {line}: '{key}' is given twice, first on line {lines[key]}; which one "
                               "counts?")
            lines[str(key)] = line
            nodes.append(item[1])


def _read(path_or_text: str | os.PathLike[str], what: str) -> tuple[str, str]:
    if not isinstance(path_or_text, (str, os.PathLike)):
        raise RbdError(f"expected a YAML file's path or its text, got {type(path_or_text).__name__}")
    if isinstance(path_or_text, str) and ("\n" in path_or_text or ":" in path_or_text):
        return path_or_text, f"{what} text"
    try:
        return Path(path_or_text).read_text(encoding="utf-8"), f"'{path_or_text}'"
    except (OSError, ValueError) as error:
        raise RbdError(f"cannot read {what} '{path_or_text}': "
                       f"{getattr(error, 'strerror', None) or error}") from None
