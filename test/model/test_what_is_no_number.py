"""Masked arrays, text and objects that fail to become arrays are refused; `with_` by name; short texts of objects."""

import numpy as np
import pytest

import rbd_ros as rbd

IIWA = rbd.sample("iiwa")
ZERO = np.zeros(7)


class Broken:
    def __array__(self, *arguments, **options):
        raise RuntimeError("the device is gone")


NONE = {"masked": np.ma.MaskedArray(ZERO, mask=[True] + 6 * [False]), "text": ["1.0"] * 7,
        "bytes": np.array([b"1"] * 7),
        "complex": ZERO + 1j, "broken": Broken(), "dates": np.zeros(7, dtype="datetime64[s]")}


@pytest.mark.parametrize("value", NONE.values(), ids=NONE)
def test_what_is_no_number_is_refused(value):
    calls = [lambda: IIWA.with_(damping=value), lambda: rbd.gravity_effort(IIWA, [ZERO, value]),
             lambda: rbd.Recording(value, np.zeros((7, 1)), tau=np.zeros((7, 1)))]
    if not isinstance(value, np.ma.MaskedArray):    # compiled entries of one state see no mask
        calls += [lambda: rbd.gravity_effort(IIWA, value), lambda: rbd.inverse_dynamics(IIWA, ZERO, ZERO, value)]
    for call in calls:
        with pytest.raises(rbd.RbdError):
            call()
    with pytest.raises(rbd.RbdError):
        rbd.Inertia(1.0, value, np.eye(3))


def test_fields_by_joint():
    changed = IIWA.with_(damping={"joint_2": 3.0}, friction={"joint_1": 1.0, "joint_7": 0.5}, effort_limit={
        "joint_3": np.inf})
    np.testing.assert_array_equal(changed.damping, np.where(np.arange(7) == 1, 3.0, IIWA.damping))
    assert changed.friction[0] == 1.0 and changed.friction[6] == 0.5 and np.isinf(changed.effort_limit[2])
    assert np.array_equal(changed.friction[1:6], IIWA.friction[1:6])
    again = changed.with_(damping={"joint_1": 1.0})
    assert again.damping[0] == 1.0 and again.damping[1] == 3.0
    with pytest.raises(rbd.RbdError, match=r"joint 'joint_8'.*did you mean"):
        IIWA.with_(damping={"joint_8": 1.0})
    with pytest.raises(rbd.RbdError, match="joint 'joint_1': damping"):
        IIWA.with_(damping={"joint_1": [1.0, 2.0]})


def test_objects_say_in_a_line_what_they_are():
    simulator = rbd.Simulator(IIWA)
    assert repr(simulator) == "Simulator of 'iiwa': at 0 s, step 0.001 s, variational"
    waypoints = np.array([np.zeros(7), 0.5 * np.ones(7)])
    path = rbd.time_optimal(IIWA, waypoints, limits=rbd.MotionLimits(velocity=1.0, acceleration=2.0))
    assert repr(path).startswith("TimedPath of 'iiwa': ") and len(repr(path)) < 200 and "array" not in repr(path)


def test_a_specialized_model_says_what_it_is():
    pytest.importorskip("numba")
    model = rbd.specialize(rbd.sample("two_link"))
    assert repr(model).startswith("SpecializedModel 'two_link': nq 2, nv 2; code of its own for nothing yet")
