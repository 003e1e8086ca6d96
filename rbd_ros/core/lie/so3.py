"""Rotations SO(3): rotation vectors, matrices, unit quaternions (x, y, z, w).

Kernels work on tuples of floats or complex numbers (complex step), a 3 × 3 matrix as a row-major 9-tuple; dynamics
kernels call them. Public functions take NumPy arrays with any leading axes, check them and call the kernels by rows.

Convention: body frame. R maps body coordinates to the parent's, and its body angular velocity is ω, ω̂ = RᵀṘ.
dexp is the *right* Jacobian J of exp: RᵀdR = (dexp(r) dr)^ for R = exp(r). The left Jacobian is dexp(−r) = dexp(r)ᵀ.
"""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..compiled.entry import entry
from ..compiled.kernel import kernel
from ..errors import RbdError
from . import series

# kernels

@kernel
def exp_map(r: Any) -> Any:
    """R = exp(r̂) = 1 + a r̂ + b r̂² (M eq. 7)."""
    x = series.dot(r, r)
    return series.skew_polynomial(1.0, series.sine_ratio(x), series.versine_ratio(x), r)


@kernel
def right_jacobian(r: Any) -> Any:
    """J(r) = 1 − b r̂ + c r̂², ω = J ṙ with ω̂ = RᵀṘ, R = exp(r̂)."""
    x = series.dot(r, r)
    return series.skew_polynomial(1.0, -series.versine_ratio(x), series.sine_defect_ratio(x), r)


@kernel
def right_jacobian_inverse(r: Any) -> Any:
    """J⁻¹(r) = 1 + r̂/2 + (1/θ² − (1 + cosθ)/(2θ sinθ)) r̂²; singular at |r| = 2π, 4π, …."""
    return series.skew_polynomial(1.0, 0.5, series.inverse_ratio(series.dot(r, r)), r)


@kernel
def right_jacobian_dot(r: Any, rdot: Any) -> Any:
    """d/dt J(r(t)), linear in ṙ: −b'ẋ r̂ − b ṙ̂ + c'ẋ r̂² + c (ṙ̂r̂ + r̂ṙ̂) with x = r·r."""
    x = series.dot(r, r)
    rate = 2.0 * series.dot(r, rdot)
    b1, c1 = series.versine_ratio_slope(x), series.sine_defect_ratio_slope(x)
    return series.matrix_sum(
        series.skew_polynomial(0.0, -b1 * rate, c1 * rate, r),
        series.skew_polynomial_slope(-series.versine_ratio(x), series.sine_defect_ratio(x), rdot, r))


@kernel
def right_jacobian_second(r: Any, u: Any, w: Any) -> Any:
    """Second directional derivative ∂²J(r + αu + βw)/∂α∂β at α = β = 0, bilinear and symmetric in u, w."""
    x = series.dot(r, r)
    xu, xw, xuw = 2.0 * series.dot(r, u), 2.0 * series.dot(r, w), 2.0 * series.dot(u, w)
    b1, b2 = series.versine_ratio_slope(x), series.versine_ratio_curvature(x)
    c, c1, c2 = series.sine_defect_ratio(x), series.sine_defect_ratio_slope(x), series.sine_defect_ratio_curvature(x)
    along_u = series.skew_polynomial_slope(-b1 * xw, c1 * xw, u, r)
    along_w = series.skew_polynomial_slope(-b1 * xu, c1 * xu, w, r)
    along_r = series.skew_polynomial(0.0, -(b2 * xu * xw + b1 * xuw), c2 * xu * xw + c1 * xuw, r)
    across = series.skew_polynomial_slope(0.0 * c, c, u, w)
    return series.matrix_sum(series.matrix_sum(along_r, across), series.matrix_sum(along_u, along_w))


@kernel
def quaternion_to_matrix(x: Any, y: Any, z: Any, w: Any) -> Any:
    """Rotation matrix of a non-zero quaternion of any norm."""
    scale = 2.0 / (x * x + y * y + z * z + w * w)
    return series.skew_polynomial(1.0, scale * w, scale, (x, y, z))


@kernel
def quaternion_multiply(p: Any, q: Any) -> Any:
    """Product p ∘ q of quaternions (x, y, z, w), in the order of the product of their rotation matrices."""
    px, py, pz, pw = p
    qx, qy, qz, qw = q
    return (pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
            pw * qw - px * qx - py * qy - pz * qz)


@kernel
def quaternion_exp(r: Any) -> Any:
    """Unit quaternion (x, y, z, w) of the rotation vector r: (r sin(θ/2)/θ, cos(θ/2)); w < 0 where θ > π."""
    quarter = 0.25 * series.dot(r, r)
    scale = 0.5 * series.sine_ratio(quarter)
    return scale * r[0], scale * r[1], scale * r[2], 1.0 - quarter * series.versine_ratio(quarter)


@kernel
def quaternion_log(x: Any, y: Any, z: Any, w: Any) -> Any:
    """Shortest rotation vector (|r| ≤ π) of a non-zero quaternion of any norm and sign."""
    square = x * x + y * y + z * z
    sign = -1.0 if w.real < 0.0 else 1.0
    positive = sign * w
    if positive.real * positive.real > square.real:
        scale = 2.0 * series.arctangent_ratio(square / (w * w)) / positive
    else:
        norm = np.sqrt(square)
        scale = (np.pi - 2.0 * np.arctan(positive / norm)) / norm
    scale = sign * scale
    return scale * x, scale * y, scale * z


@kernel
def matrix_to_quaternion(m: Any) -> Any:
    """Unit quaternion of a rotation matrix by Shepperd's method: divides by the largest component, at least 1/2."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = m
    trace = xx + yy + zz
    if trace.real >= max(xx.real, yy.real, zz.real):
        t = 1.0 + trace
        x, y, z, w = zy - yz, xz - zx, yx - xy, t
    elif xx.real >= max(yy.real, zz.real):
        t = 1.0 + xx - yy - zz
        x, y, z, w = t, xy + yx, xz + zx, zy - yz
    elif yy.real >= zz.real:
        t = 1.0 + yy - xx - zz
        x, y, z, w = xy + yx, t, yz + zy, xz - zx
    else:
        t = 1.0 + zz - xx - yy
        x, y, z, w = xz + zx, yz + zy, t, yx - xy
    scale = 1.0 / np.sqrt(x * x + y * y + z * z + w * w)
    return scale * x, scale * y, scale * z, scale * w


@kernel
def _store(out: Any, row: Any, values: Any) -> None:
    for k in range(len(values)):
        out[row, k] = values[k]


_EXP, _DEXP, _DEXP_INV, _DEXP_DOT, _DEXP_SECOND, _FROM_QUATERNION, _TO_QUATERNION, _EXP_QUATERNION, _LOG_QUATERNION, \
    _LOG = range(10)


@entry("void(int64, float64[:, ::1], float64[:, ::1])")
def so3_rows(operation: Any, rows: Any, out: Any) -> None:
    """The kernel of number `operation` over the rows of an array."""
    for i in range(rows.shape[0]):
        row = rows[i]
        r = (row[0], row[1], row[2])
        if operation == _EXP:
            _store(out, i, exp_map(r))
        elif operation == _DEXP:
            _store(out, i, right_jacobian(r))
        elif operation == _DEXP_INV:
            _store(out, i, right_jacobian_inverse(r))
        elif operation == _DEXP_DOT:
            _store(out, i, right_jacobian_dot(r, (row[3], row[4], row[5])))
        elif operation == _DEXP_SECOND:
            _store(out, i, right_jacobian_second(r, (row[3], row[4], row[5]), (row[6], row[7], row[8])))
        elif operation == _FROM_QUATERNION:
            _store(out, i, quaternion_to_matrix(row[0], row[1], row[2], row[3]))
        elif operation == _EXP_QUATERNION:
            _store(out, i, quaternion_exp(r))
        elif operation == _LOG_QUATERNION:
            _store(out, i, quaternion_log(row[0], row[1], row[2], row[3]))
        else:
            q = matrix_to_quaternion((row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7], row[8]))
            if operation == _TO_QUATERNION:
                _store(out, i, q)
            else:
                _store(out, i, quaternion_log(q[0], q[1], q[2], q[3]))


# public functions

Array = NDArray[np.float64]


def checked(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array:
    """`value` as a finite float array whose last axes are `shape`; raises `RbdError` otherwise."""
    wanted = f"(…, {', '.join(map(str, shape))})"
    try:
        array = np.asarray(value).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError, OverflowError) as reason:
        raise RbdError(f"{name}: expected real numbers of shape {wanted}; {reason}") from None
    if array.ndim < len(shape) or array.shape[array.ndim - len(shape):] != shape:
        raise RbdError(f"{name}: expected shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        raise RbdError(f"{name}: expected finite numbers, got {array[~np.isfinite(array)][0]}")
    return array


def checked_rotation(name: str, value: ArrayLike) -> Array:
    """`value` as rotation matrices (…, 3, 3), orthogonal to 1e-6 with determinant +1."""
    R = checked(name, value, (3, 3))
    error = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(initial=0.0)
    if error > 1e-6 or (np.linalg.det(R) < 0.0).any():
        raise RbdError(f"{name}: expected a rotation matrix, got one with |RᵀR − 1| = {error:.2g}"
                       f" and determinant {np.linalg.det(R).min(initial=1.0):.3g}")
    return R


def _rows(operation: int, size: tuple[int, ...], *arrays: Array) -> Array:
    """Kernel `operation` over the leading axes of `arrays` (vectors or matrices); results of shape (…, *size)."""
    if operation in (_LOG, _TO_QUATERNION):
        arrays = (arrays[0].reshape((*arrays[0].shape[:-2], 9)),)
    lead = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    packed = np.concatenate([np.broadcast_to(array, lead + array.shape[-1:]) for array in arrays], axis=-1)
    rows = np.ascontiguousarray(packed.reshape(-1, packed.shape[-1]))
    out = np.empty((len(rows), int(np.prod(size))))
    so3_rows(operation, rows, out)
    return out.reshape(lead + size)


def hat(r: ArrayLike) -> Array:
    """Skew matrix r̂ (…, 3, 3) of r (…, 3): r̂ y = r × y."""
    x, y, z = np.moveaxis(checked("r", r, (3,)), -1, 0)
    o = np.zeros_like(x)
    return np.stack([o, -z, y, z, o, -x, -y, x, o], axis=-1).reshape((*x.shape, 3, 3))


def vee(matrix: ArrayLike) -> Array:
    """Inverse of `hat`: (…, 3, 3) skew → (…, 3)."""
    m = checked("matrix", matrix, (3, 3))
    if np.abs(m + np.swapaxes(m, -1, -2)).max(initial=0.0) > 1e-9 * (1.0 + np.abs(m).max(initial=0.0)):
        raise RbdError("matrix: expected skew-symmetric (matrixᵀ = −matrix)")
    return np.stack([m[..., 2, 1], m[..., 0, 2], m[..., 1, 0]], axis=-1)


def exp(r: ArrayLike) -> Array:
    """Rotation matrix (…, 3, 3) of the rotation vector r (…, 3) in rad: exp(r̂) (M eq. 7)."""
    return _rows(_EXP, (3, 3), checked("r", r, (3,)))


def log(R: ArrayLike) -> Array:
    """Shortest rotation vector (…, 3) in rad of R (…, 3, 3), |r| ≤ π; precise at 0 and π (there of either sign)."""
    return _rows(_LOG, (3,), checked_rotation("R", R))


def dexp(r: ArrayLike) -> Array:
    """Right Jacobian J(r) (…, 3, 3): RᵀṘ = (J(r) ṙ)^ for R = exp(r); the left Jacobian is J(−r)."""
    return _rows(_DEXP, (3, 3), checked("r", r, (3,)))


def dexp_inv(r: ArrayLike) -> Array:
    """J⁻¹(r) (…, 3, 3): ṙ = J⁻¹(r) ω; raises `RbdError` at |r| = 2π, 4π, …, where J is singular."""
    r = checked("r", r, (3,))
    angle = np.linalg.norm(r, axis=-1)
    if ((angle > 1.0) & (np.abs(np.sin(0.5 * angle)) < 1e-9)).any():
        raise RbdError("r: dexp(r) is singular at |r| = 2π, 4π, …; expected another rotation vector, e.g. log(exp(r))")
    return _rows(_DEXP_INV, (3, 3), r)


def dexp_dot(r: ArrayLike, rdot: ArrayLike) -> Array:
    """d/dt J(r(t)) (…, 3, 3) for r, ṙ (…, 3): ω̇ = J r̈ + J̇ ṙ."""
    return _rows(_DEXP_DOT, (3, 3), checked("r", r, (3,)), checked("rdot", rdot, (3,)))


def dexp_second(r: ArrayLike, u: ArrayLike, w: ArrayLike) -> Array:
    """∂²J(r + αu + βw)/∂α∂β (…, 3, 3) at α = β = 0: symmetric in u, w (…, 3)."""
    return _rows(_DEXP_SECOND, (3, 3), checked("r", r, (3,)), checked("u", u, (3,)), checked("w", w, (3,)))


def _checked_quaternion(value: ArrayLike) -> Array:
    q = checked("quaternion", value, (4,))
    if (np.linalg.norm(q, axis=-1) < 1e-6).any():
        raise RbdError("quaternion: expected a unit one (x, y, z, w), got one of length zero")
    return q


def from_quaternion(quaternion: ArrayLike) -> Array:
    """Rotation matrix (…, 3, 3) of a non-zero quaternion (…, 4) in the order x, y, z, w, of any norm."""
    return _rows(_FROM_QUATERNION, (3, 3), _checked_quaternion(quaternion))


def to_quaternion(R: ArrayLike) -> Array:
    """Unit quaternion (…, 4) in the order x, y, z, w of R (…, 3, 3), of either sign."""
    return _rows(_TO_QUATERNION, (4,), checked_rotation("R", R))


def exp_quaternion(r: ArrayLike) -> Array:
    """Unit quaternion (…, 4), x, y, z, w, of the rotation vector r (…, 3) in rad: (r sin(θ/2)/θ, cos(θ/2))."""
    return _rows(_EXP_QUATERNION, (4,), checked("r", r, (3,)))


def log_quaternion(quaternion: ArrayLike) -> Array:
    """Shortest rotation vector (…, 3) in rad, |r| ≤ π, of a quaternion (…, 4), x, y, z, w, of either sign."""
    return _rows(_LOG_QUATERNION, (3,), _checked_quaternion(quaternion))


def from_rpy(rpy: ArrayLike) -> Array:
    """R = R_z(yaw) R_y(pitch) R_x(roll) (…, 3, 3) of (roll, pitch, yaw) (…, 3) in rad, the angles of URDF."""
    angles = checked("rpy", rpy, (3,))
    x, y, z = (exp(angles[..., k, None] * np.eye(3)[k]) for k in range(3))
    return z @ y @ x
