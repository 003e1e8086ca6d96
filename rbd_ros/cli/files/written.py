"""Output files of commands."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...core.errors import RbdError


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by name or path into a folder; folders are created if missing. Raises `RbdError` on failure."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise RbdError(f"{folder}: {error.strerror}") from None
