"""Without numba (RBD_DISABLE_COMPILE): one warning at import, and the numbers of the compiled library."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.robots import assert_close
from support.trees import TYPES, random_tree

import rbd_ros as rbd

CHECKOUT = Path(__file__).parents[1]
PROGRAM = """
import sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import rbd_ros as rbd
sys.path.insert(0, "test")
from test_plain_python import everything, without_coordinates
import numpy as np
assert not rbd.COMPILED and "numba" not in sys.modules
print(len([w for w in caught if issubclass(w.category, rbd.RbdWarning)]))
print(" ".join(str(w.message) for w in caught).replace("\\n", " "))
print(without_coordinates())
np.savez(sys.argv[1], **everything())
"""


def everything():
    """What the library computes for a tree with joints of all types, on one state and on a batch."""
    results = {}
    for root in ("fixed", "floating"):
        model = random_tree(61, TYPES, root=root)
        rng = np.random.default_rng(1)
        q = np.array([model.random_configuration(rng) for _ in range(3)])
        v, a = rng.normal(size=(2, 3, model.nv))
        F = rng.normal(size=(len(model.body_names), 6))
        held = rbd.ConstraintSet([rbd.FixedContact("link9", kind="point")])
        states = {"one": (q[0], v[0], a[0]), "batch": (q, v, a), "repeated": (q, v[0], a[0]),
                  "lists": (q[0].tolist(), list(v[0]), list(a[0]))}
        for shape, (x, y, z) in states.items():
            results.update({f"{root} {shape} {key}": value for key, value in {
                "inverse": rbd.inverse_dynamics(model, x, y, z), "forward": rbd.forward_dynamics(model, x, y, z),
                "pushed": rbd.inverse_dynamics(model, x, y, z, F), "pulled": rbd.forward_dynamics(model, x, y, z, F),
                "mass": rbd.mass_matrix(model, x), "coriolis": rbd.coriolis_matrix(model, x, y),
                "poses": rbd.forward_kinematics(model, x),
                "twists": rbd.body_velocities(model, x, y), "rates": rbd.body_accelerations(model, x, y, z),
                "jacobian": rbd.jacobian(model, x, "link9", "world"), "kinetic": rbd.kinetic_energy(model, x, y),
                "potential": rbd.potential_energy(model, x), "momentum": rbd.centroidal_momentum(model, x, y),
                "efforts": rbd.inverse_dynamics_time_derivatives(model, x, y, z, y, z),
                "more efforts": rbd.inverse_dynamics_time_derivatives(model, x, y, z, y, external_wrenches=(F, F)),
                "forward jerk": rbd.forward_dynamics_time_derivatives(model, x, y, z, y),
                "derivatives": np.array(rbd.inverse_dynamics_derivatives(model, x, y, z)),
                "forward derivatives": np.array(rbd.forward_dynamics_derivatives(model, x, y, z)),
                "held": rbd.constrained_forward_dynamics(model, held, x, y, z).acceleration,
                "moved": model.integrate(x, y), "difference": model.difference(model.integrate(x, y), x)}.items()})
    return results


def without_coordinates():
    """Shapes of all results of a robot that cannot move."""
    model = random_tree(62, ["fixed", "fixed"])
    shapes = []
    for none in (np.zeros(0), np.zeros((2, 0))):
        shapes += [x.shape for x in (
            rbd.inverse_dynamics(model, none, none, none), rbd.forward_dynamics(model, none, none, none),
            rbd.mass_matrix(model, none), rbd.forward_kinematics(model, none), rbd.kinetic_energy(model, none, none),
            rbd.body_accelerations(model, none, none, none), rbd.jacobian(model, none, "base"),
            model.integrate(none, none), model.difference(none, none),
            *rbd.forward_dynamics_derivatives(model, none, none, none),
            *rbd.hybrid_dynamics_derivatives(model, none, none, none, none, []))]
    return shapes


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    file = tmp_path_factory.mktemp("plain") / "results.npz"
    environment = {**os.environ, "RBD_DISABLE_COMPILE": "1",
                   "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "test")])}
    result = subprocess.run([sys.executable, "-c", PROGRAM, str(file)], cwd=CHECKOUT, env=environment,
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines(), np.load(file)


def test_importing_warns_once_and_says_why(plain):
    count, message = plain[0][:2]
    assert count == "1"
    assert "numba" in message and "RBD_DISABLE_COMPILE" in message


def test_results_are_those_of_the_compiled_library(plain):
    if not rbd.COMPILED:
        pytest.skip("numba is not used here: nothing to compare with")
    compiled = everything()
    assert sorted(compiled) == sorted(plain[1])
    for name, expected in compiled.items():
        assert_close(plain[1][name], expected, 1e-11 if "forward" in name or "pulled" in name else 1e-12, name)


def test_a_robot_that_cannot_move_is_no_error(plain):
    assert plain[0][2] == str(without_coordinates())
