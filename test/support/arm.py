"""A two-joint arm with friction for tests of the control logic."""
from __future__ import annotations

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.lie.so3 import from_rpy

NAMES = ["shoulder", "elbow"]
Q, V = np.array([0.3, -0.7]), np.array([0.4, 0.2])
Q_REF, V_REF, A_REF = np.array([0.35, -0.6]), np.array([0.5, 0.1]), np.array([1.0, -2.0])

TILT = (0.3, -0.4, 0.5)    # roll, pitch, yaw of the base, and gravity in its axes
TILTED = from_rpy(TILT).T @ [0.0, 0.0, -9.81]

LINK = """<link name="{name}"><inertial><origin xyz="0.2 0 0"/><mass value="{mass}"/>
  <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{x} 0 0"/>
  <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="{effort}" velocity="3"/>{extra}</joint>"""


def measured(last, q=Q):
    """Positions q of a driver that measures, after those of its last state: these to the bit are of one that repeats
    itself.
    """
    return q + 1e-12 * np.array_equal(last, q)


def arm_urdf(shoulder_effort: float = 100.0, extra: str = "") -> str:
    """base –shoulder– upper –elbow– lower, plus `extra` XML."""
    joints = (JOINT.format(name="shoulder", kind="revolute", parent="base", child="upper", x=0, effort=shoulder_effort,
                           extra='<dynamics damping="0.5" friction="0.2"/>')
              + JOINT.format(name="elbow", kind="revolute", parent="upper", child="lower", x=0.4, effort=50, extra=""))
    links = '<link name="base"/>' + LINK.format(name="upper", mass=2) + LINK.format(name="lower", mass=1)
    return f'<robot name="arm">{links}{joints}{extra}</robot>'


def shaped_arm_urdf() -> str:
    """The arm with a capsule on each link, from x = 0.05 to 0.35 m and of a radius of 0.03 m."""
    shape = ('<collision><origin xyz="0.2 0 0" rpy="0 1.5707963267948966 0"/><geometry>'
             '<capsule radius="0.03" length="0.3"/></geometry></collision></link>')
    return arm_urdf().replace("</inertial></link>", f"</inertial>{shape}").replace("</inertial>\n", "</inertial>")


def arm_to_sphere(q: np.ndarray, centre: tuple[float, float], radius: float) -> np.ndarray:
    """Smallest distances (N,) of its capsules from a sphere with this centre (x, z), by hand; q (N, 2)."""
    angles = np.cumsum(q, axis=1)
    ways = np.stack([np.cos(angles), -np.sin(angles)], axis=2)    # (N, links, 2)
    roots = np.concatenate([np.zeros((len(q), 1, 2)), 0.4 * ways[:, :1]], axis=1)
    from_root = np.asarray(centre) - roots
    along = np.clip((from_root * ways).sum(axis=2, keepdims=True), 0.05, 0.35)
    return np.linalg.norm(from_root - along * ways, axis=2).min(axis=1) - 0.03 - radius


def arm(shoulder_effort: float = 100.0, extra: str = "") -> rbd.RobotModel:
    """The model of `arm_urdf`."""
    return rbd.load_urdf(arm_urdf(shoulder_effort, extra))


MIMIC = LINK.format(name="finger", mass=0.1) + JOINT.format(
    name="finger_joint", kind="revolute", parent="lower", child="finger", x=0.3, effort=10,
    extra='<mimic joint="elbow" multiplier="2" offset="0.1"/>')
