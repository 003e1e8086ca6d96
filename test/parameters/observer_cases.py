"""What the parameters of the observer do, in its logic without ROS."""
from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
from parameters.case import Case, Values, begun
from parameters.other_cases import model_cases
from support.arm import A_REF, NAMES, Q, V, arm, arm_urdf

import rbd_ros as rbd
from rbd_ros.runtime.estimation.contact_observer import OBSERVER_TABLE, ContactObserver, Observed, ObserverSettings
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.robot import load_model

STEP = 10_000    # ns: so short that products of its speeds vanish
GAIN, H = 50.0, 1e-9 * STEP
LOAD = rbd.Inertia(2.0, np.array([0.1, 0.0, 0.0]), np.diag([0.01, 0.02, 0.03]))


def made(values: Values) -> tuple[ContactObserver, rbd.RobotModel]:
    model, _ = load_model(validate(OBSERVER_TABLE, values), arm_urdf())
    return begun(ContactObserver, ObserverSettings, OBSERVER_TABLE, model, values), model


def seen(values: Values, first: Any, second: Any, effort: Any = (0.0, 0.0)) -> tuple[ContactObserver, Observed]:
    """What is known after a step from rest at Q at these two speeds, without the filter's share."""
    observer, model = made(values)
    n = model.nv
    for k, v in enumerate((first, second)):
        found = observer.on_state((k + 1) * STEP, NAMES[:n], Q[:n], np.asarray(v)[:n], np.asarray(effort)[:n])
    assert isinstance(found, Observed)
    return observer, found


def felt(values: Values) -> Any:
    """The external effort of an arm without efforts that accelerates from rest; in the order of `joints`."""
    observer, found = seen(values, -0.5 * H * A_REF, 0.5 * H * A_REF)
    return found.effort[observer.settings.output] / (1.0 - np.exp(-GAIN * H))


def fast(values: Values) -> Any:
    """That of an arm that moves at V."""
    return seen(values, V, V)[1].effort / (1.0 - np.exp(-GAIN * H))


def listed(values: Values) -> Any:
    return made(values)[0].settings.joints, felt(values)


def share(values: Values) -> Any:
    """Of the external effort of a step in what is known after it."""
    model = arm()
    return seen(values, np.zeros(2), np.zeros(2))[1].effort[0] / rbd.gravity_effort(model, Q)[0]


def wrench(values: Values) -> Any:
    """Where it is seen, and whether it explains the effort."""
    observer, found = seen(values, np.zeros(2), np.zeros(2))
    J = rbd.jacobian(observer.model, Q, observer.body)
    return observer.body, (J.T @ found.wrench.wrench - found.effort) / found.effort


def touched(values: Values) -> Any:
    change = seen(values, np.zeros(2), np.zeros(2), [1000.0, 500.0])[1].change
    return change.body if change else "nothing"


def likeliest(values: Values) -> Any:
    """The link that is touched after 50 ms, of efforts that the last joint hardly feels."""
    observer, model = made(values)
    for k in range(6):
        observer.on_state(k * 10_000_000 + 1, NAMES, Q, np.zeros(2), rbd.gravity_effort(model, Q) - [10.0, 0.2])
    return observer.detector.body


def released(values: Values) -> float:
    """How long (s) after it, in steps of 10 ms, a contact has ended."""
    observer, model = made(values)
    for k in count():
        effort = np.zeros(2) if k < 5 else rbd.gravity_effort(model, Q)
        found = observer.on_state(k * 10_000_000 + 1, NAMES, Q, np.zeros(2), effort)
        if isinstance(found, Observed) and found.change and not found.change.touching:
            return 0.01 * (k - 5)
    raise AssertionError


def explained(values: Values) -> Any:
    """What is taken for the effort that acted: states say 1, 2 and 3, 4; the command said 5, 6."""
    observer, model = made(values)
    observer.on_command(NAMES, [5.0, 6.0])
    for k, effort in enumerate(([1.0, 2.0], [3.0, 4.0])):
        found = observer.on_state((k + 1) * STEP, NAMES, Q, [0.0, 0.0], effort)
    return rbd.gravity_effort(model, Q) - found.effort / (1.0 - np.exp(-GAIN * H))


def widest(values: Values) -> float:
    """The longest interval (s), in steps of 10 ms, after which something is known."""
    for k in count(1):
        observer, _ = made(values)
        observer.on_state(1, NAMES, Q, V, [0.0, 0.0])
        if not isinstance(observer.on_state(1 + k * 10_000_000, NAMES, Q, V, [0.0, 0.0]), Observed):
            return 0.01 * (k - 1)
    raise AssertionError


def weighed(values: Values, seconds: float = 12.0) -> Any:
    """The loads that are found (kg), after 4 s with a load and at the end, without; or that nothing is estimated."""
    observer, model = made({"friction.damping": False, "friction.coulomb": False, **values})
    found, t, last = [], 0.02 * np.arange(round(50.0 * seconds)), 199
    q, v, a = (np.column_stack(x) for x in ((np.sin(t), np.cos(2.0 * t)), (np.cos(t), -2.0 * np.sin(2.0 * t)),
                                            (-np.sin(t), -4.0 * np.cos(2.0 * t))))
    effort = rbd.inverse_dynamics(model, q, v, a)
    effort[:last + 1] = rbd.inverse_dynamics(model.with_payload(model.body_names[-1], LOAD), q, v, a)[:last + 1]
    for k in range(len(t)):
        observer.on_state(round(1e9 * t[k]) + 1, NAMES, q[k], v[k], effort[k])
        if k in (last, len(t) - 1):
            load = observer.estimated()
            found.append(0.0 if load is None else load.load.mass)
    return np.array(found)


def observer_cases() -> dict[str, Case]:
    model, n = arm(), 2
    coulomb = model.friction * np.tanh(V / 0.01)
    body = model.body_names[-1]

    def loaded(load: rbd.Inertia) -> Any:
        return rbd.inverse_dynamics(model.with_payload(body, load), Q, np.zeros(n), A_REF)

    t = np.tanh(V / 0.01)
    bare = rbd.joint_friction(model, load=[0.2, 0.1])
    by_load = -bare.remove(V, np.zeros(n)) - coulomb - model.damping * V    # of arms without efforts
    on = {"payload.body": body, "payload.mass": 2.0}
    point = np.zeros((3, 3))
    cases = {
        **model_cases(felt, Q, np.zeros(n), A_REF, 1.0, np.zeros(n)),
        "joints": Case(NAMES[::-1], listed, lambda was: (was[0][::-1], was[1][::-1])),
        "payload.body": Case(body, felt, loaded(rbd.Inertia(2.0, np.zeros(3), point)), {"payload.mass": 2.0}),
        "payload.mass": Case(3.0, felt, loaded(rbd.Inertia(3.0, np.zeros(3), point)), {"payload.body": body}),
        "payload.com": Case([0.1, 0.0, 0.2], felt, loaded(rbd.Inertia(2.0, np.array([0.1, 0.0, 0.2]), point)), on),
        "payload.inertia": Case([0.1, 0.2, 0.25, 0.0, 0.0, 0.0], felt, loaded(
            rbd.Inertia(2.0, np.zeros(3), np.diag([0.1, 0.2, 0.25]))), on),
        "effort_source": Case("effort", explained, np.array([5.0, 6.0])),
        "gain": Case(100.0, share, 1.0 - np.exp(-100.0 * H)),
        "max_interval": Case(0.055, widest, 0.05),
        "threshold": Case([0.1, 0.1], touched, body),
        "release": Case(0.5, released, 0.5, {"threshold": 0.1, "gain": 1e4}, tolerance=0.011),
        "body": Case(model.body_names[1], wrench, (model.body_names[1], np.array([0.0, -1.0]))),
        "sigma": Case([0.3, 0.4], lambda values: seen(values, V, V)[1].sigma, np.array([0.3, 0.4])),
        "mean_covariance": Case([0.01, 0.0, 0.0, 9.0], likeliest, body, {
            "sigma": 0.1, "threshold": 1.0, "gain": 1e4, "friction.coulomb": False}),
        "payload.estimate": Case(body, lambda values: float(weighed(values, 4.0)[0]), LOAD.mass, tolerance=1e-3),
        "payload.memory": Case(2.0, lambda values: float(weighed(values)[1] < 0.2), 1.0, {"payload.estimate": body}),
        "friction.damping": Case(False, fast, lambda was: was - model.damping * V),
        "friction.coulomb": Case(False, fast, lambda was: was - coulomb),
        "friction.asymmetry": Case([0.05, 0.0], fast, lambda was: was + [0.05, 0.0] * t**2),
        "friction.viscous_asymmetry": Case([0.05, 0.0], fast, lambda was: was + [0.05, 0.0] * V * t),
        "friction.load": Case([0.2, 0.1], fast, lambda was: was + by_load),
        "friction.smoothing": Case(0.5, fast, lambda was: was - coulomb + model.friction * np.tanh(V / 0.5)),
    }
    return cases
