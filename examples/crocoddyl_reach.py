"""Crocoddyl's solvers on this library's dynamics and derivatives: an arm reaches a point with least torques.

    python3 examples/crocoddyl_reach.py

Another line makes Crocoddyl's problem one of this library: `rbd.crocoddyl_model` in place of its own dynamics, on
Pinocchio. Both are solved, to compare. Needs Crocoddyl, and the Pinocchio that it was built with:

    pip install crocoddyl==3.2.1 pin==4.0.0
"""
from __future__ import annotations

import time
from typing import Any, NamedTuple

import crocoddyl
import numpy as np
import pinocchio
from numpy.typing import NDArray

import rbd_ros as rbd

Array = NDArray[np.float64]
TIP, STEPS, STEP = "link_7", 50, 0.01
TARGET = np.array([-0.4, 0.4, 0.4])               # m
ROTORS = 0.1                                       # kg m², at the joints
START = np.array([0.0, 0.5, 0.0, -1.2, 0.0, 0.8, 0.0])
# weights of ½‖·‖²: distance, states from the start, torques; of the running cost, and of the last state
RUNNING, LAST = (1.0, 1e-1, 1e-4), (1e3, 1.0, 0.0)


def reach(weights: tuple[float, float, float], ours: rbd.RobotModel | None) -> Any:
    """Crocoddyl's model of the URDF's arm with a cost, on Pinocchio, or on our model of it."""
    model = pinocchio.buildModelFromUrdf(str(rbd.sample_path("iiwa")))
    model.armature = np.full(model.nv, ROTORS)
    state = crocoddyl.StateMultibody(model)
    costs, actuation = crocoddyl.CostModelSum(state), crocoddyl.ActuationModelFull(state)
    residuals = {"distance": crocoddyl.ResidualModelFrameTranslation(state, model.getFrameId(TIP), TARGET),
                 "state": crocoddyl.ResidualModelState(state, np.concatenate([START, np.zeros(model.nv)])),
                 "torque": crocoddyl.ResidualModelControl(state)}
    for (name, residual), weight in zip(residuals.items(), weights, strict=True):
        costs.addCost(name, crocoddyl.CostModelResidual(state, residual), weight)
    if ours is None:
        return crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
    return rbd.crocoddyl_model(ours, state, actuation, costs)


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
    ours, theirs = (solve(*(reach(weights, dynamics) for weights in (RUNNING, LAST))) for dynamics in (model, None))
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
