"""MuJoCo, loaded from the same URDF, is the same robot: accelerations, motion, wrenches, friction, stops."""
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.robots import urdf_paths

import rbd_ros as rbd
from rbd_ros.core.lie.so3 import from_rpy
from rbd_ros.core.simulation.simulator import Simulator
from rbd_ros.runtime.cosimulation import mujoco_model
from rbd_ros.runtime.cosimulation.mujoco_robot import INTEGRATORS, MujocoRobot
from rbd_ros.runtime.cosimulation.mujoco_settings import mujoco_plant, mujoco_settings
from rbd_ros.runtime.parameters import validate

pytest.importorskip("mujoco", reason="MuJoCo is not installed: scripts/setup --peers")

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
PACKAGE = Path(__file__).parents[2] / "rbd_ros"
IIWA, TWO = str(rbd.sample_path("iiwa")), str(rbd.sample_path("two_link"))
BOUND = 1e-12    # relative to the largest acceleration, and 1 rad/s²; nearly singular robots need 1e-11
ROBOTS = ["panda_description/panda", "ur_description/ur5_robot", "kinova_description/kinova", "z1_description/z1",
          "xarm_description/xarm7", "talos_data/talos_reduced"]

# A tip without mass, a point mass, a flat link whose moments break the triangle inequality, links named as MuJoCo's.
ODD = """<robot name="odd">
  <link name="world"/>
  <link name="a"><inertial><origin xyz="0.1 0 0" rpy="0.3 0.2 0.1"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.2" ixy="0.001" ixz="0" iyz="0"/></inertial></link>
  <link name="point"><inertial><origin xyz="0 0.2 0"/><mass value="1.5"/>
    <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="nothing"/>
  <link name="tool"><inertial><origin xyz="0 0.1 0.1"/><mass value="0.7"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"/>
  <joint name="j1" type="revolute"><parent link="world"/><child link="a"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="100" velocity="5"/><dynamics damping="0.3" friction="0"/></joint>
  <joint name="j2" type="continuous"><parent link="a"/><child link="point"/><origin xyz="0.4 0 0" rpy="1 0.2 0"/>
    <axis xyz="0 0.6 0.8"/></joint>
  <joint name="j3" type="prismatic"><parent link="point"/><child link="nothing"/><origin rpy="0.1 0 0.5"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="100" velocity="5"/></joint>
  <joint name="j4" type="revolute"><parent link="nothing"/><child link="tool"/><origin xyz="0.1 0.1 0.1"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="100" velocity="5"/></joint>
  <joint name="weld" type="fixed"><parent link="tool"/><child link="tip"/><origin xyz="0 0 0.2" rpy="1 1 1"/></joint>
</robot>"""


def check_accelerations(model, description, bound=BOUND, seed=0):
    robot = MujocoRobot(model.with_(friction=0.0), description, limits=False)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        q, v, tau = model.random_configuration(rng), rng.normal(size=model.nv), 5.0 * rng.normal(size=model.nv)
        robot.reset(q, v)
        expected = rbd.forward_dynamics(model, q, v, tau - model.damping * v)
        error = np.abs(robot.acceleration(tau) - expected).max()
        assert error <= bound * (1.0 + np.abs(expected).max())


@pytest.mark.parametrize("changes", [
    {}, {"armature": 0.3}, {"damping": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]}, {"gravity": (1.0, -2.0, -9.0)}])
def test_accelerations_of_the_iiwa(changes):
    # Its published inertias break the triangle inequality, which MuJoCo would refuse.
    check_accelerations(rbd.sample("iiwa").with_(**changes), IIWA, 1e-11)


def test_accelerations_with_other_masses():
    check_accelerations(rbd.sample("iiwa").with_scaled_masses(1.3), IIWA, 1e-11)


@pytest.mark.parametrize("angle", [0.7, -np.pi / 2])    # the latter where roll and yaw are one
def test_accelerations_with_locked_joints(angle):
    model = rbd.load_urdf(IIWA, locked={"joint_3": angle, "joint_5": 0.4, "joint_1": -1.0})
    check_accelerations(model, IIWA, 1e-11)


@pytest.mark.parametrize("pitch", [0.3, -1.2, np.pi / 2, -np.pi / 2])
def test_angles_of_a_rotation(pitch):
    for roll, yaw in np.random.default_rng(0).uniform(-3.0, 3.0, (20, 2)):
        R = from_rpy([roll, pitch, yaw])
        R[np.abs(R) < 1e-15] = 0.0
        np.testing.assert_allclose(from_rpy(mujoco_model._to_rpy(R)), R, rtol=0.0, atol=1e-12)


def test_accelerations_of_odd_links():
    check_accelerations(rbd.load_urdf(ODD), ODD)
    locked = rbd.load_urdf(ODD, locked={"j3": 0.3, "j2": 2.0})
    check_accelerations(locked, ODD)


@pytest.mark.parametrize("name", ROBOTS)
def test_accelerations_of_real_robots(name):
    paths = urdf_paths()
    if not paths:
        pytest.skip("example-robot-data is not installed")
    model = rbd.load_urdf(paths[name])
    # Mimic joints follow by constraints, which MuJoCo keeps softly.
    check_accelerations(model, str(paths[name]), 0.03 if model.mimics else 1e-11)


def test_what_rubs_in_a_follower_counts_once():
    """Our model has it at the source."""
    links = "".join(f"<link name='{name}'><inertial><mass value='1'/><inertia ixx='0.1' ixy='0' ixz='0' iyy='0.1' "
                    "iyz='0' izz='0.1'/></inertial></link>" for name in "abc")
    joints = "".join(f"<joint name='{name}' type='continuous'><parent link='{name[0]}'/><child link='{name[1]}'/>"
                     f"<dynamics damping='2' friction='0.3'/>{more}</joint>"
                     for name, more in (("ab", ""), ("bc", "<mimic joint='ab' multiplier='-3'/>")))
    text = f"<robot name='r'>{links}{joints}</robot>"
    model = rbd.load_urdf(text, rotor_inertia={"ab": 0.5, "bc": 0.7})
    assert (model.damping[0], model.friction[0]) == (20.0, pytest.approx(1.2))
    mj = MujocoRobot(model, text).mj
    assert [mj.dof_damping[mj.joint(name).dofadr[0]] for name in ("ab", "bc")] == [20.0, 0.0]
    assert mj.dof_frictionloss[mj.joint("bc").dofadr[0]] == 0.0
    # rotors stay where they are: our mass matrix has 0.5 + 3² 0.7 on its diagonal
    assert [mj.dof_armature[mj.joint(name).dofadr[0]] for name in ("ab", "bc")] == [0.5, 0.7]


def test_accelerations_under_wrenches():
    model = rbd.load_urdf(ODD)
    robot = MujocoRobot(model, ODD, limits=False, step=1e-6, integrator="euler")
    rng = np.random.default_rng(3)
    for _ in range(10):
        q, v = model.random_configuration(rng), rng.normal(size=model.nv)
        wrenches = rng.normal(size=(len(model.body_names), 6))
        robot.reset(q, v)
        robot.step(np.zeros(model.nv), external_wrenches=wrenches)
        expected = rbd.forward_dynamics(model, q, v, -model.damping * v, wrenches)
        np.testing.assert_allclose((robot.v - v) / 1e-6, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("integrator", ["implicitfast", "euler", "rk4"])
def test_it_moves_as_our_simulator(integrator):
    model = rbd.sample("iiwa").with_(armature=0.3, damping=0.5)
    own = Simulator(model, step=1e-3, integrator="rk4" if integrator == "rk4" else "semi_implicit", limits=False)
    robot = MujocoRobot(model, IIWA, step=1e-3, integrator=integrator, limits=False)
    start = np.full(7, 0.3), np.linspace(-1.0, 1.0, 7)
    own.reset(*start)
    robot.reset(*start)
    for k in range(500):
        tau = 10.0 * np.sin(0.005 * k + np.arange(7))
        own.step(tau)
        robot.step(tau)
    # Same order and, but for RK4, the same scheme. RK4 of ours takes the same stages, so it agrees as well.
    np.testing.assert_allclose(robot.q, own.q, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(robot.v, own.v, rtol=0.0, atol=1e-10)
    assert np.abs(own.q - start[0]).max() > 0.1


def test_the_implicit_integrator_converges_to_the_same_motion():
    model = rbd.load_urdf(TWO).with_(damping=0.1)
    ends = {}
    for integrator, step in (("rk4", 1e-4), ("implicit", 1e-3), ("implicit", 5e-4)):
        robot = MujocoRobot(model, TWO, step=step, integrator=integrator, limits=False)
        robot.reset([0.5, 0.5], [1.0, -1.0])
        robot.step([1.0, 0.5], round(0.5 / step))
        ends[integrator, step] = robot.q
    exact = ends["rk4", 1e-4]
    errors = [np.abs(ends["implicit", step] - exact).max() for step in (1e-3, 5e-4)]
    assert errors[0] < 0.02 and 1.7 < errors[0] / errors[1] < 2.3    # order 1


def test_friction_holds_and_brakes():
    model = rbd.load_urdf(TWO, gravity=(0.0, 0.0, 0.0)).with_(damping=0.0, friction=[0.5, 0.5], armature=1.0)
    robot = MujocoRobot(model, TWO)
    robot.step([0.45, 0.0], 1000)
    assert np.abs(robot.v).max() < 1e-3 and np.abs(robot.q).max() < 1e-3    # a soft constraint creeps a little
    robot.reset([0.0, 0.0], [2.0, 0.0])
    own = Simulator(model, q=[0.0, 0.0], v=[2.0, 0.0])
    robot.step([0.0, 0.0], 300)
    own.step([0.0, 0.0], 300)
    np.testing.assert_allclose(robot.q, own.q, rtol=0.0, atol=2e-3)
    assert own.v[0] < 1.95


def test_joints_stop_at_their_limits_unless_told_otherwise():
    model = rbd.load_urdf(ODD)
    start = np.array([1.9, 0.0, 0.0, 0.0])
    for limits in (True, False):
        robot = MujocoRobot(model, ODD, limits=limits, q=start)
        robot.step([50.0, 0.0, 0.0, 0.0], 300)
        assert (robot.q[0] < 2.02) == limits
    with pytest.raises(rbd.RbdError, match=r"joint 'j1' starts at 2\.5, outside its limits"):
        MujocoRobot(model, ODD, q=[2.5, 0.0, 0.0, 0.0])


def test_brakes_beyond_a_stop_that_gave_way():
    """MuJoCo's stops are soft: the robot comes to rest where the stop begins, at the latest."""
    model = rbd.load_urdf(TWO)
    values = {"effort_limits": False, "initial_position": [3.1, 0.0]}
    plant = mujoco_plant(values, model, TWO)
    assert plant.on_commands([500.0, 0.0])
    while not (plant.simulator.q[0] > model.position_upper[0] and plant.simulator.v.any()):
        assert plant.advance(1) and plant.steps < 1000
    plant.settings = mujoco_settings(values | {"brakes_until": 1e6}, model)
    plant.on_commands([0.0, 0.0])
    assert plant.advance(200)
    assert model.position_upper[0] - 0.01 < plant.simulator.q[0] <= model.position_upper[0]
    assert plant.braked and not plant.simulator.v.any()


def test_a_diverging_simulation_is_an_error_and_keeps_the_last_state(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = rbd.load_urdf(TWO)
    robot = MujocoRobot(model, TWO, integrator="euler", limits=False, q=[0.1, 0.2])
    with pytest.raises(rbd.RbdError, match="diverged"):
        robot.step([1e300, 1e300], 100)
    assert np.isfinite(robot.q).all() and np.isfinite(robot.v).all()
    robot.reset([0.1, 0.2])
    robot.step([0.0, 0.0])
    assert not list(tmp_path.iterdir())    # no log of MuJoCo


def test_what_it_does_not_do_is_named(monkeypatch):
    model = rbd.load_urdf(TWO)
    with pytest.raises(rbd.RbdError, match="unknown integrator 'verlet'"):
        MujocoRobot(model, TWO, integrator="verlet")
    with pytest.raises(rbd.RbdError, match="'root_joint' is floating"):
        MujocoRobot(rbd.load_urdf(TWO, root="floating"), TWO)
    with pytest.raises(rbd.RbdError, match="effort has shape"):
        MujocoRobot(model, TWO).step([1.0])
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(rbd.RbdError, match=r"`pip install mujoco`, or install this package as rbd_ros\[mujoco\]"):
        MujocoRobot(model, TWO)


def test_only_one_module_imports_mujoco():
    code = ("import rbd_ros, rbd_ros.runtime.cosimulation.mujoco_settings, rbd_ros.runtime.cosimulation.residual, sys; "
            "print('mujoco' in sys.modules)")
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                          cwd=PACKAGE.parent).stdout.strip() == "False"
    naming = [path for path in PACKAGE.rglob("*.py") if 'import_module("mujoco")' in path.read_text()
              or "import mujoco\n" in path.read_text()]
    assert naming == [Path(mujoco_model.__file__).resolve()]


def test_parameters_reach_the_robot():
    from rbd_ros.runtime.cosimulation.mujoco_settings import MUJOCO_TABLE, mujoco_plant, mujoco_settings

    model = rbd.load_urdf(TWO)
    assert set(INTEGRATORS) == set(next(row.choices for row in MUJOCO_TABLE if row.name == "integrator"))
    values = validate(MUJOCO_TABLE, {"friction.damping": 0.7, "friction.coulomb": [0.1, 0.2], "mass_scale": 2.0,
                                     "step": 0.002, "publish_rate": 250.0, "integrator": "rk4",
                                     "initial_position": [0.1, 0.2], "position_limits": False})
    plant = mujoco_plant(values, model, TWO)
    mj = plant.simulator.mj
    np.testing.assert_array_equal(mj.dof_damping, [0.7, 0.7])
    np.testing.assert_array_equal(mj.dof_frictionloss, [0.1, 0.2])
    assert mj.opt.timestep == 0.002 and mj.opt.integrator == 1 and not mj.jnt_limited.any()
    np.testing.assert_allclose(mj.body_mass.sum(), 2.0 * model.total_mass, rtol=1e-12)
    np.testing.assert_array_equal(plant.simulator.q, [0.1, 0.2])
    assert plant.on_commands([1.0, 2.0]) and plant.advance(10) and plant.steps == 10
    assert mujoco_settings({}, model).publish_clock and mujoco_settings({}, model).command_timeout == 0.0
