"""The sample ball_on_plate for nodes, which take joints of one coordinate: the ball on six of them."""
from __future__ import annotations

import re

import rbd_ros as rbd

BALL = ("ball_x", "ball_y", "ball_z", "ball_yaw", "ball_pitch", "ball_roll")
ARM = ("shoulder", "elbow", "pitch", "roll")
_AXES = ("1 0 0", "0 1 0", "0 0 1", "0 0 1", "0 1 0", "1 0 0")


def urdf() -> str:
    """The description."""
    text = rbd.sample_path("ball_on_plate").read_text()
    links = ["base", *(f"on_{name}" for name in BALL[:-1]), "ball"]
    parts = [f'<link name="{link}"/>' for link in links[1:-1]]
    for i, (name, axis) in enumerate(zip(BALL, _AXES, strict=True)):
        origin = '<origin xyz="0.71 0 0.755"/>' if i == 0 else ""
        parts.append(f'<joint name="{name}" type="{"prismatic" if i < 3 else "revolute"}"><parent link="{links[i]}"/>'
                     f'<child link="{links[i + 1]}"/>{origin}<axis xyz="{axis}"/>'
                     '<limit lower="-50" upper="50" velocity="100" effort="100"/></joint>')
    replaced, count = re.subn(r'<joint name="ball" type="floating">.*?</joint>', "".join(parts), text, flags=re.DOTALL)
    assert count == 1
    return replaced


UNILATERAL = """
contacts:
  - {name: top, type: unilateral, friction: 0.4, restitution: 0.3, second: {link: ball, surface: collision},
     first: {link: plate, surface: plane, frame: {xyz: [0.25, 0, 0.025]}, size: [0.4, 0.4]}}
"""
COMPLIANT = """
contacts:
  - {name: top, type: compliant, stiffness: 2.0e+4, dissipation: 10.0, friction: 0.4,
     first: {link: plate, surface: collision, face: z}, second: {link: ball, surface: collision}}
"""
HOLDING = """
constraints:
  - {name: roll, type: rolling, first: {link: plate, surface: collision, face: z},
     second: {link: ball, surface: collision}}
"""
SLIDING = HOLDING.replace("roll, type: rolling", "slide, type: sliding")
