"""Node `mujoco_plant`: node `simulator` with MuJoCo, and with the command topics of Gazebo.

In addition to the topics and services of `simulator`, including <controller>/commands:
  /model/<bridge_model>/joint/<joint>/cmd_force std_msgs/Float64, in: effort of one joint, as for ros_gz_bridge
By default it publishes /clock, and a command acts until the next one, as in Gazebo; before the first command brakes
hold the joints.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from std_msgs.msg import Float64

from ..core.model.robot_model import RobotModel
from ..runtime.cosimulation.mujoco_settings import MUJOCO_TABLE, mujoco_plant, mujoco_settings
from ..runtime.parameters import select
from ..runtime.plant.plant import Plant
from .base.parameters import MODEL_NODE_TABLE
from .base.spin import run
from .loop.simulation_loop import SIMULATION_LOOP, SimulationLoop
from .simulator import SimulatorNode


class MujocoPlantNode(SimulatorNode):
    """Simulator node with the MuJoCo plant and further inputs."""

    logic, make_settings = MUJOCO_TABLE, staticmethod(mujoco_settings)
    table = (*MODEL_NODE_TABLE, SIMULATION_LOOP, *logic)

    def __init__(self) -> None:
        super().__init__("mujoco_plant")
        self._urdf = ""
        self._forces = np.zeros(0)
        self._forced: set[int] = set()    # joints with an effort since the last complete command

    def load(self, values: Mapping[str, Any], description: str) -> tuple[RobotModel, list[str]]:
        self._urdf = description
        return super().load(values, description)

    def make_plant(self, values: Mapping[str, Any], model: RobotModel) -> Plant:
        return mujoco_plant(select(self.logic, values), model, self._urdf)

    def create_inputs(self, loop: SimulationLoop, values: Mapping[str, Any], joints: Sequence[str]) -> None:
        self._forces, self._forced = np.zeros(len(joints)), set()
        if values["bridge_model"]:
            for i, name in enumerate(joints):
                loop.listen(Float64, f"/model/{values['bridge_model']}/joint/{name}/cmd_force",
                            partial(self._on_force, i))

    def _on_force(self, joint: int, effort: float) -> None:
        forces = self._forces.copy()
        forces[joint] = effort
        if self.take(lambda: self.plant.on_commands(forces)):
            self._forces = forces
            self._forced.add(joint)
            if len(self._forced) == len(forces):
                self._forced.clear()
                self.answered(True)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of executable `mujoco_plant`."""
    run(MujocoPlantNode, arguments)


if __name__ == "__main__":
    main()
