"""`rbd.EffortObserver` and the contacts of `rbd.TorqueController`: pushes on arms in the loop, and what is refused.

That it is the same as the node: nodes/test_effort_observer_and_node.py.
"""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.recordings import periodic

import rbd_ros as rbd

ROOT = Path(__file__).parents[2]
MODEL = rbd.sample("iiwa").with_(armature=0.3)
START, NV = np.linspace(0.3, 0.9, 7), 7
TIP = MODEL.body_names[-1]
THRESHOLD = 0.5
LOOP = {"gains": {"kp": 400.0, "kd": 40.0}, "contact": {"reaction": "report", "threshold": [THRESHOLD]}}
GAIN = 50.0    # 1/s, of both by default


def in_motion(push, begin=1.2, end=3.0, until=3.5):
    """An arm of the model in motion, pushed from begin to end, s. Returns the times, external efforts of the observer,
    of the controller, contacts of both, and the true external efforts.
    """
    controller = rbd.TorqueController(MODEL, **LOOP)
    observer = rbd.EffortObserver(MODEL, effort_source="effort", threshold=[THRESHOLD])
    arm = rbd.Simulator(MODEL, q=START)
    command = controller.update(arm.time, arm.q, arm.v)
    rows, after = [], rbd.jacobian(MODEL, arm.q, TIP)
    while arm.time < until:
        if abs(arm.time - 0.8) < 1e-9:
            controller.follow(rbd.SplineMotion(np.repeat([arm.q, arm.q - 0.5], 6, axis=0), 1.6))
        wrench = push if begin <= arm.time < end - 1e-9 else 0.0 * push
        before = after
        arm.step(command.effort, external_wrenches={TIP: wrench})
        after = rbd.jacobian(MODEL, arm.q, TIP)
        true = 0.5 * (before + after).T @ wrench
        observed = observer.update(arm.time, arm.q, arm.v, command.effort)
        command = controller.update(arm.time, arm.q, arm.v)
        rows.append((arm.time, np.zeros(NV) if observed is None else observed.effort, controller.external_effort,
                     observer.contact, controller.contact, true))
    assert controller.report()["contacts"] == observer.report()["contacts"]
    return [list(row) for row in zip(*rows, strict=True)]


@pytest.mark.closed_loop
@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
def test_a_push_on_an_arm_in_motion_is_found():
    push = np.array([0.0, 0.0, 1.5, 12.0, 0.0, -8.0])
    t, mine, its, contacts, its_contacts, true = in_motion(push)
    expected, filtered = np.zeros(NV), []
    for effort in true:    # the exact filter of an effort that is constant within each step
        expected = effort + (expected - effort) * np.exp(-GAIN * 1e-3)
        filtered.append(expected)
    settled = np.array(t) > 0.8    # the command has ramped in
    for external in (mine, its):
        np.testing.assert_allclose(np.array(external)[settled], np.array(filtered)[settled], atol=1e-3)
    for touch in (contacts, its_contacts):
        felt = [(time, one) for time, one in zip(t, touch, strict=True) if one is not None]
        assert 1.2 < felt[0][0] < 1.22 and 3.0 < felt[-1][0] < 3.4
        late = [one for time, one in felt if 2.8 < time < 3.0]    # at rest again
        assert {one.body for one in late} == {TIP} and {round(one.since, 6) for one in late} == {round(felt[0][0], 6)}
        np.testing.assert_allclose([one.wrench for one in late], np.repeat([push], len(late), axis=0), atol=0.05)
        np.testing.assert_allclose(late[-1].force, push[3:], atol=0.05)
        assert touch[-1] is None


@pytest.mark.closed_loop
@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
def test_no_alarm_without_contact():
    _, mine, its, contacts, its_contacts, _ = in_motion(np.zeros(6), until=2.6)
    assert set(contacts) == set(its_contacts) == {None}
    assert max(np.abs(mine).max(), np.abs(its).max()) < 0.02


def test_without_a_reaction_the_controller_sees_nothing():
    for node in ("feedforward", "flatness", "cartesian"):
        made = rbd.TorqueController(rbd.sample("two_link"), node)
        made.update(0.0, [0.1, 0.2], [0.0, 0.0])
        assert made.external_effort is None and made.contact is None


def at_rest(observer, push, times):
    """At rest against a wrench on the last link; measured efforts."""
    model = observer.model
    effort = rbd.gravity_effort(model, START) - rbd.jacobian(model, START, TIP).T @ push
    return [observer.update(t, START, np.zeros(NV), effort) for t in times]


def test_states_that_are_refused_say_why_and_change_nothing():
    observer = rbd.EffortObserver(rbd.sample("iiwa"), threshold=0.01)
    assert observer.contact is None and observer.reason == ""
    push = np.array([0.0, 0.5, 0.4, 20.0, 0.0, -5.0])
    seen = at_rest(observer, push, 1e-3 * np.arange(300))
    assert seen[0] is None and all(each is not None for each in seen[1:])
    before, zero = observer.contact, np.zeros(NV)
    assert before.body == TIP
    for wrong, said in [((np.nan, START, zero, zero), "time t is nan, expected a number of seconds"),
                        (("soon", START, zero, zero), "time t is 'soon'"), ((1e10, START), "time t is"),
                        ((0.3, "place", zero, zero), "q is 'place', expected numbers"),
                        ((0.3, START[:3], zero, zero), "position"), ((0.3, None, zero, zero), "q is None"),
                        ((0.3, START, np.zeros((7, 1)), zero), r"v has shape (7, 1), expected a vector"),
                        ((0.3, START, zero, zero[:2]), "effort"), ((0.3, np.full(NV, np.nan), zero, zero), "position"),
                        ((0.3, START, zero, [True] * 7), "tau is")]:
        assert observer.update(*wrong) is None
        assert said in observer.reason, observer.reason
        assert observer.contact.body == before.body and observer.contact.since == before.since
        np.testing.assert_array_equal(observer.contact.wrench, before.wrench)
    assert observer.report()["rejected_total"] == 10
    assert observer.update(0.3, START, zero, None) is None and observer.reason == ""    # no effort
    assert observer.report()["without_effort"] == 1
    at_rest(observer, push, [0.301])
    assert at_rest(observer, push, [0.302])[0] is not None
    at_rest(observer, np.zeros(6), 1.0 + 1e-3 * np.arange(800))
    assert observer.contact is None and observer.report()["contacts"] == 1


def test_a_command_is_held_and_a_wrong_one_is_told():
    observer = rbd.EffortObserver(rbd.sample("iiwa"), effort_source="effort")
    held, zero = rbd.gravity_effort(observer.model, START), np.zeros(NV)
    assert observer.update(0.0, START, zero, held) is None
    assert np.abs(observer.update(0.001, START, zero).effort).max() < 1e-12
    seen = observer.update(0.002, START, zero, held[:3])
    assert seen is not None and np.abs(seen.effort).max() < 1e-12 and "effort" in observer.reason
    assert observer.update(0.003, START, zero, held) is not None and observer.reason == ""


@pytest.mark.parametrize(("wrong", "said"), [
    ({"gains": {"kp": 1.0}}, "unknown parameter 'gains.kp'"), ({"gain": 0.0}, "'gain' is 0.0"),
    ({"threshold": [1.0, 2.0]}, "'threshold' has 2 numbers, expected 1 or 7"),
    ({"body": "hand"}, "link in parameter 'body': 'hand'"), ({"file": "missing.yaml"}, "cannot read parameters"),
    ({"gravity": [0.0, 0.0, 9.81]}, "'gravity' is for loading a description")])
def test_wrong_parameters_are_named(wrong, said):
    with pytest.raises(rbd.RbdError, match=said):
        rbd.EffortObserver(rbd.sample("iiwa"), **wrong)
    with pytest.raises(rbd.RbdError, match="floating"):
        rbd.EffortObserver(rbd.sample("biped", root="floating"))


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
def test_parameters_come_from_a_file_and_change(tmp_path):
    file = tmp_path / "arm.yaml"
    file.write_text("/**:\n  ros__parameters:\n    gain: 30.0\n    autostart: true\nobserver:\n  ros__parameters: "
                    "{threshold: [2.0]}\nfeedforward:\n  ros__parameters: {gain: 9.0}\n")
    observer = rbd.EffortObserver(str(rbd.sample_path("iiwa")), file, release=0.1)
    values = observer.parameters
    assert (values["gain"], values["threshold"], values["release"]) == (30.0, (2.0,), 0.1)
    observer.set(gain=40.0)
    assert observer.parameters["gain"] == 40.0
    for wrong, said in [({"gain": -1.0}, "'gain' is -1.0"), ({"effort_source": "effort"}, "read-only"),
                        ({"gian": 1.0}, "unknown parameter 'gian'")]:
        with pytest.raises(rbd.RbdError, match=said):
            observer.set(**wrong)
        assert observer.parameters["gain"] == 40.0
    with pytest.raises(rbd.RbdError, match=r"set parameter 'payload\.estimate'"):
        observer.payload_parameters()
    file.write_text("/**:\n  ros__parameters: {mounting.frame: world}\n")
    with pytest.raises(rbd.RbdError, match=r"'mounting.frame' is 'world'.*set 'mounting.rpy'"):
        rbd.EffortObserver(rbd.sample("iiwa"), file)
    assert rbd.EffortObserver(rbd.sample("iiwa"), ROOT / "config" / "observer.yaml").parameters == rbd.EffortObserver(
        rbd.sample("iiwa")).parameters


@pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
def test_a_load_is_weighed_and_taken_over():
    model, h = rbd.sample("iiwa"), 0.004
    load = rbd.Inertia(2.0, np.array([0.03, -0.02, 0.08]), np.diag([0.01, 0.012, 0.008]))
    truth, motion = model.with_payload(TIP, load), periodic(model, 1, period=4.0)
    observer, controller = rbd.EffortObserver(model, payload={"estimate": TIP}), rbd.TorqueController(model)
    with pytest.raises(rbd.RbdError, match="has not shown"):
        observer.payload_parameters()
    told = []
    times = h * np.arange(1100)
    q, v, a = motion(times % 4.0)[:3]
    for row in zip(times, q, v, rbd.inverse_dynamics(truth, q, v, a), strict=True):
        seen = observer.update(*row)
        told += [seen.load] if seen is not None and seen.load is not None else []
    assert 3 <= len(told) <= 5
    taken = observer.payload_parameters()
    for each in (observer, controller):
        each.set(**taken)
        assert each.parameters["payload.mass"] == pytest.approx(2.0, rel=1e-3)
        np.testing.assert_allclose(rbd.gravity_effort(each.model, START), rbd.gravity_effort(truth, START), atol=0.05)
