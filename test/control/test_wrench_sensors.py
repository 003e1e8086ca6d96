"""Force-torque sensors of the simulated robot and of the feed-forward controller, in their logic without ROS."""

import numpy as np
import pytest
from support.arm import A_REF, NAMES, Q_REF, V_REF, Q, V, arm

import rbd_ros as rbd
from rbd_ros.core.model.payload import payload, with_payloads
from rbd_ros.runtime.control.feedforward import FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.plant.plant import Plant
from rbd_ros.runtime.plant.simulator_settings import SimulatorSettings
from rbd_ros.runtime.wrench_sensors import readings, wrench_sensors

HAND = """<link name="hand"><inertial><origin xyz="0 0 0.1"/><mass value="0.5"/>
  <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="wrist-mount" type="fixed"><parent link="lower"/><child link="hand"/><origin xyz="0.3 0 0"/></joint>"""
MODEL = arm(extra=HAND)
ALL = ("wrist-mount", "elbow", "shoulder")
PUSH = [("hand", [0.0, 0.0, 0.0, 3.0, 0.0, 7.0])]


def plant(**values):
    values = {"wrench_joints": list(ALL), "timeout_action": "zero", "command_timeout": 0.0, "wrench_timeout": 0.0,
              "friction.coulomb": 0.0, "friction.damping": 0.0, **values}
    return Plant(MODEL, SimulatorSettings.from_values(values, MODEL))


def controller(**values):
    made = FeedforwardController(MODEL, FeedforwardSettings.from_values(
        {"wrench_joints": list(ALL), "ramp_in": 0.0, **values}, MODEL))
    made.activate(0.0)
    return made


def answer(made, now=1.0):
    return made.on_state(now, round(now * 1e9), NAMES, Q, V)


def links(joints=ALL):
    return [sensor.link for sensor in wrench_sensors(tuple(joints), MODEL)]


def test_at_rest_it_shows_the_weight_that_hangs_on_it_and_a_push_as_it_is():
    sensors = wrench_sensors(("wrist-mount",), MODEL)
    zero = np.zeros(2)
    rest = readings(MODEL, sensors, zero, zero, zero, None)[0]
    np.testing.assert_allclose(rest, [0.0, 0.0, 0.0, 0.0, 0.0, -0.5 * 9.81], atol=1e-12)    # hangs down
    pushed = readings(MODEL, sensors, zero, zero, zero, {"hand": PUSH[0][1]})[0]
    np.testing.assert_allclose(pushed - rest, PUSH[0][1], atol=1e-12)
    assert sensors[0].frame == "hand" and sensors[0].topic == "~/wrench/wrist_mount"


def test_names_are_checked():
    with pytest.raises(rbd.RbdError, match=r"'wrench_joints':.*wrist-mont.*did you mean 'wrist-mount"):
        wrench_sensors(("wrist-mont",), MODEL)
    with pytest.raises(rbd.RbdError, match="share the topic"):
        wrench_sensors(("elbow", "elbow"), MODEL)
    assert wrench_sensors((), MODEL) == ()


def test_nothing_that_is_not_finite_is_shown():
    zero = np.zeros(2)
    sensors = wrench_sensors(ALL, MODEL)
    for huge in (1e200, 1e308, np.nan, np.inf):
        assert readings(MODEL, sensors, zero, zero + huge, zero, None) is None
        shown = readings(MODEL, sensors, zero, zero, zero, {"hand": np.full(6, huge)})
        assert shown is None or np.isfinite(shown).all()
    for push in (1e100, 1e200, 1e308):    # until the simulation fails
        robot = plant()
        robot.on_wrenches([("hand", np.full(6, push))])
        for _ in range(5):
            robot.advance(1)
            shown = robot.sensed()
            assert shown is None or np.isfinite(shown).all()


def test_a_simulated_one_shows_the_motion_of_the_last_step():
    robot = plant(step=1e-5, publish_rate=1000.0, initial_position=list(Q), initial_velocity=list(V))
    assert robot.sensed() is None    # how the robot accelerates is not known yet
    assert robot.on_commands([2.0, -1.0]) and robot.on_wrenches(PUSH)
    robot.advance(1)
    q, v = robot.simulator.q, robot.simulator.v
    push = {"hand": PUSH[0][1]}
    a = rbd.forward_dynamics(MODEL, q, v, [2.0, -1.0], push)
    expected = -rbd.joint_wrenches(MODEL, q, v, a, push)[links()]
    np.testing.assert_allclose(robot.sensed(), expected, rtol=1e-3, atol=1e-3)
    robot.reset()
    assert robot.sensed() is None


def test_brakes_and_friction_that_hold_are_seen_in_it():
    """At rest by brakes, or stuck: the weight, though the effort that acts would move the robot."""
    zero = np.zeros(2)
    weight = -rbd.joint_wrenches(MODEL, zero, zero, zero)[links()]
    braked = plant(brakes_until=1.0)
    np.testing.assert_array_equal(braked.sensed(), weight)
    stuck = plant(**{"friction.coulomb": 1000.0})
    stuck.advance(3)
    np.testing.assert_allclose(stuck.sensed(), weight, atol=1e-9)


def test_behind_elastic_joints_it_shows_the_motion_of_the_links():
    from support.elastic_arm import DRIVES

    from rbd_ros.core.simulation.elastic_simulator import ElasticSimulator
    from rbd_ros.runtime.plant.elastic_plant import ElasticPlant
    model = rbd.sample("two_link")
    settings = SimulatorSettings.from_values({"wrench_joints": ["elbow"], "step": 1e-4, "publish_rate": 1000.0,
                                              "initial_velocity": [0.5, -0.3], "timeout_action": "zero"}, model)
    robot = ElasticPlant(model, settings, rbd.load_actuation(DRIVES, model).drives)
    assert isinstance(robot.simulator, ElasticSimulator)
    robot.advance(3)
    before = np.array(robot.simulator.v)
    robot.advance(1)
    q, v = robot.simulator.q, np.array(robot.simulator.v)
    expected = -rbd.joint_wrenches(model, q, v, (v - before) / 1e-4)[model.body_index(model.joint("elbow").child)]
    np.testing.assert_allclose(robot.sensed()[0], expected, rtol=1e-12)


def test_in_a_loop_it_shows_the_forces_of_the_loop():
    model = rbd.sample("five_bar")
    names = list(model.joint_names)
    robot = Plant(model, SimulatorSettings.from_values({
        "constraints_file": "five_bar", "wrench_joints": names, "step": 1e-5, "publish_rate": 1000.0,
        "command_timeout": 0.0, "friction.coulomb": 0.0, "friction.damping": 0.0}, model))
    loops = robot.settings.constraints
    assert robot.on_commands([2.0, 0.3, -0.4, -1.0, 0.2])
    robot.advance(2000)
    q, v = np.array(robot.simulator.q), np.array(robot.simulator.v)
    found = rbd.constrained_forward_dynamics(model, loops, q, v, robot.effort, joint_wrenches=True)
    assert np.abs(found.multipliers).max() > 1.0
    at = [sensor.link for sensor in robot.settings.sensors]
    np.testing.assert_allclose(robot.sensed(), -found.joint_wrenches[at], rtol=1e-3, atol=1e-3)


def test_that_of_the_controller_shows_what_the_reference_asks_for():
    made = controller(**{"wrench_limits.rate": np.inf})
    assert made.on_reference(1.0, 0, NAMES, Q_REF, V_REF, A_REF)
    answer(made)
    np.testing.assert_allclose(made.sensed(1.001), -rbd.joint_wrenches(MODEL, Q, V, A_REF)[links()], rtol=1e-12)
    assert made.on_wrenches(1.0, PUSH)
    np.testing.assert_allclose(made.sensed(1.001), -rbd.joint_wrenches(
        MODEL, Q, V, A_REF, {"hand": PUSH[0][1]})[links()], rtol=1e-12)
    assert made.sensed(1.1) is None    # the state is too old


def test_without_a_reference_it_shows_a_robot_that_does_not_accelerate():
    made = controller()
    answer(made)
    np.testing.assert_allclose(made.sensed(1.0), -rbd.joint_wrenches(MODEL, Q, V, 0.0 * A_REF)[links()], rtol=1e-12)
    assert FeedforwardController(MODEL, FeedforwardSettings.from_values({}, MODEL)).sensed(1.0) is None


def test_a_load_is_in_it():
    values = {"payload.body": "hand", "payload.mass": 2.0, "payload.com": [0.1, 0.0, 0.05]}
    made = controller(**values)
    answer(made)
    loaded = with_payloads(MODEL, {"hand": payload(2.0, [0.1, 0.0, 0.05], np.zeros((3, 3)))})
    np.testing.assert_allclose(made.sensed(1.0), -rbd.joint_wrenches(loaded, Q, V, 0.0 * A_REF)[links()], rtol=1e-12)


def test_what_a_new_load_takes_is_done_before_the_controller_has_it(monkeypatch):
    """Settings are made while the torque goes on; a state after them must not wait for milliseconds."""
    from rbd_ros.core.dynamics.bodies import link_tree as module

    made = controller()
    values = {"wrench_joints": list(ALL), "ramp_in": 0.0, "payload.body": "hand", "payload.mass": 2.0}
    settings = FeedforwardSettings.from_values(values, MODEL)

    def late(model):
        raise AssertionError("a table of the model's links in the control loop")

    monkeypatch.setattr(module, "_packed", late)
    made.apply(settings)
    answer(made)
    assert made.sensed(1.0) is not None


def test_forces_of_loops_beyond_numbers_are_not_shown(monkeypatch):
    model = rbd.sample("five_bar")
    robot = Plant(model, SimulatorSettings.from_values(
        {"constraints_file": "five_bar", "wrench_joints": ["tip"], "timeout_action": "zero"}, model))
    robot.advance(1)
    assert robot.sensed() is not None
    forces = robot.constraint_forces()
    monkeypatch.setattr(robot, "constraint_forces", lambda: forces._replace(force=np.full(3, 1.7e308)))
    with np.errstate(all="ignore"):
        assert robot.sensed() is None
