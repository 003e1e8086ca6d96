"""Differential action models of Crocoddyl: against its own on Pinocchio, its differences, and its solvers."""
from __future__ import annotations

import sys

import numpy as np
import pytest
from support.pages import ROOT

import rbd_ros as rbd

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")


@pytest.fixture(scope="module")
def crocoddyl():
    return pytest.importorskip("crocoddyl")


def problem(crocoddyl, path, frame, floating=False, center=False):
    """State, actuation and costs that read poses and velocities; center: of mass too, which Crocoddyl's model of free
    dynamics does not compute.
    """
    import pinocchio

    peer = pinocchio.buildModelFromUrdf(str(path), *([pinocchio.JointModelFreeFlyer()] if floating else []))
    state = crocoddyl.StateMultibody(peer)
    actuation = (crocoddyl.ActuationModelFloatingBase if floating else crocoddyl.ActuationModelFull)(state)
    costs, nu = crocoddyl.CostModelSum(state, actuation.nu), actuation.nu
    at = peer.getFrameId(frame)
    for name, residual in {
            "place": crocoddyl.ResidualModelFrameTranslation(state, at, np.array([0.3, 0.2, 0.4]), nu),
            "motion": crocoddyl.ResidualModelFrameVelocity(
                state, at, pinocchio.Motion(np.arange(6) / 10), pinocchio.LOCAL, nu),
            **({"center": crocoddyl.ResidualModelCoMPosition(state, np.array([0.1, 0.0, 0.3]), nu)} if center else {}),
            "state": crocoddyl.ResidualModelState(state, state.zero(), nu),
            "effort": crocoddyl.ResidualModelControl(state, nu)}.items():
        costs.addCost(name, crocoddyl.CostModelResidual(state, residual), 0.3)
    return state, actuation, costs


def computed(model, x, u=None):
    data = model.createData()
    for call in (model.calc, model.calcDiff):
        call(data, x, *([] if u is None else [u]))
    return data


FIELDS = ("Fx", "Fu", "Lx", "Lu", "Lxx", "Luu", "Lxu")


def check_differences(crocoddyl, model, x, u, bound=2e-6):
    """Against Crocoddyl's own numerical differentiation, once with the Hessian of Gauss and Newton."""
    found = computed(model, x, u)
    expected = computed(crocoddyl.DifferentialActionModelNumDiff(model, True), x, u)
    for name in ("Fx", "Fu", "Lx", "Lu"):
        wanted = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), wanted, atol=bound * max(1.0, np.abs(wanted).max()),
                                   err_msg=name)


@pytest.mark.parametrize(("robot", "frame", "root"), [
    ("iiwa", "link_7", "fixed"), ("biped", "left_foot", "floating"), ("two_link", "tip", "fixed")])
def test_values_and_derivatives_are_those_of_crocoddyls_own_model(crocoddyl, robot, frame, root):
    """Also of joints that Pinocchio orders differently, and of a floating base, whose twists it writes differently."""
    model = rbd.sample(robot, root=root)
    state, actuation, costs = problem(crocoddyl, rbd.sample_path(robot), frame, root == "floating")
    theirs = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
    ours = rbd.crocoddyl_model(model, state, actuation, costs)
    rng = np.random.default_rng(0)
    for _ in range(3):
        x = state.integrate(state.zero(), rng.normal(size=state.ndx))
        u = rng.normal(size=actuation.nu)
        found, expected = computed(ours, x, u), computed(theirs, x, u)
        np.testing.assert_allclose(found.cost, expected.cost, rtol=1e-11)
        for name in ("xout", *FIELDS):
            wanted = getattr(expected, name)
            np.testing.assert_allclose(getattr(found, name), wanted, atol=1e-9 * max(1.0, np.abs(wanted).max()),
                                       err_msg=name)
        last, of_last = computed(ours, x), computed(theirs, x)
        np.testing.assert_allclose(last.cost, of_last.cost, rtol=1e-11)
        np.testing.assert_allclose(last.Lx, of_last.Lx, atol=1e-10 * np.abs(of_last.Lx).max())


def test_friction_counts(crocoddyl):
    model = rbd.sample("iiwa")
    law = rbd.Friction(damping=0.4, coulomb=1.0, smoothing=0.2)
    ours = rbd.crocoddyl_model(model, *problem(crocoddyl, rbd.sample_path("iiwa"), "link_7", center=True),
                               friction=law)
    x, u = np.random.default_rng(1).normal(size=14), np.random.default_rng(2).normal(size=7)
    np.testing.assert_allclose(computed(ours, x, u).xout,
                               rbd.forward_dynamics(model, x[:7], x[7:], u, friction=law), rtol=1e-12)
    check_differences(crocoddyl, ours, x, u, 1e-5)


def test_constrained_dynamics(crocoddyl):
    """A closed loop, off its constraints too; without one, the tree's derivatives."""
    model = rbd.sample("five_bar")
    loop = rbd.sample_constraints("five_bar", model)
    parts = problem(crocoddyl, rbd.sample_path("five_bar"), model.body_names[-1], center=True)
    state = parts[0]
    order = [list(state.pinocchio.names)[1:].index(joint) for joint in model.joint_names]
    ours = rbd.crocoddyl_model(model, *parts, constraints=loop)
    q, v = rbd.project(model, loop, np.array([0.4, -0.2, 0.1, 0.5, -0.1]), np.array([0.3, -0.2, 0.1, 0.4, 0.2]))[:2]
    u, change = np.random.default_rng(0).normal(size=5), np.empty(10)
    change[order], change[5 + np.array(order)] = q, v
    x = state.integrate(state.zero(), change)    # of continuous joints: cosines and sines
    np.testing.assert_allclose(computed(ours, x, u).xout[order], rbd.constrained_forward_dynamics(
        model, loop, q, v, u[order]).acceleration, rtol=1e-12)
    check_differences(crocoddyl, ours, x, u, 1e-5)
    free, empty = (rbd.crocoddyl_model(model, *parts, constraints=constraints)
                   for constraints in (None, rbd.ConstraintSet()))
    for name in ("xout", *FIELDS):
        wanted = getattr(computed(free, x, u), name)
        np.testing.assert_allclose(getattr(computed(empty, x, u), name), wanted,
                                   atol=1e-10 * max(1.0, np.abs(wanted).max()), err_msg=name)


@pytest.mark.parametrize(("robot", "links", "kind"), [
    ("iiwa", ["link_7"], "point"), ("biped", ["left_foot", "right_foot"], "surface")])
def test_held_links_are_crocoddyls_contacts(crocoddyl, robot, links, kind):
    import pinocchio

    floating = robot == "biped"
    model = rbd.sample(robot, root="floating" if floating else "fixed")
    state, actuation, costs = problem(crocoddyl, rbd.sample_path(robot), links[0], floating)
    contacts = crocoddyl.ContactModelMultiple(state, actuation.nu)
    for link in links:
        at, gains = state.pinocchio.getFrameId(link), np.zeros(2)
        frame = pinocchio.LOCAL_WORLD_ALIGNED
        contacts.addContact(link, crocoddyl.ContactModel3D(
            state, at, np.zeros(3), frame, actuation.nu, gains) if kind == "point" else crocoddyl.ContactModel6D(
            state, at, pinocchio.SE3.Identity(), frame, actuation.nu, gains))
    theirs = crocoddyl.DifferentialActionModelContactFwdDynamics(state, actuation, contacts, costs, 0.0, True)
    rng = np.random.default_rng(0)
    x = state.integrate(state.zero(), 0.3 * rng.normal(size=state.ndx))
    u = rng.normal(size=actuation.nu)
    q, swap = x[:state.nq], [3, 4, 5, 0, 1, 2] if floating else range(6)
    swap = [*swap, *range(6, state.nv)]
    held = rbd.anchored(model, rbd.ConstraintSet([rbd.FixedContact(link, kind=kind) for link in links]), q)
    ours = rbd.crocoddyl_model(model, state, actuation, costs, constraints=held)
    v = x[state.nq:][swap]
    v = rbd.project(model, held, q, v)[1]
    x[state.nq:] = v[swap]
    found, expected = computed(ours, x, u), computed(theirs, x, u)
    for name in ("xout", "Fx", "Fu"):
        wanted = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), wanted, atol=1e-8 * max(1.0, np.abs(wanted).max()),
                                   err_msg=name)


def elastic(model, stiffness, damping=0.5):
    """Springs in all joints of the iiwa but the fourth and the last."""
    motor = rbd.Motor(1e-4, 60.0, damping=0.3)
    spring = rbd.SeriesDrive(rbd.SeriesSpring([stiffness, 5e4]), damping=damping, motor=motor)
    return rbd.Actuation(model, {joint: rbd.RigidDrive(motor) if joint in ("joint_4", "joint_7") else spring
                                 for joint in model.joint_names})


def test_elastic_joints(crocoddyl):
    model = rbd.sample("iiwa")
    arm = elastic(model, 2000.0)
    ours = rbd.crocoddyl_model(arm, *problem(crocoddyl, rbd.sample_path("iiwa"), "link_7"))
    assert (ours.state.nx, ours.nu) == (24, 7)
    rng = np.random.default_rng(0)
    x, u = np.concatenate([rng.normal(size=12), rng.normal(size=12)]), rng.normal(size=7)
    springs = [i for i in range(7) if i not in (3, 6)]
    x[7:12] = x[springs] + 0.02 * rng.normal(size=5)
    check_differences(crocoddyl, ours, x, u, 1e-5)
    q, v, motors, rates = x[:7], x[12:19], x[7:12], x[19:]
    phi, rate = motors - q[springs], rates - v[springs]
    tau = u.copy()
    tau[springs] = 2000.0 * phi + 5e4 * phi**3 + 0.5 * rate
    found = computed(ours, x, u).xout
    rotors = np.zeros(7)
    rotors[[3, 6]] = 0.36    # of rigid joints
    damping = np.zeros(7)
    damping[[3, 6]] = 0.3
    np.testing.assert_allclose(found[:7], rbd.forward_dynamics(
        model.with_(armature=rotors), q, v, tau, friction=rbd.Friction(damping=model.damping + damping,
                                                                     coulomb=model.friction)), rtol=1e-9)
    np.testing.assert_allclose(found[7:], (u[springs] - tau[springs] - 0.3 * rates) / 0.36, rtol=1e-9)


def test_stiff_springs_reach_what_rigid_joints_reach(crocoddyl):
    """A solver's optimum of one problem, of both kinds of joints."""
    model = rbd.sample("two_link")
    motor = rbd.Motor(0.1)
    parts = problem(crocoddyl, rbd.sample_path("two_link"), "tip")

    def solved(robot, size):
        action = rbd.crocoddyl_model(robot, *parts)
        running, last = (crocoddyl.IntegratedActionModelRK(action, crocoddyl.RKType.four, step)
                         for step in (5e-3, 0.0))
        start = np.zeros(2 * size)
        solver = crocoddyl.SolverFDDP(crocoddyl.ShootingProblem(start, [running] * 30, last))
        solver.th_stop = 1e-10
        assert solver.solve([start] * 31, [np.zeros(2)] * 30, 100, False)
        return np.array(solver.xs.tolist())

    rigid = solved(rbd.Actuation(model, dict.fromkeys(model.joint_names, rbd.RigidDrive(motor))), 2)
    drive = rbd.SeriesDrive(rbd.SeriesSpring([2e3]), damping=5.0, motor=motor)
    soft = solved(rbd.Actuation(model, dict.fromkeys(model.joint_names, drive)), 4)
    assert np.abs(rigid[-1, :2]).max() > 0.01
    np.testing.assert_allclose(soft[-1, :2], rigid[-1, :2], atol=0.02 * np.abs(rigid[-1, :2]).max())


@pytest.mark.parametrize(("change", "what"), [
    (lambda parts: ("iiwa", {}), "expected a RobotModel"),
    (lambda parts: (rbd.sample("two_link"), {}), "joints shoulder, elbow of 'two_link', but joint_1, joint_2"),
    (lambda parts: (elastic(rbd.sample("iiwa"), 1e3), {"friction": rbd.Friction(damping=1.0)}),
     "an Actuation has the friction of its drives, and no constraints"),
    (lambda parts: (rbd.sample("iiwa"), {"friction": 3.0}), "friction: expected a Friction"),
    (lambda parts: (rbd.sample("iiwa"), {"constraints": rbd.sample_constraints("five_bar", rbd.sample("five_bar"))}),
     "unknown")])
def test_what_is_refused(crocoddyl, change, what):
    parts = problem(crocoddyl, rbd.sample_path("iiwa"), "link_7")
    robot, options = change(parts)
    with pytest.raises(rbd.RbdError, match=what):
        rbd.crocoddyl_model(robot, *parts, **options)


def test_without_crocoddyl(monkeypatch):
    monkeypatch.setitem(sys.modules, "crocoddyl", None)
    from rbd_ros.core.learning import crocoddyl_model as module
    module._action.cache_clear()
    with pytest.raises(rbd.RbdError, match=r"needs the package crocoddyl and its Pinocchio \(`pip install crocoddyl"):
        rbd.crocoddyl_model(rbd.sample("iiwa"), None, None, None)


def test_the_example_finds_the_optimum_on_pinocchio(crocoddyl, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    import crocoddyl_reach as example

    ours, theirs = example.main(quiet=True)
    assert ours.iterations == theirs.iterations < 100
    np.testing.assert_allclose(ours.cost, theirs.cost, rtol=1e-9)
    np.testing.assert_allclose(ours.x, theirs.x, atol=1e-6)
    np.testing.assert_allclose(ours.u, theirs.u, atol=1e-6)
    model = rbd.sample("iiwa")
    tip = rbd.forward_kinematics(model, ours.x[-1, :7])[model.body_index(example.TIP), :3, 3]
    assert np.linalg.norm(tip - example.TARGET) < 5e-3
