"""Model predictive control of a 7R arm with a load: CasADi's Ipopt on the arm's equations of motion, exact Hessians.

    python3 examples/nmpc.py

Every 20 ms the torques of the next 0.6 s are planned, within limits that are too low to swing the arm there directly,
and the first of them is held by a simulated arm. Needs casadi (`pip install casadi`); takes some seconds.
"""
from __future__ import annotations

import time
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray

import rbd_ros as rbd

Array = NDArray[np.float64]
PERIOD = 0.02                                        # s
GRID = np.array([PERIOD] * 5 + [0.05] * 10)          # s: intervals of the horizon, the first of them one period
LOAD = rbd.Inertia(4.0, np.array([0.0, 0.0, 0.1]), 0.02 * np.eye(3))
NEAR, SLOW, CHEAP = 10.0, 0.3, 0.05                  # weights of positions, velocities and shares of torque limits


class Controller:
    """Torques towards a posture: states and accelerations at the grid's nodes are unknowns, accelerations constant in
    each interval, so that torques are inverse dynamics.
    """

    def __init__(self, model: rbd.RobotModel, body: str, limit: Array) -> None:
        """body: link with the load; limit: of torques (nv,), N m."""
        n, steps = model.nv, len(GRID)
        q, v, a = (ca.MX.sym(name, n, count) for name, count in (("q", steps + 1), ("v", steps + 1), ("a", steps)))
        start, goal, load = ca.MX.sym("start", 2 * n), ca.MX.sym("goal", n), ca.MX.sym("load", 10)
        effort = rbd.casadi_function(model, "inverse_dynamics", payload=body).map(steps)(
            q[:, :-1], v[:, :-1], a, ca.repmat(load, 1, steps))
        h = ca.repmat(ca.DM(GRID).T, n, 1)
        defects = ca.vertcat(q[:, 0] - start[:n], v[:, 0] - start[n:],
                             ca.vec(q[:, :-1] + h * v[:, :-1] + 0.5 * h**2 * a - q[:, 1:]),
                             ca.vec(v[:, :-1] + h * a - v[:, 1:]))
        share = effort / ca.repmat(ca.DM(limit), 1, steps)
        cost = ca.sum2(ca.DM(GRID).T * (NEAR * ca.sum1((q[:, 1:] - ca.repmat(goal, 1, steps))**2)
                                        + SLOW * ca.sum1(v[:, 1:]**2) + CHEAP * ca.sum1(share**2)))
        constraints = ca.vertcat(defects, ca.vec(share))
        self._solve = ca.nlpsol("solve", "ipopt", {
            "x": ca.vertcat(ca.vec(q), ca.vec(v), ca.vec(a)), "p": ca.vertcat(start, goal, load), "f": cost,
            "g": constraints}, {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-6,
                                "ipopt.warm_start_init_point": "yes", "ipopt.mu_init": 1e-3})
        bound = np.concatenate([np.zeros(defects.numel()), np.ones(n * steps)])
        self._bounds = {"lbg": -bound, "ubg": bound}
        free = np.full(n * steps, np.inf)    # of accelerations; the first state is what it is
        self._bounds |= {name: np.concatenate([sign * free[:n], *[position] * steps, sign * free[:n],
                                               *[sign * model.velocity_limit] * steps, sign * free])
                         for name, sign, position in (("lbx", -1.0, model.position_lower),
                                                      ("ubx", 1.0, model.position_upper))}
        self._guess: dict[str, Any] = {}
        self._limit, self._shape = limit, (n, steps)

    def torques(self, q: Array, v: Array, goal: Array, load: Array) -> tuple[Array, int]:
        """The torques to hold for one period, N m, and Ipopt's iterations."""
        n, steps = self._shape
        guess = self._guess or {"x0": np.concatenate([np.tile(q, steps + 1), np.zeros(n * (2 * steps + 1))])}
        found = self._solve(p=np.concatenate([q, v, goal, load]), **guess, **self._bounds)
        if not self._solve.stats()["success"]:
            raise RuntimeError(f"Ipopt: {self._solve.stats()['return_status']}")
        self._guess = {"x0": found["x"], "lam_x0": found["lam_x"], "lam_g0": found["lam_g"]}
        share = np.array(found["g"]).ravel()[-n * steps:][:n]
        return share * self._limit, self._solve.stats()["iter_count"]


class Swing(NamedTuple):
    """States (N, nv) and torques (N, nv) of each period, iterations (N,), and seconds per plan (N,)."""

    q: Array
    v: Array
    torques: Array
    iterations: Array
    seconds: Array


def swing(model: rbd.RobotModel, goal: Array, limit: Array, duration: float) -> Swing:
    """The arm from hanging at rest to a goal, in closed loop with a simulated arm that carries the load."""
    body = model.body_names[-1]
    carrying = model.with_payload(body, LOAD)
    J = LOAD.about_origin
    load = np.array([LOAD.mass, *LOAD.moment, J[0, 0], J[0, 1], J[1, 1], J[0, 2], J[1, 2], J[2, 2]])
    controller, rows = Controller(model, body, limit), []
    q = v = np.zeros(model.nv)
    for _ in range(round(duration / PERIOD)):
        begin = time.perf_counter()
        tau, iterations = controller.torques(q, v, goal, load)
        rows.append((q, v, tau, iterations, time.perf_counter() - begin))
        motion = rbd.simulate(carrying, q, v, tau, step=1e-3, n=round(PERIOD / 1e-3))
        q, v = motion.q[-1], motion.v[-1]
    return Swing(*map(np.array, zip(*rows, strict=True)))


def main() -> None:
    model = rbd.sample("iiwa")
    goal, limit = np.array([0.8, 1.2, 0.0, -1.0, 0.0, 0.6, 0.0]), 0.5 * model.effort_limit
    result = swing(model, goal, limit, 2.0)
    share = np.abs(result.torques / limit).max()
    error = np.abs(result.q[-1] - goal).max()
    print(f"after 2 s: {error:.4f} rad from the goal, torques up to {share:.2f} of the limits; "
          f"{result.iterations.mean():.1f} iterations and {1e3 * np.median(result.seconds):.0f} ms per plan")


if __name__ == "__main__":
    main()
