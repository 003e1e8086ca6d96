"""`MujocoRobot`: a robot simulated by MuJoCo, with the interface of `core.simulation.simulator.Simulator`."""
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.errors import RbdError, unknown_name
from ...core.model.inertia import Array
from ...core.model.robot_model import RobotModel
from ...core.model.state import states
from .mujoco_model import load_mujoco, mujoco_model

INTEGRATORS = {"implicitfast": "mjINT_IMPLICITFAST", "implicit": "mjINT_IMPLICIT", "euler": "mjINT_EULER",
               "rk4": "mjINT_RK4"}


class MujocoRobot:
    """State of a robot in MuJoCo: `q`, `v` (nv,) in the order of `model`; `step` advances it.

    model: joints of one coordinate each; supplies damping, friction, rotor inertias, gravity and limits.
    description: URDF text or path of the model, which MuJoCo parses itself. step: s. integrator: of MuJoCo:
    `implicitfast`, `implicit` and `euler` of order 1, `rk4` of order 4. limits: whether joints stop at their limits.
    """

    def __init__(self, model: RobotModel, description: str, *, step: float = 1e-3, integrator: str = "implicitfast",
                 limits: bool = True, q: ArrayLike | None = None, v: ArrayLike | None = None) -> None:
        if integrator not in INTEGRATORS:
            raise unknown_name("integrator", integrator, INTEGRATORS)
        for joint in model.joints:
            if joint.nq != 1 or joint.nv != 1:
                raise RbdError(f"joint '{joint.name}' is {joint.type}: with MuJoCo, only joints of one coordinate are "
                               "supported")
        mujoco = self._mujoco = load_mujoco()
        mujoco.set_mju_user_warning(_ignore)    # else a file MUJOCO_LOG.TXT appears; divergence is an error here
        self.model, self.step_size, self._limits = model, float(step), limits
        self.mj = mujoco_model(model, description, step)
        self.mj.opt.integrator = getattr(mujoco.mjtIntegrator, INTEGRATORS[integrator])
        if not limits:
            self.mj.jnt_limited[:] = 0
        self.data = mujoco.MjData(self.mj)
        joints = [self.mj.joint(joint.name) for joint in model.joints]
        self._at_q = np.array([joint.qposadr[0] for joint in joints], dtype=np.intp)
        self._at_v = np.array([joint.dofadr[0] for joint in joints], dtype=np.intp)
        self._friction = np.array(self.mj.dof_frictionloss[self._at_v])
        self._mimics = [(self.mj.joint(mimic.name), self.mj.joint(mimic.source), mimic) for mimic in model.mimics]
        self._bodies = [mujoco.mj_name2id(self.mj, mujoco.mjtObj.mjOBJ_BODY, name) for name in model.body_names]
        self.reset(q, v)

    def reset(self, q: ArrayLike | None = None, v: ArrayLike | None = None) -> None:
        """Put the robot into a state at time zero: q, v (nv,), by default 0 (within the limits) and at rest."""
        model = self.model
        low, high = ((model.position_lower, model.position_upper) if self._limits
                     else (np.full(model.nq, -np.inf), np.full(model.nq, np.inf)))
        q = np.clip(model.neutral(), low, high) if q is None else q
        q, v = states(model, positions={"q": q}, rates={"v": np.zeros(model.nv) if v is None else v}).arrays
        beyond = np.flatnonzero((q < low) | (q > high))
        if len(beyond):
            i = int(beyond[0])
            raise RbdError(f"joint '{model.joint_names[i]}' starts at {q[i]:g}, outside its limits "
                           f"{low[i]:g} … {high[i]:g}")
        self._put(q, v)

    def _put(self, q: Array, v: Array) -> None:
        self._mujoco.mj_resetData(self.mj, self.data)
        self.data.qpos[self._at_q], self.data.qvel[self._at_v] = q, v
        for joint, source, mimic in self._mimics:
            joint_q, joint_v = joint.qposadr[0], joint.dofadr[0]
            self.data.qpos[joint_q] = mimic.multiplier * self.data.qpos[source.qposadr[0]] + mimic.offset
            self.data.qvel[joint_v] = mimic.multiplier * self.data.qvel[source.dofadr[0]]
        self._keep()

    creeps = True    # joints held by friction creep

    @property
    def brakes(self) -> Array:
        """Friction of brakes (nv,), N m or N, as in `Simulator`."""
        return self.mj.dof_frictionloss[self._at_v] - self._friction

    @brakes.setter
    def brakes(self, friction: ArrayLike | None) -> None:
        self.mj.dof_frictionloss[self._at_v] = self._friction + (0.0 if friction is None else np.asarray(friction))

    @property
    def q(self) -> Array:
        """Positions (nv,)."""
        return self._q

    @property
    def v(self) -> Array:
        """Velocities (nv,)."""
        return self._v

    def step(self, effort: ArrayLike | None = None, n: int = 1, external_wrenches: Any = None) -> None:
        """Advance n steps with a constant effort (nv,) (N m or N; default 0) and constant external wrenches (nb, 6),
        moment first, on the bodies, in the frames of the URDF links. Raises `RbdError` for a non-finite state, and
        keeps the last finite one.
        """
        mujoco, data = self._mujoco, self.data
        tau = np.zeros(self.model.nv) if effort is None else np.asarray(effort, dtype=float)
        if tau.shape != (self.model.nv,):
            raise RbdError(f"effort has shape {tau.shape}, expected ({self.model.nv},)")
        applied = np.zeros(self.mj.nv)
        applied[self._at_v] = tau
        for _ in range(n):
            data.qfrc_applied[:] = applied if external_wrenches is None else applied + self._push(external_wrenches)
            mujoco.mj_step(self.mj, data)
            if not (np.isfinite(data.qpos).all() and np.isfinite(data.qvel).all()):
                self._put(self._q, self._v)
                raise RbdError("simulation diverged; smaller efforts or a smaller step than "
                               f"{self.step_size:g} s may help")
            self._keep()

    def acceleration(self, effort: ArrayLike) -> Array:
        """Accelerations (nv,) in the present state under efforts (nv,), including friction and damping."""
        self.data.qfrc_applied[:] = 0.0
        self.data.qfrc_applied[self._at_v] = effort
        self._mujoco.mj_forward(self.mj, self.data)
        return np.array(self.data.qacc[self._at_v])

    def _push(self, wrenches: Array) -> Array:
        """Generalized forces of wrenches on bodies in the present state."""
        mujoco, data = self._mujoco, self.data
        total = np.zeros(self.mj.nv)
        mujoco.mj_kinematics(self.mj, data)
        mujoco.mj_comPos(self.mj, data)
        for body, wrench in zip(self._bodies, np.asarray(wrenches), strict=True):
            if body > 0 and wrench.any():
                R = data.xmat[body].reshape(3, 3)
                mujoco.mj_applyFT(self.mj, data, R @ wrench[3:], R @ wrench[:3], data.xpos[body], body, total)
        return total

    def _keep(self) -> None:
        self._q, self._v = np.array(self.data.qpos[self._at_q]), np.array(self.data.qvel[self._at_v])




def _ignore(text: str) -> None:
    """Handler that drops MuJoCo's warnings."""
