"""YAML from a file or text: limits of size and depth, errors with file and line."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...errors import RbdError, shortened, shown

MAX_CHARACTERS = 200_000
MAX_DEPTH = 20
MAX_NODES = 50_000       # after expansion of aliases
MAX_SCALAR = 1000        # characters of a name or number
KINDS = {f"tag:yaml.org,2002:{name}" for name in ("map", "seq", "str", "int", "float", "bool", "null", "merge")}


def read_yaml(path_or_text: str | os.PathLike[str], what: str) -> tuple[Any, str]:
    """Content of a YAML file, or of a text (with a line break or a colon), and its name in messages.

    Allowed: mappings with names as keys, lists, numbers, texts, true, false and null. what: kind of content, for
    messages, as "constraints". Raises `RbdError` for unreadable files, invalid YAML, duplicate keys and other values.
    """
    text, source = _read(path_or_text, what)
    try:
        import yaml
    except ImportError:
        raise RbdError(f"reading {what} needs the package pyyaml, which is not installed") from None
    if len(text) > MAX_CHARACTERS:
        raise RbdError(f"{source} has more than {MAX_CHARACTERS} characters, too many for {what}")
    try:
        root = yaml.compose(text, yaml.SafeLoader)
        if root is not None:
            _Check(source, yaml.constructor.SafeConstructor()).size(root, "", 0)
        return yaml.safe_load(text), source
    except RbdError:
        raise
    except RecursionError:
        raise RbdError(f"{source} is nested too deeply, expected at most {MAX_DEPTH} levels") from None
    except Exception as error:    # YAMLError, and errors of pyyaml's conversions
        raise RbdError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


class _Check:
    """Check of YAML nodes before construction of values."""

    def __init__(self, source: str, constructor: Any) -> None:
        self._source, self._constructor = source, constructor
        self._sizes: dict[int, int] = {}    # id of node → size with expanded aliases; 0 while it is being counted

    def size(self, node: Any, key: str, depth: int) -> int:
        """Number of nodes after expansion of aliases; key: path of keys to the node, for messages."""
        if id(node) in self._sizes:
            if self._sizes[id(node)] == 0:
                raise self._error(node, key, "an alias refers to a value that contains it")
            return self._sizes[id(node)]
        if depth > MAX_DEPTH:
            raise self._error(node, key, f"nested too deeply, expected at most {MAX_DEPTH} levels")
        if node.tag not in KINDS:
            name = node.tag.rpartition(":")[2] if isinstance(node.tag, str) else node.tag
            raise self._error(node, key, f"expected text, a number, a list or keys and values, got one of type "
                              f"{shown(name)}; quote it if it is a text")
        self._sizes[id(node)] = 0
        total = 1
        for below, child in self._children(node, key):
            total += self.size(child, below, depth + 1)
            if total > MAX_NODES:
                raise self._error(node, key, f"more than {MAX_NODES} values, aliases written out")
        self._sizes[id(node)] = total
        return total

    def _children(self, node: Any, key: str) -> list[tuple[str, Any]]:
        if isinstance(node.value, str):
            self._check_scalar(node, key)
            return []
        if node.tag.endswith(":seq"):
            return [(f"{key}[{i}]", item) for i, item in enumerate(node.value)]
        lines: dict[str, int] = {}
        children = []
        for name, value in node.value:
            line = name.start_mark.line + 1
            if not isinstance(name.value, str) or not name.tag.endswith((":str", ":merge")):
                key_text = shown(name.value) if isinstance(name.value, str) else "a list or mapping"
                raise self._error(name, key, f"expected a name as key, got {key_text}; quote it if it is a name")
            self._check_scalar(name, key)
            if name.value in lines:
                raise RbdError(f"{self._source}, line {line}: '{name.value}' is given twice, first on line "
                               f"{lines[name.value]}; which one counts?")
            lines[name.value] = line
            children.append((f"{key}.{name.value}" if key else name.value, value))
        return children

    def _check_scalar(self, node: Any, key: str) -> None:
        if len(node.value) > MAX_SCALAR:
            raise self._error(node, key, f"a value of {len(node.value)} characters, expected at most {MAX_SCALAR}")
        try:
            if not node.tag.endswith(":merge"):
                self._constructor.construct_object(node)
        except Exception:    # conversions of pyyaml may raise any exception
            raise self._error(node, key, f"{shown(node.value)} is no {node.tag.rpartition(':')[2]}") from None

    def _error(self, node: Any, key: str, text: str) -> RbdError:
        where = f", '{shortened(key, 120)}'" if key else ""
        return RbdError(f"{self._source}, line {node.start_mark.line + 1}{where}: {text}")


def _read(path_or_text: str | os.PathLike[str], what: str) -> tuple[str, str]:
    if not isinstance(path_or_text, (str, os.PathLike)):
        raise RbdError(f"expected a YAML file's path or its text, got {type(path_or_text).__name__}")
    if isinstance(path_or_text, str) and ("\n" in path_or_text or ":" in path_or_text):
        return path_or_text, f"{what} text"
    path = shortened(str(path_or_text), 200)
    try:
        with Path(path_or_text).open(encoding="utf-8") as file:
            return file.read(MAX_CHARACTERS + 1), f"'{path}'"
    except (OSError, ValueError) as error:
        raise RbdError(f"cannot read {what} '{path}': {getattr(error, 'strerror', None) or error}") from None
