"""Values and derivatives of batches: against CasADi's of the recorded programs, differences, and the library."""
from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.differentiated import FRICTION, MODELS, text_of
from support.trees import mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.learning import batch_function as module
from rbd_ros.core.learning.batch_function import FUNCTIONS, BatchFunction

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")

FREE = [name for name in FUNCTIONS if not name.startswith("constrained")]
WITH_PARAMETERS = [name for name in FREE if FUNCTIONS[name].by_parameters]


def made(model, text, friction=None, inertias=(), friction_fields=(), constraints=None):
    return BatchFunction("test", model, text, friction, inertias, friction_fields, constraints)


def inputs_of(model, function, lead=(2,), seed=0):
    """Random states whose quaternions are not quite of norm 1, and parameters that are not quite the model's."""
    rng = np.random.default_rng(seed)
    x = []
    for name, size in function.arguments.items():
        if name == "q":
            x.append(np.array([model.random_configuration(rng) * 1.004 for _ in range(int(np.prod(lead)))]).reshape(
                *lead, size))
        elif name == "inertias":
            x.append(function._own * rng.uniform(0.99, 1.01, (*lead, size)))
        elif name == "friction":
            law = np.concatenate([np.full(model.nv, getattr(function._case.friction, field))
                                  for field in function._fields])
            x.append(law * rng.uniform(0.9, 1.0, (*lead, size)))
        else:
            x.append(rng.normal(size=(*lead, size)))
    return x


def check_close(found, expected, bound):
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=bound * max(1.0, np.abs(expected).max()))


def differences(compute, inputs, at, step=2e-4):
    """∂compute/∂inputs[at], the last axis, by central differences of sixth order: exact to about 1e-10."""
    x = inputs[at]
    steps, shares = np.array([1, -1, 2, -2, 3, -3]), np.array([0.75, -0.75, -0.15, 0.15, 1 / 60, -1 / 60])
    each = step * np.eye(x.shape[-1]).reshape(-1, *[1] * (x.ndim - 1), x.shape[-1])
    moved = x + np.multiply.outer(steps, each)    # all steps along all numbers in one batch
    values = compute(*inputs[:at], moved, *inputs[at + 1:])
    return np.moveaxis(np.tensordot(shares, values, axes=1), 0, -1) / step


@pytest.mark.parametrize(("name", "kind"), [
    (name, kind) for name in FREE for kind in MODELS if (name, kind) != ("hybrid_dynamics", "mimic")])
def test_values_and_jacobians_are_casadis(name, kind):
    """By the numbers of q, v, a, and of inertial parameters, by reverse and forward AD of the recorded program."""
    ca = pytest.importorskip("casadi")
    model = MODELS[kind]()
    bodies = [model.body_names[-1], model.body_names[2]] if name in WITH_PARAMETERS else []
    friction = FRICTION if FUNCTIONS[name].friction else None
    ours = made(model, text_of(model, name), friction, bodies)
    theirs = rbd.casadi_function(model, text_of(model, name), friction=friction, inertias=bodies)
    assert list(ours.arguments) == theirs.name_in()
    x = [ca.SX.sym(theirs.name_in(i), *theirs.size_in(i)) for i in range(theirs.n_in())]
    y = theirs(*x) if theirs.n_out() > 1 else [theirs(*x)]
    flat = ca.vertcat(*(ca.vec(part.T) for part in y))
    joint = ca.Function("joint", x, [flat, ca.jacobian(flat, ca.vertcat(*x))])
    inputs = inputs_of(model, ours)
    value, jacobian = ours.value(*inputs), ours.jacobian(*inputs)
    for s in range(2):
        flat, slopes = joint(*(each[s] for each in inputs))
        check_close(value[s], np.array(flat)[:, 0], 1e-9)
        check_close(jacobian[s], np.array(slopes), 1e-9)


def test_hybrid_dynamics_with_mimic_joints():
    """Which has no recorded program."""
    model = mimic_tree()
    function = made(model, text_of(model, "hybrid_dynamics"), FRICTION, [model.body_names[-1]])
    x = inputs_of(model, function, (2,))
    J, start = function.jacobian(*x), 0
    for at, size in enumerate(function.arguments.values()):
        check_close(J[..., start:start + size], differences(function.value, x, at), 1e-6)
        start += size


@pytest.mark.parametrize("kind", ["floating", "mimic"])
@pytest.mark.parametrize("name", [name for name in FREE if FUNCTIONS[name].curvature])
def test_hessians_are_those_of_the_jacobians(name, kind):
    """And symmetric: they are by numbers, not along tangents, which do not commute."""
    model = MODELS[kind]()
    function = made(model, name, FRICTION if FUNCTIONS[name].friction else None)
    x = inputs_of(model, function, (3,), 1)
    H = function.hessian(*x)
    check_close(H, H.swapaxes(-1, -2), 1e-11)
    start = 0
    for at, size in enumerate(function.arguments.values()):
        check_close(H[..., start:start + size], differences(function.jacobian, x, at), 1e-7)
        start += size


@pytest.mark.parametrize("fields", [("coulomb",), ("damping", "breakaway", "stribeck_velocity", "load"),
                                    ("smoothing", "asymmetry", "viscous_asymmetry", "coulomb")])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "hybrid_dynamics"])
@pytest.mark.parametrize("friction", [FRICTION, rbd.Friction(damping=0.3, coulomb=1.2, smoothing=0.3)],
                         ids=["whole law", "three numbers"])
def test_slopes_by_parameters_are_those_of_values(friction, name, fields):
    model = rbd.sample("iiwa")
    fields = [field for field in fields if np.all(getattr(friction, field))]
    function = made(model, text_of(model, name), friction, ["link_4", "link_7"], fields)
    x = inputs_of(model, function, (2,), 2)
    J = function.jacobian(*x)
    size = function.arguments["friction"]
    check_close(J[..., -size:], differences(function.value, x, len(x) - 1), 1e-6)
    check_close(J[..., -size - 20:-size], differences(function.value, x, len(x) - 2, 2e-6), 1e-6)


def test_the_breakaway_follows_the_coulomb_level_unless_it_is_an_input():
    model = rbd.sample("iiwa")
    state = np.random.default_rng(0).normal(size=(3, 7))
    state[1] *= 0.05    # speeds at which the breakaway counts
    level = np.full(7, 2.0)
    for law, fields, expected in (
            (rbd.Friction(coulomb=1.0), ["coulomb"], rbd.Friction(coulomb=2.0)),
            (rbd.Friction(coulomb=1.0, breakaway=3.0), ["coulomb"], rbd.Friction(coulomb=2.0, breakaway=3.0)),
            (rbd.Friction(coulomb=1.0, breakaway=[1.0] + [3.0] * 6), ["coulomb"],
             rbd.Friction(coulomb=2.0, breakaway=[2.0] + [3.0] * 6)),
            (rbd.Friction(coulomb=1.0), ["breakaway"], rbd.Friction(coulomb=1.0, breakaway=2.0))):
        function = made(model, "inverse_dynamics", law, (), fields)
        check_close(function.value(*state, level), rbd.inverse_dynamics(model, *state, friction=expected), 1e-14)
        inputs = [*state, np.tile(level, (3, 1))]
        check_close(function.jacobian(*inputs)[..., -7:], differences(function.value, inputs, 3), 1e-6)


@pytest.mark.parametrize("name", ["constrained_forward_dynamics", "constrained_inverse_dynamics"])
@pytest.mark.parametrize("friction", [None, FRICTION], ids=["bare", "friction"])
def test_constrained_dynamics_are_the_librarys(name, friction):
    model = rbd.sample("five_bar")
    loop = rbd.sample_constraints("five_bar", model)
    motors = ["left_shoulder", "right_shoulder"]
    given = (motors,) if "inverse" in name else ()
    q = rbd.project(model, loop, np.array([0.4, -0.2, 0.1, 0.5, -0.1]))[0]
    x = [np.stack([q] * 2), np.zeros((2, 5)), np.zeros((2, 5))]
    if "forward" in name:
        x[2] = np.random.default_rng(0).normal(size=(2, 5))
    function = made(model, f"{name}:{','.join(motors)}" if given else name, friction, constraints=loop)
    result = getattr(rbd, name)(model, loop, *x, *given, friction=friction)
    check_close(function.value(*x), np.concatenate(result[:2], axis=1), 1e-14)
    by = getattr(rbd, f"{name}_derivatives")(model, loop, *x, *given, friction=friction)
    check_close(function.jacobian(*x), np.concatenate(
        [np.concatenate(part, axis=2) for part in (by[:3], by[3:])], axis=1), 1e-14)
    assert {key: shape[0] for key, shape in function.outputs.items()} == dict(zip(
        function.outputs, (5, loop.size), strict=True))


def mechanism(kind):
    """A model, constraints and the actuated joints."""
    if kind == "five_bar":
        model = rbd.sample("five_bar")
        return model, rbd.sample_constraints("five_bar", model), ["left_shoulder", "right_shoulder"]
    model = random_tree(5, ["floating", "spherical", "revolute", "prismatic", "revolute", "revolute"])
    names = model.joint_names
    couplings = [rbd.JointCoupling({names[2]: 1.0, names[3]: [0.5, 0.3]}, name="gear")]
    if kind == "redundant":
        couplings.append(rbd.JointCoupling({names[2]: 2.0, names[3]: [1.0, 0.6]}, name="twice"))
    contact = rbd.FixedContact(model.body_names[-1], kind="point")
    return model, rbd.ConstraintSet([*couplings, contact]), [*names[:2], *names[4:]]


@pytest.mark.parametrize("rubbed", [False, True])
@pytest.mark.parametrize(("name", "kind"), [
    ("constrained_forward_dynamics", "five_bar"), ("constrained_inverse_dynamics", "five_bar"),
    ("constrained_forward_dynamics", "contact"), ("constrained_inverse_dynamics", "gear"),
    ("constrained_forward_dynamics", "redundant")])
def test_constrained_dynamics_by_parameters(name, kind, rubbed):
    """By inertial parameters and friction, at states of its own each; multipliers of redundant constraints too."""
    model, constraints, motors = mechanism(kind)
    if kind == "gear":
        constraints = rbd.ConstraintSet(constraints.constraints[:1])
        motors = [joint for joint in model.joint_names if joint != model.joint_names[3]]
    text = f"{name}:{','.join(motors)}" if "inverse" in name else name
    bodies, fields = model.body_names[-2:], ("damping", "coulomb", "load") if rubbed else ()
    function = made(model, text, FRICTION if rubbed else None, bodies, fields, constraints)
    x = inputs_of(model, function, (2,), 3)
    x[0] = np.array([rbd.project(model, constraints, state / 1.004)[0] for state in x[0]])
    A = rbd.constraint_jacobian(model, constraints, x[0])
    inverse = np.linalg.pinv(A)
    null = np.eye(model.nv) - inverse @ A
    x[1] = (null @ x[1][..., None])[..., 0]
    if "inverse" in name:
        x[2] = (null @ x[2][..., None] - inverse @ rbd.constraint_bias(model, constraints, *x[:2])[..., None])[..., 0]
    J = function.jacobian(*x)
    start = sum(size for key, size in function.arguments.items() if key not in ("inertias", "friction"))
    for at in range(3, len(x)):
        size = x[at].shape[-1]
        check_close(J[..., start:start + size], differences(function.value, x, at, 1e-4), 1e-8)
        start += size
    weights = np.random.default_rng(4).normal(size=(2, function.size))
    check_close(function.pull(weights, *x), np.einsum("smk,sm->sk", J, weights), 1e-11)


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_no_constraint_leaves_the_derivatives_of_a_tree(name):
    model = MODELS["floating"]()
    joints = f":{','.join(model.joint_names)}" if name == "inverse_dynamics" else ""
    free, bound = (made(model, text, FRICTION, model.body_names[-2:], ("coulomb", "load"), constraints)
                   for text, constraints in ((name, None), (f"constrained_{name}{joints}", rbd.ConstraintSet())))
    x = inputs_of(model, free, (3,))
    check_close(bound.value(*x), free.value(*x), 1e-11)
    check_close(bound.jacobian(*x), free.jacobian(*x), 1e-10)


@pytest.mark.parametrize("kind", ["iiwa", "floating"])
def test_pull_and_bend_are_products_of_jacobian_and_hessian(kind, monkeypatch):
    """In parts too, and for weights with more axes than the inputs have."""
    model = rbd.sample("iiwa") if kind == "iiwa" else MODELS[kind]()
    function = made(model, "inverse_dynamics", FRICTION)
    x = inputs_of(model, function, (3, 4))
    x[1] = x[1][:, :1]    # broadcast
    rng = np.random.default_rng(1)
    weights, direction = rng.normal(size=(3, 4, function.size)), rng.normal(size=(3, 4, function.inputs))
    J, H = function.jacobian(*x), function.hessian(*x)
    expected = np.einsum("abmk,abm->abk", J, weights)
    check_close(function.pull(weights, *x), expected, 1e-13)
    several = rng.normal(size=(2, 1, 1, function.size))
    check_close(function.pull(several, *x), np.einsum("abmk,cm->cabk", J, several[:, 0, 0]), 1e-13)
    monkeypatch.setattr(module, "PART", 5 * J.shape[-1] * J.shape[-2])
    check_close(function.pull(weights, *x), expected, 1e-13)
    bent = function.bend(weights, direction, *x)
    check_close(bent[..., :function.size], np.einsum("abmk,abk->abm", J, direction), 1e-13)
    check_close(bent[..., function.size:], np.einsum("abmij,abm,abj->abi", H, weights, direction), 1e-13)


def test_states_with_parameters_of_their_own():
    """Several states share some of them; a specialized model's code has other numbers, and is not used."""
    plain = rbd.sample("iiwa")
    models = [plain, rbd.specialize(plain)] if rbd.COMPILED else [plain]
    rng = np.random.default_rng(0)
    for model in models:
        function = made(model, "forward_dynamics", FRICTION, ["link_7"], ["damping"])
        x = inputs_of(model, function, (6,))
        x[3][[1, 4]], x[4][[1, 4]] = x[3][0], x[4][0]
        value, J, weights = function.value(*x), function.jacobian(*x), rng.normal(size=(6, 7))
        pulled = function.pull(weights, *x)
        for s in range(6):
            one = [each[s] for each in x]
            mass, first, I = one[3][0], one[3][1:4], one[3][4:]
            c = first / mass
            about = np.array([[I[0], I[1], I[3]], [I[1], I[2], I[4]], [I[3], I[4], I[5]]]) - mass * (
                c @ c * np.eye(3) - np.outer(c, c))
            other = plain.with_body("link_7", mass=mass, com=c, inertia=about)
            law = dataclasses.replace(FRICTION, damping=one[4])
            check_close(value[s], rbd.forward_dynamics(other, *one[:3], friction=law), 1e-9)
            check_close(J[s, :, :21], np.concatenate(
                rbd.forward_dynamics_derivatives(other, *one[:3], friction=law), axis=1), 1e-9)
            check_close(pulled[s], weights[s] @ J[s], 1e-10)


@pytest.mark.parametrize("name", FREE)
def test_no_state_and_one_state(name):
    model = MODELS["floating"]()
    bodies = model.body_names[-1:] if name in WITH_PARAMETERS else ()
    function = made(model, text_of(model, name), None, bodies)
    none = inputs_of(model, function, (0,))
    assert function.value(*none).shape == (0, function.size)
    assert function.jacobian(*none).shape == (0, function.size, function.inputs)
    assert function.pull(np.zeros((0, function.size)), *none).shape == (0, function.inputs)
    one = inputs_of(model, function, ())
    check_close(function.value(*one), function.value(*(x[None] for x in one))[0], 1e-14)
    check_close(function.jacobian(*one), function.jacobian(*(x[None] for x in one))[0], 1e-14)


@pytest.mark.parametrize(("function", "arguments", "what"), [
    ("inverse", {}, "unknown function 'inverse'.*inverse_dynamics"), (3, {}, "unknown function '3'"),
    ("gravity_effort:joint1", {}, "unknown function 'gravity_effort:joint1'"),
    ("hybrid_dynamics:knee", {}, "unknown joint 'knee'"),
    ("gravity_effort", {"friction": FRICTION}, "gravity_effort has no friction, which inverse_dynamics"),
    ("inverse_dynamics", {"friction": 0.3}, "friction: expected a Friction"),
    ("inverse_dynamics", {"inertias": ["arm"]}, "inertias: unknown body 'arm'"),
    ("inverse_dynamics", {"inertias": ["base"]}, "inertias: body 'base' is fixed to the world"),
    ("mass_matrix", {"inertias": ["tip"]}, "mass_matrix has no derivatives by parameters, which inverse_dynamics"),
    ("inverse_dynamics", {"friction_fields": ["damping"]}, "friction_fields: expected friction too"),
    ("inverse_dynamics", {"friction": FRICTION, "friction_fields": ["grease"]}, "unknown field 'grease'.*damping"),
    ("inverse_dynamics", {"friction": FRICTION, "friction_fields": 3}, "expected names of fields of Friction, got 3"),
    ("constrained_forward_dynamics", {}, "constrained_forward_dynamics needs constraints"),
    ("constrained_forward_dynamics", {"constraints": "loop"}, "constraints: expected a ConstraintSet, got str"),
    ("inverse_dynamics", {"constraints": rbd.ConstraintSet(())}, "inverse_dynamics has no constraints")])
def test_what_is_refused(function, arguments, what):
    with pytest.raises(rbd.RbdError, match=what):
        made(rbd.sample("two_link"), function, **arguments)


def test_models_that_are_refused():
    with pytest.raises(rbd.RbdError, match="expected a RobotModel"):
        made("two_link", "inverse_dynamics")
    with pytest.raises(rbd.RbdError, match="no joint that moves"):
        made(random_tree(0, ["fixed"]), "inverse_dynamics")


@pytest.mark.parametrize(("shapes", "what"), [
    ([(2,), (3,), (2,)], r"v has shape \(3,\), expected \(…, 2\)"), ([(), (2,), (2,)], r"q has shape \(\)"),
    ([(5, 2), (4, 2), (2,)], r"leading axes that broadcast, got q \(5, 2\), v \(4, 2\), a \(2,\)")])
def test_shapes_that_are_refused(shapes, what):
    function = made(rbd.sample("two_link"), "inverse_dynamics")
    function.check_shapes([(5, 1, 2), (4, 2), (2,)])
    with pytest.raises(rbd.RbdError, match=what):
        function.check_shapes(shapes)


def test_inputs_by_place_and_by_name():
    function = made(rbd.sample("two_link"), "inverse_dynamics", inertias=["tip"])
    assert function.ordered([1, 2], {"inertias": 4, "a": 3}) == [1, 2, 3, 4]
    for given, named in (([1, 2], {}), ([1, 2, 3], {"a": 3, "inertias": 4}), ([1] * 5, {}), ([1, 2, 3], {"load": 4})):
        with pytest.raises(rbd.RbdError, match="expected the inputs q, v, a, inertias, got"):
            function.ordered(given, named)
    with pytest.raises(rbd.RbdError, match="inverse_dynamics has no second derivatives by parameters"):
        function.check_twice()
