"""Closed loops and contacts as points and lines in the world."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from ..core.dynamics.contact.coordinates import closest_points
from ..core.errors import RbdError
from ..core.lie import se3
from ..core.model.assembly import WORLD
from ..core.model.constraints import ConstraintSet, FixedContact, JointCoupling, LoopClosure
from ..core.model.inertia import Array
from ..core.model.robot_model import RobotModel
from ..core.model.surfaces.contacts import RollingContact, SlidingContact
from .bars import COLOURS, CSS, HEAD, NAME, RIGHT

CLOSED = 1e-6     # m: larger gaps are drawn as open


@dataclass(frozen=True, eq=False)
class Tie:
    """Drawing of a constraint: two points (3,) of the world, equal if closed; axes (3, 3) at these, z along the free
    axis of a hinge or the normal of a contact.
    """

    name: str
    kind: str    # "loop", "contact", "rolling", "sliding"
    first: Array
    second: Array
    axes: Array
    free: bool = False    # without axis: a ball joint

    @property
    def gap(self) -> float:
        """Distance of the points, m."""
        return float(np.linalg.norm(self.second - self.first))


def ties(model: RobotModel, constraints: ConstraintSet, poses: Array) -> tuple[Tie, ...]:
    """The drawable constraints at the poses (nb, 4, 4) of the links."""
    candidates = (_tie(model, name, constraints[name], poses) for name in constraints.names)
    return tuple(tie for tie in candidates if tie is not None)


def _tie(model: RobotModel, name: str, item: object, poses: Array) -> Tie | None:
    def pose(link: str) -> Array:
        return np.eye(4) if link == WORLD and link not in model.body_names else poses[model.body_index(link)]

    if isinstance(item, LoopClosure):
        first = pose(item.predecessor) @ np.asarray(item.predecessor_frame)
        second = pose(item.successor) @ np.asarray(item.successor_frame)
        return Tie(name, "loop", first[:3, 3], second[:3, 3], first[:3, :3],
                   not {"rx", "ry", "rz"} & set(item.axes))
    if isinstance(item, FixedContact):
        first, second = np.asarray(item.world), pose(item.link) @ np.asarray(item.frame)
        return Tie(name, "contact", first[:3, 3], second[:3, 3], first[:3, :3])
    if isinstance(item, (RollingContact, SlidingContact)):
        body = pose(item.first.link)
        try:
            point = closest_points(item.first, item.second, se3.inverse(body) @ pose(item.second.link), name)
        except RbdError:    # not unique in this pose
            return None
        p_1, p_2 = (body[:3, :3] @ p + body[:3, 3] for p in (point.point_1, point.point_2))
        return Tie(name, "rolling" if isinstance(item, RollingContact) else "sliding", p_1, p_2,
                   body[:3, :3] @ point.axes)
    return None


def ties_html(drawn: Sequence[Tie]) -> str:
    """HTML list of ties: closed, or size of the gap."""
    rows = "".join(f'<div style="{NAME}">{escape(tie.name)}</div><div style="{RIGHT}'
                   + (f';color:{COLOURS["over"]}">open by {1e3 * tie.gap:.2f} mm' if tie.gap > CLOSED else '">closed')
                   + "</div>" for tie in drawn)
    return HEAD.format("Loops and contacts") + (
        f'<div class="rbd-ties" style="{CSS};grid-template-columns:1fr max-content">{rows}</div>')


def held(constraints: ConstraintSet, name: str, value: float) -> ConstraintSet:
    """The constraints with one coordinate fixed at a value."""
    named = [constraints[own] for own in constraints.names]
    return ConstraintSet([*named, JointCoupling({name: 1.0}, value, name="slider")])
