"""Files that a command writes."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...core.errors import RbdError


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Texts by name, into a folder that is made if it is missing; `RbdError` where that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise RbdError(f"{folder}: {error.strerror}") from None
