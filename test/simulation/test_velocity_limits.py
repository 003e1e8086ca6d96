"""Velocity limits of the description, kept as DART keeps them in Gazebo."""
import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.simulation.integrators import NAMES
from rbd_ros.core.simulation.simulator import Simulator
from rbd_ros.runtime.plant.elastic_plant import ElasticPlant
from rbd_ros.runtime.plant.simulator_settings import SimulatorSettings

ARM = rbd.load_urdf(rbd.sample_path("two_link")).with_(damping=0.0, friction=0.0)
AXIS = """<robot name="axis"><link name="base"/><link name="wheel"><inertial><mass value="2"/>
  <inertia ixx="0.5" iyy="0.5" izz="0.5" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="wheel"/><axis xyz="0 0 1"/>
  <limit effort="100" velocity="3"/></joint></robot>"""


def run(simulator, effort, steps):
    v = []
    for k in range(steps):
        simulator.step(effort(k))
        v.append(simulator.v.copy())
    return np.array(v)


@pytest.mark.parametrize("integrator", NAMES)
@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_an_axis_turns_at_its_limit_and_no_faster(integrator, direction):
    # 2 N m on 0.5 kg m²: 3 rad/s after 0.75 s, 1.125 rad; then 0.75 s at 3 rad/s, and back at -4 rad/s²
    simulator = Simulator(rbd.load_urdf(AXIS), velocity_limits=True, integrator=integrator)
    simulator.step([2.0 * direction], 1500)
    assert simulator.v[0] == 3.0 * direction
    assert simulator.q[0] * direction == pytest.approx(1.125 + 2.25, abs=2e-3)
    simulator.step([-2.0 * direction], 250)    # nothing lasts of the limit
    assert simulator.v[0] * direction == pytest.approx(2.0, abs=1e-12)


@pytest.mark.parametrize("integrator", NAMES)
def test_without_the_parameter_nothing_limits_it(integrator):
    simulator = Simulator(rbd.load_urdf(AXIS), integrator=integrator)
    simulator.step([2.0], 1500)
    assert simulator.v[0] == pytest.approx(6.0, abs=1e-9)


@pytest.mark.parametrize("integrator", NAMES)
def test_a_limit_of_zero_counts_as_none(integrator):
    simulator = Simulator(rbd.load_urdf(AXIS).with_(velocity_limit=0.0), velocity_limits=True, integrator=integrator)
    simulator.step([2.0], 1500)
    assert simulator.v[0] == pytest.approx(6.0, abs=1e-9)


@pytest.mark.parametrize("integrator", NAMES)
def test_a_start_beyond_the_limit_is_braked_at_once(integrator):
    simulator = Simulator(rbd.load_urdf(AXIS), velocity_limits=True, integrator=integrator, v=[5.0])
    simulator.step()
    assert simulator.v[0] == 3.0


@pytest.mark.parametrize("integrator", NAMES)
def test_other_joints_move_as_if_the_limited_one_were_driven_at_its_limit(integrator):
    """Against hybrid dynamics with the acceleration 0 of the limited joint, in fine steps of Runge–Kutta."""
    model, tau, V = ARM.with_(velocity_limit=[2.0, 0.0]), np.array([60.0, 0.3]), 2.0
    q0, v0 = np.array([0.3, -0.5]), np.array([V, 0.4])

    def rate(x):
        a = rbd.hybrid_dynamics(model, x[:2], x[2:], np.zeros(2), tau, [model.joint_names[0]]).acceleration
        return np.concatenate([x[2:], a])

    x, h = np.concatenate([q0, v0]), 1e-4
    for _ in range(2000):
        k1 = rate(x)
        k2 = rate(x + h / 2 * k1)
        k3 = rate(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + h * k3))
    errors = []
    for step in (2e-3, 1e-3):
        simulator = Simulator(model, velocity_limits=True, step=step, integrator=integrator, q=q0, v=v0, limits=False)
        simulator.step(tau, round(0.2 / step))
        assert simulator.v[0] == V
        errors.append(np.abs(np.concatenate([simulator.q, simulator.v]) - x).max())
    assert errors[1] < 0.1 and errors[0] / errors[1] > 1.8    # of first order at least
    if integrator == "variational":
        assert errors[1] < 1e-4 and errors[0] / errors[1] > 3.5


@pytest.mark.parametrize("integrator", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_no_random_motion_leaves_the_limits(integrator, seed):
    rng = np.random.default_rng(seed)
    model = rbd.sample("iiwa").with_(friction=rng.uniform(0.0, 3.0, 7), damping=0.2, armature=0.05)
    V = model.velocity_limit
    simulator = Simulator(model, velocity_limits=True, integrator=integrator)
    efforts = rng.normal(size=(8, 7)) * [200, 200, 80, 80, 20, 20, 10]
    v = run(simulator, lambda k: efforts[k // 50], 400)
    assert (np.abs(v) <= V * (1.0 + 1e-9)).all()
    assert ((np.abs(v) >= V * (1.0 - 1e-9)).sum(axis=0) > 0).any()
    assert (simulator.q >= model.position_lower - 1e-9).all() and (simulator.q <= model.position_upper + 1e-9).all()


def test_a_joint_at_its_limit_takes_no_more_power_than_the_effort_gives():
    model = ARM.with_(velocity_limit=[2.0, 3.0], friction=[0.5, 0.2], gravity=(0.0, 0.0, 0.0))
    simulator = Simulator(model, velocity_limits=True, limits=False)
    energy, tau = simulator.energy, np.array([20.0, 3.0])
    for _ in range(500):
        q = simulator.q.copy()
        simulator.step(tau)
        assert simulator.energy <= energy + tau @ (simulator.q - q) + 1e-9
        energy = simulator.energy


def test_elastic_joints_are_refused():
    model = rbd.load_urdf(rbd.sample_path("two_link"))
    with pytest.raises(rbd.RbdError, match="parameter 'velocity_limits'"):
        ElasticPlant(model, SimulatorSettings.from_values({"velocity_limits": True}, model), {})


def test_loops_are_refused():
    model = rbd.sample("five_bar")
    with pytest.raises(rbd.RbdError, match="velocity_limits: not supported with constraints"):
        Simulator(model.with_(velocity_limit=1.0), constraints=rbd.sample_constraints("five_bar", model),
                  velocity_limits=True)
