"""A pose of a body as start or end of a motion: its equations, and postures that satisfy them, for open chains and for
mechanisms with loops alike.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...compiled.computing_time import computing_time
from ...dynamics.constrained.mechanism import Mechanism
from ...dynamics.kinematics import forward_kinematics, jacobian
from ...errors import RbdError
from ...lie import se3
from ...model.inertia import finite
from ...model.robot_model import RobotModel
from ..damped_newton import TOLERANCE
from ..inverse_kinematics import MOST_STARTS, chain_to, diagnosis, postures, task_of

Array = NDArray[np.float64]
RESTORATIONS, RESTORED = 6, 1e-12
RESTARTS, STEPS = 30, 60    # of the search for postures with closed loops
ENOUGH = 3          # number of these, of which the nearest is taken
REACHED = 1e-9      # m, rad: tolerance of a posture
HELD = 1e-5         # m, rad: tolerance at an end of a motion
STEP = 1e-6         # rad, m, for finite differences
LONGEST = 0.3       # rad, m: longest step
DAMPING = 1e-4
INSIDE = 1e-2       # margin, relative to the position limits
WAY = 40            # postures on a line between two postures
SHORTER = 0.25      # factor of a step whose end has open loops
SMALLEST = 1e-3     # smallest share of a step
WIDE = 0.5          # rad, m: range of a restart without limits


@dataclass(frozen=True, eq=False)
class BodyGoal:
    """Goal pose of a body: position (3,) of its frame's origin, or of the point `offset` (3,) in its frame, in m, world
    axes; orientation (3, 3), world from body, or None: any.

        >>> goal = rbd.BodyGoal("link_7", [0.4, 0.2, 0.6])    # the origin of this link, m
        >>> goal.size
        3
    """

    body: str
    position: ArrayLike
    orientation: ArrayLike | None = None
    offset: ArrayLike = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", finite(self.position, (3,), "BodyGoal: position"))
        object.__setattr__(self, "offset", finite(self.offset, (3,), "BodyGoal: offset"))
        if self.orientation is not None:
            pose = np.eye(4)
            pose[:3, :3] = finite(self.orientation, (3, 3), "BodyGoal: orientation")
            object.__setattr__(self, "orientation", se3.checked_pose("BodyGoal: orientation", pose)[:3, :3])

    @property
    def size(self) -> int:
        """Number of equations: 3 or 6."""
        return 3 if self.orientation is None else 6

    def equations(self, model: RobotModel, q: Array) -> Array:
        """Position error (m), then the vector of half the skew part of goal orientationᵀ · orientation; 0 at the goal.
        """
        pose = forward_kinematics(model, q)[model.body_index(self.body)]
        error = pose[:3, :3] @ np.asarray(self.offset) + pose[:3, 3] - np.asarray(self.position)
        if self.orientation is None:
            return error
        E = np.asarray(self.orientation).T @ pose[:3, :3]
        return np.concatenate([error, 0.5 * np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]])])

    def jacobian(self, model: RobotModel, q: Array) -> Array:
        """Derivatives (size, nv) of the equations."""
        J = jacobian(model, q, self.body)
        R = forward_kinematics(model, q)[model.body_index(self.body), :3, :3]
        moved = R @ (J[3:] + np.cross(J[:3], np.asarray(self.offset), axisa=0, axisc=0))
        if self.orientation is None:
            return np.asarray(moved)
        E = np.asarray(self.orientation).T @ R
        return np.concatenate([moved, 0.5 * (np.trace(E) * np.eye(3) - E.T) @ J[:3]])

    def holds(self, model: RobotModel, q: Array) -> bool:
        """Whether the body is at the goal, to `HELD`, and not rotated by half a turn."""
        return bool(np.abs(self.equations(model, q)).max() <= HELD) and self.upright(model, q)

    def upright(self, model: RobotModel, q: Array) -> bool:
        """Whether the body is not rotated by half a turn, which also satisfies the equations."""
        if self.orientation is None:
            return True
        R = forward_kinematics(model, q)[model.body_index(self.body), :3, :3]
        return bool(np.trace(np.asarray(self.orientation).T @ R) > 2.0)


class EndPose:
    """A `BodyGoal` at an end of a motion, as a function of the splines' coordinates u (n,): q = φ(u), in the assembly
    mode of a given posture (nq,).
    """

    def __init__(self, goal: BodyGoal, chain: Mechanism, near: Array) -> None:
        self.goal, self.chain = goal, chain
        self.body, self.size = goal.body, goal.size
        self._near = near    # the latest closed posture

    def closed(self, u: Array) -> Array:
        """q (nq,) of u; NaN if the loops cannot be closed on the way from the last posture."""
        q: Array = self.chain.along(u[None], self._near)[0]
        if np.isfinite(q).all():
            self._near = q
        return q

    def equations(self, u: Array) -> Array:
        """Values of `BodyGoal.equations` at u."""
        return self._equations(self.closed(u))

    def _equations(self, q: Array) -> Array:
        return self.goal.equations(self.chain.model, q) if np.isfinite(q).all() else np.full(self.size, np.nan)

    def jacobian(self, u: Array) -> Array:
        """Derivatives (size, n) of the equations."""
        return self._jacobians(self.closed(u)[None])[0]

    def _jacobians(self, q: Array) -> Array:
        out = np.full((len(q), self.size, self.chain.size), np.nan)
        good = np.flatnonzero(np.isfinite(q).all(axis=1))
        for k, tangent in zip(good, self.chain.tangents(q[good])[0], strict=True):
            out[k] = self.goal.jacobian(self.chain.model, q[k]) @ tangent
        return out

    def curvature(self, u: Array, weights: Array) -> Array:
        """Second derivatives (n, n) of weights · equations, by differences of the first ones; 0 where unknown."""
        posture = self.closed(u)
        steps = np.concatenate([np.zeros((1, len(u))), STEP * np.eye(len(u))])
        slopes = weights @ self._jacobians(self.chain.along(u + steps, posture))
        out = (slopes[1:] - slopes[0]) / STEP
        return 0.5 * (out + out.T) if np.isfinite(out).all() else np.zeros_like(out)

    def reached(self, u: Array) -> Array:
        """Coordinates close to u that satisfy the equations, at least nearly."""
        for _attempt in range(RESTORATIONS):
            q = self.closed(u)
            c = self._equations(q)
            if not np.abs(c).max() > RESTORED:    # or NaN
                break
            u = u - np.linalg.lstsq(self._jacobians(q[None])[0], c, rcond=1e-8)[0]
        return u

    def holds(self, u: Array) -> bool:
        """Whether the body is at the goal, and not rotated by half a turn, which also satisfies the equations."""
        q = self.closed(u)
        return bool(np.isfinite(q).all()) and self.goal.holds(self.chain.model, q)

    def posture(self, lower: Array, upper: Array, until: float = np.inf, name: str = "goal") -> Array:
        """A posture (nq,) at the goal within limits (nv,), reachable along a line of u from the known posture; the
        nearest of several. Raises `RbdError` if none is found by the time `until` (`computing_time`).
        """
        if not len(self.chain.dependent):
            return self._open(lower, upper, name)
        chain, begin = self.chain, self._near
        middle = begin[chain.own]
        own_lower, own_upper = lower[chain.independent], upper[chain.independent]
        low, high = (np.where(np.isfinite(limit), limit, middle + side * WIDE)
                     for limit, side in ((own_lower, -1.0), (own_upper, 1.0)))
        room = _room(own_lower, own_upper)
        rng = np.random.default_rng(2)
        candidates: list[Array] = []
        best = np.inf
        for attempt in range(RESTARTS):
            q = begin
            if attempt:    # restart: at random postures, or on the way there if the loops cannot be closed all the way
                way = chain.along(np.linspace(middle, rng.uniform(low, high), WAY), begin)
                closed = int(np.sum(np.isfinite(way).all(axis=1)))
                q = way[-1] if closed == WAY else way[int(rng.integers(1, closed))] if closed > 1 else begin
            q = self._solved(q, own_lower + room, own_upper - room)
            error = float(np.abs(self._equations(q)).max())
            best = min(best, error)
            positions = chain.coordinates(q)
            if (error <= 1e3 * REACHED and self.goal.upright(chain.model, q) and (positions >= lower).all()
                    and (positions <= upper).all() and self._reachable(q, begin)):
                candidates.append(q)
            if len(candidates) >= ENOUGH or computing_time() > until:
                break
        if not candidates:
            raise self._unreachable(name, ", with loops closed on a straight line of the independent joints,",
                                    f"the best is off by {best:.3g}")
        self._near = min(candidates, key=lambda q: float(np.abs(q[chain.own] - middle).max()))
        return self._near

    def _open(self, lower: Array, upper: Array, name: str) -> Array:
        """`posture` of an open chain: with some room to the limits (nv,), or without."""
        chain = chain_to(self.chain.model, self.body)
        rotation = np.eye(3) if self.goal.orientation is None else np.asarray(self.goal.orientation)
        goal = np.concatenate([rotation.reshape(9), np.asarray(self.goal.position)])
        task = task_of(chain, self.goal.orientation is not None, None, self.goal.offset, 1e3 * REACHED, MOST_STARTS)
        room = _room(lower, upper)
        for low, high in ((lower + room, upper - room), (lower, upper)):
            q, error = postures(chain, goal[None], task, chain.limited(low, high), self._near, self._near)
            if (error <= task[TOLERANCE]).all():
                self._near = q[0]
                return self._near
        raise self._unreachable(name, "", diagnosis(chain, goal, task, chain.limited(lower, upper), q[0], error[0]))

    def _unreachable(self, name: str, condition: str, reason: str) -> RbdError:
        return RbdError(f"{name}: no posture within the position limits{condition} was found that brings "
                        f"'{self.body}' to {np.array2string(np.asarray(self.goal.position), precision=4)}; {reason}")

    def _solved(self, q: Array, low: Array, high: Array) -> Array:
        """The posture to which a damped Newton's method leads from a closed one, u within limits."""
        chain = self.chain
        for _ in range(STEPS):
            c = self._equations(q)
            if np.abs(c).max() <= REACHED:
                break
            J = self._jacobians(q[None])[0]
            step = -J.T @ np.linalg.solve(J @ J.T + DAMPING * np.abs(c).max() * np.eye(len(c)), c)
            step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
            share = 1.0
            while share > SMALLEST:
                candidate = chain.along(np.clip(q[chain.own] + share * step, low, high)[None], q)[0]
                if np.isfinite(candidate).all():
                    break
                share *= SHORTER
            if share <= SMALLEST:
                break
            q = candidate
        return q

    def _reachable(self, q: Array, begin: Array) -> bool:
        """Whether loops can be closed along a straight line of u from `begin` to q."""
        chain = self.chain
        end = chain.along(np.linspace(begin[chain.own], q[chain.own], WAY), begin)[-1]
        return bool(np.isfinite(end).all() and np.abs(chain.model.difference(q, end)).max() <= 1e-6)


def _room(lower: Array, upper: Array) -> Array:
    """Margin to position limits; 0 for coordinates without limits."""
    return INSIDE * np.where(np.isfinite(lower) & np.isfinite(upper), upper - lower, 0.0)
