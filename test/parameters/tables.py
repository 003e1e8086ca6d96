"""The parameters of every node."""
from __future__ import annotations

from rbd_ros.core.control.effort_annotator import ANNOTATOR_TABLE
from rbd_ros.core.control.feedforward import FEEDFORWARD_TABLE
from rbd_ros.core.control.flatness import FLATNESS_TABLE
from rbd_ros.core.control.parameters import Table
from rbd_ros.core.service.settings import SERVER_TABLE
from rbd_ros.core.simulation.settings import SIMULATOR_TABLE
from rbd_ros.cosimulation.lockstep import LOCKSTEP_TABLE
from rbd_ros.cosimulation.residual import RESIDUAL_TABLE
from rbd_ros.cosimulation.settings import MUJOCO_TABLE

TABLES: dict[str, Table] = {
    "feedforward": FEEDFORWARD_TABLE, "flatness": FLATNESS_TABLE, "effort_annotator": ANNOTATOR_TABLE,
    "dynamics_server": SERVER_TABLE, "simulator": SIMULATOR_TABLE, "mujoco_plant": MUJOCO_TABLE,
    "lockstep": LOCKSTEP_TABLE, "residual": RESIDUAL_TABLE}
