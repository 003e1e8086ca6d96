"""Searches take as long as they need: a busy machine may need more than the usual time limit."""
import pytest

import rbd_ros as rbd


@pytest.fixture(autouse=True)
def patient_searches(monkeypatch):
    for search in (rbd.optimize_motion, rbd.time_optimal):
        monkeypatch.setitem(search.__kwdefaults__, "time_limit", 200.0)
