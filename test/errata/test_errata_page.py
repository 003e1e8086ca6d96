"""docs/errata.md: each row names the test that proves it, and each such test has its row."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")


def functions(*files):
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)}


def test_each_row_has_its_proof():
    rows = [row for row in PAGE.splitlines() if row.startswith("|") and not row.startswith(("| where", "|---"))]
    assert len(rows) > 30
    named = [re.search(r"`(test_\w+)` \|$", row) for row in rows]
    assert all(named), [row for row, found in zip(rows, named, strict=True) if not found]
    papers = [file for file in Path(__file__).parent.glob("test_*.py") if file != Path(__file__)]
    known = functions(*papers, ROOT / "test" / "dynamics" / "test_two_link_symbolic.py")
    assert {found.group(1) for found in named if found} <= known
    assert all(f"`{name}`" in PAGE for name in functions(*papers))
