"""The same motions by CasADi's Ipopt: its derivatives and solver, Newton–Euler and SciPy's splines written anew."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

import rbd_ros as rbd

Array = NDArray[np.float64]


class Peer(NamedTuple):
    """Result of Ipopt: ∫‖τ‖² by the given quadrature, control points (K, nv), and whether it reports optimality."""

    cost: float
    control: Array
    optimal: bool
    iterations: int


def efforts(model: rbd.RobotModel) -> Any:
    """CasADi's function (q, v, a) → τ of a serial chain of revolute joints, by Newton and Euler in link axes."""
    import casadi as ca

    n = model.nv
    q, v, a = (ca.SX.sym(name, n) for name in "qva")
    w, alpha, acc = ca.SX.zeros(3), ca.SX.zeros(3), ca.SX(-model.gravity)
    links = []
    for i, joint in enumerate(model.description.joints):
        axis = ca.SX(np.array(joint.axis))
        cross = ca.skew(axis)
        turn = ca.SX.eye(3) + ca.sin(q[i]) * cross + (1.0 - ca.cos(q[i])) * cross @ cross
        R, p = ca.SX(joint.rotation) @ turn, ca.SX(joint.position)
        acc = R.T @ (acc + ca.cross(alpha, p) + ca.cross(w, ca.cross(w, p)))
        w, before = R.T @ w + axis * v[i], R.T @ w
        alpha = R.T @ alpha + axis * a[i] + ca.cross(before, axis * v[i])
        body = model.description.links[joint.child]
        c, inertia = ca.SX(body.com), ca.SX(body.matrix)
        force = body.mass * (acc + ca.cross(alpha, c) + ca.cross(w, ca.cross(w, c)))
        moment = inertia @ alpha + ca.cross(w, inertia @ w) + ca.cross(c, force)
        links.append((R, p, axis, force, moment))
    tau, f, m = [], ca.SX.zeros(3), ca.SX.zeros(3)
    for R, p, axis, force, moment in reversed(links):
        f, m = f + force, m + moment
        tau.append(ca.dot(axis, m))
        f = R @ f
        m = R @ m + ca.cross(p, f)
    return ca.Function("tau", [q, v, a], [ca.vertcat(*reversed(tau))])


class IpoptPeer:
    """Least Σ_nodes T w ‖τ‖² of quintic splines at rest at both ends, under a share `keep` of the model's limits.

    nodes: s in [0, 1] and weights; control_points per joint. Derivatives are CasADi's, node by node; Ipopt gets them
    by control points. Made once for all ends and durations.
    """

    def __init__(self, model: rbd.RobotModel, nodes: tuple[Array, Array], control_points: int, keep: float) -> None:
        import casadi as ca

        self.model, self.count = model, control_points
        n, N, K = model.nv, len(nodes[0]), control_points
        knots = np.concatenate([np.zeros(5), np.linspace(0.0, 1.0, K - 4), np.ones(5)])
        bases = [BSpline(knots, np.eye(K), 5)(nodes[0], nu=k) for k in range(3)]
        x, p, sigma = ca.MX.sym("x", n * (K - 6)), ca.MX.sym("p", 2 * n + 2), ca.MX.sym("sigma")
        ends, T, unit = ca.reshape(p[:2 * n], n, 2), p[2 * n], p[2 * n + 1]
        # all states, node after node: z = way x + what the ends' points give
        full = np.stack(bases, axis=1).reshape(3 * N, K)
        way = ca.sparsify(ca.DM(np.kron(full[:, 3:K - 3], np.eye(n))))
        still = ca.DM(full[:, :3].sum(axis=1)), ca.DM(full[:, K - 3:].sum(axis=1))
        per = ca.vertcat(*[T**-k * ca.MX.ones(n, 1) for k in range(3)])
        z = ca.repmat(per, N, 1) * (way @ x + sum(ca.kron(part, ends[:, i]) for i, part in enumerate(still)))
        lift = ca.diag(ca.repmat(per, N, 1)) @ way

        zk, lam, cost = ca.SX.sym("z", 3 * n), ca.SX.sym("lam", n), ca.SX.sym("cost")
        tau = efforts(model)(zk[:n], zk[n:2 * n], zk[2 * n:])
        lagrangian = cost * ca.sumsqr(tau) + ca.dot(lam, tau / model.effort_limit)
        effort = ca.Function("effort", [zk], [tau]).map(N)
        slope = ca.Function("slope", [zk], [ca.jacobian(tau, zk)]).map(N)
        curve = ca.Function("curve", [zk, lam, cost], [ca.hessian(lagrangian, zk)[0]]).map(N)

        def blocks(side_by_side: Any) -> Any:
            return ca.diagcat(*ca.horzsplit(side_by_side, 3 * n))

        Z = ca.reshape(z, 3 * n, N)
        weight = T * ca.DM(nodes[1]).T
        tau_all = effort(Z)
        low, high = model.position_lower, model.position_upper
        middle, half = ca.DM(0.5 * (high + low)), 0.5 * (high - low)
        scale = ca.DM(np.concatenate([half, model.velocity_limit]))
        rows = ca.vertcat((Z[:2 * n, :] - ca.repmat(ca.vertcat(middle, ca.DM(n, 1)), 1, N)) / ca.repmat(scale, 1, N),
                          tau_all / ca.repmat(ca.DM(model.effort_limit), 1, N))
        total = ca.dot(ca.sum1(tau_all**2), weight) / unit
        jac_tau = slope(Z)
        top = ca.repmat(ca.horzcat(ca.diag(1.0 / scale), ca.DM(2 * n, n)), 1, N)
        jac = blocks(ca.vertcat(top, jac_tau / ca.repmat(ca.DM(model.effort_limit), 1, 3 * n * N))) @ lift
        by_tau = 2.0 * ca.repmat(weight, n, 1) * tau_all / unit
        gradient = (blocks(jac_tau) @ lift).T @ ca.vec(by_tau)
        multipliers = ca.MX.sym("lam", 3 * n * N)
        H = lift.T @ (blocks(curve(Z, ca.reshape(multipliers, 3 * n, N)[2 * n:, :], sigma * weight / unit)) @ lift)
        g = ca.vec(rows)
        self._keep = keep
        self._cost = ca.Function("cost", [x, p], [total])
        derivatives = {
            "print_time": False, "grad_f": ca.Function("slope_f", [x, p], [total, gradient]),
            "jac_g": ca.Function("slope_g", [x, p], [g, jac]),
            "hess_lag": ca.Function("curve_l", [x, p, sigma, multipliers], [ca.triu(H)]),
        }
        usual = {"print_level": 0, "sb": "yes", "tol": 1e-9, "max_iter": 300}
        near = {"mu_init": 1e-6, "warm_start_init_point": "yes", "warm_start_bound_push": 1e-6,
                "warm_start_slack_bound_push": 1e-6, "warm_start_mult_bound_push": 1e-6}
        self._solvers = [ca.nlpsol("peer", "ipopt", {"x": x, "p": p, "f": total, "g": g}, {
            **derivatives, "ipopt": {**usual, **more}}) for more in ({}, near)]

    def solve(self, start: Array, goal: Array, T: float, first: Array, near: bool = False) -> Peer:
        """From control points `first` (K, nv); near: which are close to a minimum, and Ipopt is not to leave it."""
        begin = first[3:self.count - 3].reshape(-1)
        given = np.concatenate([start, goal, [T]])
        unit = float(self._cost(begin, np.append(given, 1.0)))
        solver = self._solvers[near]
        found = solver(x0=begin, p=np.append(given, unit), lbg=-self._keep, ubg=self._keep)
        inner = np.array(found["x"]).reshape(-1, self.model.nv)
        stats = solver.stats()
        control = np.concatenate([np.tile(start, (3, 1)), inner, np.tile(goal, (3, 1))])
        return Peer(float(found["f"]) * unit, control, bool(stats["success"]), int(stats["iter_count"]))
