"""Differential action models of Crocoddyl on this library's dynamics: of trees, constrained, with elastic joints."""
from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..actuation.actuation import Actuation
from ..derivatives.constrained import constrained_forward_dynamics_derivatives
from ..derivatives.forward import forward_dynamics_derivatives
from ..dynamics.constrained.forward import constrained_forward_dynamics
from ..dynamics.forward import forward_dynamics
from ..dynamics.friction import Friction, fitting
from ..errors import RbdError
from ..model.constraints import ConstraintSet
from ..model.inertia import Array
from ..model.robot_model import RobotModel
from ..model.state import not_a_model
from ..simulation.springs import ArmSprings, with_rotors


def crocoddyl_model(robot: RobotModel | Actuation, state: Any, actuation: Any, costs: Any, *,
                    constraints: ConstraintSet | None = None, friction: Friction | None = None) -> Any:
    """A differential action model in place of `crocoddyl.DifferentialActionModelFreeFwdDynamics`, on our dynamics.

    state, actuation, costs: as of that model, a `StateMultibody` of the same robot in Pinocchio, an actuation model and
    a `CostModelSum`; joints are matched by name. constraints: those of `constrained_forward_dynamics`, in place of
    Crocoddyl's contacts; friction: as the argument of forward dynamics. robot: a model, or an `Actuation` with series
    elastic joints: its state is a `StateVector` (links, motors behind springs, and their velocities), its inputs are
    the motors' efforts, its friction is that of the drives and joints, and costs are those of the links' state. Raises
    `RbdError` without crocoddyl, and for robots that do not match.

        >>> import crocoddyl, pinocchio
        >>> state = crocoddyl.StateMultibody(pinocchio.buildModelFromUrdf(str(rbd.sample_path("iiwa"))))
        >>> costs = crocoddyl.CostModelSum(state)
        >>> rbd.crocoddyl_model(rbd.sample("iiwa"), state, crocoddyl.ActuationModelFull(state), costs).nu
        7
    """
    if not isinstance(robot, RobotModel | Actuation):
        raise not_a_model(robot)
    if not isinstance(constraints, ConstraintSet | None):
        raise RbdError(f"constraints: expected a ConstraintSet, got {type(constraints).__name__}")
    action = _action()
    model = robot if isinstance(robot, RobotModel) else robot.model
    order = _order(model, state.pinocchio)
    if isinstance(robot, Actuation):
        if constraints is not None or friction is not None:
            raise RbdError("crocoddyl_model: an Actuation has the friction of its drives, and no constraints")
        return action(_Elastic(robot, order), order, state, actuation, costs)
    if friction is not None:
        fitting(model, friction)
    if constraints is not None:
        constraints.bound(model)
    return action(_Rigid(model, constraints, friction), order, state, actuation, costs)


class _Order(NamedTuple):
    """Positions in our order of those of Pinocchio, `ours = theirs[q]`, likewise velocities; `turning`: pairs of a
    position of ours and Pinocchio's cosine of it, followed by the sine.
    """

    q: NDArray[np.intp]
    v: NDArray[np.intp]
    turning: list[tuple[int, int]]

    def positions(self, x: Array) -> Array:
        q = x[self.q]
        for ours, theirs in self.turning:
            q[ours] = np.arctan2(x[theirs + 1], x[theirs])
        return q


SWAPPED = [3, 4, 5, 0, 1, 2]    # a twist's linear part is Pinocchio's first


def _order(model: RobotModel, peer: Any) -> _Order:
    if sorted(model.joint_names) != sorted(list(peer.names)[1:]):
        raise RbdError(f"crocoddyl_model: joints {', '.join(model.joint_names)} of '{model.name}', but "
                       f"{', '.join(list(peer.names)[1:])} of the state's model")
    q, v, turning = np.zeros(model.nq, np.intp), np.zeros(model.nv, np.intp), []
    for joint in model.joints:
        theirs = peer.joints[peer.getJointId(joint.name)]
        if joint.nq == 1 and theirs.nq == 2:
            turning.append((joint.idx_q, theirs.idx_q))
        elif joint.type == "planar" or (theirs.nq, theirs.nv) != (joint.nq, joint.nv):
            raise RbdError(f"crocoddyl_model: joint '{joint.name}' ({joint.type}) has other coordinates in Pinocchio")
        q[joint.idx_q:joint.idx_q + joint.nq] = theirs.idx_q + np.arange(joint.nq)
        v[joint.idx_v:joint.idx_v + joint.nv] = theirs.idx_v + np.array(
            SWAPPED if joint.type == "floating" else range(joint.nv))
    return _Order(q, v, turning)


class _Rigid:
    """Accelerations (nv,) and their derivatives by positions, velocities and efforts, all in our order."""

    def __init__(self, model: RobotModel, constraints: ConstraintSet | None, friction: Friction | None) -> None:
        self._model, self._constraints, self._friction = model, constraints, friction

    def acceleration(self, q: Array, v: Array, tau: Array) -> Array:
        if self._constraints is None:
            return forward_dynamics(self._model, q, v, tau, friction=self._friction)
        return constrained_forward_dynamics(self._model, self._constraints, q, v, tau,
                                            friction=self._friction).acceleration

    def slopes(self, q: Array, v: Array, tau: Array) -> tuple[Array, ...]:
        if self._constraints is None:
            return forward_dynamics_derivatives(self._model, q, v, tau, friction=self._friction)
        return constrained_forward_dynamics_derivatives(self._model, self._constraints, q, v, tau,
                                                        friction=self._friction)[:3]


class _Elastic:
    """The same of `size` coordinates: links, then motors behind springs."""

    def __init__(self, actuation: Actuation, order: _Order) -> None:
        if actuation.variable.size:
            raise RbdError(f"crocoddyl_model: joint '{actuation.variable_name(0)}' has variable stiffness, expected "
                           "rigid and series elastic joints")
        if np.any(order.q != np.arange(actuation.nv)):
            raise RbdError("crocoddyl_model: elastic joints need the order of the state's model: "
                           f"got {', '.join(actuation.joint_names)}")
        self._model, friction = with_rotors(actuation)
        self._friction = friction if np.any(friction.packed[:3]) else None
        self._springs, self.size = ArmSprings(actuation), self._model.nv
        self._drives = np.zeros((self.size, actuation.nm))
        self._drives[self._springs.motors, np.arange(actuation.nm)] = 1.0

    def acceleration(self, q: Array, v: Array, tau: Array) -> Array:
        return forward_dynamics(self._model, q, v, self._springs.effort(q, v) + self._drives @ tau,
                                friction=self._friction)

    def slopes(self, q: Array, v: Array, tau: Array) -> tuple[Array, ...]:
        effort = self._springs.effort(q, v) + self._drives @ tau
        by = forward_dynamics_derivatives(self._model, q, v, effort, friction=self._friction)
        return (by.q - by.tau @ self._springs.stiffness(q), by.v - by.tau @ self._springs.damping,
                by.tau @ self._drives)


@functools.cache
def _action() -> Any:
    """The class of models, of Crocoddyl's abstract one."""
    try:
        import crocoddyl
        import pinocchio
    except ImportError:
        raise RbdError("crocoddyl_model needs the package crocoddyl and its Pinocchio (`pip install crocoddyl==3.2.1 "
                       "pin==4.0.0`)") from None

    class Data(crocoddyl.DifferentialActionDataAbstract):
        """With Pinocchio's data of the links, which costs read."""

        def __init__(self, model: Any) -> None:
            super().__init__(model)
            self.peer, self.actuation = model.peer.createData(), model.actuation.createData()
            self.costs = model.costs.createData(crocoddyl.DataCollectorActMultibody(self.peer, self.actuation))
            self.effort = np.zeros(len(model.order.v))

    class Action(crocoddyl.DifferentialActionModelAbstract):
        """State and efforts in Pinocchio's order."""

        def __init__(self, dynamics: _Rigid | _Elastic, order: _Order, state: Any, actuation: Any, costs: Any) -> None:
            self.elastic = isinstance(dynamics, _Elastic)
            own = crocoddyl.StateVector(2 * dynamics.size) if isinstance(dynamics, _Elastic) else state
            super().__init__(own, costs.nu, costs.nr)
            if actuation.nu != costs.nu:
                raise RbdError(f"crocoddyl_model: {actuation.nu} inputs of the actuation, {costs.nu} of the costs")
            self.dynamics, self.order, self.actuation, self.costs = dynamics, order, actuation, costs
            self.peer, self.links = state.pinocchio, state
            self.place = np.arange(own.nv) if self.elastic else order.v
            self.columns = np.concatenate([self.place, own.nv + self.place])
            self.seen = np.concatenate([np.arange(state.nv), own.nv + np.arange(state.nv)])    # by costs

        def createData(self) -> Any:
            return Data(self)

        def parts(self, x: Array) -> tuple[Array, Array, Array]:
            """Positions and velocities in our order, and the links' state in Pinocchio's."""
            nq = self.state.nq
            if self.elastic:
                return x[:nq], x[nq:], x[self.seen]
            return self.order.positions(x[:nq]), x[nq:][self.order.v], x

        def calc(self, data: Any, x: Array, u: Array | None = None) -> None:
            q, v, links = self.parts(x)
            if u is not None:
                self.actuation.calc(data.actuation, links, u)
                data.effort = data.actuation.tau[self.order.v]
                xout = np.empty(self.state.nv)
                xout[self.place] = self.dynamics.acceleration(q, v, data.effort)
                data.xout = xout
            nq = self.links.nq
            pinocchio.forwardKinematics(self.peer, data.peer, links[:nq], links[nq:], data.xout[:self.links.nv])
            pinocchio.updateFramePlacements(self.peer, data.peer)
            pinocchio.centerOfMass(self.peer, data.peer, links[:nq], links[nq:])
            self.costs.calc(data.costs, links, *([] if u is None else [u]))
            data.cost = data.costs.cost

        def calcDiff(self, data: Any, x: Array, u: Array | None = None) -> None:
            q, v, links = self.parts(x)
            nq, size = self.links.nq, self.state.nv
            if u is not None:
                self.actuation.calcDiff(data.actuation, links, u)
                by_q, by_v, by_tau = self.dynamics.slopes(q, v, data.effort)
                Fx, Fu = np.empty((size, 2 * size)), np.empty((size, self.nu))
                Fx[self.place[:, None], self.columns] = np.concatenate([by_q, by_v], axis=1)
                Fu[self.place] = by_tau @ data.actuation.dtau_du[self.order.v]
                data.Fx, data.Fu = Fx, Fu
            pinocchio.computeJointJacobians(self.peer, data.peer, links[:nq])
            pinocchio.computeForwardKinematicsDerivatives(self.peer, data.peer, links[:nq], links[nq:],
                                                          data.xout[:self.links.nv])
            pinocchio.jacobianCenterOfMass(self.peer, data.peer, links[:nq])
            self.costs.calcDiff(data.costs, links, *([] if u is None else [u]))
            data.Lx, data.Lxx = self.among_motors(data.costs.Lx), self.among_motors(
                self.among_motors(data.costs.Lxx).T).T
            if u is not None:
                data.Lu, data.Luu, data.Lxu = data.costs.Lu, data.costs.Luu, self.among_motors(data.costs.Lxu)

        def among_motors(self, slopes: Array) -> Array:
            """Derivatives by the links' state as those by the whole state, on the first axis."""
            if not self.elastic:
                return slopes
            whole = np.zeros((2 * self.state.nv, *slopes.shape[1:]))
            whole[self.seen] = slopes
            return whole

    return Action
