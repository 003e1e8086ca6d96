"""Torque that acted late, found from the motion alone."""
import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.simulation.simulator import Simulator
from rbd_ros.runtime.cosimulation.residual import ResidualMonitor, ResidualSettings

MODEL = rbd.load_urdf(rbd.sample_path("two_link")).with_(armature=0.1, damping=0.0, friction=0.0)
STEP, MS = 1e-3, 1_000_000


def turns(known, late=(), split=(), count=400, steps=2, delay=0, drop=(), held=()):
    """The monitor after turns of `steps` steps; in turns `late` the first one has the old torque, in turns `split` that
    of the elbow is old, in turns `held` nothing is taken. delay: steps from a state until its answer acts. drop: steps
    whose state is lost.
    """
    robot = Simulator(MODEL, step=STEP, q=[0.3, -0.8], v=[0.5, 0.2], integrator="semi_implicit", limits=False)
    monitor = ResidualMonitor(known, ResidualSettings.from_values(
        {"effort_source": "effort", "effort_delay": delay * STEP}, known))
    names, k = MODEL.joint_names, 0
    old = np.zeros(2)
    monitor.on_state(0, names, robot.q, robot.v, [0.0, 0.0])
    for turn in range(count):
        new = np.array([2.0 * np.sin(0.01 * turn), np.cos(0.013 * turn)]) - 3.0 * robot.v
        monitor.on_command(k * MS, names, new)
        new = old if turn in held else new
        for i in range(steps):
            acts = old if i < delay or (turn in late and i == delay) else new
            if turn in split and i == delay:
                acts = np.array([new[0], old[1]])
            robot.step(acts)
            k += 1
            for _ in range(3):    # as from a simulation that stands, and shows its state again and again
                if k not in drop:
                    monitor.on_state(k * MS, names, robot.q, robot.v, [0.0, 0.0])
        old = new
    return monitor


@pytest.mark.parametrize("delay", [0, 1])
def test_commands_that_act_when_they_should_are_not_counted(delay):
    monitor = turns(MODEL, delay=delay)
    report = monitor.report()
    assert report["commands_judged"] > 350
    assert report["commands_late"] == report["commands_split"] == report["commands_held"] == 0
    assert report["gaps"] == 0 and report["repeated"] == 2 * 800


@pytest.mark.parametrize("delay", [0, 1])
def test_late_and_split_ones_are(delay):
    late, split = range(20, 400, 50), range(30, 400, 50)
    report = turns(MODEL, late, split, delay=delay).report()
    assert report["commands_late"] == len(late) and report["commands_split"] == len(split)
    assert report["commands_held"] == 0


@pytest.mark.parametrize("delay", [0, 1])
def test_a_command_that_is_held_is_found_however_long_it_is(delay):
    """Of a hold the first command is late, as far as its turn tells, and the others find an older one acting."""
    monitor = turns(MODEL, delay=delay, held=[*range(50, 60), *range(150, 255), *range(350, 400)])
    assert 140 < monitor.report()["commands_held"] <= 9 + 104 + 49
    assert 40 < monitor.applied.held <= 49    # in a row, as it stands


def test_a_model_that_is_not_quite_the_robot_finds_the_large_ones_and_invents_none():
    known = MODEL.with_scaled_masses(1.003)
    assert turns(known).report()["commands_late"] == turns(known).report()["commands_split"] == 0


def test_another_robot_is_not_judged():
    report = turns(MODEL.with_scaled_masses(1.3)).report()
    assert report["commands_late"] == report["commands_split"] == 0


def test_states_that_are_lost_are_neither_leaps_nor_late_commands():
    rng = np.random.default_rng(0)
    monitor = turns(MODEL, drop=set(rng.choice(800, 300, replace=False).tolist()) | set(range(200, 260)))
    report = monitor.report()
    assert report["rejected_total"] == 0 and report["commands_late"] == report["commands_split"] == 0
    assert report["residuals"] > 400
