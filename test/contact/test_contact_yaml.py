"""Unilateral contacts in the YAML of constraints, with surfaces of the URDF's collision shapes."""
from __future__ import annotations

import pytest
from support.robots import chain

import rbd_ros as rbd
from rbd_ros.core.model.samples import constraints_from, contacts_from

MODEL = rbd.sample("ball_on_plate")
TEXT = """
constraints:
  - {name: roll, type: rolling, first: {link: plate, surface: collision, face: z},
     second: {link: ball, surface: collision}}
contacts:
  - {name: top, type: unilateral, friction: 0.4, restitution: 0.2, second: {link: ball, surface: collision, shape: 0},
     first: {link: plate, surface: plane, frame: {xyz: [0.25, 0, 0.025]}, size: [0.4, 0.4]}}
  - {type: compliant, stiffness: 1.0e+5, dissipation: 0.2, exponent: 1.3, friction: 0.3, slip_speed: 0.02,
     first: {link: world, surface: plane}, second: {link: plate, surface: point, frame: {xyz: [0.45, 0, 0]}}}
"""


def test_one_file_has_constraints_and_contacts(tmp_path):
    path = tmp_path / "contacts.yaml"
    path.write_text(TEXT)
    constraints, (top, soft) = constraints_from(str(path), MODEL), contacts_from(str(path), MODEL)
    assert constraints.names == ("roll",) and (top.name, soft.name) == ("top", "compliant_1")
    assert isinstance(top, rbd.UnilateralContact) and isinstance(soft, rbd.CompliantContact)
    assert (top.friction, top.restitution, top.first.size) == (0.4, 0.2, (0.4, 0.4))
    assert soft.law == (1e5, 0.2, 1.3, 0.3, 0.02)
    plate, ball = (rbd.surfaces_of(rbd.sample_path("ball_on_plate"), link) for link in ("plate", "ball"))
    roll = constraints["roll"]
    assert (roll.first.frame == plate[4].frame).all() and roll.second.radius == ball[0].radius == top.second.radius
    only = "contacts:" + TEXT.partition("contacts:")[2]
    assert rbd.load_constraints(only, MODEL).size == 0 and len(rbd.load_contacts(only, MODEL)) == 2
    assert rbd.load_contacts(TEXT.partition("contacts:")[0], MODEL) == () == contacts_from("five_bar", MODEL)


@pytest.mark.parametrize(("old", "new", "words"), [
    ("type: unilateral", "type: rolling", ["contact 0 ('top')", "'rolling'", "under the key 'constraints'"]),
    ("type: rolling", "type: compliant", ["constraint 0 ('roll')", "under the key 'contacts'"]),
    ("type: compliant", "type: complaint", ["contact 1", "did you mean 'compliant'"]),
    ("stiffness: 1.0e+5, ", "", ["contact 1", "a compliant needs stiffness"]),
    ("stiffness: 1.0e+5", "stiffness: 1e5", ["stiffness", "1.0e+5"]),
    ("slip_speed: 0.02", "slip_speed: 0", ["slip_speed", "positive"]),
    ("restitution: 0.2", "restitution: 2", ["contact 0 ('top')", "restitution"]),
    ("restitution: 0.2", "bounce: 0.2", ["'bounce'", "restitution"]),
    ("link: world", "link: ball, frame: {xyz: [0, 0, 0]}", None),
    ("link: world", "link: table", ["contact 1", "'table'"]),
    ("face: z", "face: top", ["first", "face is 'top'", "x, -x, y, -y, z, -z"]),
    (", face: z", "", ["constraint 0", "which side of the box on 'plate'"]),
    ("shape: 0", "shape: 1", ["second", "shape is 1", "0: sphere"]),
    ("shape: 0", "face: z", ["face is read for a box", "sphere"]),
    ("shape: 0", "radius: 2", ["'radius'", "link, surface, face, shape"]),
    ("second: {link: ball, surface: collision}", "second: {link: wrist, surface: collision}", ["'wrist' has no"]),
    ("second: {link: ball, surface: collision}", "second: {link: bal, surface: collision}", ["did you mean 'ball'"]),
    ("size: [0.4, 0.4]", "size: [0.4]", ["size", "plane on 'plate'"]),
    ("type: compliant", "name: top, type: compliant", ["duplicate contact name 'top'"]),
    ("contacts:", "contact:", ["'contact'", "did you mean 'contacts'"])], ids=range(20))
def test_what_is_wrong_is_named(old, new, words):
    assert old in TEXT
    if words is None:
        assert len(rbd.load_contacts(TEXT.replace(old, new), MODEL)) == 2
        return
    for load in (rbd.load_contacts, rbd.load_constraints):
        with pytest.raises(rbd.RbdError) as caught:
            load(TEXT.replace(old, new), MODEL)
        assert all(word in str(caught.value) for word in words), str(caught.value)


def test_collision_shapes_need_a_urdf():
    with pytest.raises(rbd.RbdError, match="from no URDF"):
        rbd.load_constraints(TEXT, chain("revolute"))
    urdf = """<robot name="r"><link name="a"><collision><geometry><sphere radius="1"/></geometry></collision><collision>
<geometry><cylinder radius="0.5" length="1"/></geometry></collision></link><link name="b"/>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/>
<limit lower="0" upper="1" effort="1" velocity="1"/></joint></robot>"""
    text = "contacts: [{type: unilateral, first: {link: b, surface: plane}, second: {link: a, surface: collision}}]"
    with pytest.raises(rbd.RbdError, match=r"2 collision shapes \(0: sphere, 1: cylinder\)"):
        rbd.load_contacts(text, rbd.load_urdf(urdf))
    (found,) = rbd.load_contacts(text.replace("collision}", "collision, shape: 1}"), rbd.load_urdf(urdf))
    assert isinstance(found.second, rbd.Cylinder)
