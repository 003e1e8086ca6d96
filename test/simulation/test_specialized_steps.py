"""Steps of a specialised robot: its code computes their accelerations; the same motions, to rounding."""
from __future__ import annotations

import numpy as np
import pytest
from simulation import robots
from support.robots import chain

import rbd_ros as rbd

pytestmark = pytest.mark.skipif(not rbd.COMPILED, reason="specialize needs numba")
ROBOTS = {"iiwa": lambda: rbd.sample("iiwa"), "two_link": lambda: rbd.sample("two_link"), "satellite": robots.satellite,
          "chain": lambda: chain("revolute", "spherical", "prismatic", "planar")}
INTEGRATORS = ("semi_implicit", "rk4")


def case(name, seed):
    rng = np.random.default_rng(seed)
    model = ROBOTS[name]()
    q = model.integrate(model.neutral(), 0.3 * rng.standard_normal(model.nv))
    return model, q, rng.standard_normal(model.nv), rng.standard_normal((30, model.nv))


def stepped(simulator, q, v, efforts, at_once=1000, **keywords):
    simulator.reset(q, v)
    for begin in range(0, len(efforts), at_once):
        part = efforts[begin:begin + at_once]
        simulator.step(part, len(part), **keywords)
    return np.concatenate([simulator.q, simulator.v])


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize(("damping", "friction"), [(0.0, 0.0), (0.3, 0.0), (0.2, 0.4)])
def test_the_same_motions(name, integrator, damping, friction):
    model, q, v, efforts = case(name, 1)
    inner = np.ones(model.nv)
    for joint in model.joints:
        if joint.nq != joint.nv:    # of a floating robot nothing rubs
            inner[joint.idx_v:joint.idx_v + joint.nv] = 0.0
    model = model.with_(damping=damping * inner, friction=friction * inner)
    one, two = (rbd.Simulator(each, step=2e-3, integrator=integrator) for each in (model, rbd.specialize(model)))
    expected = stepped(one, q, v, efforts)
    np.testing.assert_allclose(stepped(two, q, v, efforts), expected, rtol=0, atol=1e-10 * (1 + np.abs(expected).max()))
    assert two._many.code.size


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_same_bits_however_steps_are_grouped(integrator):
    model, q, v, efforts = case("iiwa", 2)
    simulator = rbd.Simulator(rbd.specialize(model), step=2e-3, integrator=integrator)
    expected = stepped(simulator, q, v, efforts)
    for at_once in (1, 7):
        assert np.array_equal(stepped(simulator, q, v, efforts, at_once), expected)
    for threads in (1, 2):
        motions = rbd.simulate(simulator.model, np.tile(q, (5, 1)), np.tile(v, (5, 1)), efforts, 2e-3, len(efforts),
                               integrator=integrator, threads=threads)
        assert all(np.array_equal(np.concatenate([a, b]), expected)
                   for a, b in zip(motions.q[:, -1], motions.v[:, -1], strict=True))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_accelerations_are_those_of_the_code(integrator):
    model, q, v, efforts = case("iiwa", 3)
    model = model.with_(damping=0.0, friction=0.0)
    other = model.with_(armature=0.5)
    expected = stepped(rbd.Simulator(rbd.specialize(other), integrator=integrator, limits=False), q, v, efforts)
    simulator = rbd.Simulator(rbd.specialize(model), integrator=integrator, limits=False)
    usual = stepped(simulator, q, v, efforts)
    wrenches = {"link_7": [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]}
    pushed = stepped(simulator, q, v, efforts, external_wrenches=wrenches)
    simulator._many.code[:] = rbd.specialize(other)._specialized.address("forward_dynamics")
    assert np.array_equal(stepped(simulator, q, v, efforts), expected)
    assert not np.allclose(usual, expected)
    assert np.array_equal(stepped(simulator, q, v, efforts, external_wrenches=wrenches), pushed)    # not by the code


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_states_beyond_the_code_are_stepped_by_the_ordinary_kernels(integrator):
    model, q, v, efforts = case("iiwa", 4)
    q[1] = 1e7    # rad: it ends at 8e5
    one, two = (rbd.Simulator(each, integrator=integrator, limits=False) for each in (model, rbd.specialize(model)))
    assert np.array_equal(stepped(two, q, v, efforts), stepped(one, q, v, efforts))


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_singular_state_is_named(integrator):
    body, nothing = rbd.Inertia(1.0, np.zeros(3), 0.1 * np.eye(3)), rbd.Inertia.zero()
    model = rbd.specialize(rbd.RobotModel.from_description(rbd.Description(
        "empty", {"base": nothing, "one": body, "two": nothing},
        (rbd.JointSpec("a", "revolute", "base", "one"), rbd.JointSpec("b", "revolute", "one", "two")))))
    with pytest.raises(rbd.SingularMassMatrix, match="'b'"), pytest.warns(rbd.RbdWarning, match="forward_dynamics"):
        rbd.Simulator(model, integrator=integrator).step()
