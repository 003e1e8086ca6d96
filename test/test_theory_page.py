"""docs/theory.md as an index: the names of its table exist, files and tests that it names do, too."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

import rbd_ros as rbd

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
ROWS = [row for row in re.findall(r"^\|.*\|$", PAGE.split("## Where to find what")[1].split("\n## ")[0], re.MULTILINE)
        if not row.startswith(("| what", "|---"))]


@pytest.mark.parametrize("row", ROWS, ids=[row.split("|")[1].strip()[:40] for row in ROWS])
def test_what_a_row_names_exists(row):
    what, _, where, proof = (cell.strip() for cell in row.strip("|").split("|"))
    names = re.findall(r"`rbd\.([\w.]+)", where)
    files = re.findall(r"`((?:[\w{},]+/)+(?:[\w]+\.py)?)`", where)
    assert what and proof and (names or files), row
    for name in names:
        found = rbd
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found) or found.__doc__, name
    for file in files:
        assert any((ROOT / folder / file).exists() for folder in ("", "rbd_ros/core", "rbd_ros/core/model")), file
    for test in re.findall(r"`((?:\w+/)+(?:test_\w+\.py)?)`", proof):
        assert (ROOT / "test" / test).exists(), test
