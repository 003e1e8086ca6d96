"""A dynamics server of a robot with friction: the field of each request and the parameter, over DDS."""
from __future__ import annotations

import re

import numpy as np
from service_messages import URDF, server
from support import service_requests as req
from support.service_requests import NAMES, RUBS, SERVICES, A, Q, V

import rbd_ros as rbd

ROUGH = re.sub(r"</joint>", '<dynamics damping="0.2" friction="0.3"/></joint>', URDF.read_text())


def test_friction_by_field_and_by_parameter(tmp_path, private_domain):
    path = tmp_path / "rough.urdf"
    path.write_text(ROUGH)
    model = rbd.load_urdf(path)
    law = rbd.joint_friction(model, 0.5)
    expected = {"inverse": ("effort", rbd.inverse_dynamics(model, Q, V, A, friction=law)),
                "time_derivatives": ("output", rbd.inverse_dynamics_time_derivatives(
                    model, Q, V, *np.reshape(req.ROWS, (3, 5)), friction=law))}

    def check(client, configured):
        assert client.ask("info").friction is configured
        answers = iter(client.ask_all([(kind, SERVICES[kind][0] | {"friction": field})
                                       for kind in RUBS for field in (0, 1, 2)]))
        for kind in RUBS:
            default, rough, smooth = (next(answers) for _ in range(3))
            assert default.success and rough.success and smooth.success, (kind, rough.message)
            assert default == (rough if configured else smooth) and rough != smooth, kind
            if kind in expected:
                field, numbers = expected[kind]
                np.testing.assert_allclose(getattr(rough, field), np.ravel(numbers), rtol=1e-9,
                                           atol=1e-12 * np.abs(numbers).max())
            if kind == "inverse":
                np.testing.assert_allclose(smooth.effort, rbd.inverse_dynamics(model, Q, V, A), rtol=1e-9)

    with server(tmp_path, robot_description_file=str(path), constraints_file="five_bar",
                friction__smoothing=0.5) as (_, client):
        client.wait_until_active()
        assert list(client.ask("info").joint) == NAMES
        check(client, False)
        assert client.set_parameter("friction", True).successful
        check(client, True)
        assert not client.set_parameter("friction.smoothing", 0.0).successful
