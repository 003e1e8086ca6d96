"""Kinetic and potential energy, momentum: K eq. 15, 23."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.entry import quick_entry
from ..compiled.kernel import kernel
from ..errors import RbdError
from ..lie.spatial import add, add_cross, add_rotated, dot, rotate, scale, symmetric_times
from ..model.block import (
    ARMATURE, GRAVITY, INERTIA, MASS, MOMENT, all_finite, first_velocity, kind, layout, matrix, node, node_count,
    rates_valid, six, size_q, size_v, vector, zero,
)
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import dof
from ..model.robot_model import RobotModel
from ..model.state import shaped
from ..compiled.door import Call, Shape, Way, door
from ..compiled.workspace import ONE_STATE
from .kinematics import _OMEGA, _P, _R, _V, SIZE, node_motion

# results per state: kinetic, potential, mass, first moment (3), angular momentum about the centre of mass, linear
_KINETIC, _POTENTIAL, _MASS, _MOMENT, _ANGULAR, _LINEAR, RESULTS = layout(
    kinetic=1, potential=1, mass=1, moment=3, angular=3, linear=3)


@kernel
def totals(B, q, k, v, j, order, W, out, offset):
    """Into out[offset:] the sums over all moving bodies, in world axes; order 0: at rest."""
    node_motion(B, q, k, v, v, j, order, True, W)
    z = zero(B, v, j)
    kinetic = z
    mass = z
    first = (z, z, z)
    linear = (z, z, z)
    angular = (z, z, z)
    for i in range(node_count(B)):
        o = node(i)
        w = SIZE * i
        R = matrix(W, w + _R)
        p = vector(W, w + _P)
        m = B[o + MASS]
        h = vector(B, o + MOMENT)
        mass += m
        first = add_rotated(add(first, scale(m, p)), R, h)
        if order == 0:
            continue
        omega = vector(W, w + _OMEGA)
        velo = vector(W, w + _V)
        N = add_cross(symmetric_times(six(B, o + INERTIA), omega), h, velo)
        F = add_cross(scale(m, velo), omega, h)
        kinetic += 0.5 * (dot(omega, N) + dot(velo, F))
        for c in range(dof(kind(B, o))):
            rate = v[j + first_velocity(B, o) + c]
            kinetic += 0.5 * B[o + ARMATURE + c] * rate * rate
        f = rotate(R, F)
        linear = add(linear, f)
        angular = add_cross(add_rotated(angular, R, N), p, f)
    out[offset + _KINETIC] = kinetic
    out[offset + _POTENTIAL] = z - dot(vector(B, GRAVITY), first)
    out[offset + _MASS] = mass
    if mass.real > 0.0:    # angular momentum about the centre of mass
        angular = add_cross(angular, linear, scale(1.0 / mass, first))
    for r in range(3):
        out[offset + _MOMENT + r] = first[r]
        out[offset + _ANGULAR + r] = angular[r]
        out[offset + _LINEAR + r] = linear[r]


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], int64, float64[::1], float64[:, ::1])")
def totals_entry(B, q, v, order, W, out):
    """Totals out (N, RESULTS) of N states; False if an input is invalid or out not finite. order: of `totals`."""
    nq = size_q(B)
    nv = size_v(B)
    states = out.shape[0]
    if not (positions_valid(B, q, states) and rates_valid(B, v, states)):
        return False
    flat = out.reshape(-1)
    for s in range(states):
        totals(B, q, s * nq, v, s * nv, order, W, flat, RESULTS * s)
    return all_finite(flat)


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes)


def _part(name: str, arguments: str, first: int, shape: Shape) -> Way:
    """Direct call of the kernel for a part of the totals."""
    return door(name, Call(totals_entry, arguments, lambda model: [(RESULTS,)], part=(first, shape)))


_kinetic = _part("kinetic_energy", "B q v =1 W >", _KINETIC, ())
_potential = _part("potential_energy", "B q 0 =0 W >", _POTENTIAL, ())
_momentum = _part("centroidal_momentum", "B q v =1 W >", _ANGULAR, (RESULTS - _ANGULAR,))


def _centers(model: RobotModel) -> Way:
    """Direct call for the centre of mass: first moment over mass."""
    moments = Call(totals_entry, "B q 0 =0 W >", lambda model: [(RESULTS,)], part=(_MASS, (4,))).way(model)

    def way(*inputs: Any) -> Any:
        moment = moments(*inputs)
        return None if moment is None or moment[0] == 0.0 else moment[1:] / moment[0]

    return way


_center = door("center_of_mass", _centers)


def _totals(model: RobotModel, q: ArrayLike, v: ArrayLike, order: int, part: int | slice, name: str) -> Array:
    """Results `part` of one state or a batch; `name` in messages. order: of `totals`."""
    inputs = shaped(model, positions={"q": q}, rates={"v": v})
    out = inputs.empty(RESULTS)
    if not totals_entry.call(model._block, *inputs.flat, order, model._work, out.reshape(-1, RESULTS)):
        inputs.refuse(**{name: out[..., part]})    # errors of the other parts are irrelevant
    return out[..., part] if out.ndim > 1 else out[part]


def kinetic_energy(model: RobotModel, q: ArrayLike, v: ArrayLike) -> Array:
    """Kinetic energy `½ vᵀ M v` (J), rotors included: a number, or (N,).

        >>> model = rbd.sample("two_link")
        >>> round(float(rbd.kinetic_energy(model, [0.0, 0.0], [1.0, 0.0])), 3)
        0.333
    """
    if (energy := _kinetic(model, q, v)) is not None:
        return energy    # type: ignore[no-any-return]
    return _totals(model, q, v, 1, _KINETIC, "kinetic_energy")


def potential_energy(model: RobotModel, q: ArrayLike) -> Array:
    """Potential energy (J) of the moving bodies: a number or (N,); zero with the centre of mass at the world's origin.

        >>> model = rbd.sample("two_link")
        >>> round(float(rbd.potential_energy(model, [0.5, 0.0])), 3)
        -8.609
    """
    if (energy := _potential(model, q)) is not None:
        return energy    # type: ignore[no-any-return]
    return _totals(model, q, getattr(model, "_zeros", ()), 0, _POTENTIAL, "potential_energy")


def center_of_mass(model: RobotModel, q: ArrayLike) -> Array:
    """Centre of mass of all moving bodies (3,) or (N, 3), m, world axes.

        >>> model = rbd.sample("two_link")
        >>> rbd.center_of_mass(model, [0.0, 0.0]).round(3)
        array([ 0. ,  0. , -0.5])
    """
    if (center := _center(model, q)) is not None:
        return center    # type: ignore[no-any-return]
    out = _totals(model, q, getattr(model, "_zeros", ()), 0, slice(_MASS, _MOMENT + 3), "center_of_mass")
    if np.any(out[..., 0] == 0.0):
        raise RbdError(f"model '{model.name}': nothing that moves has mass, so there is no centre of mass")
    return out[..., 1:] / out[..., :1]


def centroidal_momentum(model: RobotModel, q: ArrayLike, v: ArrayLike) -> Array:
    """Momentum (6,) or (N, 6) of all moving bodies: angular about the centre of mass, then linear, world axes.

        >>> model = rbd.sample("two_link")
        >>> rbd.centroidal_momentum(model, [0.0, 0.0], [1.0, 0.0]).round(3)
        array([ 0.   ,  0.167,  0.   , -1.   ,  0.   ,  0.   ])
    """
    if (momentum := _momentum(model, q, v)) is not None:
        return momentum    # type: ignore[no-any-return]
    return _totals(model, q, v, 1, slice(_ANGULAR, RESULTS), "centroidal_momentum")
