"""What the parameters of the residual and lockstep do, in their logic without ROS."""
from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
from parameters.case import Case, Values, begun
from parameters.other_cases import MS, model_cases
from support.arm import A_REF, NAMES, Q, V, arm, arm_urdf

import rbd_ros as rbd
from rbd_ros.core.dynamics.friction import LOAD_SMOOTHING
from rbd_ros.runtime.cosimulation.lockstep import Lockstep, LockstepSettings
from rbd_ros.runtime.cosimulation.residual import RESIDUAL_TABLE, ResidualMonitor, ResidualSettings
from rbd_ros.runtime.inputs.rejections import TAKEN
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.robot import load_model


# ---- residual

def watched(values: Values) -> Any:
    """The residual of an arm that needs no effort though it accelerates; in the order of `joints`, with its names."""
    monitor, model = _monitor(values)
    n = model.nv
    monitor.on_state(0, NAMES[:n], (Q - 0.0005 * V)[:n], (V - 0.0005 * A_REF)[:n], np.zeros(n))
    found = monitor.on_state(MS, NAMES[:n], (Q + 0.0005 * V)[:n], (V + 0.0005 * A_REF)[:n], np.zeros(n))
    return np.array(found[monitor.settings.output])


def listed(values: Values) -> Any:
    return _monitor(values)[0].settings.joints, watched(values)


def explained(values: Values) -> Any:
    """What the residual takes for the effort that acted: states say 1, 2; commands said 3, 4 and, later, 5, 6."""
    monitor, model = _monitor(values)
    found = None
    for k, effort in enumerate(([3.0, 4.0], [5.0, 6.0], [7.0, 8.0])):
        found = monitor.on_state(k * MS, NAMES, Q, [0.0, 0.0], [1.0, 2.0])
        monitor.on_command(k * MS, NAMES, effort)
    return found + rbd.gravity_effort(model, Q)


def widest(values: Values) -> float:
    """The longest interval (s), in steps of 10 ms, that has a residual."""
    for k in count(1):
        monitor, _ = _monitor(values)
        monitor.on_state(0, NAMES, Q, V, [0.0, 0.0])
        if monitor.on_state(10 * k * MS, NAMES, Q, V, [0.0, 0.0]) is TAKEN:
            return 0.01 * (k - 1)
    raise AssertionError


def _monitor(values: Values) -> tuple[ResidualMonitor, rbd.RobotModel]:
    model, _ = load_model(validate(RESIDUAL_TABLE, values), arm_urdf())
    return begun(ResidualMonitor, ResidualSettings, RESIDUAL_TABLE, model, values), model


def residual_cases() -> dict[str, Case]:
    model = arm()
    t = np.tanh(V / 0.01)
    coulomb = model.friction * t
    return {
        **model_cases(watched, Q, V, A_REF, -1.0, model.damping * V + coulomb),
        "joints": Case(NAMES[::-1], listed, lambda was: (was[0][::-1], was[1][::-1])),
        "effort_source": Case("effort", explained, np.array([5.0, 6.0])),
        "effort_delay": Case(0.001, explained, np.array([3.0, 4.0]), {"effort_source": "effort"}),
        "max_interval": Case(0.055, widest, 0.05),
        "friction.damping": Case(False, watched, lambda was: was + model.damping * V),
        "friction.coulomb": Case(False, watched, lambda was: was + coulomb),
        "friction.smoothing": Case(0.5, watched, lambda was: was + coulomb - model.friction * np.tanh(V / 0.5)),
        "friction.asymmetry": Case([0.05, 0.0], watched, lambda was: was - [0.05, 0.0] * t**2),
        "friction.viscous_asymmetry": Case([0.05, 0.0], watched, lambda was: was - [0.05, 0.0] * V * t),
        "friction.load": Case([0.2, 0.1], watched, lambda was: was - [0.2, 0.1] * t * np.hypot(
            was + model.damping * V + coulomb, LOAD_SMOOTHING)),
    }


# ---- lockstep

def target(values: Values) -> int:
    """Stamp (ns) of the state that is waited for after the first command."""
    logic = Lockstep(LockstepSettings.from_values(values).period, patience=MS)
    logic.on_state(0, 0)
    assert logic.on_answer(0, 0)
    return logic.target


def patient_for(values: Values) -> float:
    """Seconds, in steps of 10 ms, until a missing state is overdue."""
    logic = Lockstep(MS, LockstepSettings.from_values(values).patience)
    logic.on_state(0, 0)
    assert logic.on_answer(0, 0)
    return next(0.01 * k for k in count() if logic.overdue(10 * k * MS))


def services(values: Values) -> Any:
    """That the simulation is stepped with."""
    from parameters.stand_in_services import stand_in_services
    with stand_in_services():
        from rbd_ros.nodes.steppers import make_stepper
        names: list[str] = []
        node: Any = SimpleNamespace(create_client=lambda kind, name, callback_group: names.append(name))
        settings = LockstepSettings.from_values(values)
        make_stepper(settings.stepper, node, dict(settings.names))
        return tuple(names)


def lockstep_cases() -> dict[str, Case]:
    return {
        "step": Case(0.003, target, 6 * MS),
        "steps": Case(5, target, 5 * MS),
        "patience": Case(0.105, patient_for, 0.11),
        "stepper": Case("gazebo", services, ("/world/default/control",)),
        "plant": Case("arm", services, ("arm/step", "arm/reset")),
        "world": Case("lab", services, ("/world/lab/control",), {"stepper": "gazebo"}),
    }
