"""Robots with collision shapes."""

from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from support.robots import load, urdf_paths

import rbd_ros as rbd

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


@cache
def arm(name, **options):
    """A robot of example-robot-data, and its collision model."""
    if name not in urdf_paths():
        pytest.skip("example-robot-data is not installed")
    model = load(name, **options)
    return model, rbd.CollisionModel.from_urdf(urdf_paths()[name], model)


def collision(shape, origin=""):
    return f"<collision>{origin}<geometry>{shape}</geometry></collision>"


def robot(first, second="", joints=("floating",), between=""):
    """URDF of a chain, links l0, l1, … with these collisions: the first, the last (second) and those between."""
    last = len(joints)
    shapes = {0: first, last: second}
    links = "".join(f'<link name="l{i}">{INERTIAL}{shapes.get(i, between)}</link>' for i in range(last + 1))
    moving = "".join(
        f'<joint name="j{i}" type="{kind}"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="0 0 {0.3 * (i > 0)}"/><axis xyz="0 1 0"/>'
        '<limit lower="-2" upper="2" velocity="1" effort="1"/></joint>' for i, kind in enumerate(joints))
    return f'<robot name="r">{links}{moving}</robot>'


def with_free_pairs(collisions):
    """The collision model without pairs of links that always touch."""
    sampled = rbd.sampled_pairs(collisions, 300)
    return collisions.without_pairs(pair for pair, reason in zip(sampled.pairs, sampled.reasons, strict=True)
                                    if reason == "Always")


def capsules(sample, radius=0.07):
    """URDF of a sample with a capsule for each link, from its frame to that of the next joint."""
    text = rbd.sample_path(sample).read_text(encoding="utf-8")
    tree = ElementTree.fromstring(text)
    links = {link.get("name"): link for link in tree.findall("link")}
    for joint in tree.findall("joint"):
        origin = joint.find("origin")
        end = np.array([float(x) for x in (origin.get("xyz", "0 0 0") if origin is not None else "0 0 0").split()])
        length = float(np.linalg.norm(end))
        pitch, yaw = np.arctan2(np.hypot(end[0], end[1]), end[2]), np.arctan2(end[1], end[0])
        shape = f'<capsule radius="{radius}" length="{max(length, 0.01)}"/>'
        where = f'<origin xyz="{" ".join(map(str, 0.5 * end))}" rpy="0 {pitch} {yaw}"/>'
        links[joint.find("parent").get("link")].append(ElementTree.fromstring(collision(shape, where)))
    return ElementTree.tostring(tree, encoding="unicode")
