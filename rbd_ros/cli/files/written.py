"""Output files of commands."""
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...core.errors import RbdError


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by name into a folder, which is created if missing; raises `RbdError` on failure."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise RbdError(f"{folder}: {error.strerror}") from None
