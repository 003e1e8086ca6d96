"""Second derivatives of inverse dynamics (P §4): complex-step derivatives, with step 1e-30, of the analytic first ones.

Without subtraction, hence exact to rounding; O(n² · depth) for all.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.entry import entry
from ..model.block import all_finite, node_count, rates_valid, size_q, size_v
from ..model.configuration import positions_valid
from ..imaginary_step import STEP, step_positions
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.state import shaped
from .columns import COLUMN, NODE_SIZE, count_columns
from .inverse import inverse_derivatives


class SecondDerivatives(NamedTuple):
    """Second derivatives of τ, (nv, nv, nv) each or (N, nv, nv, nv), the effort's index first:

    `qq[i, j, k]` = ∂(∂τ_i/∂q_j)/∂q_k, `qv[i, j, k]` = ∂²τ_i/∂q_j ∂v_k, `vv[i, j, k]` = ∂²τ_i/∂v_j ∂v_k, and
    `aq[i, j, k]` = ∂²τ_i/∂a_j ∂q_k = ∂M_ij/∂q_k; those of a with a or v vanish.
    """

    qq: Array
    qv: Array
    vv: Array
    aq: Array


@entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64, float64[::1])", nogil=True)
def second_derivatives_entry(B, q, v, a, states, out):
    """Validate and evaluate `states` states: qq, qv, vv, aq of each, flat. Returns False for invalid input or a
    non-finite result.
    """
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, a, states)):
        return False
    nodes = node_count(B)
    nv = size_v(B)
    count = count_columns(B)
    complex_model = B.astype(np.complex128)
    x = np.empty(size_q(B), dtype=np.complex128)
    rates = np.empty(nv, dtype=np.complex128)
    accelerations = np.empty(nv, dtype=np.complex128)
    W = np.empty(NODE_SIZE * nodes, dtype=np.complex128)
    L = np.empty(COLUMN * count, dtype=np.complex128)
    T = np.empty(2 * count + nodes, dtype=np.int64)
    D = np.empty((3, nv, nv), dtype=np.complex128)
    none, work, parts = (W[:0], 0), (W, L, T), (D[0], D[1], D[2])
    square = nv * nv
    cube = square * nv
    for s in range(states):
        for i in range(nv):
            rates[i] = v[s * nv + i]
            accelerations[i] = a[s * nv + i]
        start = 4 * cube * s
        for step in range(2 * nv):    # by q, then by v
            by_q = step < nv
            c = step if by_q else step - nv
            step_positions(B, q, s * size_q(B), c if by_q else -1, x)
            if not by_q:
                rates[c] += 1j * STEP
            inverse_derivatives(complex_model, x, 0, rates, accelerations, 0, none, work, parts)
            rates[c] = v[s * nv + c]
            for i in range(nv):
                for j in range(nv):
                    if by_q:
                        out[start + i * square + j * nv + c] = D[0, i, j].imag / STEP
                        out[start + cube + i * square + c * nv + j] = D[1, i, j].imag / STEP
                        out[start + 3 * cube + i * square + j * nv + c] = D[2, i, j].imag / STEP
                    else:
                        out[start + 2 * cube + i * square + j * nv + c] = D[1, i, j].imag / STEP
    return all_finite(out)


def inverse_dynamics_second_derivatives(model: RobotModel, q: ArrayLike, v: ArrayLike,
                                        a: ArrayLike) -> SecondDerivatives:
    """Second derivatives of `inverse_dynamics`, with its arguments and errors: (nv, nv, nv) or (N, …).

    By q along the tangent of `integrate`: `qq` is the derivative of `inverse_dynamics_derivatives(…).q` along each
    coordinate. It is symmetric in its last two indices, except for coordinates of one spherical or floating joint,
    because rotations do not commute: qq[i, j, k] − qq[i, k, j] is ∂τ_i/∂q along the Lie bracket of columns k and j.
    Exact to rounding: complex-step derivatives of the analytic first derivatives.

        >>> model = rbd.sample("two_link")
        >>> rbd.inverse_dynamics_second_derivatives(model, [0.3, 0.5], [0.0, 0.0], [1.0, 0.0]).qq.shape
        (2, 2, 2)
    """
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a})
    nv = model.nv
    out = inputs.empty(4, nv, nv, nv)
    if not second_derivatives_entry.call(model._block, *inputs.flat, inputs.count, out.reshape(-1)):
        inputs.refuse(second_derivatives=out)
    return SecondDerivatives(*(out[..., i, :, :, :] for i in range(4)))
