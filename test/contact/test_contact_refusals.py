"""Contacts that cannot be, surfaces that are none, and what does not take contacts: refused by name."""

import numpy as np
import pytest
from support.robots import build, chain

import rbd_ros as rbd

BALL, FLOOR = rbd.Sphere("ball", 0.1), rbd.Plane("floor")


@pytest.mark.parametrize(("make", "words"), [
    (lambda: rbd.Sphere("ball", 0.0), ["sphere on 'ball'", "radius", "positive"]),
    (lambda: rbd.Sphere("ball", float("nan")), ["radius"]),
    (lambda: rbd.Sphere("ball"), ["radius"]),
    (lambda: rbd.Cylinder("pipe", -1.0, inside=True), ["inside of the cylinder on 'pipe'"]),
    (lambda: rbd.Ellipsoid("egg", (0.1, 0.2)), ["semi_axes", "egg", "three finite numbers"]),
    (lambda: rbd.Ellipsoid("egg", (0.1, 0.2, -0.1)), ["semi-axis"]),
    (lambda: rbd.Torus("ring", 0.1, 0.2), ["minor_radius 0.2", "major_radius 0.1"]),
    (lambda: rbd.Plane(3), ["Plane", "link"]),
    (lambda: rbd.Plane("floor", "up"), ["frame of plane on 'floor'"]),
    (lambda: rbd.Sphere("ball", 0.1, inside="yes"), ["inside", "True or False"]),
    (lambda: BALL.chart([0.0, 0.0], 2), ["sphere on 'ball'", "chart"]),
    (lambda: FLOOR.chart([0.0, 0.0], 1), ["plane on 'floor'", "chart"]),
    (lambda: BALL.chart([0.0]), ["u"]),
], ids=range(13))
def test_a_surface_that_is_none(make, words):
    with pytest.raises(rbd.RbdError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(("first", "second", "words"), [
    (rbd.Sphere("bowl", 1.0, inside=True), rbd.Ellipsoid("egg", (1.5, 0.9, 0.9)), ["inside out", "1.5"]),
    (rbd.Ellipsoid("bowl", (1.0, 1.5, 1.2), inside=True), rbd.Torus("ring", 1.1, 0.2), ["inside out", "1.3"]),
    (FLOOR, rbd.Plane("box"), ["plane on 'floor'", "plane on 'box'", "planar"]),
    (rbd.Cylinder("roller", 0.1), FLOOR, ["name the plane first"]),
    (FLOOR, rbd.Sphere("bowl", 1.0, inside=True), ["no end"]),
    (rbd.Sphere("bowl", 1.0, inside=True), rbd.Cylinder("rod", 0.1), ["no end"]),
    (rbd.Cylinder("pipe", 1.0, inside=True), rbd.Cylinder("rod", 0.1), ["line"]),
    (rbd.Sphere("bowl", 1.0, inside=True), rbd.Torus("ring", 2.0, 1.0, inside=True), ["two hollow"]),
    (rbd.Sphere("bowl", 0.1, inside=True), BALL, ["inside out", "0.1 m"]),
    (BALL, rbd.Torus("ring", 2.0, 0.05, inside=True), ["inside out"]),
    (None, BALL, ["first", "surface"]), (BALL, "floor", ["second", "surface"])], ids=range(12))
@pytest.mark.parametrize("kind", [rbd.RollingContact, rbd.SlidingContact])
def test_surfaces_that_cannot_touch(kind, first, second, words):
    with pytest.raises(rbd.RbdError) as caught:
        kind(first, second)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def free(**options):
    return build([rbd.JointSpec("free", "floating", "base", "body")], **options)


@pytest.mark.parametrize(("first", "second", "position"), [
    (rbd.Cylinder("base", 0.2), rbd.Cylinder("body", 0.1), (0.3, 0.0, 0.0)),          # along a line
    (rbd.Torus("base", 1.0, 0.2), rbd.Sphere("body", 0.1), (0.0, 0.0, 0.5)),          # along a circle
    (rbd.Plane("base"), rbd.Torus("body", 1.0, 0.2), (0.0, 0.0, 0.2)),
    (rbd.Sphere("base", 1.0), rbd.Sphere("body", 0.1), (0.0, 0.0, 0.0))])
def test_no_closest_points_here(first, second, position):
    """The contact is named, in a batch with the state, by all that look at rows; and of surfaces alone, too."""
    model = free()
    constraints = rbd.ConstraintSet([rbd.RollingContact(first, second, name="touch")])
    q = model.neutral()
    q[:3] = position
    for function, arguments in ((rbd.constraint_values, ()), (rbd.constraint_jacobian, ()), (rbd.project, ()),
                                (rbd.constrained_forward_dynamics, (np.zeros(6), np.zeros(6)))):
        with pytest.raises(rbd.RbdError, match=r"contact 'touch'.*no unique closest points"):
            function(model, constraints, q, *arguments)
    with pytest.raises(rbd.RbdError, match=f"the {first} and the {second}.*no unique closest points"):
        rbd.closest_points(first, second, rbd.forward_kinematics(model, q)[1])


def test_the_state_of_a_batch_is_named():
    model = free()
    constraints = rbd.ConstraintSet([rbd.SlidingContact(rbd.Plane("base"), rbd.Sphere("body", 0.1)),
                                     rbd.SlidingContact(rbd.Cylinder("base", 0.2), rbd.Cylinder("body", 0.1))])
    good = np.array([0.4, 0.0, 0.1, 0.5, 0.1, 0.2, np.sqrt(0.7)])
    aside = np.array([0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    with pytest.raises(rbd.RbdError, match="state 2: contact 'sliding_1'"):
        rbd.constraint_values(model, constraints, [good, good, aside])


def test_functions_of_a_point():
    first, second = rbd.Plane("floor"), rbd.Sphere("ball", 0.1)
    touch = rbd.closest_points(first, second, rbd.lie.se3.pose([0.1, 0.2, 0.1]))
    assert touch.gap == pytest.approx(0.0, abs=1e-15)
    for call, words in ((lambda: rbd.contact_rates(touch, np.zeros(5)), "twist"),
                        (lambda: rbd.contact_rates("touch", np.zeros(6)), "closest_points"),
                        (lambda: rbd.contact_accelerations(touch, np.zeros(6), [np.nan] * 6), "twist_rate"),
                        (lambda: rbd.closest_points(first, second, np.zeros((4, 4))), "pose"),
                        (lambda: rbd.closest_points(first, None, np.eye(4)), "second")):
        with pytest.raises(rbd.RbdError, match=words):
            call()
    line = rbd.closest_points(first, rbd.Cylinder("roller", 0.1), rbd.lie.se3.pose([0, 0, 0.1], [np.pi / 2, 0, 0]))
    with pytest.raises(rbd.RbdError, match="along a line"):
        rbd.contact_rates(line, np.zeros(6))


def test_what_does_not_take_contacts_says_so():
    model, constraints = rbd.sample("ball_on_plate"), None
    constraints = rbd.sample_constraints("ball_on_plate", model)
    with pytest.raises(rbd.RbdError, match=r"contacts.*roll.*not supported"):
        rbd.optimize_motion(model, model.neutral(), model.neutral(), constraints=constraints, actuated=["shoulder"])
    arm, t, zero = rbd.sample("two_link"), np.linspace(0.0, 1.0, 20), np.zeros((20, 2))
    contact = rbd.ConstraintSet([rbd.SlidingContact(rbd.Plane("base", [0, 0, -1.1]), rbd.Sphere("tip", 0.1), "roll")])
    with pytest.raises(rbd.RbdError, match=r"contacts.*roll.*not supported"):
        rbd.identify(arm, rbd.Recording(t, zero, zero, zero, tau=zero), constraints=contact)


YAML = """
constraints:
  - {name: roll, type: rolling, spin: false, first: {link: world, surface: plane, frame: {xyz: [0, 0, 0.1]}},
     second: {link: l3, surface: ellipsoid, semi_axes: [0.1, 0.2, 0.3]}}
  - {type: sliding, first: {link: l1, surface: torus, major_radius: 0.3, minor_radius: 0.1, inside: true},
     second: {link: l3, surface: sphere, radius: 0.05}}
"""


def test_contacts_in_yaml():
    constraints = rbd.load_constraints(YAML, chain("revolute", "spherical", "revolute"))
    roll, slide = constraints.constraints
    assert constraints.names == ("roll", "sliding_1") and constraints.size == 5
    assert not roll.spin and roll.second.semi_axes == (0.1, 0.2, 0.3) and roll.first.frame[2, 3] == 0.1
    assert slide.first.inside and slide.second.radius == 0.05


@pytest.mark.parametrize(("old", "new", "words"), [
    ("surface: plane", "surface: plan", ["first", "'plan'", "did you mean 'plane'"]),
    ("radius: 0.05", "radius: true", ["second: radius", "true or false"]),
    ("radius: 0.05", "radius: 0", ["radius", "positive"]),
    ("radius: 0.05", "diameter: 0.1", ["diameter", "radius"]),
    (", radius: 0.05", "", ["second", "a sphere needs radius"]),
    ("spin: false", "spin: 0", ["spin", "True"]),
    ("first: {link: l1,", "first: 3, third: {", ["first", "got 3"]),
    ("xyz: [0, 0, 0.1]", "zyx: [0]", ["first: frame", "zyx"]),
    ("inside: true", "inside: 1", ["inside"]),
    ("link: l3, surface: sphere", "link: l8, surface: sphere", ["sliding_1", "l8"])], ids=range(10))
def test_a_wrong_contact_in_yaml_is_named(old, new, words):
    with pytest.raises(rbd.RbdError) as caught:
        rbd.load_constraints(YAML.replace(old, new), chain("revolute", "spherical", "revolute"))
    assert all(word in str(caught.value) for word in words), str(caught.value)


URDF = """<robot name="r"><link name="a"><collision><origin xyz="1 2 3" rpy="0 0 1.5"/><geometry>
<box size="2 4 6"/></geometry></collision><collision><geometry><mesh filename="x"/></geometry></collision>
<collision><geometry><cylinder radius="0.5" length="1"/></geometry></collision></link><link name="b"/></robot>"""


def test_surfaces_of_collision_shapes():
    faces = rbd.surfaces_of(URDF, "a")
    assert [type(face) for face in faces] == [rbd.Plane] * 6 + [rbd.Cylinder] and rbd.surfaces_of(URDF, "b") == ()
    turn = rbd.lie.se3.pose([1, 2, 3], [0, 0, 1.5])
    for face, (axis, half) in zip(faces, ((0, 1), (0, -1), (1, 2), (1, -2), (2, 3), (2, -3)), strict=False):
        e = np.eye(3)[axis]
        np.testing.assert_allclose(face.frame[:3, 2], np.sign(half) * turn[:3, :3] @ e, atol=1e-12)
        np.testing.assert_allclose(face.frame[:3, 3], (turn @ [*(half * e), 1.0])[:3], atol=1e-12)
    for old, new, words in (("2 4 6", "2 4", "box"), ('radius="0.5"', "", "radius"), ("1 2 3", "1 2 x", "xyz")):
        with pytest.raises(rbd.RbdError, match=f"link 'a'.*{words}"):
            rbd.surfaces_of(URDF.replace(old, new), "a")
    with pytest.raises(rbd.RbdError, match="'c'"):
        rbd.surfaces_of(URDF, "c")
    plate, ball = (rbd.surfaces_of(rbd.sample_path("ball_on_plate"), link) for link in ("plate", "ball"))
    model = rbd.sample("ball_on_plate")
    own = rbd.ConstraintSet([rbd.RollingContact(plate[4], ball[0], name="roll")])
    given = rbd.sample_constraints("ball_on_plate", model)
    q = model.neutral()
    np.testing.assert_allclose(rbd.constraint_jacobian(model, own, q), rbd.constraint_jacobian(model, given, q),
                               atol=1e-15)
