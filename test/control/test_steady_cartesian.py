"""The steady cycle of Cartesian control gives what the ordinary path gives, to the last bit, and mostly answers."""
from __future__ import annotations

import numpy as np
import pytest
from support.cartesian_rig import GAINS, START, STEP, TIP, Rig

import rbd_ros as rbd
from rbd_ros.core.compiled.kernel import COMPILED
from rbd_ros.runtime.control.cartesian_settings import CartesianSettings

pytestmark = pytest.mark.skipif(not COMPILED, reason="there is no steady cycle in plain Python")

LAWS = ({}, {"robot_compensates": ["gravity"], "stiffness.frame": "target"},
        {"robot_compensates": ["gravity", "coriolis"], "friction.compensation": 0.6},
        {"friction.compensation": 0.75, "friction.load": [0.002], "friction.asymmetry": [0.02]},
        {"effort_limits.rate": [1e4], "state_rate": 500.0})


def rubbing(seed=0, **values):
    rig = Rig(friction=0.2, rubs=0.2, seed=seed, twins=True, **values)
    if "robot_compensates" in values:
        rig.plant = rbd.Simulator(rig.plant.model.with_(gravity=[0.0, 0.0, 0.0]), step=STEP, q=START)
    return rig


def share(rig, seconds, **how):
    """Of the states, those that the steady cycle answered."""
    before = rig.controller.hits.copy()
    rig.run(seconds, **how)
    found = rig.controller.hits - before
    return found[True] / max(found.total(), 1)


@pytest.mark.parametrize("values", [    # always the one with most terms; the walk has the plain one
    pytest.param(each, marks=[pytest.mark.thorough] * (k != 2), id=" ".join(map(str, each.values())) or "plain")
    for k, each in enumerate(LAWS)])
def test_at_rest_on_the_way_to_a_goal_and_along_a_trajectory(values):
    rig = rubbing(**values)
    rig.run(0.8)
    assert share(rig, 0.1) == 1.0
    assert rig.goal([0.05, 0.03, -0.05], [0.1, 0.05, 0.1])
    assert share(rig, 1.0) > 0.99
    assert rig.follow(rig.circle(0.02, 2.0, 0.07))
    assert share(rig, 2.4) > 0.98    # all pieces, and beyond the end
    assert rig.controller.on_twist(rig.now, "", [0.05, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert share(rig, 0.05) == 0.0    # while the twist leads it
    rig.run(0.3)
    assert share(rig, 0.3) == 1.0


def test_in_front_of_a_wall_and_behind_it(tmp_path):
    path = tmp_path / "walls.yaml"
    path.write_text("walls:\n- plane: {point: [-0.6, 0.03, 0.0], normal: [0.0, -1.0, 0.0]}\n")
    rig = rubbing(**{"walls.file": str(path)})
    rig.run(0.8)
    assert rig.goal([0.0, 0.1, 0.0])
    assert share(rig, 2.0) > 0.9 and rig.controller.first.report()["wall_depth_mm"] > 1.0


@pytest.mark.parametrize("event", ["wrench", "guide", "law", "stop", "lie", "lost", "fast", "far", "cancel",
                                   "settings"])
def test_what_is_unusual_goes_the_ordinary_way(event):
    """And the steady cycle goes on afterwards, where anything does."""
    rig = rubbing()
    rig.run(0.8)
    assert rig.goal([0.0, 0.05, 0.0])
    rig.run(0.1)
    both, settings = rig.controller, {**GAINS, "stiffness.translation": [200.0] * 3}
    if event == "wrench":
        assert both.on_target_wrench(rig.now, "", [0.0, 0.0, 0.0, 0.0, 0.0, -3.0])
    elif event == "guide":
        rig.run(1.5)
        assert both.guide(rig.now, True)
    elif event == "law":
        both.apply(CartesianSettings.from_values({**settings, "law": "joint"}, both.first.model))
    elif event == "settings":
        both.apply(CartesianSettings.from_values(settings, both.first.model))
    elif event == "stop":
        both.safety.stop()
    elif event == "cancel":
        both.halt(rig.now)
    usual = {"lie": {"lie": rig.plant.q + 1.0}, "lost": {"lost": True}, "fast": {"force": np.array([0.0, 300.0, 0.0])},
             "far": {"force": np.array([0.0, 60.0, 0.0])}}.get(event, {})
    assert share(rig, 0.2, **usual) < (1.0 if event in ("fast", "far", "cancel") else 0.1)
    if event not in ("wrench", "guide", "law", "stop"):
        rig.run(1.8)
        assert share(rig, 0.2) == 1.0


@pytest.mark.parametrize(("seed", "events"), [(0, 7), *(pytest.param(seed, 25, marks=pytest.mark.thorough)
                                                         for seed in range(12))])
def test_a_walk_with_and_without_the_steady_cycle_is_the_same(seed, events):
    rng = np.random.default_rng(seed)
    rig = rubbing(seed, **LAWS[seed % len(LAWS)])
    rig.run(0.6)
    both = rig.controller
    for _ in range(events):
        event = rng.integers(12)
        if event <= 2:
            rig.goal(0.15 * rng.normal(size=3), 0.3 * rng.normal(size=3))
        elif event == 3 and rig.modes[-1] == "running":
            rig.follow(rig.circle(0.02 + 0.03 * rng.random(), 2.0, rng.uniform(-0.2, 0.2), begin=rng.uniform(0.2, 0.6)))
        elif event == 4:
            both.on_twist(rig.now, str(rng.choice(["", TIP])), 0.2 * rng.normal(size=3), 0.5 * rng.normal(size=3))
        elif event == 5:
            both.on_target_wrench(rig.now, TIP, [0.0, 0.0, 0.0, *(5.0 * rng.normal(size=3) * rng.integers(2))])
        elif event == 6:
            both.guide(rig.now, True)
            rig.run(rng.uniform(0.0, 1.0))
            both.guide(rig.now, False)
        elif event == 7:
            both.safety.stop()
            rig.run(0.3)
            both.reset(rig.now)
        elif event == 8:
            rig.run(rng.uniform(0.0, 0.15), lost=True)
        elif event == 9:
            rig.run(0.004, lie=rig.plant.q + rng.normal(size=7))
        elif event == 10:
            rig.run(0.1, force=30.0 * rng.normal(size=3))
        else:
            both.apply(CartesianSettings.from_values({
                **GAINS, **LAWS[seed % len(LAWS)], "stiffness.translation": rng.uniform(100.0, 600.0, 3).tolist(),
                "law": str(rng.choice(["cartesian", "cartesian", "joint"]))}, both.first.model))
        rig.run(rng.uniform(0.1, 0.9))
    assert both.hits[True] > 8 * events and both.hits[False] > 40 * events
