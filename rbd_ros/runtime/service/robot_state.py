"""State of a request: listed by joint, or the latest joint state."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import RbdError, unknown_name
from ...core.model.inertia import Array
from ...core.model.robot_model import RobotModel
from ..inputs.joint_states import StateInput
from ..inputs.rejections import Rejections
from ..world.odometry import OdometryInput
from .naming import Coordinates, numbers

MIMIC_TOLERANCE = 1e-3    # rad or m (per s) between a mimic joint and its value by its source


@dataclass(frozen=True)
class StateRequest:
    """Joints by name, in any order, with positions and velocities (empty: at rest). No names: the present state.

    For a floating base: position (3,), quaternion (4,) x, y, z, w and twist (6,) (ω, v) in axes of the base.
    """

    names: Sequence[str] = ()
    position: ArrayLike = ()
    velocity: ArrayLike = ()
    base_position: ArrayLike = (0.0, 0.0, 0.0)
    base_quaternion: ArrayLike = (0.0, 0.0, 0.0, 1.0)
    base_twist: ArrayLike = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class RobotStates:
    """Converts requests to (q, v) in model order, and stores the latest joint state.

    timeout: age (s) from which the latest joint state is stale. cutoff: Hz, for computed velocities. odometry_timeout:
    age (s) from which odometry of a floating base is stale; None without odometry.
    """

    def __init__(self, model: RobotModel, coordinates: Coordinates, timeout: float, cutoff: float,
                 odometry_timeout: float | None = None) -> None:
        self._coordinates = coordinates
        self.rejections = Rejections()
        fixed = model if not coordinates.floating else RobotModel.from_description(
            dataclasses.replace(model.description, root="fixed"))
        self.latest = StateInput(fixed, self.rejections, timeout, cutoff)
        self.odometry = None if odometry_timeout is None else OdometryInput(
            model.body_names[0], odometry_timeout, self.rejections)

    def read(self, request: StateRequest, now: float) -> tuple[Array, Array]:
        """(q, v) of a request; now: s, of the clock of joint-state reception."""
        if len(request.names):
            q, v = self._listed(request)
        elif np.size(request.position) or np.size(request.velocity):
            raise RbdError("state: positions or velocities without names; expected `name` to list every joint: "
                           + ", ".join(self._coordinates.joints))
        else:
            q, v = self.present(now, "state.name")
        if not self._coordinates.floating:
            return q, v
        if self.odometry is None or len(request.names):
            base_q, base_v = self._base(request)
        else:
            base_q, base_v = self._present_base(request, self.odometry, now)
        return np.concatenate([base_q, q]), np.concatenate([base_v, v])

    def present(self, now: float, field: str) -> tuple[Array, Array]:
        """(q, v) of the joints by the latest joint state; raises `RbdError` if stale. field: empty field of the
        request.
        """
        age, timeout = self.latest.age(now), self.latest.timeout
        reason = f". The last joint state was rejected: {self.rejections.last}" if self.rejections.last else ""
        if age == float("inf"):
            raise RbdError(f"{field} is empty, which means the present state, but no joint state has been received: "
                           f"publish joint_states, or give it in the request{reason}")
        if age > timeout:
            raise RbdError(f"the latest joint state is {age:.2f} s old, expected at most {timeout:g} s (parameter "
                           f"'state_timeout'): publish joint_states, or give it in the request{reason}")
        return self.latest.q, self.latest.v

    def _listed(self, request: StateRequest) -> tuple[Array, Array]:
        joints, mimics = self._coordinates.joints, self._coordinates.mimics
        names = list(request.names)
        index: dict[str, int] = {}
        for i, name in enumerate(names):
            if name not in joints and name not in mimics:
                raise unknown_name("joint in `state.name`:", name, joints)
            if name in index:
                raise RbdError(f"state.name: joint '{name}' is listed twice, expected every joint once")
            index[name] = i
        missing = [name for name in joints if name not in index]
        if missing:
            raise RbdError(f"state.name: joint '{missing[0]}' is missing, expected every joint once: "
                           + ", ".join(joints))
        position = numbers("state.position", names, request.position, needed=True)
        velocity = numbers("state.velocity", names, request.velocity)
        order = [index[name] for name in joints]
        for name in mimics.keys() & index.keys():
            mimic = mimics[name]
            expected = mimic.multiplier * position[index[mimic.source]] + mimic.offset
            rate = mimic.multiplier * velocity[index[mimic.source]] if velocity.size else 0.0
            if abs(position[index[name]] - expected) > MIMIC_TOLERANCE or (
                    velocity.size and abs(velocity[index[name]] - rate) > MIMIC_TOLERANCE):
                raise RbdError(f"state: mimic joint '{name}' contradicts '{mimic.source}', which puts it at "
                               f"{expected:g} with velocity {rate:g}: leave it out, or give these numbers")
        return position[order], velocity[order] if velocity.size else np.zeros(len(joints))

    @staticmethod
    def _present_base(request: StateRequest, odometry: OdometryInput, now: float) -> tuple[Array, Array]:
        """(q, v) of the base by the latest odometry; raises `RbdError` if the request has base values."""
        for field, value, empty in (("base_pose.position", request.base_position, StateRequest.base_position),
                                    ("base_pose.orientation", request.base_quaternion, StateRequest.base_quaternion),
                                    ("base_twist", request.base_twist, StateRequest.base_twist)):
            if not np.array_equal(value, empty):
                raise RbdError(f"state.{field} is given, but state.name is empty, which means the present state, and "
                               "that includes the base by parameter 'odometry': leave it empty, or list the joints")
        problem = odometry.problem(now)
        if problem:
            raise RbdError(problem)
        return np.concatenate([odometry.position, odometry.quaternion]), odometry.twist.copy()

    @staticmethod
    def _base(request: StateRequest) -> tuple[Array, Array]:
        position, quaternion, twist = (np.asarray(value, dtype=np.float64) for value in (
            request.base_position, request.base_quaternion, request.base_twist))
        for field, value in (("base_pose.position", position), ("base_pose.orientation", quaternion),
                             ("base_twist", twist)):
            if not np.isfinite(value).all():
                raise RbdError(f"state.{field} is not finite")
        norm = float(np.linalg.norm(quaternion))
        if abs(norm - 1.0) > 1e-2:
            raise RbdError(f"state.base_pose.orientation has norm {norm:g}, expected a unit quaternion x, y, z, w")
        return np.concatenate([position, quaternion / norm]), twist
