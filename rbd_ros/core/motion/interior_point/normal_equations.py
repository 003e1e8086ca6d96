"""Gradient and banded Gauss–Newton matrix by control points, from derivatives by the states at knots.

The state z = (q, v, a, …) at a knot is Σ_k β_k^d c_k per derivative d, over the degree + 1 control points of its
interval. Unknowns are the free control points: entry (k − first) nv + j is coordinate j of control point k.
"""
from __future__ import annotations

import numpy as np

from ...compiled.assign import assign_rows
from ...compiled.entry import entry


@entry("void(float64[:, :, ::1], float64[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, :, ::1], "
       "int64[::1], int64, float64[:, ::1])", nogil=True)
def normal_matrix(J, weight, diagonal, curvature, beta, interval, first, band):
    """band := lower band of Σ_knots (Jᵀ diag(weight) J + diag(diagonal) + curvature), by the free control points.

    J (N, R, nz), weight (N, R), diagonal (N, nz), curvature (N, nz, nz) or empty; beta (N, nz / nv, degree + 1), in
    time; interval (N,) in ascending order; band (width, unknowns), LAPACK's: entry (i − j, j).
    """
    count, rows, nz = J.shape
    orders, points = beta.shape[1:]
    nv = nz // orders
    square = nv * nv
    unknowns = band.shape[1]
    free = unknowns // nv
    band[:] = 0.0
    W = np.empty((nz, nz))
    P = np.empty((orders, orders, square))    # W by pairs of derivatives: contiguous rows for vector instructions
    T = np.empty((orders, points, square))
    block = np.zeros((points, points, square))
    for k in range(count):
        if curvature.shape[0]:
            assign_rows(W, curvature[k])
        else:
            W[:] = 0.0
        for r in range(0, rows - 1, 2):    # pairs of rows: half the loads and stores of W
            first_factor, second_factor = weight[k, r], weight[k, r + 1]
            if first_factor != 0.0 or second_factor != 0.0:
                used = nz    # efforts are independent of jerk, distances of speeds
                while used and J[k, r, used - 1] == 0.0 and J[k, r + 1, used - 1] == 0.0:
                    used -= 1
                for x in range(used):
                    f = first_factor * J[k, r, x]
                    g = second_factor * J[k, r + 1, x]
                    for y in range(used):
                        W[x, y] += f * J[k, r, y] + g * J[k, r + 1, y]
        if rows % 2 and weight[k, rows - 1] != 0.0:
            for x in range(nz):
                f = weight[k, rows - 1] * J[k, rows - 1, x]
                for y in range(nz):
                    W[x, y] += f * J[k, rows - 1, y]
        for x in range(nz):
            W[x, x] += diagonal[k, x]
        for d in range(orders):
            for i in range(nv):
                for e in range(orders):
                    for j in range(nv):
                        P[d, e, i * nv + j] = W[d * nv + i, e * nv + j]
        for d in range(orders):    # at least three: those in one pass
            for c in range(points):
                x0, x1, x2 = beta[k, 0, c], beta[k, 1, c], beta[k, 2, c]
                for i in range(square):
                    T[d, c, i] = x0 * P[d, 0, i] + x1 * P[d, 1, i] + x2 * P[d, 2, i]
                for e in range(3, orders):
                    b = beta[k, e, c]
                    for i in range(square):
                        T[d, c, i] += b * P[d, e, i]
        for a in range(points):
            x0, x1, x2 = beta[k, 0, a], beta[k, 1, a], beta[k, 2, a]
            for c in range(a + 1):
                for i in range(square):
                    block[a, c, i] += x0 * T[0, c, i] + x1 * T[1, c, i] + x2 * T[2, c, i]
                for d in range(3, orders):
                    b = beta[k, d, a]
                    for i in range(square):
                        block[a, c, i] += b * T[d, c, i]
        if k == count - 1 or interval[k + 1] != interval[k]:
            offset = interval[k] - first
            for a in range(points):
                for c in range(a + 1):
                    if offset + c >= 0 and offset + a < free:
                        for i in range(nv):
                            for j in range(nv if c < a else i + 1):
                                y = (offset + c) * nv + j
                                band[(offset + a) * nv + i - y, y] += block[a, c, i * nv + j]
            block[:] = 0.0


@entry("void(float64[:, ::1], float64[:, :, ::1], int64[::1], int64, float64[::1])", nogil=True)
def by_control_points(slope, beta, interval, first, out):
    """out := derivatives by the free control points (flat), from derivatives `slope` (N, nz) by the states at knots."""
    count, nz = slope.shape
    orders, points = beta.shape[1:]
    nv = nz // orders
    free = out.shape[0] // nv
    out[:] = 0.0
    for k in range(count):
        offset = interval[k] - first
        for a in range(points):
            if 0 <= offset + a < free:
                for d in range(orders):
                    b = beta[k, d, a]
                    for j in range(nv):
                        out[(offset + a) * nv + j] += b * slope[k, d * nv + j]
