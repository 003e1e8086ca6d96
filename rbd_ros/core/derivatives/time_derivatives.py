"""Time derivatives of inverse and forward dynamics to any order, in O(n·N²): `second_time_derivatives` and `taylor`."""
from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiled.entry import entry, quick_entry
from ..compiled.kernel import kernel
from ..dynamics.articulated import articulated_recursion
from ..dynamics.articulated import SIZE as ARTICULATED_SIZE
from ..dynamics.friction import LOAD_SMOOTHING, Friction, fitting
from ..dynamics.shared_coordinates import shared_recursion
from ..dynamics.singular import SingularMassMatrix, by_rows, solved, wrenches_of
from ..errors import RbdError
from ..model.block import GRAVITY, NODES, SHARED, all_finite, kind, node, node_count, rates_valid, size_q, size_v
from ..model.configuration import positions_valid
from ..model.inertia import Array
from ..model.joint_kinds import varies
from ..model.robot_model import RobotModel
from ..model.state import node_wrenches, numbered, shaped, states
from ..compiled.door import Call, Way, door
from ..compiled.workspace import ONE_STATE
from .second_time_derivatives import SIZE, second_order_recursion
from .taylor import taylor_order, taylor_start, workspace_size


@kernel
def has_varying(B):
    """Whether S of a joint depends on q, which `second_time_derivatives` does not support."""
    varying = False
    for i in range(node_count(B)):
        varying |= varies(kind(B, node(i)))
    return varying


@quick_entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], "
             "float64[::1], float64[:, ::1])")
def second_order_entry(B, q, v, a, jerk, snap, W, out):
    """Validate one state and evaluate τ, τ̇, τ̈. Returns False for invalid input, an unsupported model, or a non-finite
    result.
    """
    if has_varying(B) or not (positions_valid(B, q, 1) and rates_valid(B, v, 1) and rates_valid(B, a, 1)
                                  and rates_valid(B, jerk, 1) and rates_valid(B, snap, 1)):
        return False
    second_order_recursion(B, q, 0, (v, a, jerk, snap), (0, 0, 0, 0), W, out)
    return all_finite(out.reshape(-1))


@entry("boolean(float64[::1], float64[::1], float64[::1], float64[::1], int64, int64, int64, float64[::1])", nogil=True)
def inverse_time_derivatives_batch(B, q, rates, wrench, orders, top, states, out):
    """Validate `states` states and evaluate efforts up to order `top`. rates: v, a, … (top + 2 rows of nv per state).

    wrench: in node frames, Taylor coefficients (`orders` per state; empty: none).
    """
    nq = size_q(B)
    nv = size_v(B)
    nodes = node_count(B)
    if not (positions_valid(B, q, states) and rates_valid(B, rates, states * (top + 2))):
        return False
    if top <= 2 and wrench.shape[0] == 0 and not has_varying(B):
        W = np.empty(SIZE * nodes)
        x = np.zeros(4 * nv)
        y = np.empty((3, nv))
        for s in range(states):
            for i in range((top + 2) * nv):
                x[i] = rates[s * (top + 2) * nv + i]
            second_order_recursion(B, q, s * nq, (x, x, x, x), (0, nv, 2 * nv, 3 * nv), W, y)
            for m in range(top + 1):
                for i in range(nv):
                    out[(s * (top + 1) + m) * nv + i] = y[m, i]
        return all_finite(out)
    W = np.empty(workspace_size(B, top))
    x = np.empty((top + 2) * nv)
    tau = np.empty(nv)
    for s in range(states):
        scale = 1.0
        for m in range(top + 2):
            if m > 0:
                scale /= m
            for i in range(nv):
                x[m * nv + i] = scale * rates[(s * (top + 2) + m) * nv + i]
        taylor_start(B, q, s * nq, x, top, W)
        scale = 1.0
        for m in range(top + 1):
            if m > 0:
                scale *= m
            taylor_order(B, q, s * nq, x, wrench, 6 * nodes * orders * s, orders, m, top, W, tau)
            for i in range(nv):
                out[(s * (top + 1) + m) * nv + i] = scale * tau[i]
    return all_finite(out)


@entry("int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], int64, int64, int64, float64[::1])",
       nogil=True)
def forward_time_derivatives_batch(B, q, v, tau, wrench, orders, top, states, out):
    """Accelerations and their derivatives to order `top` from τ, τ̇, … (top + 1 rows of nv per state), order by order.

    Returns 0, −1 for invalid input or a non-finite result, the singular node + 1, or INDEFINITE if M(q) is not positive
    definite.
    """
    nq = size_q(B)
    nv = size_v(B)
    nodes = node_count(B)
    if not (positions_valid(B, q, states) and rates_valid(B, v, states) and rates_valid(B, tau, states * (top + 1))):
        return -1
    weightless = B.copy()    # without gravity, at rest: `articulated_recursion` then is M⁻¹
    for c in range(3):
        weightless[GRAVITY + c] = 0.0
    shared = B[SHARED] > 0.0
    W = np.empty(workspace_size(B, top))
    W2 = np.empty(ARTICULATED_SIZE * nodes)
    H = np.empty(nv * (nv + 1) if shared else 0)
    zeros = np.zeros(nv)
    unprescribed = (np.empty(0, np.bool_), zeros)    # of accelerations that are prescribed
    x = np.empty((top + 2) * nv)
    residual = np.empty(nv)
    y = np.empty(nv)
    for s in range(states):
        for i in range(nv):
            x[i] = v[s * nv + i]
        taylor_start(B, q, s * nq, x, top, W)
        scale = 1.0
        for m in range(top + 1):
            if m > 0:
                scale *= m
            for i in range(nv):
                x[(m + 1) * nv + i] = 0.0
            taylor_order(B, q, s * nq, x, wrench, 6 * nodes * orders * s, orders, m, top, W, residual)
            for i in range(nv):
                residual[i] = tau[(s * (top + 1) + m) * nv + i] / scale - residual[i]
            if shared:
                singular = shared_recursion(weightless, q, s * nq, zeros, residual, 0, unprescribed, (W2[:0], 0), W2, H,
                                            y, y)
            else:
                singular = articulated_recursion(weightless, q, s * nq, zeros, residual, 0, unprescribed, (W2[:0], 0),
                                                 W2, y, y)
            if singular != 0:
                return singular
            for i in range(nv):
                x[(m + 1) * nv + i] = y[i] / (m + 1.0)
                out[(s * (top + 1) + m) * nv + i] = scale * y[i]
            if m < top:
                taylor_order(B, q, s * nq, x, wrench, 6 * nodes * orders * s, orders, m, top, W, residual)
    return 0 if all_finite(out) else -1


ONE_STATE.takes(lambda nodes, columns, nv: SIZE * nodes)


def _orders(model: RobotModel) -> Way:
    """The quick call by number of derivatives: up to two by the entry of τ, τ̇, τ̈, whose lower orders do not depend on
    higher inputs.
    """
    ways = [Call(second_order_entry, f"B q v a {higher} W >", lambda model: [(3, model.nv)],
                 part=(0, (1 + order, model.nv))).way(model)
            for order, higher in enumerate(("0 0", "jerk 0", "jerk snap"))]

    def way(q: Any, v: Any, a: Any, *higher: Any) -> Any:
        return ways[len(higher)](q, v, a, *higher) if len(higher) < len(ways) else None

    return way


_inverse = door("inverse_dynamics_time_derivatives", _orders)
_forward = door("forward_dynamics_time_derivatives", lambda model: lambda *inputs: None)    # specialized models only


def inverse_dynamics_time_derivatives(model: RobotModel, q: ArrayLike, v: ArrayLike, a: ArrayLike, *higher: ArrayLike,
                                      external_wrenches: Any = None, friction: Friction | None = None) -> Array:
    """Efforts and their time derivatives τ, τ̇, τ̈, …: (K, nv) or (N, K, nv), K = 1 + len(higher).

    q, v, a as in `inverse_dynamics`; higher: jerk, snap, …, the time derivatives of a, (nv,) or (N, nv) each. Exact,
    any order; O(n·K²) (O(K³) at a joint in exponential coordinates); M eq. 28, 38 by recursion. external_wrenches: a
    tuple or list W, Ẇ, Ẅ, …, each as in `inverse_dynamics`: derivatives of the components in the link's axes, missing
    ones zero. A mapping or an array alone is W. friction and `RbdError` as in `inverse_dynamics`.

        >>> model = rbd.sample("two_link")
        >>> rbd.inverse_dynamics_time_derivatives(model, [0.3, 0.5], *np.ones((4, 2))).shape    # τ, τ̇, τ̈
        (3, 2)
    """
    if external_wrenches is None and friction is None and (tau := _inverse(model, q, v, a, *higher)) is not None:
        return tau    # type: ignore[no-any-return]
    if friction is not None:
        frictionless = inverse_dynamics_time_derivatives(model, q, v, a, *higher, external_wrenches=external_wrenches)
        inputs = states(model, positions={"q": q}, rates={"v": v, "a": a, **numbered(higher)})
        with np.errstate(over="ignore", invalid="ignore"):
            friction_effort = friction_series(fitting(model, friction), inputs.arrays[1:-1],
                                              list(np.moveaxis(frictionless, -2, 0)))
        return inputs.finite(effort=frictionless + np.moveaxis(friction_effort, 0, -2))[0]
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "a": a, **numbered(higher)})
    count = 1 + len(higher)
    out = inputs.empty(count, model.nv)
    wrench, orders = wrench_series(model, external_wrenches, inputs.batch, count)
    rates = np.stack(inputs.arrays[1:], axis=-2).reshape(-1)
    if not inverse_time_derivatives_batch.call(model._block, inputs.flat[0], rates, wrench, orders, count - 1,
                                               inputs.count, out.reshape(-1)):
        inputs.refuse(effort=out)
    return out


def forward_dynamics_time_derivatives(model: RobotModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *higher: ArrayLike,
                                      external_wrenches: Any = None, friction: Friction | None = None) -> Array:
    """Acceleration, jerk, snap, … (K, nv) or (N, K, nv) under efforts τ, τ̇, τ̈, … (nv,) or (N, nv) each.

    The inverse of `inverse_dynamics_time_derivatives`, solved order by order with articulated bodies, or with the mass
    matrix for models with mimic joints; external_wrenches and friction as there. With friction, K solutions instead of
    one, because the friction of each order depends on lower-order results. Raises `RbdError` as `forward_dynamics`.

        >>> model = rbd.sample("two_link")
        >>> rbd.forward_dynamics_time_derivatives(model, [0.3, 0.5], *np.ones((3, 2))).shape    # acceleration, jerk
        (2, 2)
    """
    if external_wrenches is None and friction is None and (a := _forward(model, q, v, tau, *higher)) is not None:
        return a    # type: ignore[no-any-return]
    if friction is not None:
        return _under_friction(model, (q, v, tau, *higher), external_wrenches, fitting(model, friction))
    inputs = shaped(model, positions={"q": q}, rates={"v": v, "tau": tau, **numbered(higher)})
    count = 1 + len(higher)
    out = inputs.empty(count, model.nv)
    wrench, orders = wrench_series(model, external_wrenches, inputs.batch, count)
    efforts = np.stack(inputs.arrays[2:], axis=-2).reshape(-1)
    singular = forward_time_derivatives_batch.call(model._block, *inputs.flat[:2], efforts, wrench, orders, count - 1,
                                                   inputs.count, out.reshape(-1))

    def of_row(row: int) -> Array:
        return forward_dynamics_time_derivatives(model, *(x[row] for x in inputs.arrays),
                                                 external_wrenches=_series_of(external_wrenches, row))

    solved(singular, inputs, rows=(out, of_row), acceleration=out)
    return out


def _under_friction(model: RobotModel, inputs: Sequence[ArrayLike], wrenches: Any, law: Friction) -> Array:
    """`forward_dynamics_time_derivatives` under τ, τ̇, … less friction; inputs: q, v, τ, τ̇, …."""
    checked = states(model, positions={"q": inputs[0]},
                     rates={"v": inputs[1], "tau": inputs[2], **numbered(inputs[3:])})
    q, v, *efforts = checked.arrays
    rates: list[Array] = [v]
    net_efforts: list[Array] = []
    derivatives = checked.empty(len(efforts), model.nv)

    def of_row(row: int) -> Array:
        return _under_friction(model, [x[row] for x in checked.arrays], _series_of(wrenches, row), law)

    try:
        for effort in efforts:
            with np.errstate(over="ignore", invalid="ignore"):
                if net_efforts and law.by_load:    # the highest derivative of the load enters with the factor `gain`
                    lower_order = friction_series(law, rates, [*net_efforts, np.zeros_like(effort)])[-1]
                    net_efforts.append((effort - lower_order) / law.gain(v, net_efforts[0]))
                elif net_efforts:
                    net_efforts.append(effort - friction_series(law, rates)[-1])
                else:
                    net_efforts.append(law.remove(v, effort))
            checked.finite(tau=net_efforts[-1])
            derivatives = forward_dynamics_time_derivatives(model, q, v, *net_efforts, external_wrenches=wrenches)
            rates.append(derivatives[..., -1, :])
    except SingularMassMatrix:
        if checked.batch is not None:
            by_rows(checked, checked.empty(len(efforts), model.nv), of_row)
        raise
    return derivatives


def _series_of(wrenches: Any, row: int) -> list[Any]:
    """External wrenches and their derivatives of one state of a batch."""
    return [wrenches_of(each, row) for each in (wrenches if isinstance(wrenches, (list, tuple)) else (wrenches,))]


def wrench_series(model: RobotModel, wrenches: Any, batch: int | None, count: int) -> tuple[Array, int]:
    """Taylor coefficients per state, order and node, flat, and their number; empty without wrenches."""
    if wrenches is None:
        return np.empty(0), 0
    series: Sequence[Any] = wrenches if isinstance(wrenches, (list, tuple)) else (wrenches,)
    states = 1 if batch is None else batch
    out = np.zeros((states, len(series[:count]), int(model._block[NODES]) * 6))
    for m, wrench in enumerate(series):
        flat = node_wrenches(model, wrench, batch)    # validates unused ones too
        if flat.size and m < count:
            out[:, m] = flat.reshape(states, -1) / factorial(m)
    return out.reshape(-1), out.shape[1]


def friction_series(law: Friction, rates: Sequence[Array], efforts: Sequence[Array] | None = None) -> Array:
    """τ_f, τ̇_f, τ̈_f, … (K, …, n) of `law` for K rates: v, a, jerk, … (…, n) each, and as many efforts without
    friction: τ, τ̇, …, required for load-dependent friction.

    With u = v/s and w = (v/v_s)², t = tanh u, p = 1 − t² and e = exp(−w) satisfy t' = p u', p' = −2 t p u' and
    e' = −e w': recursions for their coefficients, order by order; those of r = |τ|_ε follow from r² = τ² + ε².
    """
    x = [rate / factorial(k) for k, rate in enumerate(rates)]
    u = [x_k / law.smoothing for x_k in x]
    velocity_ratio = [x_k / law.stribeck_velocity for x_k in x]
    far = np.exp(-2.0 * np.abs(u[0]))
    t, p = [np.tanh(u[0])], [4.0 * far / (1.0 + far) ** 2]    # 1 − t² without loss of digits
    w, e = [velocity_ratio[0] * velocity_ratio[0]], [np.exp(-velocity_ratio[0] * velocity_ratio[0])]
    for k in range(1, len(x)):
        product = [_coefficient(t, p, m) for m in range(k)]
        w.append(_coefficient(velocity_ratio, velocity_ratio, k))
        t.append(_antiderivative(u, p, k))
        p.append(-2.0 * _antiderivative(u, product, k))
        e.append(-_antiderivative(w, e, k))
    level = [(law.breakaway - law.coulomb) * e[k] + law.asymmetry * t[k] + law.viscous_asymmetry * x[k]
             for k in range(len(x))]
    level[0] = law.coulomb + level[0]
    if law.by_load:
        if efforts is None:
            raise RbdError("friction.load: a load-dependent law requires efforts")
        for k, size in enumerate(_size_series([effort / factorial(k) for k, effort in enumerate(efforts)])):
            level[k] = level[k] + law.load * size
    return np.stack([factorial(k) * (law.damping * x[k] + _coefficient(level, t, k)) for k in range(len(x))])


def _size_series(tau: Sequence[Array]) -> list[Array]:
    """Coefficients of |τ|_ε."""
    out = [np.sqrt(tau[0] * tau[0] + LOAD_SMOOTHING**2)]
    for k in range(1, len(tau)):
        out.append((_coefficient(tau, tau, k) - sum(out[j] * out[k - j] for j in range(1, k))) / (2.0 * out[0]))
    return out


def _antiderivative(x: Sequence[Array], y: Sequence[Array], k: int) -> Array:
    """Coefficient k of a function whose derivative is y x'."""
    return np.asarray(sum(j * x[j] * y[k - j] for j in range(1, k + 1)) / k)


def _coefficient(f: Sequence[Array], g: Sequence[Array], k: int) -> Array:
    """Coefficient k of a product."""
    return np.asarray(sum(f[j] * g[k - j] for j in range(k + 1)))
