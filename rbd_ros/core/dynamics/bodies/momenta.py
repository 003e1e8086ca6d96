"""Spatial inertia and momentum of each link: K eq. 22, 23."""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...model.inertia import Array
from ...model.robot_model import RobotModel
from ...model.state import not_a_model, shaped
from ..kinematics import body_velocities


def spatial_inertias(model: RobotModel) -> Array:
    """Spatial (generalized) inertias 𝓘 (nb, 6, 6) of the links, in link frames, about their origins: K eq. 22.

    `[[I, m ĉ], [m ĉᵀ, m 1]]` with I about the origin (kg m²), centre of mass c (m) and mass m (kg); rotor inertias
    excluded.

        >>> model = rbd.sample("two_link")
        >>> rbd.spatial_inertias(model).shape
        (4, 6, 6)
    """
    if not hasattr(model, "_block"):
        raise not_a_model(model)
    out = np.zeros((len(model.body_names), 6, 6))
    for inertia, name in zip(out, model.body_names, strict=True):
        link = model.description.links[name]
        x, y, z = link.moment
        inertia[:3, :3] = link.about_origin
        inertia[:3, 3:] = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
        inertia[3:, :3] = inertia[:3, 3:].T
        inertia[3:, 3:] = link.mass * np.eye(3)
    return out


def body_momenta(model: RobotModel, q: ArrayLike, v: ArrayLike) -> Array:
    """Spatial momenta L = 𝓘 V (nb, 6) or (N, nb, 6) of the links: angular about the link's origin (N m s), then
    linear (N s), in its axes: K eq. 23. They transform as wrenches (`lie.coadjoint`).

        >>> model = rbd.sample("two_link")
        >>> rbd.body_momenta(model, [0.0, 0.0], [1.0, 0.0]).shape
        (4, 6)
    """
    V = body_velocities(model, q, v)
    with np.errstate(all="ignore"):
        momenta = (spatial_inertias(model) @ V[..., None])[..., 0]
    if not np.isfinite(momenta).all():
        shaped(model, positions={"q": q}, rates={"v": v}).finite(momenta=momenta)
    return np.asarray(momenta)
