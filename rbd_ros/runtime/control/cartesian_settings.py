"""Parameters of Cartesian impedance control."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.dynamics.kinematics import jacobian
from ...core.errors import RbdError, unknown_name
from ...core.model.robot_model import RobotModel
from ..damping_gains import DampingGains, sampled_inertia
from ..friction_terms import FrictionTerms, drive_friction_rows, friction_rows
from ..parameters import Table, parameter, table_of, taken, validate
from ..robot import joint_order
from ..safety import SafetySettings
from .force_control import ForceSettings
from .guiding import AXES, free_axes
from .torque_settings import TORQUE_TABLE, TorqueSettings
from .walls_yaml import load_walls

Array = NDArray[np.float64]
FRAMES = ("base", "target")
LAWS = ("cartesian", "joint")


@dataclass(frozen=True, kw_only=True)
class CartesianSettings(TorqueSettings):
    """Validated parameters. translation, rotation (3,): stiffnesses; walls (n, WALL); other arrays (nv,) in model
    order.
    """

    walls: Array
    forces: ForceSettings

    end_effector: str = parameter("", "Link that is controlled, at its origin; empty: the last one.", read_only=True)
    law: str = parameter("cartesian", "Springs that hold the arm: cartesian, of the link at its target; or joint, of "
                         "the joints (gains.kp, gains.kd) in the posture of the change, with posture.damping of "
                         "the arm as a whole.", choices=LAWS)
    translation: Array = parameter((300.0, 300.0, 300.0), "Stiffness of translation along the axes of stiffness.frame, "
                                   "N/m.", name="stiffness.translation", lower=0.0, upper=1e5, count=3)
    rotation: Array = parameter((20.0, 20.0, 20.0), "Stiffness of rotation about the axes of stiffness.frame, N m/rad.",
                                name="stiffness.rotation", lower=0.0, upper=1e4, count=3)
    frame: str = parameter("base", "Axes of the stiffness: base (of the root link) or target (of the target pose).",
                           name="stiffness.frame", choices=FRAMES)
    damping_ratio: float = parameter(1.0, "Damping ratio of the link on its springs, in every direction and pose.",
                                     lower=0.0, upper=5.0)
    force: float = parameter(50.0, "Largest force of the springs, N: from there on they give way.",
                             name="largest.force", lower=1e-3, upper=1e5)
    moment: float = parameter(10.0, "Largest moment of the springs, N m.", name="largest.moment", lower=1e-3, upper=1e4)
    posture_bandwidth: float = parameter(3.0, "Bandwidth of the return to the posture of the activation, in what the "
                                         "link's pose leaves open, 1/s.", name="posture.bandwidth", lower=0.0,
                                         upper=50.0)
    posture_damping: float = parameter(6.0, "Rate at which motion that the link's pose leaves open decays, 1/s.",
                                       name="posture.damping", lower=0.0, upper=100.0)
    margin: Array = parameter((0.05,), "Distance from a position limit at which its spring begins, rad or m.",
                              name="limits.margin", lower=0.0, upper=1.0)
    limit_stiffness: Array = parameter((100.0,), "Stiffness of the springs at position limits, N m/rad or N/m.",
                                       name="limits.stiffness", lower=0.0, upper=1e5)
    tank: float = parameter(1.0, "Energy tank, J: changed springs and target wrenches act as far as the energy that "
                            "they give was taken by the damper before, or is left of this.", name="tank.size",
                            lower=0.0, upper=1e3)
    walls_file: str = parameter("", "YAML file of virtual walls for the link's origin, in axes of the root link "
                                "(docs/cartesian.md); empty: none.", name="walls.file")
    walls_stiffness: float = parameter(2000.0, "Stiffness of the walls, N/m.", name="walls.stiffness", lower=0.0,
                                       upper=1e5)
    walls_force: float = parameter(100.0, "Largest force of a wall, N: from there on it gives way. More than "
                                   "largest.force.", name="walls.force", lower=1e-3, upper=1e5)
    bandwidth: float = parameter(10.0, "Bandwidth of the filter from goal to target, 1/s.", name="target.bandwidth",
                                 lower=0.1, upper=100.0)
    speed: float = parameter(0.25, "Largest speed of the target, m/s.", name="target.speed", lower=1e-3, upper=10.0)
    angular_speed: float = parameter(1.0, "Largest angular speed of the target, rad/s.", name="target.angular_speed",
                                     lower=1e-3, upper=20.0)
    acceleration: float = parameter(5.0, "Largest acceleration of trajectories of the target, m/s².",
                                    name="target.acceleration", lower=1e-3, upper=1e4)
    angular_acceleration: float = parameter(25.0, "Largest angular acceleration of trajectories of the target, rad/s².",
                                            name="target.angular_acceleration", lower=1e-3, upper=1e5)
    farthest: float = parameter(1.0, "Goals farther than this from the link's position are rejected, m.",
                                name="target.farthest", lower=1e-3, upper=100.0)
    twist_timeout: float = parameter(0.2, "Age of the last twist after which the target comes to rest, s.",
                                     name="target.twist_timeout", lower=1e-3, upper=10.0)
    kp: Array = parameter((0.0,), "Proportional gain of law joint, and of the hold where no law acts (see "
                          "safe_output.hold_position), N m/rad or N/m.", name="gains.kp", lower=0.0, upper=1e9)
    kd: Array = parameter((0.0,), "Its derivative gain, N m s/rad or N s/m.", name="gains.kd", lower=0.0, upper=1e9)

    friction: FrictionTerms
    compensation: float = parameter(0.0, "Share of friction that is compensated in the direction of motion, and at "
                                    "rest in that of the law's effort. It drives nothing as long as the friction in "
                                    "use is over-estimated by less than the inverse.", name="friction.compensation",
                                    lower=0.0, upper=0.8)
    axes: tuple[str, ...] = parameter(AXES, "Axes of stiffness.frame without stiffness in hand guiding, translations "
                                      "tx, ty, tz and rotations rx, ry, rz: tx and ty for a plane, tz for a line, rx, "
                                      "ry and rz for rotation only.", name="guide.free", choices=AXES)
    guide_damping: float = parameter(1.0, "Damping of free axes, 1/s: rate at which the speed of a link that is let go "
                                     "decays, friction apart.", name="guide.damping", lower=0.0, upper=50.0)
    dither: float = parameter(20.0, "Frequency of alternating friction compensation at rest, in hand guiding, Hz: a "
                              "push then has to overcome only friction that is not compensated. 0: none.",
                              name="guide.dither", lower=0.0, upper=500.0)
    release: float = parameter(10.0, "Force that frees a link again which drifted in hand guiding and is held, N.",
                               name="guide.release", lower=0.0, upper=1e4)
    file: str = parameter("~/.ros/taught.npz", "File for what was taught (~/teach), overwritten by the next path.",
                          name="teach.file", read_only=True)

    @staticmethod
    def from_values(values: Mapping[str, Any], model: RobotModel) -> CartesianSettings:
        """Validate parameter values by name; missing ones get their defaults. Raises `RbdError`."""
        values = validate(CARTESIAN_TABLE, values)
        if model.nq != model.nv or any(joint.nv > 1 for joint in model.joints):
            raise RbdError("Cartesian control needs joints of one coordinate each")
        if (name := values["end_effector"]) and name not in model.body_names:
            raise unknown_name("link in parameter 'end_effector':", name, model.body_names)
        settings = CartesianSettings(
            walls=load_walls(values["walls.file"]), forces=ForceSettings(**taken(ForceSettings, values)),
            friction=FrictionTerms.from_values(values, joint_order(values["joints"], model)[2]),
            **CartesianSettings.fields_from(values, model))
        free_axes(settings.axes)
        if len(settings.walls) and not settings.walls_force > settings.force:
            raise RbdError(f"parameter 'walls.force' is {settings.walls_force:g} N, expected more than 'largest.force' "
                           f"({settings.force:g} N), or a goal behind a wall would pull the link through")
        if settings.law == "joint" and not (settings.kp > 0.0).all():
            raise RbdError("parameter 'law': joint needs 'gains.kp' of every joint")
        if not jacobian(model, model.neutral(), settings.body).any():
            raise RbdError(f"parameter 'end_effector': no joint moves link '{settings.body}'")
        return settings

    @property
    def body(self) -> str:
        return self.end_effector or self.model.body_names[-1]

    @property
    def free(self) -> Array:
        """(6,): 1 for axes that are free in hand guiding, translation first."""
        return free_axes(self.axes)

    def damping_gains(self) -> DampingGains | None:
        model = self.model
        return DampingGains("gains.kd", model.joint_names, self.kd, sampled_inertia(model),
                            model.armature > 0.0) if self.kd.any() else None


CARTESIAN_TABLE: Table = (*TORQUE_TABLE, *table_of(CartesianSettings, ForceSettings, SafetySettings),
                          *friction_rows("Compensate"), *drive_friction_rows())
