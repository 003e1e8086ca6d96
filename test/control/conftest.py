"""Robots of these tests are mostly at rest in one place, whatever they are told: no tolerance ends that."""
from __future__ import annotations

import math

import pytest

from rbd_ros.runtime.control import following


@pytest.fixture(autouse=True)
def no_tracking_tolerance(request, monkeypatch):
    """`tracking_tolerance` by the gains is endless, except in tests marked with `closed_loop`."""
    if request.node.get_closest_marker("closed_loop") is None:
        monkeypatch.setattr(following, "LEAST_TOLERANCE", math.inf)
