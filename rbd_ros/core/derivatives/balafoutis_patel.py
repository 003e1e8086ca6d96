"""G's quantities of every link under G's names, with their partials, for joints of all kinds.

G's equations on top of `body_derivatives`, whose V, V̇, F and partials are those of K Table 5. G's own recursion, for
joints of one axis: `dynamics/balafoutis_patel.py`.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics.bodies.joint_wrenches import joint_wrenches
from ..dynamics.inverse import inverse_dynamics
from ..dynamics.kinematics import body_accelerations, body_velocities, forward_kinematics
from ..lie import so3
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from .bodies import Partials, body_derivatives
from .inverse import inverse_dynamics_derivatives

_HAT = so3.hat(np.eye(3))    # _HAT[k] = ẽ_k


class Quantity(NamedTuple):
    """A `value` (…), and its partials by `q` (along the tangent of `integrate`), `v` and `a` (…, nv)."""

    value: Array
    q: Array
    v: Array
    a: Array


class BalafoutisPatel(NamedTuple):
    """G's quantities of all links (nb, 3), in link axes, with a batch axis first: ω, ω̇, Ω = ω̇~ + ω~ω~ (nb, 3, 3);
    accelerations minus gravity of the link's origin (s̈) and of its centre of mass (r̈); F_c = m r̈ and the moment M_c
    about the centre of mass; the force f and moment η about the origin in the link's joint; and efforts τ (nv,).
    """

    omega: Quantity
    omega_dot: Quantity
    Omega: Quantity
    s_ddot: Quantity
    r_ddot: Quantity
    F_c: Quantity
    M_c: Quantity
    f: Quantity
    eta: Quantity
    tau: Quantity


def balafoutis_patel(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                     external_wrenches: Any = None) -> BalafoutisPatel:
    """All quantities of the recursion of Balafoutis and Patel, and their partials by q, v, a of every joint (G).

    Joints of all kinds, including fixed ones; one state or a batch. Arguments and errors as of `inverse_dynamics`;
    rotor inertias enter tau only.

        >>> model = rbd.sample("two_link")
        >>> rbd.balafoutis_patel(model, [0.3, 0.5], [0.0, 0.0], [1.0, 0.0]).omega_dot.value.shape
        (4, 3)
    """
    d = body_derivatives(model, q, v, a, external_wrenches)
    V, V_dot = body_velocities(model, q, v), body_accelerations(model, q, v, a)
    F = joint_wrenches(model, q, v, a, external_wrenches)
    down = np.swapaxes(forward_kinematics(model, q)[..., :3, :3], -1, -2) @ np.asarray(model.gravity)
    V, V_dot, F, down = (np.broadcast_to(x, (*d.wrench.q.shape[:-3], *x.shape[-2:])) for x in (V, V_dot, F, down))
    omega, u = _of(V[..., :3], d.velocity, 0), _of(V[..., 3:], d.velocity, 3)
    omega_dot, u_dot = _of(V_dot[..., :3], d.acceleration, 0), _of(V_dot[..., 3:], d.acceleration, 3)
    nothing = np.zeros_like(omega.v)
    gravity = Quantity(down, -_crossed(omega.v, down), nothing, nothing)    # Rᵀ g; ∂ω/∂q̇ are the axes
    s_ddot = _sum(u_dot, _product("...i,...j,ijk->...k", omega, u, -_HAT), _times(-1.0, gravity))
    dual = _mapped("...k,kij->...ij", omega, _HAT)
    Omega = _sum(_mapped("...k,kij->...ij", omega_dot, _HAT), _product("...ij,...jk->...ik", dual, dual))
    links = [model.description.links[name] for name in model.body_names]
    mass, c = np.array([link.mass for link in links]), np.array([link.com for link in links])
    I = np.array([link.matrix for link in links])
    J = 0.5 * np.trace(I, axis1=1, axis2=2)[:, None, None] * np.eye(3) - I
    r_ddot = _sum(_mapped("...bij,bj->...bi", Omega, c), s_ddot)
    F_c = _mapped("...bi,b->...bi", r_ddot, mass)
    # the dual of Ω J − (Ω J)ᵀ: of a matrix X its entries (2, 1), (0, 2), (1, 0)
    M_c = _mapped("...bij,bjk,nik->...bn", Omega, J, _HAT)
    tau = Quantity(inverse_dynamics(model, q, v, a, external_wrenches),
                   *inverse_dynamics_derivatives(model, q, v, a, external_wrenches))
    return BalafoutisPatel(omega, omega_dot, Omega, s_ddot, r_ddot, F_c, M_c, _of(F[..., 3:], d.wrench, 3),
                           _of(F[..., :3], d.wrench, 0), tau)


def _of(value: Array, partials: Partials, first: int) -> Quantity:
    return Quantity(value, *(part[..., first:first + 3, :] for part in partials))


def _crossed(columns: Array, vector: Array) -> Array:
    return np.cross(columns, vector[..., None], axis=-2)


def _times(factor: float, x: Quantity) -> Quantity:
    return Quantity(*(factor * part for part in x))


def _sum(*terms: Quantity) -> Quantity:
    return Quantity(*(sum(parts[1:], parts[0]) for parts in zip(*terms, strict=True)))


def _mapped(operation: str, x: Quantity, *constants: Array) -> Quantity:
    """A linear map (einsum with constants) of x and its partials, whose axis is the last."""
    operands, out = operation.split("->")
    first, *others = operands.split(",")
    slope = f"{first}z,{','.join(others)}->{out}z"
    return Quantity(np.einsum(operation, x.value, *constants),
                    *(np.einsum(slope, part, *constants) for part in x[1:]))


def _product(operation: str, x: Quantity, y: Quantity, *constants: Array) -> Quantity:
    """A product (einsum with constants) of x and y, and its partials by the product rule."""
    operands, out = operation.split("->")
    a, b, *others = operands.split(",")
    constant_operands = "".join(f",{other}" for other in others)
    return Quantity(np.einsum(operation, x.value, y.value, *constants), *(
        np.einsum(f"{a}z,{b}{constant_operands}->{out}z", x_part, y.value, *constants)
        + np.einsum(f"{a},{b}z{constant_operands}->{out}z", x.value, y_part, *constants)
        for x_part, y_part in zip(x[1:], y[1:], strict=True)))
