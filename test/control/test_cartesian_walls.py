"""Virtual walls in the closed loop: goals behind them, the first contact at full speed, starts behind them, changes."""
from __future__ import annotations

import numpy as np
import pytest
from support.cartesian_rig import GAINS, MODEL, STEP, Rig

import rbd_ros as rbd
from rbd_ros.core.dynamics.walls import RECESS
from rbd_ros.core.lie import so3
from rbd_ros.runtime.control.cartesian import LEASH
from rbd_ros.runtime.control.cartesian_settings import CartesianSettings

HERE = Rig().pose[:3, 3]
ASIDE = (HERE + np.array([0.1, 0.1, -0.1])).tolist()
K, F = 3000.0, 50.0    # N/m of the walls; N of the springs


def walled(text, **values):
    return {"walls.file": f"walls: [{text}]", "walls.stiffness": K, "largest.force": F, **values}


def plane(distance, normal):
    """As text, this far from where the link starts."""
    n = np.array(normal, dtype=float)
    return f"{{plane: {{point: {(HERE - distance * n).tolist()}, normal: {n.tolist()}}}}}"


def depths(rig, seconds):
    found = []
    for _ in range(round(seconds / STEP)):
        rig.run(STEP)
        found.append(1e-3 * rig.controller.report()["wall_depth_mm"])
    return np.array(found)


def impact(rig, speed, axis):
    """m: how deep an undamped link would go into the wall."""
    J = rbd.jacobian(MODEL, rig.plant.q, MODEL.body_names[-1], "aligned")[3 + axis]
    return speed / np.sqrt(K * (J @ np.linalg.solve(rbd.mass_matrix(MODEL, rig.plant.q), J)))


@pytest.mark.parametrize("speed", [0.25, 1.0])
def test_a_goal_behind_a_wall_presses_with_the_springs_alone(speed):
    """As far as the target goes ahead of the link; the first contact is no deeper than that."""
    rig = Rig(**walled(plane(0.06, [0, 1, 0]), **{"target.speed": speed})).run(0.8)
    assert rig.goal([0.05, -0.3, 0.0])
    deep = depths(rig, 3.0)
    assert 0.99 * 300.0 * LEASH < K * deep[-1] < F and rig.rests()
    assert deep.max() < 1.01 * deep[-1] and rig.fastest < 1.5
    assert rig.pose[0, 3] == pytest.approx(HERE[0] + 0.05, abs=0.06)    # it slid along
    assert rig.goal([0.0, 0.2, 0.0])
    rig.run(2.2)
    assert rig.controller.report()["wall_depth_mm"] == 0.0
    assert rig.pose[1, 3] == pytest.approx(HERE[1] - 0.06 - deep[-1] + 0.2, abs=2e-3)


@pytest.mark.parametrize("stiffness", [300.0, pytest.param(100.0, marks=pytest.mark.thorough)])
def test_depth_is_that_of_springs_in_series(stiffness):
    rig = Rig(**walled(plane(0.05, [0, 1, 0]), **{"stiffness.translation": [stiffness] * 3})).run(0.8)
    assert rig.goal([0.0, -0.1, 0.0])
    deep = depths(rig, 3.0)
    assert deep[-1] == pytest.approx(0.05 * stiffness / (K + stiffness), rel=0.02)
    assert deep.max() < max(1.01 * deep[-1], 0.7 * impact(rig, 0.25, 1))


@pytest.mark.parametrize("text", [
    f"{{box: {{center: {HERE.tolist()}, size: [0.1, 0.1, 0.1], rpy: [0.1, 0.2, 0.3], keep: inside}}}}",
    f"{{sphere: {{center: {HERE.tolist()}, radius: 0.05, keep: inside}}}}",
    f"{{cone: {{apex: {(HERE - [0, 0, 0.1]).tolist()}, axis: [0, 0, 1], half_angle: 0.5, keep: inside}}}}",
    f"{{sphere: {{center: {ASIDE}, radius: 0.1, keep: outside}}}}",
    f"{{box: {{center: {ASIDE}, size: [0.15, 0.12, 0.15], keep: outside}}}}"])
@pytest.mark.parametrize(("move", "longest"), [([0.2, 0.2, -0.2], 3.5), *(
    pytest.param(move, 8.0, marks=pytest.mark.thorough) for move in (
        [0.2, 0.2, -0.2], [-0.2, 0.1, -0.2], [0.0, 0.25, -0.25], [0.1, 0.1, -0.1]))])
def test_links_stay_where_walls_keep_them(text, move, longest):
    rig = Rig(masses=1.03, friction=0.1, **walled(text)).run(0.8)
    assert rig.goal(move)
    deep = depths(rig, longest)
    assert deep.max() < 1.1 * F / K and rig.creeps() and rig.fastest < 1.5


def test_behind_a_wall_at_the_start_it_is_held_and_may_leave():
    rig = Rig(**walled(plane(-0.08, [0, 1, 0]))).run(1.5)
    assert np.linalg.norm(rig.pose[:3, 3] - HERE) < 1e-3 and rig.controller.report()["wall_depth_mm"] == (
        pytest.approx(80.0, abs=1.0))
    assert np.abs(np.diff(rig.asked[300:], axis=0)).max() < 0.5    # noise of the velocity
    assert rig.goal([0.0, -0.1, 0.0])
    assert depths(rig, 2.2)[-1] == pytest.approx(0.08 + 0.1 * 300.0 / (K + 300.0), rel=0.03)
    assert rig.goal([0.0, 0.05, 0.0])
    rig.run(2.0)
    here = rig.pose[1, 3]
    assert rig.goal([0.0, -0.1, 0.0])    # now the wall is there
    rig.run(2.2)
    assert rig.pose[1, 3] == pytest.approx(here - 0.1 * 300.0 / (K + 300.0), abs=1e-3)
    assert rig.rests() and rig.fastest < 1.3


def test_walls_that_change_do_not_throw_the_link():
    """One that appears, and others that stay while it presses on them."""
    rig = Rig().run(0.8)
    change = walled(plane(0.0, [0, 1, 0]) + ", " + plane(-0.05, [1, 0, 0]), **GAINS)
    rig.controller.apply(CartesianSettings.from_values(change, MODEL))
    rig.run(1.0)
    assert np.linalg.norm(rig.pose[:3, 3] - HERE) < 1e-3
    assert rig.goal([0.0, -0.1, 0.0])
    deep = depths(rig, 3.0)
    rested = rig.pose[1, 3]
    rig.controller.apply(CartesianSettings.from_values({**change, "damping_ratio": 0.8}, MODEL))
    rig.run(1.5)
    assert rig.pose[1, 3] == pytest.approx(rested, abs=5e-4) and deep[-1] == pytest.approx(0.05, rel=0.05)
    recess = rig.controller.safety.laws.newest.law.walls[:, RECESS]
    np.testing.assert_allclose(recess, [0.0, 0.05], atol=1e-3)


def test_after_a_stop_behind_a_wall_it_is_held_there():
    rig = Rig(**walled(plane(0.03, [0, 1, 0]))).run(0.8)
    assert rig.goal([0.0, -0.2, 0.0])
    rig.run(2.0)
    rig.controller.safety.stop()
    rig.run(0.5, force=np.array([0.0, -60.0, 0.0]))
    rig.run(0.5)
    before = rig.pose[1, 3]
    rig.controller.reset(rig.now)
    rig.run(3.0)
    assert abs(rig.pose[1, 3] - before) < 0.01 and rig.rests()


def test_stiffness_of_walls_is_stable_at_the_rate():
    """Walls far too stiff for 500 Hz."""
    rig = Rig(**walled(plane(0.05, [0, 1, 0]), **{"walls.stiffness": 1e5})).run(0.8)
    assert rig.goal([0.0, -0.3, 0.0])
    deep = depths(rig, 2.4)
    assert rig.rests() and deep[-1] == pytest.approx(deep[-200], abs=1e-4) and 0.0 < deep[-1] < 0.01


def test_walls_weaker_than_the_springs_are_refused():
    with pytest.raises(rbd.RbdError, match="pull the link through"):
        CartesianSettings.from_values(walled(plane(0.05, [0, 1, 0]), **{"walls.force": F}), MODEL)


def test_turning_goals_at_a_wall():
    rig = Rig(**walled(plane(0.01, [0, 1, 0]))).run(0.8)
    R = rig.pose[:3, :3]
    assert rig.goal([0.0, -0.1, 0.0], [0.0, 0.6, 0.0])
    rig.run(2.8)
    assert np.linalg.norm(so3.log(rig.pose[:3, :3] @ R.T) - [0.0, 0.6, 0.0]) < 0.05 and rig.rests()


def test_a_link_that_went_behind_a_wall_under_law_joint_is_not_thrown_out():
    values = walled(plane(0.02, [0, 1, 0]), **{"posture.damping": 14.0})
    rig = Rig(**values).run(0.8).change(law="joint", **values).run(0.6)
    push = np.array([0.0, -12.0, 0.0])
    rig.run(1.5, force=push).change(**values).run(0.4, force=push)
    behind, rig.fastest = HERE[1] - 0.02 - rig.pose[1, 3], 0.0
    assert behind > 0.02
    rig.run(1.4)
    assert rig.rests() and rig.fastest < 0.2 and HERE[1] - 0.02 - rig.pose[1, 3] > 0.5 * behind
