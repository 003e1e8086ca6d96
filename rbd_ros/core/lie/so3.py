"""Rotations SO(3): rotation vectors, matrices, unit quaternions (x, y, z, w).

Two faces of one source. The kernels below work on scalars in tuples, a 3 × 3 matrix as a row-major 9-tuple, of
floats or complex numbers (complex step); dynamics kernels call them. The public functions take NumPy arrays with
any leading axes, check them once and run the kernels over the rows.

Convention: body frame. R maps body coordinates to the parent's, and its body angular velocity is ω, ω̂ = RᵀṘ.
So dexp is the *right* Jacobian J of exp: RᵀdR = (dexp(r) dr)^ for R = exp(r). The left one is dexp(−r) = dexp(r)ᵀ.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ..compile import kernel
from .series import (
    arctangent_ratio,
    inverse_ratio,
    sine_defect_ratio,
    sine_defect_ratio_curvature,
    sine_defect_ratio_slope,
    sine_ratio,
    versine_ratio,
    versine_ratio_curvature,
    versine_ratio_slope,
)

# --- kernels ---------------------------------------------------------------------------------------------------------


@kernel
def skew_and_square(s: Any, h: Any, g: Any, r: Any) -> Any:
    """s·1 + h r̂ + g r̂² (9-tuple): every function of r̂ has this form."""
    x, y, z = r
    return (s - g * (y * y + z * z), g * x * y - h * z, g * x * z + h * y,
            g * x * y + h * z, s - g * (x * x + z * z), g * y * z - h * x,
            g * x * z - h * y, g * y * z + h * x, s - g * (x * x + y * y))


@kernel
def skew_and_product(h: Any, g: Any, u: Any, w: Any) -> Any:
    """h û + g (ûŵ + ŵû) (9-tuple)."""
    ux, uy, uz = u
    wx, wy, wz = w
    xy, xz, yz = g * (ux * wy + uy * wx), g * (ux * wz + uz * wx), g * (uy * wz + uz * wy)
    xx, yy, zz = 2.0 * g * ux * wx, 2.0 * g * uy * wy, 2.0 * g * uz * wz
    return (-yy - zz, xy - h * uz, xz + h * uy,
            xy + h * uz, -xx - zz, yz - h * ux,
            xz - h * uy, yz + h * ux, -xx - yy)


@kernel
def _dot(u: Any, w: Any) -> Any:
    return u[0] * w[0] + u[1] * w[1] + u[2] * w[2]


@kernel
def _sum(m: Any, n: Any) -> Any:
    return (m[0] + n[0], m[1] + n[1], m[2] + n[2], m[3] + n[3], m[4] + n[4], m[5] + n[5],
            m[6] + n[6], m[7] + n[7], m[8] + n[8])


@kernel
def exp_map(r: Any) -> Any:
    """R = exp(r̂) = 1 + a r̂ + b r̂² (M eq. 7)."""
    x = _dot(r, r)
    return skew_and_square(1.0, sine_ratio(x), versine_ratio(x), r)


@kernel
def right_jacobian(r: Any) -> Any:
    """J(r) = 1 − b r̂ + c r̂², ω = J ṙ with ω̂ = RᵀṘ, R = exp(r̂)."""
    x = _dot(r, r)
    return skew_and_square(1.0, -versine_ratio(x), sine_defect_ratio(x), r)


@kernel
def right_jacobian_inverse(r: Any) -> Any:
    """J⁻¹(r) = 1 + r̂/2 + (1/θ² − (1 + cosθ)/(2θ sinθ)) r̂²; singular at |r| = 2π, 4π, …."""
    return skew_and_square(1.0, 0.5, inverse_ratio(_dot(r, r)), r)


@kernel
def right_jacobian_dot(r: Any, rdot: Any) -> Any:
    """d/dt J(r(t)), linear in ṙ: −b'ẋ r̂ − b ṙ̂ + c'ẋ r̂² + c (ṙ̂r̂ + r̂ṙ̂) with x = r·r."""
    x = _dot(r, r)
    rate = 2.0 * _dot(r, rdot)
    return _sum(skew_and_square(0.0, -versine_ratio_slope(x) * rate, sine_defect_ratio_slope(x) * rate, r),
                skew_and_product(-versine_ratio(x), sine_defect_ratio(x), rdot, r))


@kernel
def right_jacobian_second(r: Any, u: Any, w: Any) -> Any:
    """Second directional derivative ∂²J(r + αu + βw)/∂α∂β at α = β = 0, bilinear and symmetric in u, w."""
    x = _dot(r, r)
    xu, xw, xuw = 2.0 * _dot(r, u), 2.0 * _dot(r, w), 2.0 * _dot(u, w)
    b, b1, b2 = versine_ratio(x), versine_ratio_slope(x), versine_ratio_curvature(x)
    c, c1, c2 = sine_defect_ratio(x), sine_defect_ratio_slope(x), sine_defect_ratio_curvature(x)
    product = skew_and_product(0.0 * b, c, u, w)
    along = _sum(skew_and_product(-b1 * xw, c1 * xw, u, r), skew_and_product(-b1 * xu, c1 * xu, w, r))
    return _sum(_sum(skew_and_square(0.0, -(b2 * xu * xw + b1 * xuw), c2 * xu * xw + c1 * xuw, r), along), product)


@kernel
def quaternion_to_matrix(x: Any, y: Any, z: Any, w: Any) -> Any:
    """Rotation matrix of the quaternion; divides by the squared norm, so that any non-zero one gives a rotation."""
    scale = 2.0 / (x * x + y * y + z * z + w * w)
    return skew_and_square(1.0, scale * w, scale, (x, y, z))


@kernel
def quaternion_multiply(p: Any, q: Any) -> Any:
    """Product p ∘ q of quaternions (x, y, z, w): the matrix of the product is the product of the matrices."""
    px, py, pz, pw = p
    qx, qy, qz, qw = q
    return (pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
            pw * qw - px * qx - py * qy - pz * qz)


@kernel
def quaternion_exp(r: Any) -> Any:
    """Unit quaternion (x, y, z, w) of the rotation vector r: (r sin(θ/2)/θ, cos(θ/2)); w < 0 where θ > π."""
    quarter = 0.25 * _dot(r, r)
    scale = 0.5 * sine_ratio(quarter)
    return scale * r[0], scale * r[1], scale * r[2], 1.0 - quarter * versine_ratio(quarter)


@kernel
def quaternion_log(x: Any, y: Any, z: Any, w: Any) -> Any:
    """Shortest rotation vector (|r| ≤ π) of the non-zero quaternion, of any norm and either sign."""
    square = x * x + y * y + z * z
    sign = -1.0 if w.real < 0.0 else 1.0
    positive = sign * w
    if positive.real * positive.real > square.real:
        scale = 2.0 * arctangent_ratio(square / (w * w)) / positive
    else:
        norm = np.sqrt(square)
        scale = (np.pi - 2.0 * np.arctan(positive / norm)) / norm
    scale = sign * scale
    return scale * x, scale * y, scale * z


@kernel
def quaternion_from_matrix(m: Any) -> Any:
    """Unit quaternion of a rotation matrix, dividing by its largest component, which is at least 1/2 (Shepperd)."""
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
