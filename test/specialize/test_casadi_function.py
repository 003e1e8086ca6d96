"""Functions of CasADi: their values and derivatives against the library's, and against Pinocchio and adam."""
from __future__ import annotations

import sys

import numpy as np
import pytest
from support.complex_step import tangents
from support.pages import ROOT, blocks, run
from support.robots import build
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.specialize import casadi_function as module
from rbd_ros.core.specialize.c_source import ARGUMENTS, wanted_of
from rbd_ros.core.specialize.families import FAMILIES

ca = pytest.importorskip("casadi")
pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")

MODELS = {"iiwa": lambda: rbd.sample("iiwa"), "floating": lambda: rbd.sample("biped", root="floating"),
          "mimic": mimic_tree, **{f"tree {seed}": (lambda seed=seed: random_tree(seed)) for seed in range(6)}}
EVERY = {"all joints": lambda: random_tree(4, TYPES), "floating tree": lambda: random_tree(
    7, ["floating", "spherical", "spherical_exponential", "revolute", "prismatic"])}
FUNCTIONS = [name for name in ARGUMENTS if name not in FAMILIES]
PARTS = {"inverse_dynamics_derivatives": "qva", "forward_dynamics_derivatives": ("q", "v", "tau")}
FRICTION = rbd.Friction(damping=0.4, coulomb=1.0, breakaway=1.5, smoothing=0.2, asymmetry=0.3, viscous_asymmetry=0.1,
                        load=0.08)


def state(model, count, seed=0):
    rng = np.random.default_rng(seed)
    return [model.random_configuration(rng), *rng.normal(size=(count - 1, model.nv))]


def arrays(result):
    """The parts of a result as matrices."""
    parts = result if isinstance(result, tuple) else (result,)
    return [np.reshape(part, (-1, np.shape(part)[-1] if np.ndim(part) > 1 else 1)) for part in parts]


def called(function, *x):
    """Results of CasADi's function as matrices."""
    found = function(*x)
    return [np.array(part) for part in (found if isinstance(found, tuple) else (found,))]


def check_equal(found, expected, bound):
    for part, wanted in zip(arrays(found), arrays(expected), strict=True):
        assert part.shape == wanted.shape
        np.testing.assert_allclose(part, wanted, rtol=0.0, atol=bound * max(1.0, np.abs(wanted).max()))


def derivatives(function, *x):
    """By each input: matrices (outputs, inputs)."""
    inputs = [ca.SX.sym(function.name_in(i), *function.size_in(i)) for i in range(function.n_in())]
    output = function(*inputs)
    jacobian = ca.Function("derivatives", inputs, [ca.jacobian(output, each) for each in inputs])
    return [np.array(part) for part in jacobian(*x)]


def check_values(model, name, seeds, bound):
    wanted = wanted_of(model, name)
    function = rbd.casadi_function(model, name)
    assert function.name_in() == list(wanted.arguments)
    assert function.name_out() == list(module.OUTPUTS[wanted.of])
    for seed in range(seeds):
        x = state(model, function.n_in(), seed)
        check_equal(tuple(called(function, *x)), wanted.call(model, *x), bound)


@pytest.mark.parametrize("kind", ["iiwa", "floating", "mimic", "tree 1"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_the_librarys(name, kind):
    if name.endswith("derivatives") and kind == "floating":
        pytest.skip("35,000 operations: the trees have its joints")
    check_values(MODELS[kind](), name, 3, 1e-9 if "forward" in name else 1e-12)


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "forward_kinematics", "centroidal_momentum"])
def test_values_for_every_joint_type(name, kind):
    check_values(EVERY[kind](), name, 4, 1e-9 if "forward_d" in name else 1e-12)


@pytest.mark.parametrize("name", ["jacobian:link_7:world", "jacobian:link_4", "hybrid_dynamics:joint_1,joint_3",
                                  "hybrid_dynamics_derivatives:joint_2", "inverse_dynamics_time_derivatives:1",
                                  "forward_dynamics_time_derivatives:1"])
def test_functions_with_parameters(name):
    check_values(rbd.sample("iiwa"), name, 3, 1e-9)


@pytest.mark.parametrize("kind", [*MODELS, *EVERY])
@pytest.mark.parametrize("friction", [None, FRICTION], ids=["bare", "friction"])
def test_derivatives_of_inverse_dynamics_are_the_librarys(kind, friction):
    model = {**MODELS, **EVERY}[kind]()
    q, v, a = state(model, 3, 5)
    by_q, by_v, by_a = derivatives(rbd.casadi_function(model, "inverse_dynamics", friction=friction), q, v, a)
    check_equal((by_q @ tangents(model, q), by_v, by_a),
                rbd.inverse_dynamics_derivatives(model, q, v, a, friction=friction), 1e-9)


@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "floating"])
@pytest.mark.parametrize("friction", [None, FRICTION], ids=["bare", "friction"])
def test_derivatives_of_forward_dynamics_are_the_librarys(kind, friction):
    model = MODELS[kind]()
    q, v, tau = state(model, 3, 6)
    by_q, by_v, by_tau = derivatives(rbd.casadi_function(model, "forward_dynamics", friction=friction), q, v, tau)
    check_equal((by_q @ tangents(model, q), by_v, by_tau),
                rbd.forward_dynamics_derivatives(model, q, v, tau, friction=friction), 1e-9)


@pytest.mark.parametrize("kind", ["iiwa", "mimic", "all joints"])
def test_friction_is_the_librarys(kind):
    model = {**MODELS, **EVERY}[kind]()
    x = state(model, 3, 2)
    for name in ("inverse_dynamics", "forward_dynamics"):
        check_equal(tuple(called(rbd.casadi_function(model, name, friction=FRICTION), *x)),
                    getattr(rbd, name)(model, *x, friction=FRICTION), 1e-9)


@pytest.mark.parametrize("held", ["", "joint_2,joint_5"])
def test_friction_of_hybrid_dynamics(held):
    model = rbd.sample("iiwa")
    x = state(model, 4, 3)
    function = rbd.casadi_function(model, f"hybrid_dynamics:{held}", friction=FRICTION)
    check_equal(tuple(called(function, *x)), rbd.hybrid_dynamics(
        model, *x, [name for name in held.split(",") if name], friction=FRICTION), 1e-9)


def test_second_derivatives_are_the_librarys():
    model = rbd.sample("iiwa")
    q, v, a = state(model, 3, 8)
    weight = np.linspace(-1.0, 2.0, 7)
    inputs = [ca.SX.sym(name, 7) for name in "qva"]
    effort = rbd.casadi_function(model, "inverse_dynamics")(*inputs)
    hessian = ca.hessian(ca.dot(weight, effort), ca.vertcat(*inputs))[0]
    found = np.array(ca.Function("hessian", inputs, [hessian])(q, v, a)).reshape(3, 7, 3, 7)
    second = rbd.inverse_dynamics_second_derivatives(model, q, v, a)
    for place, expected in (((0, 0), second.qq), ((0, 1), second.qv), ((1, 1), second.vv), ((2, 0), second.aq)):
        np.testing.assert_allclose(found[place[0], :, place[1]], np.einsum("i,ijk->jk", weight, expected), rtol=0.0,
                                   atol=1e-10 * np.abs(second.qq).max())


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-3, 1.9999, 2.0, 2.0001, 3.9999, 4.0, 5.0, 20.0])
def test_small_and_large_rotation_vectors(angle):
    """On both sides of the switches at 2 and 4 rad, in one expression."""
    model = random_tree(2, ["spherical_exponential", "revolute"])
    q, v, a = state(model, 3, 1)
    for direction in (np.array([0.6, 0.0, 0.8]), np.array([0.0, 0.0, 1.0])):
        q[:3] = angle * direction
        function = rbd.casadi_function(model, "inverse_dynamics")
        check_equal(tuple(called(function, q, v, a)), rbd.inverse_dynamics(model, q, v, a), 1e-12)
        check_equal(tuple(derivatives(function, q, v, a)), rbd.inverse_dynamics_derivatives(model, q, v, a), 1e-10)


def test_quaternions_of_any_norm():
    model = rbd.sample("biped", root="floating")
    q, v, a = state(model, 3, 4)
    longer = q.copy()
    longer[3:7] *= 1.7
    function = rbd.casadi_function(model, "inverse_dynamics")
    check_equal(tuple(called(function, longer, v, a)), rbd.inverse_dynamics(model, q, v, a), 1e-12)


def singular():
    """Two joints, the second of which moves no inertia where the first is at 0."""
    return build([rbd.JointSpec("j0", "revolute", "l0", "l1"), rbd.JointSpec("j1", "prismatic", "l1", "l2")])


def test_a_singular_mass_matrix_is_nan():
    """With a load as input: none at all, and the last joint moves no inertia."""
    model = singular().with_body("l2", mass=1.0, com=[0.1, 0.2, 0.0])
    function = rbd.casadi_function(model, "forward_dynamics", inertias=["l2"])
    q, v, tau = state(model, 3)
    assert np.isfinite(called(function, q, v, tau, model.inertial_parameters[-10:])[0]).all()
    assert np.isnan(called(function, q, v, tau, np.zeros(10))[0]).all()


@pytest.mark.parametrize("kind", ["iiwa", "floating", "mimic", "all joints"])
def test_inertial_parameters_and_loads_as_inputs(kind):
    model = {**MODELS, **EVERY}[kind]()
    bodies = [model.body_names[-1], model.body_names[3]]
    load = rbd.Inertia(1.7, np.array([0.1, -0.05, 0.2]), np.diag([0.02, 0.03, 0.04]))
    J = load.about_origin
    numbers = np.array([load.mass, *load.moment, J[0, 0], J[0, 1], J[1, 1], J[0, 2], J[1, 2], J[2, 2]])
    at = [model.body_index(body) for body in bodies]
    own = model.inertial_parameters.reshape(-1, 10)[at]
    q, v, a = state(model, 3, 9)
    function = rbd.casadi_function(model, "inverse_dynamics", inertias=bodies, payload=bodies[1])
    assert function.name_in() == ["q", "v", "a", "inertias", "payload"]
    check_equal(tuple(called(function, q, v, a, own.ravel(), np.zeros(10))),
                rbd.inverse_dynamics(model, q, v, a), 1e-12)
    check_equal(tuple(called(function, q, v, a, own.ravel(), numbers)),
                rbd.inverse_dynamics(model.with_payload(bodies[1], load), q, v, a), 1e-12)
    changed = own.copy()
    changed[0] += numbers
    check_equal(tuple(called(function, q, v, a, changed.ravel(), np.zeros(10))),
                rbd.inverse_dynamics(model.with_payload(bodies[0], load), q, v, a), 1e-12)
    Y = rbd.inertial_regressor(model, q, v, a).reshape(model.nv, -1, 10)
    by = derivatives(function, q, v, a, own.ravel(), numbers)
    check_equal((by[3], by[4]), (np.hstack([Y[:, k] for k in at]), Y[:, at[1]]), 1e-10)


def test_inputs_of_forward_dynamics_by_parameters():
    """∂a = −M⁻¹ Y ∂π, and the load's."""
    model = rbd.sample("iiwa")
    q, v, tau = state(model, 3, 10)
    own = model.inertial_parameters[-10:]
    function = rbd.casadi_function(model, "forward_dynamics", inertias=[model.body_names[-1]])
    a = rbd.forward_dynamics(model, q, v, tau)
    check_equal(tuple(called(function, q, v, tau, own)), a, 1e-9)
    expected = -np.linalg.solve(rbd.mass_matrix(model, q), rbd.inertial_regressor(model, q, v, a)[:, -10:])
    check_equal((derivatives(function, q, v, tau, own)[3],), (expected,), 1e-9)


def test_derivatives_are_pinocchios():
    pin = pytest.importorskip("pinocchio")
    model, peer = rbd.sample("iiwa"), pin.buildModelFromUrdf(str(rbd.sample_path("iiwa")))
    peer.armature = model.armature
    q, v, a = state(model, 3, 11)
    found = derivatives(rbd.casadi_function(model, "inverse_dynamics"), q, v, a)
    data = peer.createData()
    by_q, by_v, M = pin.computeRNEADerivatives(peer, data, q, v, a)
    check_equal(tuple(found), (by_q, by_v, np.triu(M) + np.triu(M, 1).T), 1e-9)


# instructions of adam-robotics 0.5.0 for the iiwa, of M(q) a + h(q, v) and its solution for a, and ∂ of the tip by q
ADAM = {"mass_matrix": 2338, "bias_effort": 1340, "gravity_effort": 451, "inverse_dynamics": 3645,
        "forward_dynamics": 4408, "jacobian:link_7:aligned": 752}


@pytest.mark.parametrize("name", ADAM)
def test_calls_have_fewer_instructions_than_adams(name):
    assert rbd.casadi_function(rbd.sample("iiwa"), name).n_instructions() <= ADAM[name]


def test_values_are_adams():
    adam = pytest.importorskip("adam")
    from adam.casadi import KinDynComputations

    model = rbd.sample("iiwa")
    peer = KinDynComputations(str(rbd.sample_path("iiwa")), list(model.joint_names),
                              gravity=np.array([*model.gravity, 0.0, 0.0, 0.0]))
    peer.set_frame_velocity_representation(adam.Representations.BODY_FIXED_REPRESENTATION)
    q, v = (ca.SX.sym(name, 7) for name in "qv")
    base = ca.SX.eye(4)
    M, h, g = (peer.mass_matrix(base, q)[6:, 6:], peer.bias_force(base, q, ca.SX.zeros(6), v)[6:],
               peer.gravity_term(base, q)[6:])
    theirs = ca.Function("theirs", [q, v], [M, h, g])
    counts = [ca.Function("count", [q, v], [each]).n_instructions() for each in (M, h, g)]
    ours = [rbd.casadi_function(model, name) for name in ("mass_matrix", "bias_effort", "gravity_effort")]
    assert all(mine.n_instructions() <= count for mine, count in zip(ours, counts, strict=True))
    for seed in range(10):
        x = state(model, 2, seed)
        check_equal(tuple(called(theirs, *x)), tuple(np.array(mine(*x[:mine.n_in()])) for mine in ours), 1e-12)


# compiled

@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RBD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        try:
            yield rbd.casadi_function(rbd.sample("two_link"), "forward_dynamics", external=True)
        except rbd.RbdError as error:
            pytest.skip(str(error))


def test_compiled_code_is_the_same_with_derivatives(compiled):
    model = rbd.sample("two_link")
    plain = rbd.casadi_function(model, "forward_dynamics")
    assert compiled.class_name() == "External"
    assert (compiled.name_in(), compiled.name_out()) == (plain.name_in(), plain.name_out())
    q, v, tau = state(model, 3)
    check_equal(tuple(called(compiled, q, v, tau)), tuple(called(plain, q, v, tau)), 1e-14)
    found = []
    for function in (compiled, plain):
        inputs = [ca.MX.sym(name, 2) for name in ("q", "v", "tau")]
        output = function(*inputs)
        hessian, gradient = ca.hessian(ca.sumsqr(output), ca.vertcat(*inputs))
        jacobian = ca.jacobian(output, inputs[0])
        found.append(ca.Function("f", inputs, [hessian, gradient, jacobian])(q, v, tau))
    check_equal(tuple(np.array(x) for x in found[0]), tuple(np.array(x) for x in found[1]), 1e-12)


def test_compiled_code_is_kept(compiled, monkeypatch, tmp_path):
    monkeypatch.setenv("RBD_CACHE_DIR", str(tmp_path))
    model = build([rbd.JointSpec("j0", "revolute", "l0", "l1")])
    rbd.casadi_function(model, "inverse_dynamics", external=True)
    monkeypatch.setattr(module, "_compile", lambda *_: pytest.fail("compiled again"))
    rbd.casadi_function(model, "inverse_dynamics", external=True)
    assert len(list((tmp_path / "casadi").iterdir())) == 1


@pytest.mark.parametrize(("compiler", "message"), [
    (None, "needs a C compiler.*cc, gcc, clang.*apt install gcc"), ("/no/compiler", "'/no/compiler' failed"),
    ("false", "'false' failed")])
def test_without_a_working_compiler(compiler, message, monkeypatch, tmp_path):
    monkeypatch.setenv("RBD_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    if compiler is None:
        monkeypatch.setattr(module.shutil, "which", lambda name: None)
    else:
        monkeypatch.setenv("CC", compiler)
    with pytest.raises(rbd.RbdError, match=message):
        rbd.casadi_function(rbd.sample("two_link"), "gravity_effort", external=True)
    assert not list(tmp_path.glob("casadi/*"))


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
def test_without_a_private_cache(monkeypatch, tmp_path):
    if not any(map(module.shutil.which, module.COMPILERS)):
        pytest.skip("no C compiler")
    tmp_path.chmod(0o777)
    monkeypatch.setenv("RBD_CACHE_DIR", str(tmp_path))
    function = rbd.casadi_function(rbd.sample("two_link"), "potential_energy", external=True)
    q = np.array([0.3, 0.4])
    check_equal(tuple(called(function, q)), rbd.potential_energy(rbd.sample("two_link"), q), 1e-14)
    assert not list(tmp_path.glob("casadi/*.so"))


# documentation

def test_the_block_of_the_page():
    block, = (block for block in blocks("python") if block.page == "docs/specialize.md" and "casadi" in block.code)
    names = {}
    run(block.code, names, str(block))
    assert str(names["dynamics"]) in block.code and names["hessian"].shape == (21, 21)


@pytest.mark.thorough
@pytest.mark.parametrize(("mass", "error", "excess"), [(4.0, 5e-3, 2e-4), (4.4, 0.03, 0.1)])
def test_the_example_swings_the_arm_within_its_limits(monkeypatch, mass, error, excess):
    """Every millisecond, not at the plan's nodes alone, with torques 5 ms late: speed and torque reach their limits. A
    load of 10 % more than the controller knows of adds less than that to the speed.
    """
    if not any(map(module.shutil.which, module.COMPILERS)):
        pytest.skip("no C compiler")
    monkeypatch.syspath_prepend(ROOT / "examples")
    import nmpc

    model = rbd.sample("iiwa")
    goal, limit = np.array([0.8, 1.2, 0.0, -1.0, 0.0, 0.6, 0.0]), 0.5 * model.effort_limit
    result = nmpc.swing(model, goal, limit, 2.0, rbd.Inertia(mass, nmpc.LOAD.com, nmpc.LOAD.matrix))
    torque, speed = np.abs(result.torques / limit).max(), np.abs(result.v / model.velocity_limit).max()
    assert 0.99 < torque <= 1.0 and 0.99 < speed < 1.0 + excess
    assert np.all((result.q < model.position_upper) & (result.q > model.position_lower))
    assert len(result.q) == 2000 and np.abs(result.q[0] - goal).max() > 1.19
    assert np.abs(result.q[-1] - goal).max() < error


# refused

@pytest.mark.parametrize(("function", "arguments", "what"), [
    ("inverse", {}, "unknown function 'inverse'.*inverse_dynamics"), (3, {}, "unknown function '3'"),
    ("constrained_forward_dynamics", {}, "pivots by their size"), ("jacobian:arm", {}, "unknown body 'arm'"),
    ("gravity_effort", {"friction": FRICTION}, "gravity_effort has no friction, which inverse_dynamics"),
    ("inverse_dynamics", {"friction": 0.3}, "friction: expected a Friction"),
    ("inverse_dynamics", {"friction": rbd.Friction(damping=np.ones(3))}, "arrays of 2"),
    ("inverse_dynamics", {"inertias": ["arm"]}, "inertias: unknown body 'arm'"),
    ("inverse_dynamics", {"inertias": 7}, "inertias: expected names of bodies, got 7"),
    ("inverse_dynamics", {"payload": "arm"}, "payload: unknown body 'arm'"),
    ("inverse_dynamics", {"payload": "base"}, "payload: body 'base' is fixed to the world")])
def test_what_is_refused(function, arguments, what):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.casadi_function(rbd.sample("two_link"), function, **arguments)


def test_models_that_are_refused():
    with pytest.raises(rbd.RbdError, match="model"):
        rbd.casadi_function("two_link", "inverse_dynamics")
    with pytest.raises(rbd.RbdError, match="no joint that moves"):
        rbd.casadi_function(build([rbd.JointSpec("j", "fixed", "l0", "l1")]), "inverse_dynamics")
    with pytest.raises(rbd.RbdError, match="'joint1' is spherical_exponential, whose series in time branch"):
        rbd.casadi_function(random_tree(3, ["revolute", "spherical_exponential"]),
                            "inverse_dynamics_time_derivatives:1")


def test_without_casadi(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(rbd.RbdError, match=r"needs the package casadi \(`pip install casadi`\)"):
        rbd.casadi_function(rbd.sample("two_link"), "inverse_dynamics")


def test_names_that_casadi_does_not_take():
    model = build([rbd.JointSpec("j0", "revolute", "l", "l-1"), rbd.JointSpec("j1", "revolute", "l-1", "_l__2_")])
    function = rbd.casadi_function(model, "jacobian:_l__2_")
    assert function.name() == "jacobian_l_2_body"
    q = np.array([0.3, 0.4])
    check_equal(tuple(called(function, q)), rbd.jacobian(model, q, "_l__2_"), 1e-14)
