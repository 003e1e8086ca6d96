"""`rbd.cuda_batch` around a stand-in for CuPy, whose kernels run on this processor: checks, strides, streams, results.

It is a stand-in because no test can count on a GPU: what is shown is what the library asks of CuPy, not CuPy itself.
"""
from __future__ import annotations

import sys

import numpy as np
import pytest
from support.cuda import COMPILER, Cupy, CupyArray, DeviceArray, on_device
from support.robots import chain

import rbd_ros as rbd
from rbd_ros.core.specialize.cuda_source import OPTIONS
from rbd_ros.core.specialize.model_inputs import model_inputs

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
MODEL = chain("revolute", "prismatic", "revolute")
RESULTS = {"inverse_dynamics": 3, "inverse_dynamics_derivatives": 3, "forward_kinematics": 1, "kinetic_energy": 2,
           "hybrid_dynamics:j1": 4, "jacobian:l3": 1, "inverse_dynamics_time_derivatives:1": 4}
KINDS = {"inverse_dynamics_derivatives": rbd.InverseDerivatives, "hybrid_dynamics:j1": rbd.Hybrid}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def cupy(folder, monkeypatch):
    module = Cupy(folder)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def states(count, states=200, seed=0):
    return np.random.default_rng(seed).normal(size=(count, states, MODEL.nv))


def library_result(name, x):
    of = name.partition(":")[0]
    more = {"hybrid_dynamics": [["j1"]], "jacobian": ["l3"]}.get(of, [])
    result = getattr(rbd, of)(MODEL, *x, *more)
    return result if isinstance(result, tuple) else (result,)


def check_results(result, name, x, axis, to_numpy):
    """The arrays of the result, which have shapes and numbers of the library's."""
    parts = result if isinstance(result, tuple) else (result,)
    for part, expected in zip(parts, library_result(name, x), strict=True):
        found = to_numpy(part) if axis == 0 else np.moveaxis(to_numpy(part), -1, 0)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())
    return parts


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", RESULTS)
def test_results_are_the_librarys(name, axis, cupy):
    function = rbd.cuda_batch(MODEL, name, axis=axis)
    x = states(RESULTS[name])
    result = function(*(on_device(each if axis == 0 else each.T.copy()) for each in x))
    assert isinstance(result, KINDS.get(name, DeviceArray))
    for part in check_results(result, name, x, axis, np.asarray):
        assert part.flags.c_contiguous and isinstance(part, DeviceArray) and part.library.name == "torch"
    assert cupy.log == [(f"robot_{name.replace(':', '_')}" + "_body" * ("jacobian" in name), (2,), (128,), 0)]
    assert cupy.compiled == 1


def test_arrays_of_any_strides(cupy):
    function = rbd.cuda_batch(MODEL, "inverse_dynamics")
    x = states(3)
    expected = rbd.inverse_dynamics(MODEL, *x)
    wide = np.full((400, 8), np.nan)
    q = wide[::2, 1:4]
    q[:] = x[0]
    v = np.asfortranarray(x[1])
    a = np.ascontiguousarray(x[2][::-1, ::-1])[::-1, ::-1]
    np.testing.assert_allclose(function(*map(on_device, (q, v, a))), expected, rtol=0.0, atol=1e-12)
    same = np.broadcast_to(x[0][:1], x[0].shape)    # a stride of 0
    np.testing.assert_allclose(function(*map(on_device, (same, v, a))), rbd.inverse_dynamics(
        MODEL, same, x[1], x[2]), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("axis", [0, -1])
def test_vectors_hold_for_all_states(axis, cupy):
    rng = np.random.default_rng(1)
    values, changed = model_inputs(MODEL, ["l2"], "l3", True).example(MODEL, rng)
    function = rbd.cuda_batch(MODEL, "inverse_dynamics", axis=axis, inertias=["l2"], payload="l3", gravity=True)
    assert function.arguments == ("q", "v", "a", "inertias", "payload", "gravity")
    q, v, a = states(3, 70)
    given = {"q": q, "v": np.repeat(v[0], 2)[::2], "a": a, **values, "gravity": np.tile(values["gravity"], (70, 1))}
    effort = function(**{name: on_device(x if axis == 0 or x.ndim == 1 else x.T.copy()) for name, x in given.items()})
    np.testing.assert_allclose(np.asarray(effort) if axis == 0 else np.asarray(effort).T,
                               rbd.inverse_dynamics(changed, q, np.tile(v[0], (70, 1)), a), rtol=0.0, atol=1e-11)


def test_single_precision(cupy):
    function = rbd.cuda_batch(MODEL, "inverse_dynamics", precision="float")
    x = states(3).astype(np.float32)
    effort = function(*map(on_device, x))
    assert effort.dtype == np.float32
    expected = rbd.inverse_dynamics(MODEL, *x.astype(float))
    np.testing.assert_allclose(effort, expected, rtol=0.0, atol=1e-5 * np.abs(expected).max())


def test_as_many_states_as_numbers(cupy):
    """Arrays (3, 3) say nothing of the axis: the option does."""
    x = states(3, 3)
    expected = rbd.inverse_dynamics(MODEL, *x)
    np.testing.assert_allclose(rbd.cuda_batch(MODEL, "inverse_dynamics")(*map(on_device, x)), expected, atol=1e-12)
    np.testing.assert_allclose(rbd.cuda_batch(MODEL, "inverse_dynamics", axis=-1)(*(
        on_device(each.T) for each in x)).T, expected, atol=1e-12)


def test_singular_states_are_nan(cupy):
    model = MODEL.with_body("l3", mass=1.0, com=[0.1, 0.2, 0.0])
    function = rbd.cuda_batch(model, "forward_dynamics", inertias=["l3"])
    x = states(3, 4)
    own = np.tile(model.inertial_parameters[-10:], (4, 1))
    own[1] = 0.0
    found = np.asarray(function(*map(on_device, (*x, own))))
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, 2, 3]]).all()


@pytest.mark.parametrize("axis", [0, -1])
def test_no_states(axis, cupy):
    function = rbd.cuda_batch(MODEL, "inverse_dynamics_derivatives", axis=axis)
    x = [on_device(np.zeros((0, 3) if axis == 0 else (3, 0)))] * 3
    result = function(*x)
    assert [part.shape for part in result] == [(0, 3, 3) if axis == 0 else (3, 3, 0)] * 3 and cupy.log == []


def test_libraries_order_their_streams(cupy):
    """Each array is imported once, for CuPy's stream, and each result exported once, for that of its reader."""
    function = rbd.cuda_batch(MODEL, "inverse_dynamics")
    x = [on_device(each, device=1) for each in states(3)]
    effort = function(*x)
    assert [each.exports for each in x] == [["stream of cupy"]] * 3
    assert effort.exports == ["stream of torch"]
    assert cupy.log[0][3] == effort.device == 1 and cupy.current == 0


def test_arrays_of_cupy_stay_such(cupy):
    function = rbd.cuda_batch(MODEL, "inverse_dynamics")
    x = [on_device(each, "cupy", kind_of=CupyArray) for each in states(3)]
    effort = function(*x)
    assert isinstance(effort, CupyArray) and effort.exports == []


def test_arguments_live_until_the_kernel_has_read_them(cupy):
    function = rbd.cuda_batch(MODEL, "gravity_effort")
    for expected in (1, 2):
        function(on_device(states(1)[0]))
        assert len(function._running) == expected
    for event in cupy.pending:
        event.done = True
    function(on_device(states(1)[0]))
    assert len(function._running) == 1


def test_managed_memory_and_names(cupy):
    function = rbd.cuda_batch(MODEL, "inverse_dynamics")
    q, v, a = (on_device(each, kind=13) for each in states(3))
    np.testing.assert_array_equal(function(q, a=a, v=v), function(q, v, a))
    assert repr(function) == "CudaBatch inverse_dynamics(q, v, a), double, states on axis 0"
    assert isinstance(function, rbd.CudaBatch) and "__global__" in function.source
    assert function._kernel.options == OPTIONS


# refused

def test_wrong_calls(cupy):
    function = rbd.cuda_batch(MODEL, "inverse_dynamics")
    x = states(3)
    q, v, a = map(on_device, x)
    for arguments, named, what in [
            ((q, v), {}, r"expected q, v, a; missing: a"), ((q, v, a, a), {}, r"expected 3 arrays \(q, v, a\), got 4"),
            ((q, v, a), {"a": a}, "a is given twice"), ((q, v), {"tau": a}, "unknown argument 'tau'"),
            ((x[0].tolist(), v, a), {}, r"q: expected an array on a CUDA device \(CuPy, .* DLPack\), got list"),
            ((q, x[1], a), {}, r"v: expected an array on a CUDA device, got ndarray in .* \(DLPack device 1\)"),
            ((q, v, on_device(x[2], device=1)), {}, "arrays on one device, got q on 0, v on 0, a on 1"),
            ((q, v, on_device(x[2].astype(np.float32))), {}, "a: expected float64, of precision 'double', got float32"),
            ((q, v, on_device(x[2][:, :2])), {}, r"a: expected shape \(N, 3\), or \(3,\) for .*, got \(200, 2\)"),
            ((q, v, on_device(x[2].T)), {}, r"got \(3, 200\)"), ((q, v, on_device(np.array(0.0))), {}, r"got \(\)"),
            ((q, v, on_device(x[2][None])), {}, r"got \(1, 200, 3\)"),
            ((q, v, on_device(x[2][:9])), {}, "numbers of states differ: 200 of q, 200 of v, 9 of a"),
            ([on_device(each[0]) for each in x], {}, "one of q, v, a must be an array of states")]:
        with pytest.raises(rbd.RbdError, match=what):
            function(*arguments, **named)
    gradients = on_device(x[1])
    gradients.exports = None
    with pytest.raises(rbd.RbdError, match="v: DeviceArray does not export its memory: tensor requires gradients"):
        function(q, gradients, a)
    assert cupy.log == []


def test_shapes_of_the_other_layout(cupy):
    function = rbd.cuda_batch(MODEL, "gravity_effort", axis=-1)
    with pytest.raises(rbd.RbdError, match=r"q: expected shape \(3, N\), or \(3,\) for all states, got \(200, 3\)"):
        function(on_device(states(1)[0]))


@pytest.mark.parametrize(("function", "options", "what"), [
    ("inverse", {}, "unknown function 'inverse'"), ("inverse_dynamics", {"axis": 1}, "axis of the states is 1"),
    ("inverse_dynamics", {"precision": "half"}, "unknown precision 'half'"),
    ("constrained_forward_dynamics", {}, "pivots by their size"),
    ("inverse_dynamics", {"payload": "hand"}, "payload: unknown body 'hand'")])
def test_what_is_refused(function, options, what, cupy):
    with pytest.raises(rbd.RbdError, match=what):
        rbd.cuda_batch(MODEL, function, **options)
    assert cupy.compiled == 0


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(rbd.RbdError, match=r"cuda_batch needs the package cupy \(`pip install cupy-cuda12x`\)"):
        rbd.cuda_batch(MODEL, "inverse_dynamics")


def test_without_a_device(folder, monkeypatch):
    module = Cupy(folder, devices=0)
    monkeypatch.setitem(sys.modules, "cupy", module)
    with pytest.raises(rbd.RbdError, match=r"there is no CUDA device$"):
        rbd.cuda_batch(MODEL, "inverse_dynamics")

    def none():
        raise RuntimeError("cudaErrorInsufficientDriver: old")

    module.cuda.runtime.getDeviceCount = none
    with pytest.raises(rbd.RbdError, match="there is no CUDA device: cudaErrorInsufficientDriver: old"):
        rbd.cuda_batch(MODEL, "inverse_dynamics")


def test_what_the_compiler_says(cupy, monkeypatch):
    def fail(self):
        raise OSError("libnvrtc.so.12: no such file")

    monkeypatch.setattr(cupy.RawKernel, "compile", fail)
    with pytest.raises(rbd.RbdError, match=r"inverse_dynamics does not compile: libnvrtc\.so\.12: no such file"):
        rbd.cuda_batch(MODEL, "inverse_dynamics")


def real_cupy():
    cupy = pytest.importorskip("cupy")
    try:
        return cupy, cupy.cuda.runtime.getDeviceCount()
    except RuntimeError:
        return cupy, 0


def test_cupy_without_a_device_is_told():
    if real_cupy()[1]:
        pytest.skip("there is a CUDA device")
    with pytest.raises(rbd.RbdError, match="there is no CUDA device"):
        rbd.cuda_batch(MODEL, "inverse_dynamics")


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("name", RESULTS)
def test_on_a_device(name, axis):
    cupy, devices = real_cupy()
    if not devices:
        pytest.skip("no CUDA device")
    x = states(RESULTS[name], 1000)
    result = rbd.cuda_batch(MODEL, name, axis=axis)(*(cupy.asarray(each if axis == 0 else each.T.copy()) for each in x))
    check_results(result, name, x, axis, cupy.asnumpy)
