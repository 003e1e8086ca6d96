"""The parameters of every node."""
from __future__ import annotations

from rbd_ros.runtime.control.effort_annotator import ANNOTATOR_TABLE
from rbd_ros.runtime.control.feedforward import FEEDFORWARD_TABLE
from rbd_ros.runtime.control.flatness import FLATNESS_TABLE
from rbd_ros.runtime.cosimulation.lockstep import LOCKSTEP_TABLE
from rbd_ros.runtime.cosimulation.residual import RESIDUAL_TABLE
from rbd_ros.runtime.cosimulation.settings import MUJOCO_TABLE
from rbd_ros.runtime.parameters import Table
from rbd_ros.runtime.plant.settings import SIMULATOR_TABLE
from rbd_ros.runtime.service.settings import SERVER_TABLE

TABLES: dict[str, Table] = {
    "feedforward": FEEDFORWARD_TABLE, "flatness": FLATNESS_TABLE, "effort_annotator": ANNOTATOR_TABLE,
    "dynamics_server": SERVER_TABLE, "simulator": SIMULATOR_TABLE, "mujoco_plant": MUJOCO_TABLE,
    "lockstep": LOCKSTEP_TABLE, "residual": RESIDUAL_TABLE}
