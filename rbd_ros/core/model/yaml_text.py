"""YAML from a file or a text, with errors that say which."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import RbdError


def read_yaml(path_or_text: str | os.PathLike[str], what: str) -> tuple[Any, str]:
    """The content of a YAML file, or of a text (which has a line break or a colon), and how to call it in messages.

    what: what it holds, "constraints" for instance. Raises `RbdError` where it cannot be read or is not YAML.
    """
    text, source = _read(path_or_text, what)
    try:
        import yaml
    except ImportError:
        raise RbdError(f"reading {what} needs the package pyyaml, which is not installed") from None
    try:
        return yaml.safe_load(text), source
    except yaml.YAMLError as error:
        raise RbdError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


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
