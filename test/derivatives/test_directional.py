"""Derivatives by any scalar p: along states against the full matrices, along parameters against varied models."""

import dataclasses

import numpy as np
import pytest
from support.robots import assert_close, load, random_state, random_states, urdf_paths
from support.trees import TYPES, random_tree

import rbd_ros as rbd
from rbd_ros.core.lie import se3

TREES = {"chain": {"kinds": ["revolute"] * 5},
         "sliding": {"kinds": ["prismatic", "helical", "revolute", "cylindrical"]},
         "exponential": {"kinds": ["spherical_exponential", "revolute", "spherical_exponential"]},
         "all": {"kinds": TYPES}, "floating": {"kinds": ["revolute", "universal", "planar"], "root": "floating"}}
SCREWS = ("revolute", "continuous", "prismatic", "helical")
each_tree = pytest.mark.parametrize("name", TREES)


def case(name):
    """Model, state, efforts, wrenches, mask, and a tangent of everything."""
    seed = sorted(TREES).index(name)
    model = random_tree(seed, **TREES[name])
    q, v, a = random_state(model, seed)
    rng = np.random.default_rng(seed)
    F, dF = rng.normal(size=(2, len(model.body_names), 6))
    moving = [spec for spec in model.description.joints if spec.type != "fixed"]
    dq, dv, da, dtau, tau = rng.normal(size=(5, model.nv))
    tangent = rbd.Tangent(dq, dv, da, dtau, {body: 0.1 * rng.normal(size=10) for body in model.body_names},
                          {spec.name: rng.normal(size=6) for spec in moving},
                          {spec.name: rng.normal(size=6) for spec in moving if spec.type in SCREWS}, dF)
    return model, q, v, a, tau, F, rng.random(model.nv) < 0.5, tangent


@each_tree
def test_along_states_it_is_the_full_derivative(name):
    model, q, v, a, tau, F, mask, tangent = case(name)
    found = rbd.inverse_dynamics_directional(model, q, v, a, rbd.Tangent(tangent.q, tangent.v, tangent.a), F)
    full = rbd.inverse_dynamics_derivatives(model, q, v, a, F)
    assert_close(found, full.q @ tangent.q + full.v @ tangent.v + full.a @ tangent.a, 1e-12)
    found = rbd.forward_dynamics_directional(model, q, v, tau, rbd.Tangent(tangent.q, tangent.v, tau=tangent.tau), F)
    full = rbd.forward_dynamics_derivatives(model, q, v, tau, F)
    assert_close(found, full.q @ tangent.q + full.v @ tangent.v + full.tau @ tangent.tau, 1e-11)
    some = rbd.Tangent(tangent.q, tangent.v, tangent.a, tangent.tau)
    found = rbd.hybrid_dynamics_directional(model, q, v, a, tau, mask, some, F)
    full = rbd.hybrid_dynamics_derivatives(model, q, v, a, tau, mask, F)
    given = np.where(mask, tangent.a, tangent.tau)
    assert_close(found, full.q @ tangent.q + full.v @ tangent.v + full.given @ given, 1e-11)


@each_tree
def test_tables_6_and_7_are_minus_inverse_mass_times_table_5(name):
    """By everything at once: states, inertias, placements, screws, wrenches."""
    model, q, v, a, tau, F, mask, tangent = case(name)
    M = rbd.mass_matrix(model, q)
    for held in (np.zeros(model.nv, dtype=bool), mask, ~mask):
        acceleration = rbd.hybrid_dynamics(model, q, v, a, tau, held, F).acceleration
        along = dataclasses.replace(tangent, a=np.where(held, tangent.a, 0.0))
        expected = rbd.inverse_dynamics_directional(model, q, v, acceleration, along, F)
        free = ~held
        change = np.linalg.solve(M[np.ix_(free, free)], (tangent.tau - expected)[free])
        expected[free] = change
        expected[held] += M[np.ix_(held, free)] @ change
        assert_close(rbd.hybrid_dynamics_directional(model, q, v, a, tau, held, tangent, F), expected, 1e-10)
        if not held.any():
            assert_close(rbd.forward_dynamics_directional(model, q, v, tau, tangent, F), expected, 1e-10)


@each_tree
def test_inertias_and_wrenches(name):
    """Efforts are linear in both."""
    model, q, v, a, _, F, _, tangent = case(name)
    found = rbd.inverse_dynamics_directional(model, q, v, a, rbd.Tangent(inertias=tangent.inertias), F)
    pi = np.concatenate([tangent.inertias[body] for body in model.body_names])
    assert_close(found, rbd.inertial_regressor(model, q, v, a) @ pi, 1e-12)
    wrenches = tangent.external_wrenches
    found = rbd.inverse_dynamics_directional(model, q, v, a, rbd.Tangent(external_wrenches=wrenches), F)
    more = rbd.inverse_dynamics(model, q, v, a, F + wrenches)
    assert_close(found, more - rbd.inverse_dynamics(model, q, v, a, F), 1e-11)


def moved(model, tangent, step):
    """The model with placements and screws changed by `step`. A changed screw is a joint moved, with other axes at the
    far side so that the link stays where it is at zero; what else it changes, a length of s, is a rate.
    """
    joints = []
    for spec in model.description.joints:
        if spec.name in tangent.placements:
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = spec.rotation, spec.position
            T = T @ se3.exp(step * np.asarray(tangent.placements[spec.name]))
            spec = dataclasses.replace(spec, rotation=T[:3, :3], position=T[:3, 3])
        joints.append(spec)
    return rbd.RobotModel.from_description(dataclasses.replace(model.description, joints=tuple(joints)))


@each_tree
def test_placements_against_moved_joints(name):
    model, q, v, a, tau, F, _, tangent = case(name)
    tangent = rbd.Tangent(placements={k: x for k, x in tangent.placements.items() if k != "root_joint"})
    h = 1e-6
    more, less = moved(model, tangent, h), moved(model, tangent, -h)
    difference = (rbd.inverse_dynamics(more, q, v, a, F) - rbd.inverse_dynamics(less, q, v, a, F)) / (2 * h)
    assert_close(rbd.inverse_dynamics_directional(model, q, v, a, tangent, F), difference, 1e-7)
    difference = (rbd.forward_dynamics(more, q, v, tau, F) - rbd.forward_dynamics(less, q, v, tau, F)) / (2 * h)
    assert_close(rbd.forward_dynamics_directional(model, q, v, tau, tangent, F), difference, 1e-6)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical"])
def test_screws_against_tilted_axes(kind):
    """A turned axis of a joint is an axis of another direction, the link's frame at zero where it was."""
    rng = np.random.default_rng(3)
    model = random_tree(12, ["revolute", kind, "revolute"], rotors=False)
    q, v, a = random_state(model, 4)
    spec = next(spec for spec in model.description.joints if spec.name == "joint1")
    turn = rng.normal(size=3)
    axis = np.array(spec.axis)
    change = np.cross(turn, axis)
    screw = (np.r_[np.zeros(3), change] if kind == "prismatic" else np.r_[change, spec.pitch * change])
    found = rbd.inverse_dynamics_directional(model, q, v, a, rbd.Tangent(screws={"joint1": screw}))
    h = 1e-6
    values = []
    for step in (h, -h):
        tilted = dataclasses.replace(spec, axis=tuple(axis + step * change))
        joints = tuple(tilted if s.name == "joint1" else s for s in model.description.joints)
        other = rbd.RobotModel.from_description(dataclasses.replace(model.description, joints=joints))
        values.append(rbd.inverse_dynamics(other, q, v, a))
    assert_close(found, (values[0] - values[1]) / (2 * h), 1e-7)


@pytest.mark.parametrize("axis", [(0.0, 0.0, 1.0), (0.0, -2.0, 0.0), (0.3, -0.4, 1.2), (1.0, 0.5, -0.7)])
def test_the_axis_of_a_planar_joint_is_what_the_model_is_built_with(axis):
    model = random_tree(12, ["revolute", "planar", "revolute"], rotors=False)

    def built(given):
        joints = tuple(dataclasses.replace(s, axis=tuple(given)) if s.name == "joint1" else s
                       for s in model.description.joints)
        return rbd.RobotModel.from_description(dataclasses.replace(model.description, joints=joints))

    q, v, a = random_state(model, 4)
    change, h = np.random.default_rng(3).normal(size=3), 1e-6
    more, less = (rbd.inverse_dynamics(built(np.asarray(axis) + step * change), q, v, a) for step in (h, -h))
    found = rbd.inverse_dynamics_directional(built(axis), q, v, a, rbd.Tangent(axes={"joint1": change}))
    assert_close(found, (more - less) / (2 * h), 1e-7)


def test_a_screw_beside_its_joint_is_a_placement():
    """∂s = ad_ξ s of an offset ξ of the axis, the link moved back: the placement by ξ, then by −ξ behind the joint."""
    model = random_tree(13, ["revolute", "revolute", "revolute"], rotors=False)
    q, v, a = random_state(model, 4)
    spec = next(spec for spec in model.description.joints if spec.name == "joint2")
    xi = np.r_[np.zeros(3), np.random.default_rng(5).normal(size=3)]
    axis = np.array(spec.axis)
    found = rbd.inverse_dynamics_directional(
        model, q, v, a, rbd.Tangent(screws={"joint2": np.r_[np.zeros(3), np.cross(xi[3:], axis)]}))
    # behind the joint the link, and its inertia with it, is moved by −ξ; link2 has no children that move
    links = ["link2", *(s.child for s in model.description.joints if s.type == "fixed" and s.parent == "link2")]
    h = 1e-6
    values = []
    for step in (h, -h):
        joints = []
        for s in model.description.joints:
            if s.name == "joint2":
                s = dataclasses.replace(s, position=s.position + step * s.rotation @ xi[3:])
            elif s.child in links:
                s = dataclasses.replace(s, position=s.position - step * xi[3:])
            joints.append(s)
        bodies = dict(model.description.links)
        old = bodies["link2"]
        bodies["link2"] = rbd.Inertia(old.mass, old.com - step * xi[3:], old.matrix)
        other = rbd.RobotModel.from_description(dataclasses.replace(
            model.description, joints=tuple(joints), links=bodies))
        values.append(rbd.inverse_dynamics(other, q, v, a))
    assert_close(found, (values[0] - values[1]) / (2 * h), 1e-7)


@pytest.mark.parametrize("along", [0.0, 1.0])
def test_a_sliding_joint_that_begins_to_turn_is_a_helical_one_far_away(along):
    """exp((ε w; z) q) turns by ε |w| q about an axis z × w / ε |w|² away, whose pitch is w·z / ε |w|²: of the joint,
    and behind it of its link and the next joint. For w across the axis and beside it.
    """
    model = random_tree(9, ["revolute", "prismatic", "revolute"], rotors=False)    # a chain
    q, v, a = random_state(model, 4)
    spec = next(spec for spec in model.description.joints if spec.name == "joint1")
    z = np.asarray(spec.axis) / np.linalg.norm(spec.axis)
    w = np.cross(z, [0.3, -0.5, 0.8]) + along * z
    h, values = 2e-3, []
    for step in (h, -h, 2.0 * h, -2.0 * h):
        size = abs(step) * np.linalg.norm(w)
        far, pitch = np.cross(step * w, z) / size**2, step * w @ z / size**2
        joints = []
        for s in model.description.joints:
            if s.name == "joint1":
                s = dataclasses.replace(s, type="helical", axis=tuple(step * w / size), pitch=pitch,
                                        position=s.position + s.rotation @ far, lower=None, upper=None)
            elif s.parent == "link1":
                s = dataclasses.replace(s, position=s.position - far)
            joints.append(s)
        bodies = dict(model.description.links)
        old = bodies["link1"]
        bodies["link1"] = rbd.Inertia(old.mass, old.com - far, old.matrix)
        other = rbd.RobotModel.from_description(dataclasses.replace(
            model.description, joints=tuple(joints), links=bodies))
        rate = np.array([1.0, size, 1.0])
        values.append((rate * rbd.inverse_dynamics(other, rate * q, rate * v, rate * a),
                       rbd.body_accelerations(other, rate * q, rate * v, rate * a)[other.body_index("link2")],
                       rbd.joint_wrenches(other, rate * q, rate * v, rate * a)[other.body_index("link2")]))
    tangent = rbd.Tangent(screws={"joint1": np.r_[w, np.zeros(3)]})
    found = rbd.inverse_dynamics_directional(model, q, v, a, tangent, bodies=True)
    link = model.body_index("link2")
    for part, *at in zip((found.effort, found.body_accelerations[link], found.joint_wrenches[link]), *values,
                         strict=True):    # differences of order four: far away, short steps are lost in rounding
        assert_close(part, (8.0 * (at[0] - at[1]) - (at[2] - at[3])) / (12.0 * h), 1e-6)
    tau = rbd.inverse_dynamics(model, q, v, a)
    change = np.linalg.solve(rbd.mass_matrix(model, q), -found.effort)
    assert_close(rbd.forward_dynamics_directional(model, q, v, tau, tangent), change, 1e-11)


@pytest.mark.skipif(not urdf_paths(), reason="example-robot-data is not installed")
def test_mimic_joints():
    model = load("tiago_pro_description/tiago_pro", root="fixed", mimic="project")
    q, v, a = random_state(model, 3)
    rng = np.random.default_rng(1)
    dq, dv, da, dtau = rng.normal(size=(4, model.nv))
    tau = rbd.inverse_dynamics(model, q, v, a)
    mask = np.arange(model.nv) % 2 == 0
    full = rbd.inverse_dynamics_derivatives(model, q, v, a)
    expected = full.q @ dq + full.v @ dv + full.a @ da
    assert_close(rbd.inverse_dynamics_directional(model, q, v, a, rbd.Tangent(dq, dv, da)), expected, 1e-11)
    full = rbd.forward_dynamics_derivatives(model, q, v, tau)
    found = rbd.forward_dynamics_directional(model, q, v, tau, rbd.Tangent(dq, dv, tau=dtau))
    assert_close(found, full.q @ dq + full.v @ dv + full.tau @ dtau, 1e-7)
    full = rbd.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
    found = rbd.hybrid_dynamics_directional(model, q, v, a, tau, mask, rbd.Tangent(dq, dv, da, dtau))
    assert_close(found, full.q @ dq + full.v @ dv + full.given @ np.where(mask, da, dtau), 1e-7)


def test_batches_of_states_and_of_tangents():
    model = random_tree(3, TYPES)
    q, v, a = random_states(model, 3, 2)
    dq = np.random.default_rng(1).normal(size=(3, model.nv))
    mask = np.arange(model.nv) % 2 == 0
    for call in (lambda q, v, a, t: rbd.inverse_dynamics_directional(model, q, v, a, t),
                 lambda q, v, a, t: rbd.forward_dynamics_directional(model, q, v, a, t),
                 lambda q, v, a, t: rbd.hybrid_dynamics_directional(model, q, v, a, a, mask, t)):
        each = [call(q[k], v[k], a[k], rbd.Tangent(dq[k])) for k in range(3)]
        assert_close(call(q, v, a, rbd.Tangent(dq)), each, 1e-12)
        each = [call(q[0], v[0], a[0], rbd.Tangent(dq[k])) for k in range(3)]
        assert_close(call(q[0], v[0], a[0], rbd.Tangent(dq)), each, 1e-12)


@pytest.mark.parametrize(("change", "words"), [
    ({"q": np.zeros(3)}, ["tangent.q", "(7,)"]),
    ({"inertias": {"link_9": np.zeros(10)}}, ["inertias", "link_9", "link_7"]),
    ({"inertias": {"link_7": np.zeros(9)}}, ["link_7"]), ({"placements": {"joint_9": np.zeros(6)}}, ["joint_9"]),
    ({"screws": {"joint_1": np.zeros(5)}}, ["joint_1"]), ({"external_wrenches": {"link_9": np.zeros(6)}}, ["link_9"]),
    ({"tau": np.full(7, np.nan)}, ["tangent.tau", "nan"])], ids=range(7))
def test_a_wrong_tangent_is_named(change, words):
    model = rbd.sample("iiwa")
    one = np.ones(7)
    with pytest.raises(rbd.RbdError) as caught:
        rbd.forward_dynamics_directional(model, one, one, one, rbd.Tangent(**change))
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_something_else_than_a_tangent_and_a_screw_of_many_coordinates():
    model = random_tree(1, ["universal"])
    one = np.ones(2)
    with pytest.raises(rbd.RbdError, match="Tangent"):
        rbd.inverse_dynamics_directional(model, one, one, one, one)
    with pytest.raises(rbd.RbdError, match=r"joint0.*\(2, 6\)"):
        rbd.inverse_dynamics_directional(model, one, one, one, rbd.Tangent(screws={"joint0": np.zeros(6)}))
    model = random_tree(1, ["spherical"])
    with pytest.raises(rbd.RbdError, match="type spherical is no screw"):
        rbd.inverse_dynamics_directional(model, model.neutral(), np.ones(3), np.ones(3),
                                         rbd.Tangent(screws={"joint0": np.zeros(6)}))
    with pytest.raises(rbd.RbdError, match="another model"):
        rbd.inverse_dynamics_directional(rbd.sample("two_link"), one, one, one, rbd.Tangents(model, [rbd.Tangent()]))


@pytest.mark.parametrize(("change", "words"), [
    ({"inertias": [1.0]}, ["inertias", "list"]), ({"friction": 3.0}, ["friction", "float"]),
    ({"friction": {"joint0": 3.0}}, ["friction", "joint0", "float"]), ({"terms": {"gear": 1.0}}, ["terms", "gear"]),
    ({"gravity": [0.0, 1.0]}, ["gravity"]), ({"axes": {"joint1": np.zeros(2)}}, ["axes", "joint1"]),
    ({"axes": {"joint3": np.zeros(3)}}, ["joint3", "spherical"]), ({"pitches": {"joint0": "x"}}, ["pitches", "joint0"]),
    ({"pitches": {"joint2": 1.0}}, ["joint2", "prismatic"]), ({"advances": {"joint0": [1.0]}}, ["joint0", "cam"]),
    ({"rotor_inertias": {"joint1": [1.0, 2.0, 3.0]}}, ["rotor_inertias", "joint1"]),
    ({"mimics": {"joint0": [1.0, 0.0]}}, ["mimics", "joint0"]), ({"placements": {"joint": np.zeros(6)}}, ["mount1"]),
    ({"screws": {"mount1": np.zeros(6)}}, ["screws", "mount1"])], ids=range(14))
def test_a_wrong_parameter_is_named(change, words):
    model = random_tree(1, ["revolute", "universal", "prismatic", "spherical"])
    with pytest.raises(rbd.RbdError) as caught:
        rbd.Tangents(model, [rbd.Tangent(**change)])
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_several_directions_and_batches():
    """Directions first, then states; looked up once or not."""
    model = random_tree(3, TYPES)
    q, v, a = random_states(model, 3, 2)
    rng = np.random.default_rng(1)
    tangents = [rbd.Tangent(q=rng.normal(size=model.nv), v=rng.normal(size=(3, model.nv)), gravity=rng.normal(size=3)),
                rbd.Tangent(tau=rng.normal(size=model.nv), placements={"joint2": rng.normal(size=6)}), rbd.Tangent()]
    mask = np.arange(model.nv) % 2 == 0
    F = rng.normal(size=(len(model.body_names), 6))
    for call in (lambda t: rbd.inverse_dynamics_directional(model, q, v, a, t, F),
                 lambda t: rbd.forward_dynamics_directional(model, q, v, a, t, F),
                 lambda t: rbd.hybrid_dynamics_directional(model, q, v, a, a, mask, t, F)):
        each = [call(t) for t in tangents]
        assert np.shape(each) == (3, 3, model.nv) and not each[2].any()
        assert_close(call(tangents), each, 1e-12)
        assert_close(call(rbd.Tangents(model, tangents)), each, 1e-12)
        assert call([]).shape == (0, 3, model.nv)
