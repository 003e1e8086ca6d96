"""Parameters of node `flatness` for robots with elastic joints; ignored without `actuation_file`."""
from __future__ import annotations

import math

from ..parameters import Parameter, Table
from .elastic_law import MODES

ELASTIC_TABLE: Table = (
    Parameter("actuation_file", "string", "", "YAML file of the drives: which joints are rigid, series elastic or of "
              "variable stiffness. Empty: the rigid form, without motors.", read_only=True),
    Parameter("mode", "string", "feed_forward_pd", "Motor torque with actuation_file: feed_forward, with a PD of all "
              "motors, or feedback linearisation of links and motors.", choices=MODES),
    Parameter("motor_gains.kp", "numbers", (0.0,), "Proportional gain of feed_forward_pd, N m/rad or N/m: one number, "
              "or one per motor (the joints, then the second motors).", lower=0.0, upper=1e9, per="motor"),
    Parameter("motor_gains.kd", "numbers", (0.0,), "Derivative gain of feed_forward_pd, N m s/rad or N s/m, likewise.",
              lower=0.0, upper=1e9, per="motor"),
    Parameter("poles", "numbers", (100.0,), "Bandwidth of the error dynamics of each joint under "
              "feedback_linearization, all its poles at minus this, 1/s.", lower=1e-3, upper=1e6),
    Parameter("stiffness_poles", "numbers", (50.0,), "The same for a stiffness, in all modes: how fast it follows "
              "`stiffness`, 1/s. One number, or one per joint of variable stiffness.", lower=1e-3, upper=1e6,
              per="joint of variable stiffness"),
    Parameter("stiffness", "numbers", (-1.0,), "Desired stiffness of joints of variable stiffness, N m/rad or N/m: one "
              "number, or one per such joint; -1: as in actuation_file.", lower=-1.0, upper=1e12,
              per="joint of variable stiffness"),
    Parameter("motor_effort_limits.maximum", "numbers", (-1.0,), "Limit of the motor torque behind the gear, N m or N: "
              "one number, or one per motor; -1: that of the joint.", lower=-1.0, per="motor"),
    Parameter("motor_effort_limits.rate", "numbers", (math.inf,), "Rate limit of the motor torque, N m/s or N/s, "
              "likewise; of feedback_linearization, whose torque is feedback, it holds back ramps and fades alone.",
              lower=1e-3, per="motor"),
)
