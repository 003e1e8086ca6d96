"""C source with numbers of the model as arguments, compared with models that have these numbers."""
from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from support.trees import random_tree

import rbd_ros as rbd
from rbd_ros.core.specialize.c_source import c_files

COMPILER = shutil.which("gcc") or shutil.which("clang")
LINKS = ("link_2", "link_7")
FUNCTIONS = {"inverse_dynamics": 3, "gravity_effort": 1, "mass_matrix": 1}


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """Calls a function of the iiwa in C: (name, state, inertias, payload, gravity)."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    folder, model = tmp_path_factory.mktemp("c"), rbd.sample("iiwa")
    files = c_files(model, list(FUNCTIONS), inertias=LINKS, payload="link_5", gravity=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    for command in (["-O0", "-shared", "-fPIC", "iiwa.c", "-lm", "-o", "iiwa.so"],
                    ["-O0", "-Wall", "-Wextra", "-Werror", "iiwa.c", "test_iiwa.c", "-lm", "-o", "test"]):
        subprocess.run([COMPILER, "-std=c99", *command], cwd=folder, check=True)
    subprocess.run(["./test"], cwd=folder, check=True, capture_output=True)
    library = ctypes.CDLL(str(folder / "iiwa.so"))

    def call(name, state, *numbers):
        out = np.empty(49 if name == "mass_matrix" else 7)
        arrays = [np.array(x, dtype=float) for x in (*state, *numbers)]
        assert getattr(library, f"iiwa_{name}")(*(x.ctypes.data_as(ctypes.c_void_p) for x in (*arrays, out))) == 0
        return out

    return call


def load(rng):
    return rbd.Inertia(rng.uniform(0.5, 5.0), rng.uniform(-0.2, 0.2, 3), np.diag(rng.uniform(0.02, 0.03, 3)))


def ten(inertia):
    """Mass, first moment, moments about the origin of a load, written independently."""
    c, m = inertia.com, inertia.mass
    about = inertia.matrix + m * (np.dot(c, c) * np.eye(3) - np.outer(c, c))
    return np.array([m, *(m * c), about[0, 0], about[0, 1], about[1, 1], about[0, 2], about[1, 2], about[2, 2]])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_links_loads_and_mountings(arm, name, seed):
    rng, model = np.random.default_rng(seed), rbd.sample("iiwa")
    state, gravity, held = rng.normal(size=(FUNCTIONS[name], 7)), rng.normal(size=3), load(rng)
    changed = model.with_(gravity=gravity).with_payload("link_5", held)
    inertias = []
    for link in LINKS:
        more = load(rng)
        changed = changed.with_payload(link, more)
        inertias.append(model.inertial_parameters.reshape(-1, 10)[model.body_index(link)] + ten(more))
    expected = np.ravel(getattr(rbd, name)(changed, *state))
    np.testing.assert_allclose(arm(name, state, np.ravel(inertias), ten(held), gravity), expected, rtol=0.0,
                               atol=1e-13 * np.abs(expected).max())


def test_efforts_are_linear_in_the_load(arm):
    rng, model = np.random.default_rng(1), rbd.sample("iiwa")
    state, (one, other) = rng.normal(size=(3, 7)), rng.normal(size=(2, 10))
    own = np.ravel([model.inertial_parameters.reshape(-1, 10)[model.body_index(link)] for link in LINKS])

    def effort(payload):
        return arm("inverse_dynamics", state, own, payload, model.description.gravity)

    none = effort(np.zeros(10))
    np.testing.assert_allclose(none, rbd.inverse_dynamics(model, *state), rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(effort(2.0 * one - 3.0 * other) - none,
                               2.0 * (effort(one) - none) - 3.0 * (effort(other) - none), rtol=0.0, atol=1e-10)


@pytest.mark.thorough
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("seed", range(4))
def test_any_tree_passes_its_own_test(seed, tmp_path):
    model = random_tree(seed, ["revolute", "prismatic", "fixed", "spherical", "planar", "helical"])
    body = model.joints[-1].child
    for name, text in c_files(model, ["inverse_dynamics"], "arm", inertias=[model.joints[0].child], payload=body,
                              gravity=True).items():
        (tmp_path / name).write_text(text)
    subprocess.run([COMPILER, "-O0", "arm.c", "test_arm.c", "-lm", "-o", "test"], cwd=tmp_path, check=True)
    subprocess.run(["./test"], cwd=tmp_path, check=True, capture_output=True)


@pytest.mark.parametrize(("arguments", "what"), [
    ({"inertias": ["link_9"]}, "inertias.*link_9|link_9.*inertias"), ({"payload": "hand"}, "hand"),
    ({"payload": "link_0"}, "'link_0' is fixed to the world"), ({"inertias": 3}, "expected names of bodies, got 3")])
def test_what_is_refused(arguments, what):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.c_source(rbd.sample("iiwa"), **arguments)
