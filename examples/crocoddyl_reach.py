"""Crocoddyl's solvers on this library's dynamics and derivatives: an arm reaches a point with least torques.

    python3 examples/crocoddyl_reach.py

`Reach` is a differential action model of a fixed-base arm. The same problem is solved with Crocoddyl's own model, on
Pinocchio, to compare. Needs Crocoddyl, and the Pinocchio that it was built with:

    pip install crocoddyl==3.2.1 pin==4.0.0
"""
from __future__ import annotations

import time
from typing import Any, NamedTuple

import crocoddyl
import numpy as np
from numpy.typing import NDArray

import rbd_ros as rbd

Array = NDArray[np.float64]
TIP, STEPS, STEP = "link_7", 50, 0.01
TARGET = np.array([-0.4, 0.4, 0.4])               # m
ROTORS = 0.1                                       # kg m², at the joints
START = np.array([0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0])
# weights of ½‖·‖²: distance, states from the start, torques; of the running cost, and of the last state
RUNNING, LAST = (1.0, 1e-1, 1e-4), (1e3, 1.0, 0.0)


class Reach(crocoddyl.DifferentialActionModelAbstract):
    """q̈ by forward dynamics, with a cost of the distance of a body's origin from a point, of states and of torques."""

    def __init__(self, model: rbd.RobotModel, body: str, target: Array, start: Array,
                 weights: tuple[float, float, float]) -> None:
        if model.nq != model.nv:
            raise rbd.RbdError("Reach: expected a model without quaternions")
        super().__init__(crocoddyl.StateVector(2 * model.nv), model.nv)
        self._model, self._body, self._target, self._weights = model, body, target, weights
        self._link, self._rest = model.body_index(body), np.concatenate([start, np.zeros(model.nv)])

    def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
        q, v = x[:self._model.nv], x[self._model.nv:]
        near, close, cheap = self._weights
        distance = rbd.forward_kinematics(self._model, q)[self._link, :3, 3] - self._target
        data.cost = 0.5 * (near * distance @ distance + close * np.sum((x - self._rest) ** 2))
        if u is not None:
            data.xout = rbd.forward_dynamics(self._model, q, v, u)
            data.cost += 0.5 * cheap * u @ u

    def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
        n = self._model.nv
        q, v = x[:n], x[n:]
        near, close, cheap = self._weights
        distance = rbd.forward_kinematics(self._model, q)[self._link, :3, 3] - self._target
        J = rbd.jacobian(self._model, q, self._body, "aligned")[3:]
        gradient, hessian = close * (x - self._rest), close * np.eye(2 * n)
        gradient[:n] += near * J.T @ distance
        hessian[:n, :n] += near * J.T @ J    # Gauss–Newton, as Crocoddyl's
        data.Lx, data.Lxx = gradient, hessian
        if u is not None:
            by = rbd.forward_dynamics_derivatives(self._model, q, v, u)
            data.Fx, data.Fu = np.hstack([by.q, by.v]), by.tau
            data.Lu, data.Luu = cheap * u, cheap * np.eye(n)


def pinocchio_reach(path: str, body: str, target: Array, start: Array, weights: tuple[float, float, float]) -> Any:
    """The same with Crocoddyl's own model, of a URDF."""
    import pinocchio

    model = pinocchio.buildModelFromUrdf(path)
    model.armature = np.full(model.nv, ROTORS)
    state = crocoddyl.StateMultibody(model)
    costs = crocoddyl.CostModelSum(state, model.nv)
    residuals = {"distance": crocoddyl.ResidualModelFrameTranslation(state, model.getFrameId(body), target, model.nv),
                 "state": crocoddyl.ResidualModelState(state, np.concatenate([start, np.zeros(model.nv)]), model.nv),
                 "torque": crocoddyl.ResidualModelControl(state, model.nv)}
    for (name, residual), weight in zip(residuals.items(), weights, strict=True):
        costs.addCost(name, crocoddyl.CostModelResidual(state, residual), weight)
    return crocoddyl.DifferentialActionModelFreeFwdDynamics(state, crocoddyl.ActuationModelFull(state), costs)


class Solution(NamedTuple):
    """States (STEPS + 1, 2 nv), torques (STEPS, nv), cost, iterations, and seconds per iteration."""

    x: Array
    u: Array
    cost: float
    iterations: int
    seconds: float


def solve(running: Any, last: Any) -> Solution:
    """By feasibility-driven differential dynamic programming, from the arm held at its start."""
    steps, end = (crocoddyl.IntegratedActionModelEuler(each, step) for each, step in ((running, STEP), (last, 0.0)))
    x = np.concatenate([START, np.zeros(7)])
    problem = crocoddyl.ShootingProblem(x, [steps] * STEPS, end)
    solver = crocoddyl.SolverFDDP(problem)
    solver.th_stop = 1e-12
    hold = rbd.gravity_effort(rbd.sample("iiwa"), START)
    guess = [x] * (STEPS + 1), [hold] * STEPS
    problem.calc(*guess)
    problem.calcDiff(*guess)    # the first calls take longer
    begin = time.perf_counter()
    solver.solve(*guess, 100, False)
    seconds = time.perf_counter() - begin
    return Solution(np.array(solver.xs.tolist()), np.array(solver.us.tolist()), solver.cost, solver.iter,
                    seconds / max(1, solver.iter))


def main(quiet: bool = False) -> tuple[Solution, Solution]:
    """Ours, and with Pinocchio."""
    model = rbd.sample("iiwa").with_(armature=ROTORS)
    ours = solve(*(Reach(model, TIP, TARGET, START, weights) for weights in (RUNNING, LAST)))
    theirs = solve(*(pinocchio_reach(str(rbd.sample_path("iiwa")), TIP, TARGET, START, weights)
                     for weights in (RUNNING, LAST)))
    if not quiet:
        end = rbd.forward_kinematics(model, ours.x[-1, :7])[model.body_index(TIP), :3, 3]
        print(f"{1e3 * np.linalg.norm(end - TARGET):.2f} mm from the point; cost {ours.cost:.9f}, with Pinocchio's "
              f"model {theirs.cost:.9f}; states differ by {np.abs(ours.x - theirs.x).max():.1e}, torques by "
              f"{np.abs(ours.u - theirs.u).max():.1e} N m")
        print(f"iterations {ours.iterations} and {theirs.iterations}, {1e3 * ours.seconds:.1f} and "
              f"{1e3 * theirs.seconds:.1f} ms each")
    return ours, theirs


if __name__ == "__main__":
    main()
