"""Parameters of the server: the file lists them all, and what they mean for model and constraints."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.service.server_settings import SERVER_TABLE, ServerSettings, load_server_model

CONFIG = Path(__file__).parents[2] / "config" / "dynamics_server.yaml"
URDF = rbd.sample_path("five_bar").read_text()


def load(**values):
    return load_server_model(validate(SERVER_TABLE, {key.replace("__", "."): v for key, v in values.items()}), URDF)[0]


def test_parameters_of_the_model():
    names = load().joint_names
    np.testing.assert_array_equal(load(gravity=[0, 1, 2]).gravity, [0, 1, 2])
    assert load(locked__joints=["tip"]).joint_names == tuple(name for name in names if name != "tip")
    moved = load(locked__joints=["tip"], locked__positions=[0.5])
    assert not np.array_equal(rbd.forward_kinematics(moved, np.zeros(4)),
                              rbd.forward_kinematics(load(locked__joints=["tip"]), np.zeros(4)))
    np.testing.assert_array_equal(load(rotor_inertia=[1, 2, 3, 4, 5], joints=names[::-1]).armature, [5, 4, 3, 2, 1])
    floating = load(root="floating", rotor_inertia=0.3)
    assert floating.nv == 11
    np.testing.assert_array_equal(floating.armature, [0] * 6 + [0.3] * 5)


@pytest.mark.parametrize(("values", "words"), [
    ({"root": "loose"}, "'fixed', 'floating'"), ({"state_timeout": 0.0}, "state_timeout"),
    ({"constraint_tolerance": -1.0}, "constraint_tolerance"), ({"velocity_cutoff": -1.0}, "velocity_cutoff"),
    ({"joints": ["tip"]}, "must list every joint once"), ({"speed": 1.0}, "unknown parameter 'speed'")])
def test_wrong_parameters_are_named(values, words):
    with pytest.raises(rbd.RbdError, match=words):
        ServerSettings.from_values(values, load(**values))
