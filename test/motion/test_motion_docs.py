"""The example of docs/motion.md runs as shown."""
from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "motion.md").read_text(encoding="utf-8")


def test_the_example_runs_and_does_what_it_says(capsys):
    names: dict = {}
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code, names)
    assert "good" in capsys.readouterr().out and names["now"].snap.shape == (7,)
    assert names["quick"].duration < 1.5 and names["fastest"].duration < 2.0
    assert names["reach"].usage["clearance"].ratio <= 1.0 and names["lower"].good
    assert 1.0 <= names["mixed"].duration <= 3.0 and names["mixed"].good
    assert names["moved"].good and names["smooth"].usage["effort_rate"].ratio <= 1.0
