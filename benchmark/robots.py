"""The same robot and the same states for rbd_ros and for Pinocchio."""
from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import pinocchio as pin

import rbd_ros as rbd


@dataclass
class Pair:
    """A model in both libraries and N matching states; `order` takes our velocity coordinates to Pinocchio's."""

    name: str
    ours: rbd.RobotModel
    theirs: pin.Model
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    q_pin: np.ndarray
    v_pin: np.ndarray
    a_pin: np.ndarray
    order: np.ndarray


def robot_file(path: str) -> Path:
    """A file of the package example-robot-data, by the end of its path."""
    for file in metadata.files("example-robot-data") or []:
        if file.as_posix().endswith(path):
            return Path(str(file.locate()))
    raise SystemExit(f"example-robot-data has no {path}")


def pair(name: str, file: Path | str, floating: bool, states: int, locked: tuple[str, ...] = ()) -> Pair:
    """Load a URDF twice; `locked` joints are frozen at zero in both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)    # of odd inertias in the descriptions
        ours = rbd.load_urdf(file, root="floating" if floating else "fixed", mimic="independent",
                             locked={joint: 0.0 for joint in locked})
    theirs = pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer()) if floating \
        else pin.buildModelFromUrdf(str(file))
    theirs = pin.buildReducedModel(theirs, [theirs.getJointId(joint) for joint in locked], pin.neutral(theirs))
    order = np.zeros(ours.nv, dtype=int)
    order_q = np.zeros(ours.nq, dtype=int)
    for joint in ours.joints:
        index = theirs.getJointId("root_joint" if joint.type == "floating" else joint.name)
        at_v, at_q = theirs.joints[index].idx_v, theirs.joints[index].idx_q
        v = [3, 4, 5, 0, 1, 2] if joint.nv == 6 else [0]
        order[joint.idx_v:joint.idx_v + joint.nv] = np.array(v) + at_v
        order_q[joint.idx_q:joint.idx_q + joint.nq] = np.arange(joint.nq) + at_q
    rng = np.random.default_rng(1)
    q = np.array([ours.random_configuration(rng) for _ in range(states)])
    v, a = rng.normal(size=(2, states, ours.nv))
    q_pin = np.zeros((states, theirs.nq))
    v_pin, a_pin = np.zeros((2, states, theirs.nv))
    q_pin[:, order_q], v_pin[:, order], a_pin[:, order] = q, v, a
    return Pair(name, ours, theirs, q, v, a, q_pin, v_pin, a_pin, order)


def pairs(states: int) -> list[Pair]:
    """A 7-dof arm and a 38-dof humanoid."""
    return [pair("panda", robot_file("panda_description/urdf/panda.urdf"), False, states,
                 ("panda_finger_joint1", "panda_finger_joint2")),
            pair("talos", robot_file("talos_data/robots/talos_reduced.urdf"), True, states)]
