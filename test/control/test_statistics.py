"""The period of the joint states is found whatever their arrival begins with."""

import pytest

from rbd_ros.runtime.statistics import CycleStatistics


@pytest.mark.parametrize("first", [0.0, 1e-5, 3e-4, 0.02, 0.5, 5.0])
def test_the_first_interval_does_not_decide(first):
    """A burst of two states at the start made all that followed look like pauses: no state was ever late."""
    made = CycleStatistics()
    now = 10.0
    made.received(now)
    now += first
    for _ in range(600):
        made.received(now)
        now += 0.02
    assert made.period == pytest.approx(0.02, rel=0.1)
    assert not made.is_late(now) and made.is_late(now + 0.05)


def test_a_pause_is_no_period():
    made = CycleStatistics()
    now = 10.0
    for _ in range(20):
        made.received(now)
        now += 0.02
    for _ in range(5):
        now += 3.0
        made.received(now)
    assert made.period == pytest.approx(0.02)
