"""Requests that must fail, per service: what is wrong, and words that the answer must have. Plain values, no ROS.

Each entry changes one thing in a good request for the sample five-bar. Fields are those of the services; `state` has
`name`, `position`, `velocity`.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

import rbd_ros as rbd

NAN, INF = math.nan, math.inf
FIVE_BAR = rbd.sample("five_bar")
LOOP = rbd.sample_constraints("five_bar", FIVE_BAR)
NAMES = list(FIVE_BAR.joint_names)
Q, V = (x.tolist() for x in rbd.project(FIVE_BAR, LOOP, [0.1, 0.3, 0.0, -0.1, 0.2], [1.0, 0.0, 0.0, 0.5, 0.0]))
A = [2.0, -3.0, 2.5, -1.0, 2.5]
TAU = [2.0, -1.0, 0.5, 1.5, 0.3]
INVERSE, FORWARD, HYBRID = 0, 1, 2

Bad = tuple[str, dict[str, Any], tuple[str, ...]]    # name of the case, changed fields, words of the message


def state(name: Any = NAMES, position: Any = Q, velocity: Any = V) -> dict[str, Any]:
    return {"name": list(name), "position": list(position), "velocity": list(velocity)}


def put(values: Any, i: int, value: float) -> list[float]:
    """The values with another one at i."""
    return [*values[:i], value, *values[i + 1:]]


STATE: list[Bad] = [
    ("unknown joint in the state", {"state": state([*NAMES[:4], "wrist"])}, ("state.name", "wrist", "right_elbow")),
    ("misspelt joint in the state", {"state": state(["left_sholder", *NAMES[1:]])}, ("did you mean 'left_shoulder'",)),
    ("joint missing in the state", {"state": state(NAMES[:4], Q[:4], V[:4])}, ("'right_elbow' is missing",)),
    ("joint twice in the state", {"state": state([*NAMES, "tip"], [*Q, 0.0], [*V, 0.0])}, ("'tip' is listed twice",)),
    ("too few positions", {"state": state(position=Q[:3])}, ("state.position", "3 numbers for 5 names")),
    ("too many positions", {"state": state(position=[*Q, 0.0])}, ("state.position", "6 numbers for 5 names")),
    ("no positions", {"state": state(position=[])}, ("state.position", "0 numbers for 5 names", "one per name")),
    ("positions without names", {"state": state([])}, ("positions or velocities without names", "left_shoulder")),
    ("too few velocities", {"state": state(velocity=V[:1])}, ("state.velocity", "1 numbers for 5 names")),
    ("NaN position", {"state": state(position=put(Q, 2, NAN))}, ("state.position of 'tip' is nan", "finite")),
    ("infinite position", {"state": state(position=put(Q, 0, INF))}, ("state.position of 'left_shoulder' is inf",)),
    ("NaN velocity", {"state": state(velocity=put(V, 4, NAN))}, ("state.velocity of 'right_elbow' is nan",)),
    ("infinite velocity", {"state": state(velocity=put(V, 1, -INF))}, ("state.velocity of 'left_elbow' is -inf",)),
    ("no joint state yet", {"state": state([], [], [])}, ("no joint state has been received", "joint_states")),
]
HUGE: Bad = ("velocity beyond all bounds", {"state": state(velocity=put(V, 0, 1e200))}, ("not be finite", "too large"))


def named(field: str, values: list[float], **empty: Any) -> list[Bad]:
    """What can be wrong with an array by coordinate name; `empty`: other arrays by name."""
    return [
        (f"unknown coordinate of {field}", {"name": [*NAMES[:4], "knee"]}, ("`name`", "knee", "right_elbow")),
        (f"coordinate of {field} twice", {"name": [*NAMES[:4], "tip"]}, ("name", "'tip' is listed twice")),
        (f"too few in {field}", {field: values[:2]}, (field, "2 numbers for 5 names")),
        (f"{field} without names", {"name": [], field: values[:1]} | empty, (field, "1 numbers for 0 names")),
        (f"NaN in {field}", {field: put(values, 1, NAN)}, (f"{field} of 'left_elbow' is nan", "finite")),
        (f"infinity in {field}", {field: put(values, 3, INF)}, (f"{field} of 'right_shoulder' is inf",)),
    ]


WRENCH: list[Bad] = [
    ("wrench on an unknown body", {"external_wrenches": [("hand", [0.0] * 6)]}, ("external_wrenches", "hand", "tool")),
    ("NaN force", {"external_wrenches": [("tool", [0, 0, 0, NAN, 0, 0])]}, ("external_wrenches", "'tool'", "finite")),
    ("infinite torque", {"external_wrenches": [("tool", [0, INF, 0, 0, 0, 0])]}, ("'tool'", "finite")),
]
MASK: list[Bad] = [
    ("too few flags", {"prescribed": [True]}, ("prescribed has 1 entries for 5 names",)),
    ("no flags", {"prescribed": []}, ("prescribed has 0 entries for 5 names", "one per name")),
]

HYBRID_ARRAYS = [*named("acceleration", A, prescribed=[], effort=[]),
                 *named("effort", TAU, prescribed=[], acceleration=[])]

INVERSE_GOOD = {"state": state(), "name": NAMES, "acceleration": A, "external_wrenches": []}
FORWARD_GOOD = {"state": state(), "name": NAMES, "effort": TAU, "external_wrenches": []}
FLAGS = [True, False, False, True, False]
HYBRID_GOOD = {"state": state(), "name": NAMES, "prescribed": FLAGS, "acceleration": A, "effort": TAU,
               "external_wrenches": []}
MOTION = rbd.constrained_hybrid_dynamics(FIVE_BAR, LOOP, Q, V, A, np.zeros(5), ["left_shoulder", "right_shoulder"])
CONSTRAINED_GOOD = {
    INVERSE: {"mode": INVERSE, "state": state(), "name": NAMES, "acceleration": MOTION.acceleration.tolist(),
              "actuated": ["left_shoulder", "right_shoulder"], "minimize": 0, "external_wrenches": []},
    FORWARD: {"mode": FORWARD, "state": state(), "name": NAMES, "effort": TAU, "external_wrenches": []},
    HYBRID: {"mode": HYBRID, "state": state(), "name": NAMES, "prescribed": FLAGS, "acceleration": A,
             "effort": TAU, "external_wrenches": []}}
CONSTRAINED_BAD: dict[int, list[Bad]] = {
    INVERSE: [
        *STATE, *named("acceleration", A), *WRENCH,
        ("unknown mode", {"mode": 7}, ("mode is 7", "0 (INVERSE)", "2 (HYBRID)")),
        ("unknown aim", {"minimize": 2}, ("minimize is 2", "0 (MULTIPLIERS)", "1 (EFFORT)")),
        ("flags", {"prescribed": FLAGS}, ("prescribed is not read in mode INVERSE", "HYBRID")),
        ("preference without a choice", {"preferred_effort": TAU}, ("preferred_effort", "minimize is 1 (EFFORT)")),
        ("limits without a choice", {"effort_limit": TAU}, ("effort_limit", "minimize is 1 (EFFORT)")),
        ("weights without a choice", {"weight": TAU}, ("weight", "minimize is 1 (EFFORT)")),
        ("too few preferences", {"minimize": 1, "preferred_effort": TAU[:2]}, ("preferred_effort has 2 numbers",)),
        ("infinite preference", {"minimize": 1, "preferred_effort": put(TAU, 0, INF)},
         ("preferred_effort of 'left_shoulder' is inf",)),
        ("too few limits", {"minimize": 1, "effort_limit": [1.0]}, ("effort_limit has 1 numbers for 5", "no limit")),
        ("NaN limit", {"minimize": 1, "effort_limit": put(TAU, 3, NAN)}, ("effort_limit of 'right_shoulder' is nan",)),
        ("negative limit", {"minimize": 1, "effort_limit": [-1.0] * 5}, ("effort_limit", "not negative")),
        ("narrow limits", {"minimize": 1, "effort_limit": [0.01] * 5}, ("within effort_limit", "shoulder")),
        ("weights of nothing", {"minimize": 1, "weight": [0.0] * 5}, ("weight", "positive")),
        ("infinite weight", {"minimize": 1, "weight": put([1.0] * 5, 0, INF)}, ("weight of 'left_shoulder' is inf",)),
        ("unknown drive", {"actuated": ["left_knee"]}, ("actuated", "left_knee", "left_elbow")),
        ("drive twice", {"actuated": ["tip", "tip"]}, ("actuated", "'tip' is listed twice")),
        ("too few drives", {"actuated": ["left_shoulder"]}, ("under-actuated", "left_shoulder")),
        ("impossible acceleration", {"acceleration": A}, ("contradict", "constraints")),
        ("open loop", {"state": state(position=put(Q, 0, Q[0] + 0.1))}, ("is open by", "constraint_tolerance")),
        ("opening loop", {"state": state(velocity=put(V, 0, V[0] + 0.1))}, ("opens at", "meets the constraints")),
    ],
    FORWARD: [
        *STATE, *named("effort", TAU), *WRENCH,
        ("drives", {"actuated": ["tip"]}, ("actuated is not read in mode FORWARD", "INVERSE")),
        ("flags", {"prescribed": FLAGS}, ("prescribed is not read in mode FORWARD",)),
        ("accelerations", {"acceleration": A}, ("acceleration is not read in mode FORWARD", "INVERSE and HYBRID")),
        ("preferences", {"preferred_effort": TAU}, ("preferred_effort is not read in mode FORWARD",)),
        ("limits", {"effort_limit": TAU}, ("effort_limit is not read in mode FORWARD", "INVERSE and HYBRID")),
        ("weights", {"weight": TAU}, ("weight is not read in mode FORWARD",)),
        ("open loop", {"state": state(position=put(Q, 4, Q[4] + 0.1))}, ("closure", "is open by")),
    ],
    HYBRID: [
        *STATE, *HYBRID_ARRAYS, *WRENCH, *MASK,
        ("drives", {"actuated": ["tip"]}, ("actuated is not read in mode HYBRID",)),
        ("too much prescribed", {"prescribed": [True, True, False, True, False]}, ("contradict", "left_elbow")),
        ("open loop", {"state": state(position=put(Q, 4, Q[4] + 0.1))}, ("closure", "is open by")),
    ]}


def two_modes(values: list[float], **fields: Any) -> dict[int, dict[str, Any]]:
    """Good requests INVERSE and FORWARD."""
    return {mode: {"mode": mode, "state": state(), "name": NAMES, "input": values, **fields}
            for mode in (INVERSE, FORWARD)}


MODE: list[Bad] = [
    ("unknown mode", {"mode": 2}, ("mode is 2", "0 (INVERSE)", "1 (FORWARD)")),
    ("largest mode", {"mode": 255}, ("mode is 255", "1 (FORWARD)")),
]
DERIVATIVES_GOOD = two_modes(A, external_wrenches=[])
DERIVATIVES_BAD = [*STATE, *named("input", A), *WRENCH, *MODE, HUGE]
ROWS = [*A, *TAU, *Q]
TIME_GOOD = two_modes(ROWS, rows=3)
TIME_BAD: list[Bad] = [
    *STATE, *MODE, HUGE,
    ("unknown coordinate", {"name": [*NAMES[:4], "knee"]}, ("`name`", "knee", "right_elbow")),
    ("coordinate twice", {"name": [*NAMES[:4], "tip"]}, ("name", "'tip' is listed twice")),
    ("no rows", {"rows": 0, "input": []}, ("rows is 0", "expected 1", "to 32")),
    ("too many rows", {"rows": 33, "input": []}, ("rows is 33", "to 32")),
    ("rows beyond memory", {"rows": 2**32 - 1, "name": [], "input": []}, ("rows is 4294967295", "to 32")),
    ("row missing", {"input": ROWS[:10]}, ("input has 10 numbers", "expected 15", "3 rows", "5 names")),
    ("row too many", {"input": [*ROWS, *A]}, ("input has 20 numbers", "expected 15")),
    ("number missing", {"input": ROWS[:14]}, ("input has 14 numbers", "expected 15")),
    ("input without names", {"name": [], "input": [1.0]}, ("input has 1 numbers", "expected 0", "0 names")),
    ("NaN in row 0", {"input": put(ROWS, 1, NAN)}, ("input of 'left_elbow' in row 0", "is nan", "finite")),
    ("infinity in row 2", {"input": put(ROWS, 12, -INF)}, ("input of 'tip' in row 2", "is -inf")),
    ("jerk beyond all bounds", {"input": put(ROWS, 5, 1.7e308), "state": state(velocity=[1e3] * 5)},
     ("not be finite", "too large")),
]


def point(time: float, position: Any = Q, velocity: Any = V, acceleration: Any = A) -> dict[str, Any]:
    return {"time": time, "position": list(position), "velocity": list(velocity), "acceleration": list(acceleration)}


TRAJECTORY_GOOD = {"joint_names": NAMES, "points": [point(0.0), point(0.5, velocity=A), point(1.0, acceleration=Q)]}


def second(**changes: Any) -> dict[str, Any]:
    """Another point 1."""
    time = changes.pop("time", 0.5)
    return {"points": [point(0.0), point(time, **changes), point(1.0)]}


TRAJECTORY_BAD: list[Bad] = [
    ("no joints", {"joint_names": []}, ("trajectory.joint_names", "'left_shoulder' is missing")),
    ("unknown joint", {"joint_names": [*NAMES[:4], "wrist"]}, ("trajectory.joint_names", "wrist", "right_elbow")),
    ("joint missing", {"joint_names": NAMES[:4]}, ("'right_elbow' is missing", "locked.joints")),
    ("joint twice", {"joint_names": [*NAMES, "tip"]}, ("'tip' is listed twice",)),
    ("no points", {"points": []}, ("trajectory.points is empty", "at least one")),
    ("too few positions", second(position=Q[:4]), ("point 1 has 4 positions", "expected 5")),
    ("no velocities", second(velocity=[]), ("point 1 has 0 velocities", "expected 5")),
    ("too many velocities", second(velocity=[*V, 0.0]), ("point 1 has 6 velocities",)),
    ("no accelerations", second(acceleration=[]), ("point 1 has 0 accelerations", "expected 5")),
    ("NaN position", second(position=put(Q, 2, NAN)), ("point 1", "positions of joint 'tip' is nan", "finite")),
    ("infinite velocity", second(velocity=put(V, 0, INF)), ("point 1", "velocities of joint 'left_shoulder' is inf")),
    ("NaN acceleration", second(acceleration=put(A, 4, NAN)), ("point 1", "accelerations of joint 'right_elbow'")),
    ("time that stands still", second(time=0.0), ("point 1", "time_from_start is 0 s", "later than that of point 0")),
    ("time that runs backwards", second(time=2.0), ("point 2", "time_from_start is 1 s", "(2 s)")),
    ("velocity beyond all bounds", second(velocity=put(V, 0, 1e200)), ("point 1", "not be finite")),
]

LOAD = {"mass": 2.0, "com": [0.01, -0.02, 0.05], "matrix": np.diag([0.01, 0.02, 0.015]).tolist()}
PAYLOAD_GOOD = {"body": "tool", **LOAD}


def tensor(*diagonal: float, off: float = 0.0) -> dict[str, Any]:
    return {"matrix": [[diagonal[0], off, 0.0], [off, diagonal[1], 0.0], [0.0, 0.0, diagonal[2]]]}


PAYLOAD_BAD: list[Bad] = [
    ("no body", {"body": ""}, ("unknown body ''", "tool")),
    ("unknown body", {"body": "hand"}, ("unknown body 'hand'", "tool", "left_upper")),
    ("misspelt body", {"body": "left_uper"}, ("did you mean 'left_upper'",)),
    ("NaN mass", {"mass": NAN}, ("inertia.m is nan", "expected 0")),
    ("infinite mass", {"mass": INF}, ("inertia.m is inf",)),
    ("negative mass", {"mass": -1.0}, ("inertia.m is -1 kg", "expected 0")),
    ("mass of a mountain", {"mass": 1e12}, ("inertia.m is 1e+12 kg", "1e+06")),
    ("NaN centre of mass", {"com": [0.0, NAN, 0.0]}, ("inertia.com", "nan", "frame of the body")),
    ("infinite centre of mass", {"com": [INF, 0.0, 0.0]}, ("inertia.com", "inf")),
    ("centre of mass in millimetres", {"com": [0.0, 0.0, 5e3]}, ("inertia.com", "at most 1000")),
    ("NaN inertia", tensor(NAN, 0.02, 0.015), ("inertia tensor", "not finite")),
    ("infinite inertia", tensor(0.01, INF, 0.015), ("inertia tensor", "not finite")),
    ("negative inertia", tensor(-0.01, 0.02, 0.015), ("principal moments", "below zero")),
    ("no inertia tensor", tensor(0.01, 0.02, 0.015, off=0.5), ("principal moments", "below zero")),
    ("broken triangle inequality", tensor(0.01, 0.02, 0.5), ("principal moments", "sum of the other two")),
]

SERVICES: dict[str, tuple[dict[str, Any], list[Bad]]] = {
    "inverse": (INVERSE_GOOD, [*STATE, *named("acceleration", A), *WRENCH, HUGE]),
    "forward": (FORWARD_GOOD, [*STATE, *named("effort", TAU), *WRENCH, HUGE]),
    "hybrid": (HYBRID_GOOD, [*STATE, *HYBRID_ARRAYS, *WRENCH, *MASK, HUGE]),
    "constrained": (CONSTRAINED_GOOD[INVERSE], CONSTRAINED_BAD[INVERSE]),
    "constrained forward": (CONSTRAINED_GOOD[FORWARD], CONSTRAINED_BAD[FORWARD]),
    "constrained hybrid": (CONSTRAINED_GOOD[HYBRID], CONSTRAINED_BAD[HYBRID]),
    "terms": ({"state": state()}, [*STATE, HUGE]),
    "derivatives": (DERIVATIVES_GOOD[INVERSE], DERIVATIVES_BAD),
    "derivatives forward": (DERIVATIVES_GOOD[FORWARD], DERIVATIVES_BAD),
    "time_derivatives": (TIME_GOOD[INVERSE], TIME_BAD),
    "time_derivatives forward": (TIME_GOOD[FORWARD], TIME_BAD),
    "trajectory": (TRAJECTORY_GOOD, TRAJECTORY_BAD),
    "set_payload": (PAYLOAD_GOOD, PAYLOAD_BAD),
}
UNKNOWN_FRICTION: Bad = ("unknown friction", {"friction": 3}, ("friction is 3", "0 (FRICTION_AS_CONFIGURED)",
                                                                "1 (WITH_FRICTION)", "2 (WITHOUT_FRICTION)"))
RUBS = [service for service in SERVICES if service not in ("terms", "set_payload")]    # their requests say what counts
for service in RUBS:
    good, bad = SERVICES[service]
    SERVICES[service] = (good | {"friction": 0}, [*bad, UNKNOWN_FRICTION])
CASES = [(service, good | changes, words, f"{service}: {what}") for service, (good, bad) in SERVICES.items()
         for what, changes, words in bad]
