"""The robot with elastic joints behind the simulator node, without ROS."""
from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.actuation.actuation import Actuation, Drive
from ...core.errors import RbdError
from ...core.model.robot_model import RobotModel
from ...core.simulation.elastic_simulator import ElasticSimulator
from ..inputs.joint_map import JointMap
from .plant import Plant
from .simulator_settings import SimulatorSettings

Array = NDArray[np.float64]


class ElasticPlant(Plant):
    """A `Plant` that takes efforts of the motors behind the gears (nm,), named as in `Actuation.motor_names`.

    Order of commands: motors of parameter `joints`, then the second motors in the same order. The limits of motors are
    those of their joints. Brakes act on the motors, as in real arms: the links keep swinging on their springs. Raises
    `RbdError`, naming the joint, if the step is too long for the springs (rk4); during `advance` this is a `failure`.
    """

    simulator: ElasticSimulator

    def __init__(self, model: RobotModel, settings: SimulatorSettings, drives: Mapping[str, Drive]) -> None:
        if settings.constraints.size or settings.contacts:
            raise RbdError("parameter 'constraints_file' is not supported with elastic joints ('actuation_file')")
        if settings.compensates:
            raise RbdError("parameter 'robot_compensates' is not supported with elastic joints ('actuation_file')")
        if settings.velocity_limits:
            raise RbdError("parameter 'velocity_limits' is not supported with elastic joints ('actuation_file')")
        if settings.friction is not None:
            raise RbdError("parameters 'friction.asymmetry' and 'friction.load' are not supported with elastic joints "
                           "('actuation_file')")
        self.actuation = actuation = Actuation(settings.plant, drives)
        variable = list(actuation.variable)
        seconds = [actuation.nv + variable.index(i) for i in settings.output if i in variable]
        self.motor_output = np.concatenate([settings.output, seconds]).astype(np.intp)
        self.motor_names = tuple(actuation.motor_names[i] for i in self.motor_output)
        super().__init__(model, settings, ElasticSimulator(
            actuation, step=settings.step, integrator=settings.integrator, limits=settings.position_limits,
            q=settings.initial_position, v=settings.initial_velocity))
        motors: Any = SimpleNamespace(joint_names=actuation.motor_names, mimics=(), nv=actuation.nm)
        self._names = JointMap(motors, extra=False)
        self._order = np.argsort(self.motor_output)
        indices = [*range(actuation.nv), *variable]
        self._limit, self._brake_effort = settings.effort_limit[indices], settings.brake_effort[indices]

    @property
    def size(self) -> int:
        return self.actuation.nm

    @property
    def command_names(self) -> tuple[str, ...]:
        return self.motor_names

    def in_model_order(self, command: Array) -> Array:
        return command[self._order]

    @property
    def effort_limit(self) -> Array:
        return self._limit

    @property
    def brake_effort(self) -> Array:
        return self._brake_effort

    @property
    def joint_effort(self) -> Array:
        """Torque of the springs, as measured by joint torque sensors; for rigid joints that of the motor."""
        torque = self.simulator.torque
        rigid = self.actuation.rigid
        torque[rigid] = self.effort[rigid]
        return torque

    def stand_still(self) -> None:
        q = self.simulator.q
        try:
            self.simulator.reset(q)
        except RbdError:    # gravity exceeds a spring's range: links and motors stop at their positions
            self.simulator.reset(q, np.zeros(self.model.nv), self.simulator.motor_position,
                                 np.zeros(self.actuation.nm))

    def report(self) -> dict[str, Any]:
        stiffness = self.simulator.stiffness
        values = {f"stiffness_{name}": float(k) for name, k in zip(self.actuation.joint_names, stiffness, strict=True)
                 if math.isfinite(k)}
        return super().report() | values
