"""CUDA kernels: the text that NVRTC takes, run thread by thread on this processor, and compiled for GPUs.

No GPU takes part. Numbers are those of the C++ compiler's arithmetic, with and without fused operations; what NVRTC
makes of the same text is compiled to the end, and not run.
"""
from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
from support.cuda import COMPILER, HEADER, UNWRITTEN, Kernels, compiled, nvrtc
from support.own_code import states
from support.robots import build, chain
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.specialize.c_source import ARGUMENTS, MAX_OPERATIONS, c_files, wanted_of
from rbd_ros.core.specialize.cuda_source import BLOCK, OPTIONS
from rbd_ros.core.specialize.families import FAMILIES
from rbd_ros.core.specialize.model_inputs import model_inputs

pytestmark = pytest.mark.filterwarnings("ignore::rbd_ros.RbdWarning")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
STATES = 2 * BLOCK + 45
EVERY = [name for name in ARGUMENTS if name not in FAMILIES]
PARAMETERS = ["jacobian:l3:world", "jacobian:l2", "jacobian:l3:aligned", "hybrid_dynamics:j0,j2",
              "hybrid_dynamics_derivatives:j1", "inverse_dynamics_time_derivatives:2",
              "forward_dynamics_time_derivatives:1"]
MODELS = {"iiwa": (lambda: rbd.sample("iiwa"), EVERY),
          "parameters": (lambda: chain("revolute", "prismatic", "revolute"), PARAMETERS),
          "floating": (lambda: rbd.sample("biped", root="floating"), ["inverse_dynamics", "forward_dynamics"]),
          "every joint": (lambda: random_tree(4, [kind for kind in TYPES if kind != "spherical_exponential"]),
                          ["inverse_dynamics", "forward_kinematics", "centroidal_momentum"]),
          "mimic": (mimic_tree, ["inverse_dynamics", "forward_dynamics"]),
          "one": (lambda: chain("revolute"), ["inverse_dynamics", "mass_matrix", "kinetic_energy"])}
QUICK = {("iiwa", "inverse_dynamics"), ("iiwa", "forward_dynamics"), ("parameters", "hybrid_dynamics:j0,j2"),
         ("one", "mass_matrix"), ("parameters", "jacobian:l3:world")}


def memory(count, size, layout, dtype):
    """An array (count, size) in the middle of unwritten memory, and that memory."""
    if layout == "(N, n)":
        whole = np.full((count, size), UNWRITTEN, dtype)
        return whole, whole
    if layout == "(n, N)":
        whole = np.full((size, count), UNWRITTEN, dtype)
        return whole.T, whole
    whole = np.full((2 * count + 3, size + 5), UNWRITTEN, dtype)    # rows and columns apart, backwards
    return whole[2:2 + 2 * count:2][::-1, 3:3 + size][:, ::-1], whole


def strides(array):
    return [stride // array.itemsize for stride in array.strides]


def run(kernels, model, wanted, state, layout, precision):
    """Results of the kernel by name, and those of the library."""
    dtype = np.float64 if precision == "double" else np.float32
    arguments = []
    for x in state:
        array = memory(*x.shape, layout, dtype)[0]
        array[:] = x
        arguments += [array, *strides(array)]
    results = {name: memory(STATES, size, layout, dtype) for name, size in wanted.outputs(model).items()}
    for out, _ in results.values():
        arguments += [out, *strides(out)]
    kernels(f"robot_{wanted.name}", -(-STATES // BLOCK), BLOCK, STATES, *arguments)
    for name, (out, whole) in results.items():
        assert np.count_nonzero(whole == dtype(UNWRITTEN)) == whole.size - out.size, name
    expected = wanted.call(model, *(x.astype(dtype).astype(float) for x in state))
    expected = expected if isinstance(expected, tuple) else (expected,)
    return [(out, np.reshape(part, out.shape)) for (out, _), part in zip(results.values(), expected, strict=True)]


def check(pairs, bound):
    """Each state relative to its largest number."""
    for out, expected in pairs:
        size = np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1e-3)
        assert (np.abs(out - expected) / size).max() <= bound


@needs_compiler
@pytest.mark.parametrize("flags", [(), ("-mfma", "-O1", "-ffp-contract=fast")], ids=["rounded", "fused"])
@pytest.mark.parametrize(("kind", "name"), [
    pytest.param(kind, name, marks=() if (kind, name) in QUICK else pytest.mark.thorough)
    for kind, (_, names) in MODELS.items() for name in names])
def test_kernels_are_the_librarys_functions(kind, name, flags, tmp_path):
    """Every state of every layout, and nothing beside the results is written."""
    if flags and not runs_fused():
        pytest.skip("this processor has no fused operations")
    model = MODELS[kind][0]()
    wanted = wanted_of(model, name)
    kernels = Kernels(rbd.c_source(model, [name], "robot", target="cuda"), tmp_path, *flags)
    state = states(model, wanted.function.inputs, STATES)
    bound = 1e-11 if "forward_d" in name or "hybrid" in name else 1e-13    # M(q) is solved with
    for layout in ("(N, n)", "(n, N)", "apart"):
        check(run(kernels, model, wanted, state, layout, "double"), bound)


def runs_fused():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return " fma " in file.read()
    except OSError:
        return False


@needs_compiler
@pytest.mark.parametrize(("name", "bound"), [("inverse_dynamics", 2e-6), ("forward_kinematics", 2e-6),
                                            ("mass_matrix", 2e-6), ("forward_dynamics", 1e-3)])
def test_kernels_in_single_precision(name, bound, tmp_path):
    model = rbd.sample("iiwa")
    wanted = wanted_of(model, name)
    kernels = Kernels(rbd.c_source(model, [name], "robot", "float", target="cuda"), tmp_path)
    for layout in ("(N, n)", "(n, N)", "apart"):
        check(run(kernels, model, wanted, states(model, wanted.function.inputs, STATES), layout, "float"), bound)


@needs_compiler
def test_arguments_of_the_model_one_for_all_states_or_one_each(tmp_path):
    model, rng = rbd.sample("iiwa"), np.random.default_rng(2)
    source = rbd.c_source(model, ["inverse_dynamics"], "robot", target="cuda", payload="link_7", gravity=True)
    kernels = Kernels(source, tmp_path)
    q, v, a = rng.normal(size=(3, 5, 7))
    examples = [model_inputs(model, (), "link_7", True).example(model, rng) for _ in range(5)]
    payloads, gravities = (np.array([values[name] for values, _ in examples]) for name in ("payload", "gravity"))
    effort = np.full((5, 7), UNWRITTEN)
    rows = [x for array in (q, v, a) for x in (array, 7, 1)]
    kernels("robot_inverse_dynamics", 1, 8, 5, *rows, payloads, 10, 1, gravities, 3, 1, effort, 7, 1)
    for k, (_, changed) in enumerate(examples):
        np.testing.assert_allclose(effort[k], rbd.inverse_dynamics(changed, q[k], v[k], a[k]), rtol=0.0, atol=1e-11)
    kernels("robot_inverse_dynamics", 1, 8, 5, *rows, payloads, 0, 1, gravities, 0, 1, effort, 7, 1)
    np.testing.assert_allclose(effort, rbd.inverse_dynamics(examples[0][1], q, v, a), rtol=0.0, atol=1e-11)


@needs_compiler
def test_singular_states_alone_are_nan(tmp_path):
    """Two sliders on a turning arm, one of which moves no inertia with parameters of 0, given per state."""
    model = build([rbd.JointSpec("j0", "revolute", "l0", "l1"), *(
        rbd.JointSpec(f"j{k}", "prismatic", "l1", f"l{k + 1}") for k in (1, 2))])
    for link in ("l2", "l3"):
        model = model.with_body(link, mass=1.0, com=[0.1, 0.2, 0.0])
    kernels = Kernels(rbd.c_source(model, ["forward_dynamics"], "robot", target="cuda", inertias=["l3"]), tmp_path)
    own = np.tile(model.inertial_parameters[-10:], (4, 1))
    own[2] = 0.0
    q, v, tau = np.random.default_rng(0).normal(size=(3, 4, 3))
    out = np.full((3, 4), UNWRITTEN)
    kernels("robot_forward_dynamics", 1, 4, 4, *(x for array in (q, v, tau) for x in (array, 3, 1)), own, 10, 1, out,
            1, 4)
    assert np.isnan(out[:, 2]).all()
    good = [0, 1, 3]
    np.testing.assert_allclose(out[:, good].T, rbd.forward_dynamics(model, q[good], v[good], tau[good]), rtol=1e-11)


@needs_compiler
def test_a_quaternion_of_another_norm_is_nan(tmp_path):
    """Which this condition alone of several finds."""
    model = random_tree(7, ["floating", "revolute", "revolute", "revolute"])
    wanted = wanted_of(model, "forward_dynamics")
    source = rbd.c_source(model, ["forward_dynamics"], "robot", target="cuda")
    q, v, tau = (x[:4] for x in states(model, wanted.function.inputs, STATES))
    first = next(joint.idx_q for joint in model.joints if joint.type == "floating")
    q[1, first + 3:first + 7] *= 2.0
    out = np.full((4, model.nv), UNWRITTEN)
    Kernels(source, tmp_path)("robot_forward_dynamics", 1, 4, 4, *(x for array in (q, v, tau) for x in (
        array, *strides(array))), out, *strides(out))
    assert source.count("||") >= 2
    assert np.isnan(out[1]).all() and np.isfinite(out[[0, 2, 3]]).all()


# compiled for GPUs

@pytest.fixture(scope="module")
def compiler():
    return nvrtc() or pytest.skip("no NVRTC (`pip install nvidia-cuda-nvrtc-cu12`)")


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=() if kind == "one" else pytest.mark.thorough)
                                  for kind in MODELS])
@pytest.mark.parametrize("precision", ["double", "float"])
def test_nvrtc_takes_it(kind, precision, compiler):
    make, names = MODELS[kind]
    model = make()
    source = rbd.c_source(model, names, "robot", precision, target="cuda")
    ptx, log = compiled(compiler, source, "--gpu-architecture=compute_75")
    assert set(re.findall(rb"\.visible \.entry robot_(\w+)\(", ptx)) == {
        wanted_of(model, name).name.encode() for name in names}
    assert not log.strip(), log
    if precision == "float":    # nothing is computed in double, which may take 64 times as long, but large angles
        doubles = re.findall(r"^\s*(?!cvt|mov|ld|st)(\w[.\w]*\.f64)\s", ptx.decode(), flags=re.MULTILINE)
        assert set(doubles) <= {"mul.f64"} and len(doubles) <= len(re.findall(r"(?:sin|cos)f\(", source))


@pytest.mark.parametrize(("name", "precision", "registers", "spilled"), [
    ("inverse_dynamics", "double", 160, 0), ("inverse_dynamics", "float", 96, 0),
    ("forward_dynamics", "double", 255, 0), ("forward_dynamics", "float", 128, 0),
    pytest.param("inertial_regressor", "double", 255, 0, marks=pytest.mark.thorough),
    pytest.param("forward_dynamics_derivatives", "double", 255, 8000, marks=pytest.mark.thorough)])
def test_registers_and_spills(name, precision, registers, spilled, compiler):
    """Of the iiwa: no more than two blocks per multiprocessor allow, and code of 7,000 operations does not fall apart
    to 32 registers and a stack, as without `OPTIONS`.
    """
    code, log = compiled(compiler, rbd.c_source(rbd.sample("iiwa"), [name], "robot", precision, target="cuda"),
                         "--gpu-architecture=sm_80", "--ptxas-options=-v", *OPTIONS)
    assert code.startswith(b"\x7fELF")
    entry = log[log.index("entry function 'robot_"):]
    assert 32 < int(re.search(r"Used (\d+) registers", entry)[1]) <= registers
    assert int(re.search(r"(\d+) bytes spill stores", entry)[1]) <= spilled


# the test program

def emulated(text):
    """The test program for a C++ compiler: launches are loops, device memory is memory."""
    head = HEADER + ("#include <stdlib.h>\nenum { cudaSuccess };\n#define cudaMallocManaged(address, bytes) "
                     "((*(void **)(address) = malloc(bytes)) ? cudaSuccess : 1)\n#define cudaFree free\n"
                     "#define cudaDeviceSynchronize() cudaSuccess\n")
    text, count = re.subn(r"(\w+)<<<BLOCKS, BLOCK>>>\((.*)\);", r"for (int b = 0; b < BLOCKS; ++b) for (int t = 0; "
                          r"t < BLOCK; ++t) { place(b, BLOCK, t); \1(\2); }", text)
    assert count
    return head + text


@needs_compiler
@pytest.mark.parametrize("precision", ["double", "float"])
def test_the_test_program_finds_a_wrong_number(precision, tmp_path):
    files = c_files(chain("revolute", "prismatic", "revolute"),
                    ["inverse_dynamics", "hybrid_dynamics:j0,j2"], "arm", precision, target="cuda", payload="l3")
    assert set(files) == {"arm.cu", "test_arm.cu", "CMakeLists.txt"}
    (tmp_path / "test.cpp").write_text(emulated(files["test_arm.cu"]))
    for change, code in ((None, 0), (" + state / 999 * 0.01", 1), (' * nan("")', 1)):
        source = files["arm.cu"]
        if change:
            source = re.sub(r"(effort\[2 \* effort_entry\] = \w+);", rf"\1{change};", source)
            assert source != files["arm.cu"]
        (tmp_path / "arm.cu").write_text(source)
        subprocess.run([COMPILER, "-O0", "test.cpp", "-lm", "-o", "test"], cwd=tmp_path, check=True)
        result = subprocess.run(["./test"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == code, result.stdout
        assert result.stdout.count("relative error") == 3


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_nvcc_takes_the_test_program(tmp_path):
    for name, text in c_files(rbd.sample("two_link"), ["forward_dynamics"], "arm", target="cuda").items():
        (tmp_path / name).write_text(text)
    subprocess.run(["nvcc", "-Werror", "all-warnings", *OPTIONS, "test_arm.cu", "-o", "test"], cwd=tmp_path, check=True)


# refused

@pytest.mark.parametrize(("functions", "options", "what"), [
    (["inverse_dynamics"], {"target": "opencl"}, "unknown target 'opencl'.*c, cuda"),
    (["inverse"], {}, "unknown function 'inverse'"), ([], {}, "no function is requested"),
    (["constrained_forward_dynamics"], {}, "pivots by their size"),
    (["inverse_dynamics"], {"precision": "half"}, "unknown precision 'half'"),
    (["inverse_dynamics"], {"payload": "hand"}, "payload: unknown body 'hand'")])
def test_what_is_refused(functions, options, what):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.c_source(rbd.sample("iiwa"), functions, **({"target": "cuda"} | options))


@pytest.mark.thorough
def test_long_functions_are_refused():
    with pytest.raises(rbd.RbdError, match=f"operations, more than {MAX_OPERATIONS:,}"):
        rbd.c_source(rbd.sample("biped", root="floating"), ["forward_dynamics_derivatives"], target="cuda")
