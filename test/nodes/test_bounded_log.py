"""Lines of a log are bounded in rate, line of the program by line of the program."""
from __future__ import annotations

import re
from types import SimpleNamespace

from rbd_ros.nodes.base import seldom


def test_a_flood_of_lines_becomes_one_a_second_and_others_are_said(monkeypatch):
    now, said = [100.0], []
    monkeypatch.setattr(seldom.time, "monotonic", lambda: now[0])
    log = seldom.BoundedLog(SimpleNamespace(error=said.append, info=said.append, name="arm"))
    for i in range(8000):    # a thousand a second
        now[0] = 100.0 + i / 1000.0
        log.error(f"stop {i}")
    assert said[:seldom.BURST] == [f"stop {i}" for i in range(seldom.BURST)]
    assert seldom.BURST + 7 <= len(said) <= seldom.BURST + 8
    lost = [int(re.search(r"\((\d+) more such lines were left out\)", line)[1]) for line in said[seldom.BURST:]]
    assert all(abs(count - 999) < 25 for count in lost)
    log.info("another", throttle_duration_sec=1.0)
    assert said[-1] == "another" and log.name == "arm"
    now[0] += 1e3
    before = len(said)
    for i in range(seldom.BURST):
        log.info(f"{i}")
    assert len(said) == before + seldom.BURST
