"""Parameter tables, what a model must be like, and that every parameter of the controller changes its behaviour."""
from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest
from support.arm import A_REF, JOINT, LINK, MIMIC, NAMES, Q_REF, V_REF, Q, V, arm

import rbd_ros as rbd
from rbd_ros import runtime
from rbd_ros.runtime.control.feedforward import FEEDFORWARD_TABLE, FeedforwardController, FeedforwardSettings
from rbd_ros.runtime.parameters import Parameter, validate
from rbd_ros.runtime.plant.simulator_settings import SIMULATOR_TABLE
from rbd_ros.runtime.robot import load_model

CONFIG = Path(__file__).parents[2] / "config" / "feedforward.yaml"
MS = 1_000_000


def controller(model=None, **values):
    model = arm() if model is None else model
    values = {"ramp_in": 0.0, "ramp_out": 0.0} | {name.replace("__", "."): value for name, value in values.items()}
    made = FeedforwardController(model, FeedforwardSettings.from_values(values, model))
    made.activate(0.0)
    return made


def answer(made, now=1.0, stamp_ns=MS, velocity=V):
    """Effort in state Q, V with the usual reference."""
    made.on_reference(now, 0, NAMES, Q_REF, V_REF, A_REF)
    return made.on_state(now, stamp_ns, NAMES, Q, velocity).effort


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)


# ---- settings

def test_settings_are_made_by_name():
    """By order, a new one in the middle would move those behind it to each other's places, without a word."""
    found = [item for info in pkgutil.walk_packages(runtime.__path__, f"{runtime.__name__}.")
             for item in vars(importlib.import_module(info.name)).values()
             if isinstance(item, type) and dataclasses.is_dataclass(item) and item.__name__.endswith("Settings")]
    assert FeedforwardSettings in found
    ordered = {kind.__name__ for kind in found if any(not field.kw_only for field in dataclasses.fields(kind))}
    assert ordered == {"ElasticLawSettings"}    # which users make: period, mode


# ---- table

@pytest.mark.parametrize(("kind", "given", "expected"), [
    ("number", 1, 1.0), ("numbers", 1, (1.0,)), ("numbers", [1, 2.5], (1.0, 2.5)), ("bool", True, True),
    ("string", "a", "a"), ("strings", ["a", ""], ("a",)), ("strings", "a", ("a",)),
    ("numbers", np.array([1, 2]), (1, 2)),
])
def test_values_convert(kind, given, expected):
    assert Parameter("p", kind, None, "").convert(given) == expected


@pytest.mark.parametrize(("kind", "given"), [
    ("number", "1"), ("number", True), ("number", float("nan")), ("number", [1.0]), ("numbers", []), ("numbers", ["a"]),
    ("bool", 1), ("string", 1), ("strings", [1]), ("number", None), ("number", 11.0), ("numbers", [1.0, -1.0]),
])
def test_wrong_values_are_refused_by_name(kind, given):
    with pytest.raises(rbd.RbdError, match=r"parameter 'p' is .* expected"):
        Parameter("p", kind, None, "", lower=0.0, upper=10.0).convert(given)


def test_unknown_parameter():
    with pytest.raises(rbd.RbdError, match=r"gains\.kp"):
        validate(FEEDFORWARD_TABLE, {"gain.kp": 1.0})


# ---- model

def load(model_xml, **values):
    values = {name.replace("__", "."): value for name, value in values.items()}
    return load_model(validate(FEEDFORWARD_TABLE, values), model_xml)


def xml(kind="revolute", lower_mass=1.0, inertia=True):
    lower = LINK.format(name="lower", mass=lower_mass)
    if not inertia:
        lower = '<link name="lower"/>'
    return ('<robot name="arm"><link name="base"/>' + LINK.format(name="upper", mass=2) + lower
            + JOINT.format(name="shoulder", kind="revolute", parent="base", child="upper", x=0, effort=9, extra="")
            + JOINT.format(name="elbow", kind=kind, parent="upper", child="lower", x=0.4, effort=9, extra="")
            + "</robot>")


def test_singular_mass_matrix_names_the_joint():
    with pytest.raises(rbd.RbdError, match="'elbow' moves no mass"):
        load(xml(inertia=False))
    load(xml(inertia=False), rotor_inertia=[-1.0, 0.1])
    load(xml(inertia=False), locked__joints=["elbow"])


def test_joint_with_several_coordinates_is_refused_by_name():
    with pytest.raises(rbd.RbdError, match="'elbow' is floating"):
        load(xml(kind="floating"))


def test_gravity_and_locked_joints():
    model, _ = load(xml(), gravity=[0, 0, -1.62], locked__joints=["elbow"], locked__positions=0.5)
    assert model.joint_names == ("shoulder",) and model.gravity[2] == -1.62
    free, _ = load(xml())
    close(rbd.gravity_effort(model, [0.3])[0], rbd.gravity_effort(free, [0.3, 0.5])[0] * 1.62 / 9.81)
    with pytest.raises(rbd.RbdError, match="expected 3"):
        load(xml(), gravity=[9.81])


def test_effort_limit_zero_needs_an_override():
    model = arm(shoulder_effort=0.0)
    with pytest.raises(rbd.RbdError, match=r"shoulder.*override_zero"):
        controller(model)
    made = controller(model, effort_limits__override_zero=[1.0, 99.0])
    close(made.settings.safety.effort_limit, [1.0, 50.0])


def test_what_is_said_of_effort_limit_zero_is_what_the_node_does():
    weak = xml().replace('effort="9"', 'effort="0"')
    assert load(weak)[1] == []    # a torque node refuses it, with the names
    (note,) = load(weak, effort_limits__override_zero=[3.0])[1]
    assert "shoulder, elbow to 0; 'effort_limits.override_zero' counts instead" in note
    (note,) = load_model(validate(SIMULATOR_TABLE, {}), weak)[1]
    assert "counts as no limit" in note and "override" not in note


def test_order_of_joints():
    made = controller(joints=["elbow", "shoulder"], gains__kp=[1.0, 2.0])
    close(made.settings.law.kp, [2.0, 1.0])
    close(np.array([10.0, 20.0])[made.settings.output], [20.0, 10.0])
    for wrong in (["elbow"], ["elbow", "elbow"], ["elbow", "wrist"]):
        with pytest.raises(rbd.RbdError, match="joints"):
            controller(joints=wrong)


# ---- each parameter changes what the controller does

def test_laws_and_gains():
    model = arm()
    pd = 100 * (Q_REF - Q) + 10 * (V_REF - V)
    gains = {"gains__kp": 100, "gains__kd": 10}
    close(answer(controller(feedforward="none", **gains)), pd)
    close(answer(controller(feedforward="gravity", **gains)), pd + rbd.gravity_effort(model, Q))
    full = answer(controller(**gains))
    close(full - answer(controller()), pd)
    close(full - answer(controller(friction__damping=False, **gains)), model.damping * V_REF)
    close(full - answer(controller(friction__coulomb=False, **gains)), model.friction * np.tanh(V_REF / 0.01))
    close(full - answer(controller(friction__smoothing=1.0, **gains)),
          model.friction * (np.tanh(V_REF / 0.01) - np.tanh(V_REF)))
    close(full - answer(controller(robot_compensates=["gravity"], **gains)), rbd.gravity_effort(model, Q_REF))


def test_effort_limits():
    free = answer(controller())
    close(answer(controller(effort_limits__maximum=1.0)), np.clip(free, -1.0, 1.0))
    values = {"feedforward": "none", "effort_limits.rate": 2.0, "ramp_in": 0.0}
    made = controller(effort_limits__rate=2.0)
    first = answer(made)
    made.apply(FeedforwardSettings.from_values(values, made.model))
    second = answer(made, now=1.01, stamp_ns=2 * MS)
    close(np.abs(second - first), np.minimum(np.abs(first), 0.02))


def test_timeouts_and_safe_output():
    made = controller(state_timeout=0.2, safe_output__hold=0.3, safe_output__fallback_ramp=0.4,
                      safe_output__fallback=[7.0, 8.0])
    answer(made)
    assert made.watchdog(1.19) is None
    gravity = rbd.gravity_effort(made.model, Q)
    close(made.watchdog(1.5).effort, gravity)
    close(made.watchdog(1.7).effort, (gravity + np.array([7.0, 8.0])) / 2)
    close(made.watchdog(1.91).effort, [7.0, 8.0])


def test_safe_output_is_damped_while_the_state_is_fresh():
    made = controller(safe_output__damping=3.0)
    close(made.on_state(1.0, MS, NAMES, Q, V).effort,
          rbd.gravity_effort(made.model, Q) - 3.0 * rbd.mass_matrix(made.model, Q) @ V)
    made = controller(safe_output__damping=3.0, robot_compensates=["gravity"])
    close(made.on_state(1.0, MS, NAMES, Q, V).effort, -3.0 * rbd.mass_matrix(made.model, Q) @ V)


def test_reference_timeout():
    made = controller(reference_timeout=0.5)
    moving = answer(made)
    close(made.on_state(1.4, 2 * MS, NAMES, Q, V).effort, moving)
    close(made.on_state(1.6, 3 * MS, NAMES, Q, V).effort, rbd.gravity_effort(made.model, Q_REF))


def test_wrench_timeout_and_unknown_bodies():
    made = controller(feedforward="gravity", wrench_timeout=0.5)
    gravity = answer(made)
    wrench = np.array([0.0, 0, 0, 0, 0, -5])
    assert made.on_wrenches(1.0, [("lower", wrench / 2), ("lower", wrench / 2)])
    loaded = rbd.bias_effort(made.model, Q, 0 * V, {"lower": wrench})
    close(answer(made, 1.4, 2 * MS), loaded)
    close(answer(made, 1.6, 3 * MS), gravity)
    assert not made.on_wrenches(1.7, [("tool", wrench)]) and made.rejections.counts["unknown_body"] == 1
    assert not made.on_wrenches(1.7, [("lower", wrench * np.nan)]) and made.rejections.counts["non_finite"] == 1


def test_velocity_cutoff():
    gentle, direct = controller(velocity_cutoff=1.0), controller(velocity_cutoff=0.0)
    for made in (gentle, direct):
        made.on_state(1.0, MS, NAMES, Q, ())
        made.on_state(1.01, 11 * MS, NAMES, Q + 0.01, ())
    close(direct.state.v, 1.0)
    assert 0.0 < gentle.state.v[0] < 0.1


def test_ramps():
    made = controller(ramp_in=1.0, ramp_out=1.0, safe_output__damping=0.0, reference_timeout=0.0)
    gravity = rbd.gravity_effort(made.model, Q)
    close(answer(made), gravity)
    half = answer(made, 1.5, 2 * MS)
    command = answer(made, 2.0, 3 * MS)
    close(half, (gravity + command) / 2)
    made.deactivate()
    close(answer(made, 2.0, 4 * MS), command)
    close(answer(made, 2.5, 5 * MS), (gravity + command) / 2)
    close(answer(made, 3.0, 6 * MS), gravity)
    assert made.safety.finished and not made.finished    # it moves
    for k in range(10):    # at rest, without a gap
        assert not made.finished
        made.on_state(3.02 + 0.02 * k, (7 + k) * MS, NAMES, Q, 0.0 * V)
    assert made.finished


def test_state_rate_sets_the_deadline():
    made = controller(state_rate=100.0)
    for i in range(5):
        answer(made, 1.0 + 0.01 * i, (i + 1) * MS)
        made.statistics.published(0.02 if i == 3 else 0.001)
    assert made.report()["deadline_misses"] == 1 and made.report()["rate_hz"] == pytest.approx(100.0)
    answer(made, 1.1, 9 * MS)
    assert made.report()["late_states"] == 1


def test_clock_reset_forgets_the_reference():
    made = controller()
    answer(made, 1.0, 1000 * MS)
    made.on_state(2.0, MS, NAMES, Q, V)
    assert made.safety.mode == "waiting" and made.report()["clock_restarts"] == 1


def test_mimic_joints_are_not_commanded():
    model = arm(extra=MIMIC)
    made = controller(model)
    assert made.settings.joints == ("shoulder", "elbow")
    close(answer(made), rbd.inverse_dynamics(model, Q_REF, V_REF, A_REF) + model.damping * V_REF
          + model.friction * np.tanh(V_REF / 0.01))


def test_payload():
    bare, com = arm(), np.array([0.1, 0.0, 0.05])
    load = {"payload.body": "lower", "payload.mass": 2.0, "payload.com": com, "payload.inertia": [1, 1, 1, 0, 0.1, 0]}
    inertia = np.diag([1.0, 1.0, 1.0]) + 0.1 * (np.eye(3)[[2, 1, 0]] - np.diag([0, 1, 0]))
    body = rbd.Inertia(1.0, bare.description.links["lower"].com, bare.description.links["lower"].matrix)
    total = 3.0
    center = (body.com * body.mass + 2.0 * com) / total

    def about(part, mass, at, new):
        d = at - new
        return part + mass * (d @ d * np.eye(3) - np.outer(d, d))

    expected = bare.with_body("lower", mass=total, com=center, inertia=about(body.matrix, 1.0, body.com, center)
                              + about(inertia, 2.0, com, center))
    friction = bare.damping * V_REF + bare.friction * np.tanh(V_REF / 0.01)
    made = controller(bare, **{name.replace(".", "__"): value for name, value in load.items()})
    close(answer(made), rbd.inverse_dynamics(expected, Q_REF, V_REF, A_REF) + friction)
    made.apply(FeedforwardSettings.from_values({"ramp_in": 0.0}, bare))    # put down while running
    close(answer(made, 1.01, 2 * MS), rbd.inverse_dynamics(bare, Q_REF, V_REF, A_REF) + friction)
    made.apply(FeedforwardSettings.from_values({"ramp_in": 0.0} | load, bare))    # and taken again
    close(answer(made, 1.02, 3 * MS), rbd.inverse_dynamics(expected, Q_REF, V_REF, A_REF) + friction)
    made.safety.stop()    # the safe output knows the load, too
    close(made.on_state(1.03, 4 * MS, NAMES, Q, 0 * V).effort, rbd.gravity_effort(expected, Q))


@pytest.mark.parametrize(("values", "reason"), [
    ({"payload__body": "tool", "payload__mass": 1.0}, r"payload\.body.*'tool'.*upper, lower"),
    ({"payload__body": "lower", "payload__mass": 1.0, "payload__com": [0.1]},
     r"'payload\.com' is \[0\.1\], expected 3 numbers"),
    ({"payload__body": "lower", "payload__mass": 1.0, "payload__inertia": [1, 1, 9, 0, 0, 0]}, "no body can have"),
    ({"payload__body": "lower", "payload__mass": 1.0, "payload__inertia": [0.1]}, "expected 6"),
    ({"payload__mass": 1.0}, r"'payload\.mass' is 1 kg.*'payload\.body'"),
])
def test_impossible_payloads_are_refused(values, reason):
    with pytest.raises(rbd.RbdError, match=reason):
        controller(**values)
