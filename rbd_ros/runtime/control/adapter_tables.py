"""Parameters of what a torque node does for one controller, driver or controller manager."""
from __future__ import annotations

from ..parameters import Parameter, Table

JTC_TABLE: Table = (
    Parameter("jtc.controller", "string", "joint_trajectory_controller", "Controller that takes "
              "trajectory_msgs/JointTrajectory on <controller>/joint_trajectory; it needs an effort interface.",
              read_only=True),
    Parameter("jtc.joints", "strings", (), "All joints of that controller, in any order. Empty: `joints`.",
              read_only=True),
    Parameter("jtc.time_from_start", "number", 0.0, "Time within which the controller approaches each effort linearly, "
              "s; 0: in its next cycle.", lower=0.0, upper=1.0, read_only=True),
    Parameter("jtc.velocities", "bool", True, "Send the measured velocity, too. The controller then needs "
              "allow_nonzero_velocity_at_trajectory_end; without it, its derivative gain damps every motion.",
              read_only=True),
)
CONTROL_MSGS_TABLE: Table = (
    Parameter("multi_dof.controller", "string", "pid_controller", "Controller that takes "
              "control_msgs/MultiDOFCommand on <controller>/reference.", read_only=True),
    Parameter("multi_dof.joints", "strings", (), "The order of degrees of freedom in that controller, which looks at "
              "the order only. Empty: `joints`.", read_only=True),
    Parameter("joint_command.topic", "string", "robot_joint_commands/effort", "Topic of the control_msgs/JointCommand "
              "output.", read_only=True),
    Parameter("joint_command.joints", "strings", (), "Joints in that message. Empty: `joints`.", read_only=True),
)
LBR_TABLE: Table = (
    Parameter("lbr.command_topic", "string", "command/torque", "Topic of the lbr_fri_idl/LBRTorqueCommand output.",
              read_only=True),
    Parameter("lbr.state_topic", "string", "state", "Topic of lbr_fri_idl/LBRState: torque is sent only while its "
              "session_state is 4.", read_only=True),
    Parameter("lbr.joints", "strings", (), "The joints A1 to A7 in this order. Empty: `joints`.", read_only=True),
)
HANDOVER_TABLE: Table = (
    Parameter("handover.controller_manager", "string", "", "Controller manager that is asked to switch controllers "
              "before the torque ends, at deactivation, SIGINT and SIGTERM: <this>/switch_controller. Empty: none.",
              read_only=True),
    Parameter("handover.activate", "strings", (), "Controllers that hold the arm from then on.", read_only=True),
    Parameter("handover.deactivate", "strings", (), "Controllers that pass this node's torque on.", read_only=True),
    Parameter("handover.timeout", "number", 1.0, "How long the switch is waited for, s; then the torque ends all the "
              "same.", lower=0.01, upper=3.0, read_only=True),
)
