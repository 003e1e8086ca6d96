"""What the parameters of the server and the annotator do, in their logic without ROS."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from parameters import torque_cases
from parameters.case import Case, Values, begun, seconds_until_refused
from support.arm import A_REF, NAMES, Q_REF, TILT, TILTED, V_REF, Q, V, arm, arm_urdf

import rbd_ros as rbd
from rbd_ros.runtime.control.effort_annotator import ANNOTATOR_TABLE, Annotation, AnnotatorSettings, EffortAnnotator
from rbd_ros.runtime.inputs.references import Point
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.robot import load_model
from rbd_ros.runtime.service.constrained import ConstrainedRequest
from rbd_ros.runtime.service.dynamics import DynamicsService
from rbd_ros.runtime.service.robot_state import StateRequest
from rbd_ros.runtime.service.server_settings import SERVER_TABLE, ServerSettings, load_server_model
from rbd_ros.runtime.world.odometry import Odometry

MS = 1_000_000
MOON = (0.0, 1.0, -1.62)


def model_cases(effort: Any, q: Any, v: Any, a: Any, sign: float, friction: Any) -> dict[str, Case]:
    """For programs that say by `effort` what inverse dynamics (times sign) and friction of the arm in q, v, a are."""
    def seen(model: rbd.RobotModel) -> Any:
        n = model.nv
        return sign * (rbd.inverse_dynamics(model, q[:n], v[:n], a[:n]) + friction[:n])

    def locked(angle: float) -> Any:
        return seen(rbd.load_urdf(arm_urdf(), locked={"elbow": angle}))

    return {
        "gravity": Case(list(MOON), effort, seen(arm().with_(gravity=MOON))),
        "mounting.rpy": Case(list(TILT), effort, seen(arm().with_(gravity=TILTED))),
        "rotor_inertia": Case([0.3, 0.1], effort, seen(arm().with_(armature=[0.3, 0.1]))),
        "locked.joints": Case(["elbow"], effort, locked(0.0)),
        "locked.positions": Case(0.5, effort, locked(0.5), {"locked.joints": ["elbow"]}),
    }


# ---- effort_annotator

def annotated(values: Values, urdf: str = "") -> Any:
    """The effort of a trajectory's only point."""
    model, _ = load_model(validate(ANNOTATOR_TABLE, values), urdf or arm_urdf())
    n = model.nv
    made = begun(EffortAnnotator, AnnotatorSettings, ANNOTATOR_TABLE, model, values)
    found = made.annotate(NAMES[:n], [Point(1.0, Q_REF[:n], V_REF[:n], A_REF[:n])])
    assert isinstance(found, Annotation)
    return found.effort[0]


def lasts(values: Values) -> float:
    """Seconds that a trajectory needs which is four times too fast for the torque of the shoulder."""
    model, _ = load_model(validate(ANNOTATOR_TABLE, values), arm_urdf())
    made = begun(EffortAnnotator, AnnotatorSettings, ANNOTATOR_TABLE, model, values)
    s = np.linspace(0.0, 1.0, 9)
    q, v, a = (np.outer(x, [1.2, 0.4]) for x in (
        10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / 0.4,
        (60 * s - 180 * s**2 + 120 * s**3) / 0.16))
    found = made.annotate(NAMES, [Point(*row) for row in zip(0.4 * s, q, v, a, strict=True)])
    assert isinstance(found, Annotation)
    return 0.4 if found.retimed is None else float(found.retimed[0][-1])


def annotator_cases() -> dict[str, Case]:
    model = arm()
    friction = model.damping * V_REF + model.friction * np.tanh(V_REF / 0.01)
    free = rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF) + friction
    # What has the same name and meaning as in node feedforward is the same there: the efforts of one reference.
    same = torque_cases.cases("feedforward")
    shared = {name: Case(same[name].value, annotated, same[name].expected, same[name].given) for name in (
        *torque_cases.LOAD, "robot_compensates", "effort_limits.maximum", "friction.damping", "friction.coulomb",
        "friction.smoothing", "friction.asymmetry", "friction.viscous_asymmetry", "friction.load")}
    return {
        **model_cases(annotated, Q_REF, V_REF, A_REF, 1.0, friction), **shared,
        "joints": Case(NAMES[::-1], annotated, np.clip(free, [-0.5, -0.25], [0.5, 0.25]),
                       {"effort_limits.maximum": [0.25, 0.5]}),
        "effort_limits.override_zero": Case(0.5, partial(annotated, urdf=arm_urdf(shoulder_effort=0.0)),
                                            np.clip(free, [-0.5, -50.0], [0.5, 50.0])),
        "clip": Case(False, annotated, free, {"effort_limits.maximum": 0.25}),
        "retime": Case("if_needed", lambda values: lasts(values) > 0.5, True, {"effort_limits.maximum": 15.0}),
    }


# ---- dynamics_server

def served(values: Values) -> Any:
    """The effort of inverse dynamics."""
    model, _ = load_server_model(validate(SERVER_TABLE, values), arm_urdf())
    n = model.nv
    made = begun(DynamicsService, ServerSettings, SERVER_TABLE, model, values)
    return np.array(made.inverse(StateRequest(NAMES[:n], Q[:n], V[:n]), NAMES[:n], A_REF[:n], []).effort)


def five_bar(values: Values) -> DynamicsService:
    return begun(DynamicsService, ServerSettings, SERVER_TABLE, rbd.sample("five_bar"), values)


def constrained(values: Values, off: float = 0.0) -> bool:
    """Whether constrained dynamics are answered, so far off the constraints."""
    model = rbd.sample("five_bar")
    q, _ = rbd.project(model, rbd.sample_constraints("five_bar", model), np.zeros(5), np.zeros(5))
    zero = np.zeros(5)
    request = ConstrainedRequest(mode=1, effort=zero, name=model.joint_names)
    five_bar(values).constrained(StateRequest(model.joint_names, q + off * np.eye(5)[0], zero), request, [])
    return True


def known_for(values: Values) -> float:
    """Seconds until the last joint state is too old."""
    states = five_bar(values).states
    assert states.latest.accept(0.0, MS, rbd.sample("five_bar").joint_names, np.zeros(5), np.zeros(5))
    return seconds_until_refused(partial(states.read, StateRequest()))


def estimated(values: Values) -> Any:
    states = five_bar(values).states
    names = rbd.sample("five_bar").joint_names
    for k in (0, 1):
        assert states.latest.accept(0.01 * k, (1 + 10 * k) * MS, names, np.full(5, 0.01 * k))
    return np.array(states.read(StateRequest(), 0.01)[1])


def floating(values: Values) -> DynamicsService:
    """The arm on a floating base, with joint states and odometry from time 0."""
    model, _ = load_server_model(validate(SERVER_TABLE, {**values, "root": "floating"}), arm_urdf())
    made = begun(DynamicsService, ServerSettings, SERVER_TABLE, model, values)
    assert made.states.latest.accept(0.0, MS, NAMES, Q, V)
    if made.states.odometry is not None:
        assert made.states.odometry.accept(0.0, Odometry(0, "world", "base", (1.0, 2.0, 3.0), (0.0, 0.0, 1.0, 0.0),
                                                         (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)))
    return made


def based(values: Values) -> Any:
    return np.concatenate(floating(values).states.read(StateRequest(), 0.01))


def based_for(values: Values) -> float:
    """Seconds until the last odometry is too old."""
    return seconds_until_refused(partial(floating(values).states.read, StateRequest()))


def rotors(values: Values) -> Any:
    return load_server_model(validate(SERVER_TABLE, values), arm_urdf())[0].armature


def base(values: Values) -> Any:
    model, _ = load_server_model(validate(SERVER_TABLE, values), arm_urdf())
    return tuple(DynamicsService(model, ServerSettings.from_values(values, model)).model_info().coordinate[:-2])


def server_cases() -> dict[str, Case]:
    def rubbing(value: Any, changes: Any, given: Values | None = None) -> Case:
        return Case(value, served, changes, {"friction": True, **(given or {})})

    t, carried = np.tanh(V / 0.01), rbd.inverse_dynamics(arm(), Q, V, A_REF)
    return {
        **model_cases(served, Q, V, A_REF, 1.0, np.zeros(2)),
        "joints": Case(NAMES[::-1], rotors, np.array([0.2, 0.1]), {"rotor_inertia": [0.1, 0.2]}),
        "root": Case("floating", base, tuple(f"base/{x}" for x in ("wx", "wy", "wz", "vx", "vy", "vz"))),
        "constraints_file": Case("five_bar", constrained, True),
        "constraint_tolerance": Case(0.1, partial(constrained, off=0.01), True, {"constraints_file": "five_bar"}),
        "friction": Case(True, served, lambda was: was + rbd.friction_effort(arm(), V)),
        "friction.smoothing": Case(0.5, served, lambda was: was + rbd.friction_effort(arm(), V, 0.5)
                                   - rbd.friction_effort(arm(), V), {"friction": True}),
        "friction.asymmetry": rubbing([0.05, 0.0], lambda was: was + [0.05, 0.0] * t**2),
        "friction.viscous_asymmetry": rubbing([0.05, 0.0], lambda was: was + [0.05, 0.0] * V * t),
        "friction.load": rubbing([0.1, 0.2], lambda was: was + [0.1, 0.2] * np.hypot(carried, 0.1) * t),
        "odometry": Case("odom", based, np.array([1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0, *Q, *(0.1 * np.arange(1, 7)), *V]),
                         {"root": "floating"}),
        "odometry_timeout": Case(0.305, based_for, 0.31, {"odometry": "odom", "root": "floating"}),
        "state_timeout": Case(0.305, known_for, 0.31),
        "velocity_cutoff": Case(0.0, estimated, np.ones(5)),
    }
