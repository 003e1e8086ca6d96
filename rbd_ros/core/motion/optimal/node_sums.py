"""Sums and derivatives over all knots: columns, rows of limits, gradients by the states, changes of rows by a step.

Columns per knot: dynamics rows, then the state z; both divided by `scale`. Rows of limits: columns (by flat index)
minus upper bounds, then lower bounds minus columns.
"""
from __future__ import annotations

from ...compiled.entry import entry


@entry("float64(float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], float64[::1], float64[:, ::1])",
       nogil=True)
def scaled_columns(dense, z, scale, weight, omega, out):
    """out := scaled columns (N, columns); returns Σ weight ω out², NaN if a column is not finite."""
    total = 0.0
    non_finite = 0.0
    dense_count = dense.shape[1]
    for k in range(z.shape[0]):
        cost = 0.0
        for i in range(dense_count):
            out[k, i] = dense[k, i] / scale[i]
        for i in range(z.shape[1]):
            out[k, dense_count + i] = z[k, i] / scale[dense_count + i]
        for i in range(out.shape[1]):
            cost += omega[i] * out[k, i] * out[k, i]
            non_finite += out[k, i] - out[k, i]
        total += weight[k] * cost
    return total + non_finite


@entry("void(float64[::1], int64[::1], float64[::1], int64[::1], float64[::1], float64[::1])", nogil=True)
def limit_rows(h, upper, up, lower, low, out):
    """out := h[upper] − up, low − h[lower]."""
    for i in range(upper.shape[0]):
        out[i] = h[upper[i]] - up[i]
    for i in range(lower.shape[0]):
        out[upper.shape[0] + i] = low[i] - h[lower[i]]


@entry("void(float64[:, ::1], float64[::1], float64[::1], float64[::1], int64[::1], int64[::1], float64[:, ::1])",
       nogil=True)
def column_slopes(h, weight, omega, y, upper, lower, out):
    """out := ∂(½ Σ weight ω h² + yᵀ rows) by the columns (N, columns)."""
    for k in range(h.shape[0]):
        for i in range(h.shape[1]):
            out[k, i] = weight[k] * omega[i] * h[k, i]
    flat = out.reshape(-1)
    for i in range(upper.shape[0]):
        flat[upper[i]] += y[i]
    for i in range(lower.shape[0]):
        flat[lower[i]] -= y[upper.shape[0] + i]


@entry("void(float64[::1], float64[::1], float64[::1], int64[::1], int64[::1], float64[::1], float64[:, ::1], "
       "float64[:, ::1])", nogil=True)
def column_weights(weight, omega, D, upper, lower, scale, dense, diagonal):
    """Weights, weight ω + D, of the squared columns in the Gauss–Newton matrix: dense of the scaled dynamics rows,
    diagonal of the unscaled states.
    """
    dense_count, columns = dense.shape[1], omega.shape[0]
    for k in range(dense.shape[0]):
        for i in range(dense_count):
            dense[k, i] = weight[k] * omega[i]
        for i in range(dense_count, columns):
            diagonal[k, i - dense_count] = weight[k] * omega[i] / (scale[i] * scale[i])
    for i in range(upper.shape[0] + lower.shape[0]):
        entry = upper[i] if i < upper.shape[0] else lower[i - upper.shape[0]]
        k, c = entry // columns, entry % columns
        if c < dense_count:
            dense[k, c] += D[i]
        else:
            diagonal[k, c - dense_count] += D[i] / (scale[c] * scale[c])


@entry("void(float64[:, ::1], float64[:, :, ::1], float64[::1], float64[:, ::1])", nogil=True)
def state_slopes(c, J, scale, out):
    """out := derivatives by the states (N, nz), from derivatives c by the scaled columns (N, columns) and the dynamics
    rows' Jacobian J (N, rows, nz).
    """
    dense_count = J.shape[1]
    for k in range(c.shape[0]):
        for x in range(J.shape[2]):
            out[k, x] = c[k, dense_count + x] / scale[dense_count + x]
        for r in range(dense_count):
            factor = c[k, r]
            if factor != 0.0:
                for x in range(J.shape[2]):
                    out[k, x] += factor * J[k, r, x]


@entry("void(float64[:, :, ::1], int64[::1], float64[:, ::1], float64[:, ::1])", nogil=True)
def states_of(beta, interval, control, out):
    """out (N, nz): states from control points (K, nv) and the knots' B-splines beta (N, orders, points)."""
    orders, points = beta.shape[1:]
    nv = control.shape[1]
    out[:] = 0.0
    for k in range(beta.shape[0]):
        for d in range(orders):
            for a in range(points):
                b = beta[k, d, a]
                for j in range(nv):
                    out[k, d * nv + j] += b * control[interval[k] + a, j]


@entry("void(float64[:, :, ::1], float64[:, ::1], float64[::1], int64[::1], int64[::1], float64[::1])", nogil=True)
def row_changes(J, dz, scale, upper, lower, out):
    """Changes of the rows by a change dz (N, nz) of the states."""
    dense_count, nz = J.shape[1:]
    columns = dense_count + nz
    for i in range(upper.shape[0] + lower.shape[0]):
        above = i < upper.shape[0]
        entry = upper[i] if above else lower[i - upper.shape[0]]
        k, c = entry // columns, entry % columns
        if c < dense_count:
            change = 0.0
            for x in range(nz):
                change += J[k, c, x] * dz[k, x]
        else:
            change = dz[k, c - dense_count] / scale[c]
        out[i] = change if above else -change
