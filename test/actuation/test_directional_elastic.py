"""Derivatives of the elastic-joint functions, against differences of order 8 of arms assembled anew."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from actuation.drives import Cosines, iiwa, mixed, series
from support.robots import assert_close

import rbd_ros as rbd

CLOSE = 1e-10
WEIGHTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}


def difference(function, step=1e-2):
    """d/dx of function(x) at 0: a list of arrays; of order 8. Of what is infinite 0: the stiffness of rigid joints."""
    parts = [[w * s * np.where(np.isfinite(part), part, 0.0) for part in function(s * k * step)]
             for k, w in WEIGHTS.items() for s in (1, -1)]
    return [sum(part) / step for part in zip(*parts, strict=True)]


@cache
def arm(name):
    rough = iiwa().with_(damping=np.linspace(0.5, 2.0, 7), friction=np.linspace(0.2, 1.0, 7))
    if name == "mixed":    # every kind of spring, every motor with friction
        found = mixed(rough)
        drives = {}
        for joint, drive in found.drives.items():
            rub = {"damping": 0.7, "coulomb": 1.5, "breakaway": 2.0, "stribeck_velocity": 2.0, "smoothing": 1.5,
                   "asymmetry": -0.8, "viscous_asymmetry": 0.3,
                   "load": 0.0 if joint == "joint_1" else 0.2}    # whose torque turns, too sharply for differences
            changes = {"motor": dataclasses.replace(drive.motor, **rub)}
            if isinstance(drive, rbd.VariableDrive):
                changes["stiffness_motor"] = dataclasses.replace(drive.stiffness_motor, **rub)
            if joint == "joint_3":
                changes["spring"] = rbd.SeriesSpring(np.array([1.0e4, 4.0e5, 1.0e8]), 0.05)
            drives[joint] = dataclasses.replace(drive, **changes)
        return rbd.Actuation(rough, drives)
    return series(rough, 1e-2)


def constants(actuation):
    """Every constant of springs and motors: (kind, name, field, value)."""
    second = []
    for joint, drive in actuation.drives.items():
        motors = [(joint, drive.motor)]
        if isinstance(drive, rbd.SeriesDrive):
            yield "springs", joint, "coefficients", drive.spring.coefficients
            if drive.damping:
                yield "springs", joint, "damping", drive.damping
        elif isinstance(drive, rbd.VariableDrive):
            second.append((f"{joint}/stiffness", drive.stiffness_motor))
            for one in dataclasses.fields(drive.spring):
                if one.name not in ("lower", "upper", "max_deflection"):
                    yield "springs", joint, one.name, getattr(drive.spring, one.name)
        for name, motor in motors + second[-1:] * isinstance(drive, rbd.VariableDrive):
            for one in dataclasses.fields(motor):
                yield "motors", name, one.name, getattr(motor, one.name)


def changed(actuation, kind, name, field, change):
    """The arm with one constant changed."""
    joint, second = name.partition("/")[::2]
    drive = actuation.drives[joint]
    if kind == "motors":
        which = "stiffness_motor" if second else "motor"
        motor = getattr(drive, which)
        changes = {field: getattr(motor, field) + change}
        if field == "coulomb" and motor.breakaway == motor.coulomb:
            changes["breakaway"] = changes["coulomb"]
        drive = dataclasses.replace(drive, **{which: dataclasses.replace(motor, **changes)})
    elif isinstance(drive, rbd.SeriesDrive) and field == "damping":
        drive = dataclasses.replace(drive, damping=drive.damping + change)
    else:
        drive = dataclasses.replace(drive, spring=dataclasses.replace(
            drive.spring, **{field: getattr(drive.spring, field) + change}))
    return rbd.Actuation(actuation.model, actuation.drives | {joint: drive})


def motion(actuation, seed=3):
    rng = np.random.default_rng(seed)
    q, tau = Cosines(rng, 7).motion(0.4, 5), Cosines(rng, 7, 20.0).motion(0.4)
    return q, np.array(tau), np.array(Cosines(rng, actuation.variable.size, 20.0, actuation.stiffness).motion(0.4))


def agree(found, function, what):
    """To 1e-10 of the largest derivative, beside what rounding makes of differences with a step of 1e-2."""
    for name, part, want, value in zip(found._fields, found, difference(function), function(0.0), strict=True):
        value = np.where(np.isfinite(value), value, 0.0)
        allowed = CLOSE * np.abs(want).max(initial=0.0) + 1e-13 * np.abs(value).max(initial=0.0)
        np.testing.assert_allclose(part, want, rtol=0.0, atol=allowed, err_msg=f"{what}: {name}")


@pytest.mark.parametrize("name", ["mixed", "damped"])
def test_motors_by_every_constant(name):
    """Springs linear, cubic, of order 5, with damping, of variable stiffness; inertia, gear and friction of motors."""
    actuation = arm(name)
    (q, v, a, _, _), tau, k = motion(actuation)
    rng = np.random.default_rng(1)
    tangents, expected = [], []
    for kind, joint, field, value in constants(actuation):
        if not np.any(value):    # below it there is nothing to take differences from
            continue
        along = np.asarray(value, dtype=float) * rng.uniform(0.5, 1.5, size=np.shape(value))
        if field == "breakaway" or (field == "coulomb" and kind == "motors"):
            along = 0.1 * along
        tangents.append(rbd.ElasticTangent(**{kind: {joint: {field: along}}}))
        expected.append(lambda x, c=(kind, joint, field), d=along: rbd.motor_reference(
            changed(actuation, *c, x * d), q, v, a, tau, k))
    assert len(tangents) > 40
    together = rbd.motor_reference_directional(actuation, q, v, a, tau, tangents, k)
    for i, (tangent, want) in enumerate(zip(tangents, expected, strict=True)):
        found = rbd.motor_reference_directional(actuation, q, v, a, tau, tangent, k)
        agree(found, want, f"{tangent.springs} {tangent.motors}")
        for part, whole in zip(found, together, strict=True):
            np.testing.assert_array_equal(part, whole[i])


@pytest.mark.parametrize("name", ["mixed", "damped"])
def test_motors_by_what_is_given(name):
    actuation = arm(name)
    (q, v, a, _, _), tau, k = motion(actuation)
    rng = np.random.default_rng(2)
    along = {"q": rng.normal(size=7), "v": rng.normal(size=7), "a": rng.normal(size=7),
             "efforts": rng.normal(size=(3, 7)), "stiffness": rng.normal(size=k.shape)}
    bend = None if name == "mixed" else np.full(actuation.damped.size, 1e-3)
    if bend is not None:
        along["deflection"] = 1e-3 * rng.normal(size=bend.size)

    def moved(x):
        given = dict(zip(along, (q, v, a, tau, k, bend), strict=False))
        given = {key: value + x * along[key] for key, value in given.items()}
        return rbd.motor_reference(actuation, *(given[key] for key in ("q", "v", "a", "efforts", "stiffness")),
                                   given.get("deflection"))

    found = rbd.motor_reference_directional(actuation, q, v, a, tau, rbd.ElasticTangent(**along), k, bend)
    agree(found, moved, name)
    batch = rbd.motor_reference_directional(actuation, np.stack([q, q]), v, a, tau, [rbd.ElasticTangent(**along)] * 2,
                                            k, bend)
    for part, one in zip(batch, found, strict=True):
        assert part.shape == (2, 2, *one.shape)
        assert_close(part[1, 1], one, 1e-13)


def test_link_efforts_by_parameters_of_links_and_motion():
    actuation = arm("mixed")
    model, (q, v, a, jerk, snap) = actuation.model, motion(actuation)[0]
    rng = np.random.default_rng(4)
    inertias = dict(zip(model.body_names, np.reshape(model.inertial_parameters, (-1, 10)), strict=True))
    # small beside the speed at which friction turns
    state = dict(zip(("q", "v", "a", "jerk", "snap"), 1e-3 * rng.normal(size=(5, 7)), strict=True))

    cases = {
        "state": (state, lambda x: rbd.link_efforts(actuation, *(y + x * state[n] for n, y in zip(
            ("q", "v", "a", "jerk", "snap"), (q, v, a, jerk, snap), strict=True)))),
        "friction": ({"friction": {n: {"damping": 0.3, "coulomb": 0.1} for n in model.joint_names}},
                     lambda x: rbd.link_efforts(rbd.Actuation(model.with_(
                         damping=model.damping + 0.3 * x, friction=model.friction + 0.1 * x), actuation.drives),
                         q, v, a, jerk, snap)),
        "rotor": ({"motors": {"joint_1": {"rotor_inertia": 2.0}}}, lambda x: rbd.link_efforts(
            changed(actuation, "motors", "joint_1", "rotor_inertia", 2.0 * x), q, v, a, jerk, snap)),
        "inertia": ({"inertias": inertias}, lambda x: rbd.link_efforts(rbd.Actuation(
            model.with_scaled_masses(1.0 + x), actuation.drives), q, v, a, jerk, snap))}
    for what, (tangent, function) in cases.items():
        found = rbd.link_efforts_directional(actuation, q, v, a, jerk, snap, rbd.ElasticTangent(**tangent))
        assert_close(found, difference(lambda x, f=function: [f(x)])[0], CLOSE, what)
    many = rbd.link_efforts_directional(actuation, np.stack([q, q]), v, a, jerk, snap,
                                        [rbd.ElasticTangent(**tangent) for tangent, _ in cases.values()])
    assert many.shape == (4, 2, 3, 7)
    assert_close(many[-1, 1], found, 1e-14)


@pytest.mark.parametrize("name", ["mixed", "damped"])
def test_feedback_linearisation_by_every_constant_and_the_state(name):
    actuation = arm(name)
    (q, v, a, jerk, snap), tau, k = motion(actuation)
    now = rbd.motor_reference(actuation, q, v, a, 0.2 * tau, k)
    z, z_rate = now.position + 1e-4, now.velocity - 1e-3
    gains = rbd.FeedbackGains.placed(actuation, 12.0)
    r = np.array([q + 0.01, v, a, jerk, snap])
    rng = np.random.default_rng(5)
    along = {"q": 1e-4 * rng.normal(size=7), "v": 1e-3 * rng.normal(size=7), "reference": rng.normal(size=r.shape),
             "motor_position": 1e-4 * rng.normal(size=z.size), "motor_velocity": 1e-3 * rng.normal(size=z.size)}
    cases = [(rbd.ElasticTangent(**along), lambda x: rbd.feedback_linearization(
        actuation, gains, *(y + x * along[n] for n, y in zip(
            ("q", "v", "motor_position", "motor_velocity", "reference"), (q, v, z, z_rate, r), strict=True)), k))]
    for kind, joint, field, value in constants(actuation):
        if np.any(value):
            along_ = 0.1 * np.asarray(value, dtype=float)
            cases.append((rbd.ElasticTangent(**{kind: {joint: {field: along_}}}),
                          lambda x, c=(kind, joint, field), d=along_: rbd.feedback_linearization(
                              changed(actuation, *c, x * d), gains, q, v, z, z_rate, r, k)))
    model = actuation.model
    cases.append((rbd.ElasticTangent(friction={n: {"damping": 0.3, "coulomb": 0.1} for n in model.joint_names}),
                  lambda x: rbd.feedback_linearization(rbd.Actuation(model.with_(
                      damping=model.damping + 0.3 * x, friction=model.friction + 0.1 * x), actuation.drives),
                      gains, q, v, z, z_rate, r, k)))
    found = rbd.feedback_linearization_directional(actuation, gains, q, v, z, z_rate, r, [c[0] for c in cases], k)
    for i, (tangent, function) in enumerate(cases):
        agree(type(found)(*(part[i] for part in found)), function, f"{tangent.springs} {tangent.motors}")


@pytest.mark.parametrize(("tangent", "words"), [
    ({"springs": {"joint_1": {"coefficients": 1.0}}}, ["joint_1", "rigid"]),
    ({"springs": {"joint_2": {"stiffness": 1.0}}}, ["joint_2", "stiffness", "coefficients"]),
    ({"springs": {"joint_2": {"damping": 1.0}}}, ["joint_2", "state"]),
    ({"springs": {"joint_3": {"coefficients": [1.0]}}}, ["joint_3", "three"]),
    ({"springs": {"joint_5": {"rate": 1.0}}}, ["joint_5", "quadratic"]),
    ({"springs": {"joint_9": {"rate": 1.0}}}, ["joint_9"]), ({"motors": {"joint_9": {}}}, ["joint_9"]),
    ({"motors": {"joint_2": {"inertia": 1.0}}}, ["inertia", "rotor_inertia"]),
    ({"motors": {"joint_4/stiffness": {"damping": np.nan}}}, ["joint_4/stiffness", "finite"]),
    ({"efforts": np.zeros(7)}, ["tangent.efforts"])], ids=range(10))
def test_what_is_wrong_is_named(tangent, words):
    actuation = arm("mixed")
    (q, v, a, _, _), tau, k = motion(actuation)
    with pytest.raises(rbd.RbdError) as caught:
        rbd.motor_reference_directional(actuation, q, v, a, tau, rbd.ElasticTangent(**tangent), k)
    assert all(word in str(caught.value) for word in words), str(caught.value)
