"""The float test: how far each joint would sink or climb under the model's gravity torque alone, from a recording.

Without position control, a joint commanded with the gravity torque g(q) of the model moves from rest by
`M q̈ = −e − c sign(q̇) − d q̇`, with the missing torque e (`torque_errors`), dry friction c and viscous friction d of the
recording, and the diagonal element M of the mass matrix, as the other joints are held. If |e| ≤ c it does not move.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..dynamics.inverse import gravity_effort, inverse_dynamics
from ..dynamics.mass_matrix import mass_matrix
from ..errors import RbdError, shown, unknown_name
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from .effort_checks import checked_gains
from .recorded.recording import Recording
from .recorded.signals import REST, Prepared, decimation, low_pass, prepare
from .recorded.sticking import sticking
from .torque_errors import JointTorques, MissingLoad, TorqueError, cause, load_cause, missing_load, torque_error

Array = NDArray[np.float64]
WINDOW = math.radians(2.0)    # rad or m
TIME = 2.0                    # s
SMOOTHING = 1e-3              # rad/s or m/s, of dry friction: below `REST`, where joints stick
INERTIA = 0.1                 # uncertainty of the mass matrix, relative, with its change along the drift
FEWEST = 20                   # rows in each direction of motion


def drift(excess: float, level: float, damping: float, inertia: float, time: float) -> float:
    """Displacement (rad or m) after `time` (s) of a joint that starts at rest: `inertia q̈ = excess − level sign(q̇) −
    damping q̇`, exact for constant torques (N m, N m s/rad, kg m²).
    """
    force = abs(excess) - level
    if force <= 0.0:
        return 0.0
    x = damping * time / inertia
    # ½ t² force / inertia for small x, where the closed form cancels
    moved = (force * time**2 / inertia * (0.5 - x / 6.0 + x * x / 24.0) if x < 1e-3 else
             force / damping * (time + inertia / damping * math.expm1(-x)))
    return math.copysign(moved, excess)


def drift_interval(excess: float, half_width: float, level: tuple[float, float], damping: tuple[float, float],
                   inertia: tuple[float, float], time: float) -> tuple[float, float]:
    """Least and largest displacement within the intervals (low, high) of friction and inertia."""
    def extreme(value: float, outwards: float) -> float:
        i = 0 if value * outwards > 0.0 else 1    # the drift is largest with the lowest friction
        return drift(value, max(level[i], 0.0), max(damping[i], 0.0), inertia[i], time)

    return extreme(excess - half_width, -1.0), extreme(excess + half_width, 1.0)


@dataclass(frozen=True, eq=False)
class JointFloat:
    """One joint, in the pose q (nv,) of the recording where it drifts farthest.

    verdict: "rests" (the interval of the drift is within the window), "sinks", "climbs" (it leaves the window, along
    gravity or against it), "unsure" (the interval extends beyond the window), "unknown" (not determined by the
    recording). drift, low, high: displacement and its 95 % interval, rad or m. error, half_width: torque missing in the
    model's gravity torque there; level, level_half_width: dry friction; N m or N. torques: None if unknown. advice:
    error and remedy; "" without an error.
    """

    joint: str
    verdict: str
    drift: float
    low: float
    high: float
    error: float
    half_width: float
    level: float
    level_half_width: float
    q: Array
    torques: TorqueError | None
    advice: str

    @property
    def passed(self) -> bool:
        return self.verdict == "rests"


@dataclass(frozen=True, eq=False, repr=False)
class FloatTest:
    """The result of `float_test`. window (nv,): rad or m; time: s; load: a load that explains the errors of all joints,
    or None; findings: exclusions and doubts, as text.
    """

    model: RobotModel
    joints: tuple[JointFloat, ...]
    window: Array
    time: float
    load: MissingLoad | None
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every joint stays within the window."""
        return all(joint.passed for joint in self.joints)

    @property
    def gains(self) -> dict[str, float]:
        """Factors from recorded to true torques of the joints whose gain is off, for `gains=` of `float_test` and
        `identify`.
        """
        return {joint.joint: joint.torques.gain for joint in self.joints
                if joint.torques is not None and joint.torques.kind in ("factor", "both")}

    @property
    def advice(self) -> tuple[str, ...]:
        """The remedies: that of a load if it explains all errors, else those of the joints."""
        unknown = [joint.advice for joint in self.joints if joint.verdict == "unknown"]
        if self.load is not None:
            return load_cause(self.load), *unknown
        return tuple(joint.advice for joint in self.joints if joint.advice)

    def __repr__(self) -> str:
        failed = [f"{joint.joint} {joint.verdict}" for joint in self.joints if not joint.passed]
        return f"FloatTest of '{self.model.name}': {'pass' if self.passed else ', '.join(failed)}"


def float_test(model: RobotModel, recording: Recording, *, gains: ArrayLike | dict[str, float] | None = None,
               window: ArrayLike = WINDOW, time: float = TIME, body: str | None = None, cutoff: float | None = None,
               slowest: float = REST) -> FloatTest:
    """How far each joint would sink or climb within `time` (s) if it alone were free, under the gravity torque of the
    model without gains.

    recording: positions and efforts of slow motion in which every joint passes the poses of interest in both
    directions, to distinguish friction from gravity. gains: factors from recorded to true torques, as of `identify`.
    window: largest accepted drift, rad or m, one number or (nv,). body: the one that may carry a load missing in the
    model; by default the last. cutoff: of the filter, Hz. slowest: rad/s or m/s; efforts of slower joints, which stick,
    are ignored. Raises `RbdError`.

        >>> model = rbd.sample("two_link")
        >>> t = np.linspace(0.0, 20.0, 2001)
        >>> q = 0.5 * np.sin(np.outer(t, [0.6, 0.9]))
        >>> v, a = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
        >>> tau = rbd.inverse_dynamics(model, q, v, a) + 0.5 * np.tanh(v / 0.01)
        >>> rbd.float_test(model, rbd.Recording(t, q, tau=tau * [1.0, 0.7]))
        FloatTest of 'two_link': elbow climbs
    """
    limits = _window(window, model)
    seconds = positive(time, "time", "time in seconds")
    last = model.body_names[-1] if body is None else body
    if last not in model.body_names:
        raise unknown_name("body", last, model.body_names)
    if isinstance(gains, str):
        raise RbdError(f"gains: expected numbers or names → numbers, got {shown(gains)}")
    factors, _ = checked_gains(model, gains, None)
    prepared = prepare(model, recording, cutoff, smoothing=SMOOTHING)
    q, g, table, usable = _rows(model, prepared, factors, slowest)
    joints: list[JointTorques | None] = []
    for j in range(model.nv):
        rows = usable[:, j]
        speeds = table[2][rows, j]
        if min(np.sum(speeds > 0.0), np.sum(speeds < 0.0)) < FEWEST:
            joints.append(None)
            continue
        joints.append(JointTorques(table[0][rows, j], table[1][rows, j], table[2:][:, rows, j].T))
    errors = [None if joint is None else torque_error(joint) for joint in joints]
    load = missing_load(model, last, [q[usable[:, j]] for j in range(model.nv)], joints, errors)
    inertia = np.diagonal(mass_matrix(model, q), axis1=1, axis2=2)
    results = tuple(_judged(model, j, q[usable[:, j]], g[usable[:, j], j], inertia[usable[:, j], j], errors[j],
                            float(limits[j]), seconds) for j in range(model.nv))
    return FloatTest(model, results, limits, seconds, load, prepared.notes)


def _window(window: ArrayLike, model: RobotModel) -> Array:
    try:
        limits = np.broadcast_to(np.asarray(window, dtype=float), (model.nv,))
    except (TypeError, ValueError):
        limits = np.zeros(model.nv)
    if not (np.isfinite(limits).all() and (limits > 0.0).all()):
        raise RbdError(f"window: expected a positive number of rad or m, or {model.nv}, got {shown(window)}")
    return limits


def _rows(model: RobotModel, prepared: Prepared, gains: Array, slowest: float) -> tuple[
        Array, Array, Array, NDArray[np.bool_]]:
    """Positions (N, nv), gravity torque (N, nv), efforts, model torques, slip and velocity (4, N, nv), all filtered
    equally, and the mask of moving, measured joints (N, nv).
    """
    positions, gravity, tables, masks = [], [], [], []
    for piece in prepared.pieces:
        rows = decimation(prepared, piece)
        torque = low_pass(inverse_dynamics(model, piece.q, piece.v, piece.a), piece.rate, prepared.cutoff)
        positions.append(piece.q[rows])
        gravity.append(gravity_effort(model, piece.q[rows]))
        tables.append(np.stack([gains * piece.tau[rows], torque[rows], piece.slip[rows], piece.v[rows]]))
        masks.append(~sticking(piece, prepared.cutoff, slowest, np.zeros((0, model.nv)))[rows])
    usable = np.concatenate(masks)
    usable[:, [*prepared.still, *prepared.unmeasured]] = False
    return np.concatenate(positions), np.concatenate(gravity), np.concatenate(tables, axis=1), usable


def _judged(model: RobotModel, j: int, q: Array, g: Array, inertia: Array, error: TorqueError | None, window: float,
            time: float) -> JointFloat:
    """The joint in the pose of rows q (n, nv) where it drifts farthest; g, inertia (n,): of the joint there."""
    name = model.velocity_names[j]
    if error is None:
        nan = math.nan
        return JointFloat(name, "unknown", nan, nan, nan, nan, nan, nan, nan,
                          model.neutral(), None, f"{name} is not shown: record it moving slowly both ways, faster than "
                          "friction sticks; friction hides the torque of a joint that rests")
    missing, half = error.missing(g), error.missing_half_width(g)
    level, level_half = max(float(error.friction[0]), 0.0), float(error.friction_half_width[0])
    damping, damping_half = max(float(error.friction[1]), 0.0), float(error.friction_half_width[1])
    # Recorded torques are `factor` times the true ones; so must be the inertia.
    share = error.factor if error.factor > 0.0 else 1.0
    drifts = [drift(-e, level, damping, share * M, time) for e, M in zip(missing, inertia, strict=True)]
    i = int(np.argmax(np.abs(drifts))) if any(drifts) else int(np.argmax(np.abs(missing) + half))
    inertias = share * inertia[i] * (1.0 + INERTIA * np.array([-1.0, 1.0]))
    low, high = drift_interval(-float(missing[i]), float(half[i]), (level - level_half, level + level_half),
                               (damping - damping_half, damping + damping_half),
                               (inertias[0], inertias[1]), time)
    displacement, advice = drifts[i], cause(name, error)
    if abs(displacement) > window and low * high > 0.0:
        verdict = "climbs" if displacement * g[i] > 0.0 else "sinks"
    elif max(abs(low), abs(high)) > window:
        verdict = "unsure"
        advice = advice or (f"{name}: the torque is not known well enough: record more slow motion of this joint, both "
                            "ways")
    else:
        verdict = "rests"
        if advice and abs(missing[i]) > half[i]:
            advice += " (friction holds it)"
    return JointFloat(name, verdict, displacement, low, high, float(missing[i]), float(half[i]), level, level_half,
                      np.array(q[i]), error, advice)
