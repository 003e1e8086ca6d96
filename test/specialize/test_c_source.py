"""Generated C, compiled and run: it compares itself with reference numbers, and is compared here at other states."""
from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from support.robots import build, chain
from support.trees import TYPES, random_tree

import rbd_ros as rbd
from rbd_ros.core.specialize.c_source import ARGUMENTS, c_files
from rbd_ros.core.specialize.families import FAMILIES

pytestmark = pytest.mark.thorough

BRANCHES = "spherical_exponential"
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
PARAMETERS = ["jacobian:link_7:world", "jacobian:link_4", "hybrid_dynamics:joint_1,joint_3",
              "inverse_dynamics_time_derivatives:1", "forward_dynamics_time_derivatives:1"]
MODELS = {"iiwa": (lambda: rbd.sample("iiwa"), [name for name in ARGUMENTS if name not in FAMILIES]),
          "parameters": (lambda: chain("revolute", "prismatic", "revolute"), [
              "jacobian:l3:world", "jacobian:l2", "jacobian:l3:aligned", "hybrid_dynamics:j0,j2",
              "hybrid_dynamics_derivatives:j1", "inverse_dynamics_time_derivatives",
              "inverse_dynamics_time_derivatives:3", "forward_dynamics_time_derivatives:1"]),
          "floating": (lambda: rbd.sample("biped", root="floating"), ["inverse_dynamics", "forward_dynamics"]),
          "every joint": (lambda: random_tree(4, [kind for kind in TYPES if kind != BRANCHES]),
                          ["inverse_dynamics", "gravity_effort", "inverse_dynamics_time_derivatives:0"]),
          "one": (lambda: chain("revolute"), ["inverse_dynamics", "mass_matrix", "forward_kinematics"]),
          "mimic": (lambda: rbd.sample("gripper"), ["inverse_dynamics"])}
COMPILERS = [each for each in ("gcc", "clang") if shutil.which(each)]


def written(folder, model, functions, **options):
    files = c_files(model, functions, **options)
    for name, text in files.items():
        (folder / name).write_text(text)
    return files


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("kind", [kind for kind in MODELS if kind != "mimic" or "gripper" in rbd.sample_names()])
def test_it_compiles_without_warnings_and_passes_its_own_test(kind, precision, compiler, tmp_path):
    make, functions = MODELS[kind]
    written(tmp_path, make(), functions, name="arm", precision=precision)
    subprocess.run([compiler, *FLAGS, "arm.c", "test_arm.c", "-lm", "-o", "test"], cwd=tmp_path, check=True)
    result = subprocess.run(["./test"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert result.stdout.count("relative error") == len(functions)


@pytest.fixture(scope="module")
def iiwa(tmp_path_factory):
    if not COMPILERS:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("c")
    written(folder, rbd.sample("iiwa"), ["inverse_dynamics", "forward_dynamics", *PARAMETERS])
    subprocess.run([COMPILERS[0], "-O2", "-shared", "-fPIC", "iiwa.c", "-lm", "-o", "iiwa.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "iiwa.so"))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_other_states(iiwa, name, seed):
    model, rng = rbd.sample("iiwa"), np.random.default_rng(seed)
    state = [10.0 ** rng.uniform(-3, 2) * rng.normal(size=7) for _ in range(3)]
    out = np.empty(7)
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*state, out)]
    assert getattr(iiwa, f"iiwa_{name}")(*pointers) == 0
    expected = getattr(rbd, name)(model, *state)
    np.testing.assert_allclose(out, expected, rtol=0.0, atol=(
        1e-14 if name == "inverse_dynamics" else 1e-11) * np.abs(expected).max())


def test_functions_with_parameters_at_other_states(iiwa):
    """Jacobians and efforts agree to 1e-14, accelerations as far as the condition of M(q) lets them."""
    model, rng = rbd.sample("iiwa"), np.random.default_rng(3)
    cases = {"jacobian_link_7_world": (1, lambda *x: rbd.jacobian(model, *x, "link_7", "world"), 1e-14),
             "jacobian_link_4_body": (1, lambda *x: rbd.jacobian(model, *x, "link_4"), 1e-14),
             "inverse_dynamics_time_derivatives_1": (
                 4, lambda *x: rbd.inverse_dynamics_time_derivatives(model, *x), 1e-14),
             "hybrid_dynamics_joint_1_joint_3": (
                 4, lambda *x: np.array(rbd.hybrid_dynamics(model, *x, ["joint_1", "joint_3"])), 1e-11),
             "forward_dynamics_time_derivatives_1": (
                 4, lambda *x: rbd.forward_dynamics_time_derivatives(model, *x), 1e-11)}
    for name, (count, call, bound) in cases.items():
        for _ in range(10):
            state = list(rng.normal(size=(count, 7)))
            expected = call(*state)
            out = np.empty(expected.size)
            assert getattr(iiwa, f"iiwa_{name}")(*(x.ctypes.data_as(ctypes.c_void_p) for x in (*state, out))) == 0
            np.testing.assert_allclose(out, expected.ravel(), rtol=0.0, atol=bound * np.abs(expected).max(),
                                       err_msg=name)


def test_its_test_finds_a_wrong_number(tmp_path):
    if not COMPILERS:
        pytest.skip("no C compiler")
    files = written(tmp_path, rbd.sample("two_link"), ["inverse_dynamics"], name="arm")
    source = files["arm.c"]
    (tmp_path / "arm.c").write_text(source.replace("    return 0;", "    out[0] *= 1.0 + 1e-9;\n    return 0;"))
    subprocess.run([COMPILERS[0], *FLAGS, "arm.c", "test_arm.c", "-lm", "-o", "test"], cwd=tmp_path, check=True)
    assert subprocess.run(["./test"], cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_the_header_names_joints_and_limits():
    model = rbd.sample("iiwa")
    files = c_files(model, ["inverse_dynamics"])
    assert set(files) == {"iiwa.c", "iiwa.h", "CMakeLists.txt", "test_iiwa.c"}
    assert rbd.c_source(model) == files["iiwa.c"]
    assert "#define IIWA_NV 7" in files["iiwa.h"]
    assert ", ".join(f'"{name}"' for name in model.joint_names) in files["iiwa.c"]
    assert f"iiwa_effort_limit[] = {{{float(model.effort_limit[0])!r}" in files["iiwa.c"]


def test_a_singular_robot_returns_one(tmp_path):
    """Where a pivot vanishes in every state, there is no code; the message says why."""
    model = build([rbd.JointSpec("j0", "revolute", "l0", "l1"), rbd.JointSpec("j1", "revolute", "l1", "l2")],
                  links={"l2": rbd.Inertia.zero()})
    with pytest.raises(rbd.RbdError, match=r"forward_dynamics: its kernel refuses"):
        rbd.c_source(model, ["forward_dynamics"])


def test_what_is_too_long_is_refused():
    model = rbd.sample("iiwa")
    with pytest.raises(rbd.RbdError, match=r"derivatives:6: [\d,]+ operations, more than 15,000"):
        rbd.c_source(model, ["inverse_dynamics_time_derivatives:6"])


def test_one_name_in_c_is_one_function():
    files = c_files(rbd.sample("iiwa"), ["jacobian:link_7", "jacobian:link_7:body"])
    assert files["iiwa.c"].count("int iiwa_jacobian") == 1
    model = build([rbd.JointSpec("j0", "revolute", "l", "l-1"), rbd.JointSpec("j1", "revolute", "l-1", "l_1")])
    with pytest.raises(rbd.RbdError, match="same name in C: jacobian:l-1:body, jacobian:l_1:body"):
        rbd.c_source(model, ["jacobian:l-1", "jacobian:l_1"])


def test_joints_that_branch_are_refused():
    with pytest.raises(rbd.RbdError, match=r"joint 'joint1' is spherical_exponential"):
        rbd.c_source(random_tree(3, ["revolute", BRANCHES]))


@pytest.mark.parametrize(("arguments", "what"), [
    ({"functions": ["inverse"]}, r"unknown function 'inverse'.*inverse_dynamics"),
    ({"functions": []}, r"no function"), ({"functions": ["constrained_forward_dynamics"]}, r"pivots by their size"),
    ({"functions": ["jacobian:arm"]}, r"unknown body 'arm'"),
    ({"functions": ["gravity_effort:1"]}, r"unknown function 'gravity_effort:1'"),
    ({"functions": ["inverse_dynamics_time_derivatives:x"]}, r"order of the highest"),
    ({"functions": ["hybrid_dynamics:elbow_"]}, r"elbow_"), ({"name": "7 arm"}, r"identifier of C, got '7 arm'"),
    ({"precision": "half"}, r"unknown precision 'half'.*float")])
def test_what_is_refused(arguments, what):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.c_source(rbd.sample("two_link"), **arguments)
    with pytest.raises(rbd.RbdError, match="model"):
        rbd.c_source("two_link")
    with pytest.raises(rbd.RbdError, match="no joint that moves"):
        rbd.c_source(build([rbd.JointSpec("j", "fixed", "l0", "l1")]))
