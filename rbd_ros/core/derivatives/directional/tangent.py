"""`Tangent`: derivatives by a scalar p (K eq. 92) of all inputs and parameters of the dynamics, by their names."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import RbdError
from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import node_wrenches, not_a_model, shaped
from .friction_change import friction_records
from .model_change import ModelChange, changes_model

STATE = ("q", "v", "a", "tau")


@dataclass(frozen=True, eq=False)
class Tangent:
    """∂/∂p of the inputs and of the model; quantities that are left out do not depend on p.

    q, v, a, tau: (nv,) or (N, nv), q along the tangent of `integrate`. gravity (3,). inertias: {body: (10,)}, as in
    `model.inertial_parameters`, of links behind fixed joints too. placements: {joint: (6,)}, the twist of the joint's
    frame in its own axes, `∂T = T ξ̂` for the pose T of that frame in the parent link; of fixed and locked joints too.
    external_wrenches: {body: (6,)}, components in link axes.

    Of moving joints, followers of mimic joints included: screws {joint: (6,)}, ∂s of its screw s (angular, linear) in
    the joint's frame, T(q) = exp(ŝ q), or (k, 6) of its k steps; axes {joint: (3,)}, as declared, or (k, 3) if it has
    several (the axes in the plane of a planar joint follow its normal as when a model is built: `aligning_rotation`);
    pitches {joint: number or (k,)}, m/rad; advances {joint: (n,)}, coefficients of a cam; rotor_inertias {joint: number
    or (nv,)}; mimics {joint: (∂multiplier, ∂offset)}. The link's frame at q = 0 is constant when a screw or an axis
    changes.

    Of friction, in functions with the argument `friction`: friction {joint: {field of `Friction`: number or (k,)}}. If
    the law has breakaway = coulomb, the breakaway changes with coulomb unless it is named.

    Of constraints, by name, for constrained dynamics only: predecessor_frames, successor_frames {constraint: (6,)}, a
    twist as in placements (of a fixed contact: world and frame; of a rolling or sliding one: the frames of its first
    and second surface); constants {coupling: number}; terms {coupling: {joint: number or coefficients}}.

        >>> model = rbd.sample("two_link")
        >>> longer = rbd.Tangent(placements={"elbow": [0, 0, 0, 1, 0, 0]})    # the elbow moves along x
        >>> rbd.inverse_dynamics_directional(model, [0.3, 0.5], [0, 0], [1, 0], longer).round(3)
        array([-9.612, -0.12 ])
    """

    q: ArrayLike | None = None
    v: ArrayLike | None = None
    a: ArrayLike | None = None
    tau: ArrayLike | None = None
    inertias: Mapping[str, ArrayLike] = field(default_factory=dict)
    placements: Mapping[str, ArrayLike] = field(default_factory=dict)
    screws: Mapping[str, ArrayLike] = field(default_factory=dict)
    external_wrenches: Any = None
    gravity: ArrayLike | None = None
    axes: Mapping[str, ArrayLike] = field(default_factory=dict)
    pitches: Mapping[str, ArrayLike] = field(default_factory=dict)
    advances: Mapping[str, ArrayLike] = field(default_factory=dict)
    rotor_inertias: Mapping[str, ArrayLike] = field(default_factory=dict)
    mimics: Mapping[str, ArrayLike] = field(default_factory=dict)
    predecessor_frames: Mapping[str, ArrayLike] = field(default_factory=dict)
    successor_frames: Mapping[str, ArrayLike] = field(default_factory=dict)
    constants: Mapping[str, float] = field(default_factory=dict)
    terms: Mapping[str, Mapping[str, ArrayLike]] = field(default_factory=dict)
    friction: Mapping[str, Mapping[str, ArrayLike]] = field(default_factory=dict)


_BY_NAME = tuple(item.name for item in fields(Tangent) if item.default_factory is dict)


class Tangents:
    """Several tangents whose names are looked up once, for derivatives along the same directions at many states.
    `tangents`: the `Tangent` of each direction, whose arrays are copied.

        >>> model = rbd.sample("two_link")
        >>> directions = rbd.Tangents(model, [rbd.Tangent(gravity=[0, 0, 1]), rbd.Tangent(q=[1, 0])])
        >>> rbd.inverse_dynamics_directional(model, [0.3, 0.5], [0, 0], [1, 0], directions).shape
        (2, 2)
    """

    def __init__(self, model: RobotModel, tangents: Tangent | Iterable[Tangent]) -> None:
        if not hasattr(model, "_block"):
            raise not_a_model(model)
        self.tangents = (tangents,) if isinstance(tangents, Tangent) else tuple(tangents)
        for tangent in self.tangents:
            if not isinstance(tangent, Tangent):
                raise RbdError(f"tangent: expected a Tangent or several, got {type(tangent).__name__}")
            _check_names(tangent)
        self.model, self.block, self.count = model, model._block, len(self.tangents)
        # ∂ of the packed model (count, …) at `start`, empty if no direction changes the model; see `ModelChange`
        self.start, self.models = self.block, np.empty((0, len(self.block)))
        links = self.count, len(model.body_names)
        self.inertias, self.shifts = np.zeros((*links, 10)), np.zeros((*links, 6))
        changing = [i for i, tangent in enumerate(self.tangents) if changes_model(tangent)]
        if changing:
            self.start, self.models = np.array(self.block), np.zeros((self.count, len(self.block)))
            for i in changing:
                ModelChange(model, self.tangents[i], self.start, self.models[i], self.inertias[i], self.shifts[i])
        states = shaped(model, rates=state_changes(model, self.tangents))
        states.check_values()
        self.changes = None    # of a single state (count, 4, 1, nv)
        if states.batch is None:
            self.changes = np.array(states.arrays).reshape(self.count, len(STATE), 1, model.nv)
        self.friction = friction_records(model, self.tangents)
        self.loading = any(tangent.external_wrenches is not None for tangent in self.tangents)
        self.quick = None if self.loading else self.changes    # for calls without full validation

    @classmethod
    def for_states(cls, model: RobotModel, count: int) -> Tangents:
        """`count` empty tangents, for changes of states alone, which the caller's `Perturbation` holds."""
        tangents = cls(model, ())
        tangents.tangents, tangents.count = (Tangent(),) * count, count
        return tangents

    def wrenches(self, external_wrenches: Any, batch: int | None) -> Array:
        """∂ of the wrenches on nodes (count, …), empty if none changes. Wrenches move with the links on which they act.
        """
        size = (1 if batch is None else batch) * len(self.model._node_rows) * 6
        moving = external_wrenches is not None and self.shifts.any()
        if not (self.loading or moving):
            return np.empty((0, size))
        total = np.zeros((self.count, size))
        for change, tangent, shifts in zip(total, self.tangents, self.shifts, strict=True):
            if tangent.external_wrenches is not None:
                change += node_wrenches(self.model, tangent.external_wrenches, batch)
            if moving:
                change += shifted_wrenches(self.model, external_wrenches, shifts, batch)
        return total


def _check_names(tangent: Tangent) -> None:
    """Raise `RbdError` for values that are not dictionaries."""
    for name in _BY_NAME:
        changes = getattr(tangent, name)
        if type(changes) is not dict and not isinstance(changes, Mapping):
            raise RbdError(f"tangent.{name}: expected a dictionary by name, got {type(changes).__name__}")
    for name in ("friction", "terms"):
        for key, changes in getattr(tangent, name).items():
            if not isinstance(changes, Mapping):
                raise RbdError(f"tangent.{name}['{key}']: expected a dictionary by name, got {type(changes).__name__}")


def state_changes(model: RobotModel, tangents: tuple[Tangent, ...]) -> dict[str, Any]:
    """∂ of q, v, a and tau of each tangent, by the names used in error messages."""
    out = {}
    for i, tangent in enumerate(tangents):
        label = "tangent" if len(tangents) == 1 else f"tangents[{i}]"
        for name in STATE:
            value = getattr(tangent, name)
            out[f"{label}.{name}"] = model._zeros if value is None else value
    return out


def shifted_wrenches(model: RobotModel, wrenches: Any, shifts: Array, batch: int | None) -> Array:
    """∂ of the wrenches on nodes when links move by the twists `shifts` (nb, 6) in the axes of their nodes."""
    nb = len(model.body_names)
    total = np.zeros((1 if batch is None else batch, len(model._node_rows), 6))
    for link in np.flatnonzero(shifts.any(axis=1)):
        name = model.body_names[link]
        if isinstance(wrenches, Mapping):
            if name not in wrenches:
                continue
            wrench: Any = {name: wrenches[name]}
        else:
            wrench = np.asarray(wrenches) * (np.arange(nb) == link)[:, None]
        f = node_wrenches(model, wrench, batch).reshape(total.shape)
        w, u = shifts[link, :3], shifts[link, 3:]
        total[..., :3] += np.cross(w, f[..., :3]) + np.cross(u, f[..., 3:])
        total[..., 3:] += np.cross(w, f[..., 3:])
    return total.reshape(-1)
