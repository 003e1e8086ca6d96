"""Model predictive control of a 7R arm with a load: CasADi's Ipopt on the arm's equations of motion, exact Hessians.

    python3 examples/nmpc.py

Every 25 ms the motion of the next 0.7 s is planned, within limits that are too low to swing the arm there directly. A
plan may take a whole period, and torques reach the arm 5 ms after their command: each plan starts at the state in which
the arm will be by then, predicted with the torques that are already decided. Torques follow the plan at 1 kHz. Needs
casadi (`pip install casadi`) and a C compiler, which is busy for half a minute in the first run.
"""
from __future__ import annotations

import time
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

import rbd_ros as rbd

Array = NDArray[np.float64]
STEP = 1e-3                                          # s, of torques and of the simulation
PERIOD, DELAY = 25, 5                                # steps between plans, and from a command to its torque
GRID = np.array([0.025] * 4 + [0.04] * 16)           # s: intervals of the horizon, the first of them one period
LOAD = rbd.Inertia(4.0, np.array([0.0, 0.0, 0.1]), 0.02 * np.eye(3))
NEAR, SLOW, CHEAP = 10.0, 0.3, 0.05                  # weights of positions, velocities and shares of torque limits


def later(*counts: int) -> Array:
    """Weights with which blocks of rows, at so many of the grid's nodes each, become those of the next plan."""
    nodes = np.concatenate([[0.0], np.cumsum(GRID)])
    return np.array(block_diag(*(np.transpose([
        np.interp(nodes[:count] + PERIOD * STEP, nodes[:count], row) for row in np.eye(count)]) for count in counts)))


class Controller:
    """Motions towards a posture: states and accelerations at the grid's nodes are unknowns, accelerations constant in
    each interval, so that torques are inverse dynamics. Within the first interval, which is carried out, velocities
    are between those at its ends; torques are limited at both of them.
    """

    def __init__(self, model: rbd.RobotModel, limit: Array) -> None:
        """limit: of torques (nv,), N m."""
        n, steps = model.nv, len(GRID)
        q, v, a = (ca.MX.sym(name, n, count) for name, count in (("q", steps + 1), ("v", steps + 1), ("a", steps)))
        start, goal = ca.MX.sym("start", 2 * n), ca.MX.sym("goal", n)
        dynamics = rbd.casadi_function(model, "inverse_dynamics", external=True)
        effort = dynamics.map(steps + 1)(
            ca.horzcat(q[:, :-1], q[:, 1]), ca.horzcat(v[:, :-1], v[:, 1]), ca.horzcat(a, a[:, 0]))
        share = effort / ca.repmat(ca.DM(limit), 1, steps + 1)
        h = ca.repmat(ca.DM(GRID).T, n, 1)
        defects = ca.vertcat(q[:, 0] - start[:n], v[:, 0] - start[n:],
                             ca.vec(q[:, :-1] + h * v[:, :-1] + 0.5 * h**2 * a - q[:, 1:]),
                             ca.vec(v[:, :-1] + h * a - v[:, 1:]))
        cost = ca.sum2(ca.DM(GRID).T * (NEAR * ca.sum1((q[:, 1:] - ca.repmat(goal, 1, steps))**2)
                                        + SLOW * ca.sum1(v[:, 1:]**2) + CHEAP * ca.sum1(share[:, :-1]**2)))
        self._solve = ca.nlpsol("solve", "ipopt", {
            "x": ca.vertcat(ca.vec(q), ca.vec(v), ca.vec(a)), "p": ca.vertcat(start, goal), "f": cost,
            "g": ca.vertcat(defects, ca.vec(share))}, {
                "print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-4,
                "ipopt.nlp_scaling_method": "none", "ipopt.warm_start_init_point": "yes", "ipopt.mu_init": 1e-4})
        bound = np.concatenate([np.zeros(defects.numel()), np.ones(share.numel())])
        self._bounds = {"lbg": -bound, "ubg": bound}
        free = np.full(n * steps, np.inf)    # of accelerations; the first state is what it is
        self._bounds |= {name: np.concatenate([sign * free[:n], *[position] * steps, sign * free[:n],
                                               *[sign * model.velocity_limit] * steps, sign * free])
                         for name, sign, position in (("lbx", -1.0, model.position_lower),
                                                      ("ubx", 1.0, model.position_upper))}
        self._model, self._limit = model, limit
        self._guess: dict[str, Any] = {}
        self._later_x, self._later_g = later(steps + 1, steps + 1, steps), later(1, 1, steps, steps, steps, 1)

    def predicted(self, q: Array, v: Array, torques: Array) -> tuple[Array, Array]:
        """The state after torques (n, nv), one per step."""
        motion = rbd.simulate(self._model, q, v, torques, step=STEP, n=len(torques))
        return motion.q[-1], motion.v[-1]

    def torques(self, q: Array, v: Array, goal: Array) -> tuple[Array, int]:
        """Torques of a period (PERIOD, nv), N m, and Ipopt's iterations."""
        n, steps = len(q), len(GRID)
        guess = self._guess or {"x0": np.concatenate([np.tile(q, steps + 1), np.zeros(n * (2 * steps + 1))])}
        found = self._solve(p=np.concatenate([q, v, goal]), **guess, **self._bounds)
        if not self._solve.stats()["success"]:
            raise RuntimeError(f"Ipopt: {self._solve.stats()['return_status']}")
        plan = np.array(found["x"]).reshape(-1, n)
        x, lam_x, lam_g = (weights @ np.array(found[name]).reshape(-1, n) for weights, name in (
            (self._later_x, "x"), (self._later_x, "lam_x"), (self._later_g, "lam_g")))
        self._guess = {"x0": x.ravel(), "lam_x0": lam_x.ravel(), "lam_g0": lam_g.ravel()}
        a = plan[2 * steps + 2]
        t = STEP * (np.arange(PERIOD)[:, None] + 0.5)
        tau = rbd.inverse_dynamics(self._model, q + v * t + 0.5 * a * t**2, v + a * t, np.tile(a, (PERIOD, 1)))
        return np.clip(tau, -self._limit, self._limit), self._solve.stats()["iter_count"]


class Swing(NamedTuple):
    """States (n, nv) and torques (n, nv) of each step; of each plan, iterations, and seconds of the processor."""

    q: Array
    v: Array
    torques: Array
    iterations: Array
    seconds: Array


def swing(model: rbd.RobotModel, goal: Array, limit: Array, duration: float, load: rbd.Inertia = LOAD) -> Swing:
    """The arm from rest to a goal, in closed loop with a simulated arm; load: what the simulated arm carries."""
    body = model.body_names[-1]
    believed, plant = (model.with_payload(body, carried) for carried in (LOAD, load))
    controller, q, v = Controller(believed, limit), np.zeros(model.nv), np.zeros(model.nv)
    decided = np.tile(rbd.gravity_effort(believed, q), (PERIOD + DELAY, 1))
    states, torques, plans = [], [], []
    for _ in range(round(duration / (PERIOD * STEP))):
        begin = time.process_time()
        tau, iterations = controller.torques(*controller.predicted(q, v, decided), goal)
        plans.append((iterations, time.process_time() - begin))
        motion = rbd.simulate(plant, q, v, decided[:PERIOD], step=STEP, n=PERIOD, stride=1)
        states.append((motion.q[1:], motion.v[1:]))
        torques.append(decided[:PERIOD])
        q, v = motion.q[-1], motion.v[-1]
        decided = np.concatenate([decided[PERIOD:], tau])
    return Swing(*map(np.concatenate, (*zip(*states, strict=True), torques)), *np.array(plans).T)


def main() -> None:
    model = rbd.sample("iiwa")
    goal, limit = np.array([0.8, 1.2, 0.0, -1.0, 0.0, 0.6, 0.0]), 0.5 * model.effort_limit
    result = swing(model, goal, limit, 2.0)
    error = np.abs(result.q[-1] - goal).max()
    print(f"after 2 s: {error:.4f} rad from the goal; torques up to {np.abs(result.torques / limit).max():.3f}, "
          f"velocities up to {np.abs(result.v / model.velocity_limit).max():.3f} of the limits")
    first, *others = 1e3 * result.seconds    # ms; the arm waits for the first plan
    period, usual, worst = 1e3 * PERIOD * STEP, np.median(others), max(others)
    print(f"{result.iterations.mean():.1f} iterations and {usual:.1f} ms per plan, at most {worst:.1f} of {period:.0f} "
          f"ms: real-time factor {period / usual:.1f}, at least {period / worst:.1f}; the first plan {first:.0f} ms")


if __name__ == "__main__":
    main()
