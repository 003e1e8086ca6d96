"""A planar arm of two joints, and what node `feedforward` must answer for it."""
from __future__ import annotations

import numpy as np

import rbd_ros as rbd

URDF = """<robot name="elbow">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0.15 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="{shoulder}" velocity="3"/><dynamics damping="0.5" friction="0.2"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="50" velocity="3"/></joint>
</robot>"""
NAMES = ["shoulder", "elbow"]
PATIENT = {"ramp_in": 0.0, "ramp_out": 0.0, "state_timeout": 10.0, "reference_timeout": 0}
Q, V = np.array([0.3, -0.7]), np.array([0.4, 0.2])
Q_REF, V_REF, A_REF = np.array([0.35, -0.6]), np.array([0.5, 0.1]), np.array([1.0, -2.0])


def start_elbow(start_node, folder):
    """A function that starts node `feedforward` with the arm; the effort limit of its shoulder may be given."""
    def start(*arguments, shoulder=100, **parameters):
        file = folder / f"elbow_{shoulder}.urdf"
        file.write_text(URDF.format(shoulder=shoulder))
        return start_node("feedforward", *arguments, **({"robot_description_file": str(file)} | PATIENT | parameters))

    return start


def full(model, kp=0.0, kd=0.0):
    """Effort that the node must answer to Q, V for the reference Q_REF, V_REF, A_REF."""
    feedforward = rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF)
    friction = model.damping * V_REF + model.friction * np.tanh(V_REF / 0.01)
    return feedforward + friction + kp * (Q_REF - Q) + kd * (V_REF - V)


def follow(peer, expected, **options):
    return peer.answer_close_to(expected, NAMES, Q, V, repeat=lambda: peer.send_reference(NAMES, Q_REF, V_REF, A_REF),
                                **options)
