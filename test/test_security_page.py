"""docs/security.md: what it says is defended has the tests that it names."""
from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "security.md").read_text(encoding="utf-8")


def test_every_defence_has_tests():
    table = PAGE.split("## What is defended")[1].split("### Not defended")[0]
    rows = [row for row in table.splitlines() if row.startswith("| ") and not row.startswith("| way in")]
    assert len(rows) >= 9
    for row in rows:
        names = re.findall(r"test_\w+\.py", row.split("|")[-2])
        assert names, row
        assert all(any(TESTS.rglob(name)) for name in names), names
