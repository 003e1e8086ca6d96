"""`Tangent`: how everything that the dynamics depend on changes with a scalar p (K eq. 92), by the names of a model."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import RbdError, unknown_name
from ..model import block
from ..model.inertia import Array, finite
from ..model.joints import JointSpec, primitives
from ..model.robot_model import RobotModel

# per node, in its axes at zero: placement (6), screw (6), inertia: m, m c (3), xx, xy, xz, yy, yz, zz
PLACEMENT, SCREW, INERTIA, RECORD = 0, 6, 12, 22


@dataclass(frozen=True, eq=False)
class Tangent:
    """∂/∂p of the inputs and of the model; quantities that are left out do not depend on p.

    q, v, a, tau: (nv,) or (N, nv), q along the tangent of `integrate`. inertias: {body: (10,)}, as in
    `model.inertial_parameters`. placements: {joint: (6,)}, the twist ∂T T⁻¹ … of the joint's frame in its own axes,
    `∂T = T ξ̂` for the pose T of that frame in the parent link. screws: {joint: (6,)}, of a joint of one coordinate:
    ∂s of its screw s (angular, linear) in the joint's frame, T(q) = exp(ŝ q). external_wrenches: {body: (6,)}.
    """

    q: ArrayLike | None = None
    v: ArrayLike | None = None
    a: ArrayLike | None = None
    tau: ArrayLike | None = None
    inertias: Mapping[str, ArrayLike] = field(default_factory=dict)
    placements: Mapping[str, ArrayLike] = field(default_factory=dict)
    screws: Mapping[str, ArrayLike] = field(default_factory=dict)
    external_wrenches: Any = None


def parameter_tangents(model: RobotModel, tangent: Tangent) -> Array:
    """The model's part for kernels: a record per node, flat."""
    out = np.zeros((len(model._node_rows), RECORD))
    links = model._block[int(model._block[block.LINK_START]):].reshape(-1, block.LINK)
    for name, value in tangent.inertias.items():
        if name not in model._body_by_name:
            raise unknown_name("body in inertias", name, model.body_names)
        x = finite(value, (10,), f"inertias['{name}']")
        link = links[model.body_index(name)]
        at = int(link[block.LINK_NODE])
        if at >= 0:
            out[at, INERTIA:] += _moved(x, link)
    specs = {spec.name: spec for spec in model.description.joints}
    names = [*dict.fromkeys([*model.joint_names, *(mimic.name for mimic in model.mimics)])]
    for what, given, start in (("placements", tangent.placements, PLACEMENT), ("screws", tangent.screws, SCREW)):
        for name, value in given.items():
            if name not in names:
                raise unknown_name(f"joint in {what}", name, names)
            spec = specs.get(name) or JointSpec(name, "floating", "", model.joint(name).child)
            x = finite(value, (6,), f"{what}['{name}']")
            steps = primitives(spec)
            if what == "screws" and (len(steps) != 1 or not steps[0].kind.screw):
                raise RbdError(f"screws['{name}']: a joint of type {spec.type} is no screw of one coordinate")
            at = int(links[model.body_index(spec.child)][block.LINK_NODE])
            for _ in steps[1:]:
                at = int(model._node_rows[at][block.PARENT])
            R = _joint_axes(model, links, spec, at)
            out[at, start:start + 3] += R.T @ x[:3]
            out[at, start + 3:start + 6] += R.T @ x[3:]
    return out.reshape(-1)


def _joint_axes(model: RobotModel, links: Array, spec: JointSpec, at: int) -> Array:
    """Rotation of node `at` at zero in the frame of its joint."""
    before = np.eye(3)
    if spec.parent:
        before = links[model.body_index(spec.parent)][block.LINK_ROTATION:block.LINK_POSITION].reshape(3, 3)
    node = model._node_rows[at][block.ROTATION:block.POSITION].reshape(3, 3)
    return np.asarray((before @ spec.rotation).T @ node)


def _moved(x: Array, link: Array) -> Array:
    """Ten parameters about a link's origin as those about its node's, by the pseudo-inertia `T P Tᵀ`."""
    J = np.array([[x[4], x[5], x[7]], [x[5], x[6], x[8]], [x[7], x[8], x[9]]])
    P = np.zeros((4, 4))
    P[:3, :3] = 0.5 * np.trace(J) * np.eye(3) - J
    P[:3, 3] = P[3, :3] = x[1:4]
    P[3, 3] = x[0]
    T = np.eye(4)
    T[:3, :3] = link[block.LINK_ROTATION:block.LINK_POSITION].reshape(3, 3)
    T[:3, 3] = link[block.LINK_POSITION:block.LINK_POSITION + 3]
    P = T @ P @ T.T
    J = np.trace(P[:3, :3]) * np.eye(3) - P[:3, :3]
    return np.array([P[3, 3], *P[:3, 3], J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2]])
