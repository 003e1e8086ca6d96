"""`tracking_gains`: time-varying LQR along a motion: feedback for a fast local loop, beside the feed-forward."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..actuation.actuation import Actuation
from ..derivatives.forward import forward_dynamics_derivatives
from ..dynamics.friction import Friction
from ..dynamics.hybrid import prescribed_mask
from ..errors import RbdError, shown
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.scalars import positive
from ..model.state import not_a_model, real, states
from ..motion.trajectory import Reference
from .gains_source import MOST_SAMPLES, gains_source
from .linear_feedback import control_fields
from .linearization import Course, ElasticPlant, Plant, RigidPlant, discretized
from .margins import LoopMargins, loop_margins

MOST_NUMBERS = 20_000_000    # of the linearisation of all periods, for memory
LARGEST = 1e4       # entry of a linearisation times the period: exp of more overflows
SYMMETRIC = 1e-9    # relative asymmetry of weights, for rounding
DECAY = 1e-9        # least decay per period of an end that is held


class StateFeedback(NamedTuple):
    """Reference q (nq,), v (n,), feed-forward effort (nu,) and gain (nu, 2 n): `u = effort + gain (x − x_d)`."""

    q: Array
    v: Array
    effort: Array
    gain: Array


@dataclass(frozen=True, eq=False)
class TrackingGains:
    """Feedback along a motion: `u = effort + gains[k] x` in the period from `t[k]` (s) on, with the error of the state
    `x = (q ⊖ q_d, v − v_d)` (2 n,) on the tangent space of `integrate`.

    t (N,); gains (N, nu, 2 n); q (N, nq), v (N, n), effort (N, nu): the motion with its feed-forward. A (N, 2 n, 2 n)
    and B (N, 2 n, nu): the linearised step of each period, `x[k + 1] = A[k] x[k] + B[k] (u − effort)`. model: whose
    coordinates q and v are; of elastic joints these are the links, then the motors behind springs. states (n,): names
    of its coordinates; inputs (nu,): of those that are driven, or of the motors. rad, m, N m, N and s. Before its start
    and after its end the robot is held there, at rest.

        >>> model = rbd.sample("two_link")
        >>> motion = rbd.SplineMotion(np.repeat([[0.0, 0.0], [1.0, -0.5]], 6, axis=0), 2.0)
        >>> gains = rbd.tracking_gains(model, motion, Q=[100.0, 100.0, 1.0, 1.0], R=[0.01, 0.01])
        >>> gains.at(1.0).gain.shape
        (2, 4)
    """

    model: RobotModel
    period: float
    t: Array
    gains: Array
    q: Array
    v: Array
    effort: Array
    A: Array
    B: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    _plant: Plant
    _motion: Any

    def at(self, t: float) -> StateFeedback:
        """Reference and feed-forward of the motion at time t (s), and the gains there, linear between periods."""
        time = _time(t)
        q, v, _, effort = _course(self._plant, self._motion, np.array([time]))
        return StateFeedback(q[0], v[0], effort[0], self._gain(time))

    def _gain(self, time: float) -> Array:
        """Gain at a time of the motion, linear between periods."""
        position = min(max(time / self.period, 0.0), len(self.t) - 1.0)
        k = min(int(position), len(self.t) - 2)
        share = position - k
        return (1.0 - share) * self.gains[k] + share * self.gains[k + 1]

    def held(self, t: float, hold: float) -> StateFeedback:
        """What to send at time t (s) to a local loop that holds it for `hold` seconds, until the next message: the
        feedback at the middle, so that the reference is on average not late.
        """
        return self.at(_time(t) + 0.5 * positive(hold, "hold", "time"))

    def command(self, t: float, q: ArrayLike, v: ArrayLike) -> Array:
        """Efforts (nu,) at time t (s) and state q (nq,), v (n,): `effort + gain (q ⊖ q_d, v − v_d)`."""
        return self.applied(self.at(t), q, v)

    def applied(self, feedback: StateFeedback, q: ArrayLike, v: ArrayLike) -> Array:
        """Efforts (nu,) of `feedback`, such as one that is held, at state q (nq,), v (n,)."""
        checked = states(self.model, positions={"q": q}, rates={"v": v})
        if checked.batch is not None:
            raise RbdError(f"a command has one state: q has shape {np.shape(q)}, expected ({self.model.nq},)")
        error = np.concatenate([self.model.difference(feedback.q, checked.arrays[0]), checked.arrays[1] - feedback.v])
        return feedback.effort + feedback.gain @ error

    def control_message(self, t: float, hold: float | None = None, joints: Sequence[str] | None = None
                        ) -> dict[str, Any]:
        """Fields of linear_feedback_controller_msgs/Control for time t (s), as nested dictionaries: gain of `x_0 ⊖ x`,
        feed-forward and state x_0 for loco-3d's linear-feedback-controller. `rbd_ros.nodes.linear_feedback` makes the
        message of these, where that package is installed. The stamps are the sender's.

        hold (s): until the next message, as in `held`; by default the state is that of t. joints: all of them but a
        floating base, in the order that the receiver has, Pinocchio's; by default the model's. Raises `RbdError` for
        elastic joints, and for joints with several positions.
        """
        if isinstance(self._plant, ElasticPlant):
            raise RbdError("the message has the state of links alone, and elastic joints have motors: use `c_source`")
        feedback = self.at(t) if hold is None else self.held(t, hold)
        return control_fields(self.model, self.inputs, feedback, joints)

    def c_source(self, name: str = "gains", rate: float = 50.0, precision: str = "double") -> str:
        """C99 text with `NAME_feedback(t, q, v, effort)`, the law of `command` from a table with `rate` samples per
        second (Hz); precision "double" or "float". For joints whose coordinates add up: none with quaternions.
        """
        n = len(self.states)
        if self.model.nq != n:
            raise RbdError("c_source: joints with quaternions are not supported, expected joints whose coordinates add "
                           "up")
        duration = float(self._motion.duration)
        samples = max(round(duration * positive(rate, "rate", "frequency")), 1) + 1
        if samples > MOST_SAMPLES:
            raise RbdError(f"rate: {rate:g} Hz would be {samples:,} samples, expected at most {MOST_SAMPLES:,}")
        t = np.linspace(0.0, duration, samples)
        course = _course(self._plant, self._motion, t)
        step = duration / (samples - 1)
        sides = np.clip(t + 1e-3 * step, 0.0, duration), np.clip(t - 1e-3 * step, 0.0, duration)
        later, earlier = (_course(self._plant, self._motion, side).effort for side in sides)
        rates = (later - earlier) / (sides[0] - sides[1])[:, None]
        gains = np.array([self._gain(x) for x in t]).reshape(samples, -1)
        table = np.hstack([course.q, course.v, course.effort, rates, gains])
        held = _course(self._plant, self._motion, np.array([-1.0, duration + 1.0])).effort
        return gains_source(table, held, step, n, self.inputs, self.states, name, precision)

    def margins(self, t: ArrayLike | None = None) -> LoopMargins:
        """Gain, phase and delay margins of the loop at times t (M,) (s), by default 11 from start to end: see
        `LoopMargins`.
        """
        times = np.linspace(0.0, self.t[-1], 11) if t is None else np.atleast_1d(real(t, "t", "(M,)"))
        if times.ndim != 1 or not np.isfinite(times).all():
            raise RbdError(f"t: expected finite times (M,), got {shown(t)}")
        rows = np.clip(np.rint(times / self.period).astype(int), 0, len(self.t) - 1)
        return loop_margins(self.A[rows], self.B[rows], self.gains[rows], self.period)


def tracking_gains(model: RobotModel | Actuation, motion: Any, Q: ArrayLike, R: ArrayLike, *, period: float = 1e-3,
                   end: ArrayLike | None = None, actuated: ArrayLike | Sequence[str] | None = None,
                   friction: Friction | None = None) -> TrackingGains:
    """Time-varying LQR along a motion: the gains that minimise `Σ xᵀ Q x + (u − u_d)ᵀ R (u − u_d)` over its periods.

    With the dynamics linearised along the motion (`forward_dynamics_derivatives`), at the middle of each period, and
    discretised exactly over it, for efforts that are constant in between: Riccati's equation backwards from the end.
    model: with rigid joints of any kind, also on a floating base; or the `Actuation` of elastic joints, whose state is
    that of links and motors. motion: of `duration` (s), `motion(t)` gives q, v, a (N, …) at times (N,), for elastic
    joints also jerk and snap; or `motion.sample(t)` does at one time.

    Q: (2 n,), a diagonal, or (2 n, 2 n), positive semidefinite, of the errors of position, then velocity, on the
    tangent space; R: (nu,) or (nu, nu), positive definite. period (s): of the local loop. end: Q of the state after the
    last period; by default the cost of holding the end forever, after which the last gain holds. actuated: mask (nv,)
    or names of the coordinates that are driven, by default all but those of floating joints. friction: fed forward; its
    viscous part counts in the linearisation, as does that of elastic joints.

    Raises `RbdError` for weights of other shapes or signs, a motion that needs effort where none acts, and, without
    `end`, naming the coordinate, if the efforts cannot hold the end.

        >>> model = rbd.sample("two_link")
        >>> motion = rbd.SplineMotion(np.repeat([[0.0, 0.0], [1.0, -0.5]], 6, axis=0), 2.0)
        >>> gains = rbd.tracking_gains(model, motion, Q=[100.0, 100.0, 1.0, 1.0], R=[0.01, 0.01])
        >>> gains.command(1.0, motion(1.0).q, motion(1.0).v).shape
        (2,)
    """
    plant = _plant(model, actuated, friction)
    nx, nu = 2 * len(plant.states), len(plant.inputs)
    q_cost, r_cost = _weight(Q, "Q", nx, definite=False), _weight(R, "R", nu, definite=True)
    end_cost = None if end is None else _weight(end, "end", nx, definite=False)
    h = positive(period, "period", "time")
    duration = positive(getattr(motion, "duration", None), "motion.duration", "time")
    most = MOST_NUMBERS // (nx * (nx + nu))
    if duration / h > most:
        raise RbdError(f"motion of {duration:g} s has more than {most:,} periods of {h:g} s, as many as are supported "
                       f"with {nx} states: expected a longer period, or a part of the motion")
    t = h * np.arange(int(np.ceil(duration / h - 1e-9)) + 1.0)
    course = _course(plant, motion, t)
    continuous = plant.linearized(_course(plant, motion, t + 0.5 * h))
    if not all(np.isfinite(h * x).all() and np.abs(h * x).max(initial=0.0) < LARGEST for x in continuous):
        raise RbdError(f"the linearisation of model '{plant.model.name}' along this motion is beyond what floating "
                       f"point numbers hold in a period of {h:g} s")
    A, B = discretized(*continuous, h)
    cost = _held_forever(plant, course, (A[-1], B[-1]), q_cost, r_cost)[0] if end_cost is None else end_cost
    gains = riccati(A, B, q_cost, r_cost, cost)
    if not np.isfinite(gains).all():
        raise RbdError(f"gains of model '{plant.model.name}' would not be finite: weights, or the motion, are beyond "
                       "what floating point numbers hold")
    arrays = (t, gains, course.q, course.v, course.effort, A, B)
    for array in arrays:
        array.setflags(write=False)
    return TrackingGains(plant.model, h, *arrays, plant.states, plant.inputs, plant, motion)


def riccati(A: Array, B: Array, Q: Array, R: Array, end: Array) -> Array:
    """Gains (N, nu, nx), `u = K x`, of the least `Σ xᵀ Q x + uᵀ R u + x_Nᵀ end x_N` with `x⁺ = A[k] x + B[k] u`."""
    P, gains = end, np.empty((len(A), B.shape[2], A.shape[1]))
    for k in range(len(A) - 1, -1, -1):
        PB = P @ B[k]
        K = gains[k] = -np.linalg.solve(R + B[k].T @ PB, PB.T @ A[k])
        closed = A[k] + B[k] @ K
        P = Q + K.T @ R @ K + closed.T @ P @ closed    # Joseph's form, symmetric and positive
        P = 0.5 * (P + P.T)
    return gains


def _plant(model: Any, actuated: Any, friction: Friction | None) -> Plant:
    if isinstance(model, Actuation):
        if actuated is not None or friction is not None:
            raise RbdError("actuated, friction: expected None with elastic joints, whose Actuation has motors and "
                           "friction")
        return ElasticPlant(model)
    if not isinstance(model, RobotModel):
        raise not_a_model(model)
    if actuated is None:
        mask = np.ones(model.nv, dtype=bool)
        for joint in model.joints:
            mask[joint.idx_v:joint.idx_v + joint.nv] = joint.nv != 6
    else:
        mask = prescribed_mask(model, actuated)
    if not mask.any():
        raise RbdError(f"actuated: no coordinate of model '{model.name}' is driven, expected at least one of "
                       f"{', '.join(model.velocity_names) or 'its coordinates, of which there are none'}")
    return RigidPlant(model, mask, friction)


def _course(plant: Plant, motion: Any, t: Array) -> Course:
    """The motion at times t (N,), checked; at rest before its start and after its end."""
    outside = (t < 0.0) | (t > motion.duration)
    t = np.clip(t, 0.0, motion.duration)
    reference: Any = motion(t) if callable(motion) else None
    if reference is None and hasattr(motion, "sample"):
        reference = [None if part[0] is None else np.array(part) for part in zip(*map(motion.sample, t), strict=True)]
    try:
        q, v, a, jerk, snap = (*reference, None, None)[:5]
    except (TypeError, ValueError):
        raise RbdError(f"motion: expected a function of the times (N,) that gives q, v, a, such as a SplineMotion, got "
                       f"{type(motion).__name__}") from None
    model = plant.actuation.model if isinstance(plant, ElasticPlant) else plant.model
    rates = {name: value for name, value in (("v", v), ("a", a), ("jerk", jerk), ("snap", snap)) if value is not None}
    if outside.any() and all(len(row) == len(t) for row in rates.values()):
        rates = {name: np.where(outside[:, None], 0.0, row) for name, row in rates.items()}
    checked = states(model, positions={"q": q}, rates=rates)
    if checked.batch != len(t):
        raise RbdError(f"motion: expected {len(t)} states at {len(t)} times, got q of shape {np.shape(q)}")
    return plant.course(Reference(*checked.arrays), t)


def _weight(value: ArrayLike, name: str, size: int, definite: bool) -> Array:
    """A checked weight (size, size), of a diagonal (size,) or a matrix."""
    array = real(value, name, f"({size},) or ({size}, {size})")
    matrix = np.diag(array) if array.ndim == 1 else array
    if matrix.shape != (size, size):
        raise RbdError(f"{name} has shape {array.shape}, expected ({size},) or ({size}, {size})")
    if not np.isfinite(matrix).all():
        raise RbdError(f"{name} must be finite, got {shown(value)}")
    largest = np.abs(matrix).max()
    if np.abs(0.5 * matrix - 0.5 * matrix.T).max() > SYMMETRIC * largest:
        raise RbdError(f"{name} must be symmetric, got {shown(value)}")
    matrix = 0.5 * matrix + 0.5 * matrix.T
    least = np.linalg.eigvalsh(matrix / (largest or 1.0))[0] * largest
    if definite and not least > 0.0:
        raise RbdError(f"{name} must be positive definite, its least eigenvalue is {least:.3g}")
    if least < -SYMMETRIC * largest:
        raise RbdError(f"{name} must be positive semidefinite, its least eigenvalue is {least:.3g}")
    return matrix


def standing_gain(plant: RigidPlant, reference: Reference, Q: Array, R: Array, period: float) -> Array:
    """The gain (nu, 2 n) at one reference, as if the linearisation there held forever: that of `tracking_gains` where
    the robot follows faster than the motion changes. Q, R: checked matrices.
    """
    q, v, a = (x[np.newaxis] for x in reference[:3])
    course = Course(q, v, a, np.zeros((1, len(plant.inputs))))
    A, B = discretized(*plant.linearized(course), period)
    return _held_forever(plant, course, (A[0], B[0]), Q, R)[1]


def _held_forever(plant: Plant, course: Course, step: tuple[Array, Array], Q: Array, R: Array) -> tuple[Array, Array]:
    """Cost matrix and gain of the last state held forever; raises `RbdError` if the efforts cannot hold it."""
    from scipy.linalg import solve_discrete_are    # local import: saves 20 MB in nodes without planning

    A, B = step
    try:
        P = solve_discrete_are(A, B, Q, R)
        K = np.linalg.solve(R + B.T @ P @ B, -B.T @ P @ A)
        stable = np.isfinite(P).all() and np.abs(np.linalg.eigvals(A + B @ K)).max() < 1.0 - DECAY
    except (np.linalg.LinAlgError, ValueError):    # SciPy's for pairs that it cannot reorder
        stable = False
    if not stable:
        last = Course(*(x[-1:] for x in course))
        continuous = plant.linearized(last)
        name, growth = least_controllable(continuous[0][0], continuous[1][0], plant, last)
        raise RbdError(f"model '{plant.model.name}': the efforts ({', '.join(plant.inputs)}) with these weights do not "
                       f"hold the end of the motion: they move '{name}' least (growth {growth:.3g} 1/s), or Q does not "
                       "weigh it. Give `end`, a weight of the state at the end, or drive more coordinates")
    return np.asarray(0.5 * (P + P.T)), np.asarray(K)


def least_controllable(A: Array, B: Array, plant: Plant, course: Course) -> tuple[str, float]:
    """Coordinate and growth (1/s) of the mode of `ẋ = A x + B u`, of those that do not decay, nearest to being
    uncontrollable: least singular value of `[A − λ1, B]` (Popov, Belevitch, Hautus). Its left vector is a momentum:
    ∂q̈/∂τ makes of it the effort that would be needed.
    """
    found, n = (np.inf, "", 0.0), len(plant.states)
    by_effort = forward_dynamics_derivatives(plant.model, course.q[0], course.v[0], np.zeros(n)).tau
    values = np.linalg.eigvals(A)
    for value in values[values.real >= -1e-6 * max(np.abs(values).max(), 1.0)]:
        left, singular, _ = np.linalg.svd(np.hstack([A - value * np.eye(2 * n), B]))
        effort = np.abs(left[n:, -1] @ by_effort)
        found = min(found, (float(singular[-1]), plant.states[int(np.argmax(effort))], float(value.real)))
    return found[1], found[2]


def _time(t: float) -> float:
    time = real(t, "t", "()")
    if np.ndim(t) != 0 or not np.isfinite(time).all():
        raise RbdError(f"t must be a finite time, got {shown(t)}")
    return time.item()
