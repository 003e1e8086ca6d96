"""The door between Python and compiled code: what it takes, what the validating path gets, and what it keeps."""
from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.functions import functions
from support.robots import random_states
from support.trees import TYPES, random_tree

import rbd_ros as rbd
from rbd_ros.core.compiled.door import DOORS, NUMBERS
from rbd_ros.core.compiled.entry import EXTENSION, entry
from rbd_ros.core.dynamics.energy import totals_entry
from rbd_ros.core.dynamics.inverse import inverse_dynamics_batch

MODEL = rbd.sample("iiwa")
CHECKOUT = Path(__file__).parents[1]
needs_extension = pytest.mark.skipif(not EXTENSION, reason="the extension was not built, or numba is not used")


def state(model=MODEL, seed=1):
    return [np.ascontiguousarray(x[0]) for x in random_states(model, 1, seed)]


def test_the_extension_is_built_where_there_is_a_compiler():
    """What users would not notice otherwise: everything works without it, three times as slowly."""
    assert EXTENSION or not rbd.COMPILED


@pytest.mark.parametrize("kind", TYPES)
def test_one_state_gives_what_a_batch_gives(kind):
    model = random_tree(4, [kind] * 3, root="floating")
    batch = random_states(model, 2, 3)
    for name, call in functions(model).items():
        if name not in DOORS:
            continue
        one, many = (call(*x) for x in ([np.ascontiguousarray(x[1]) for x in batch], batch))
        one, many = (x if isinstance(x, tuple) else (x,) for x in (one, many))
        for a, b in zip(one, many, strict=True):
            np.testing.assert_allclose(a, np.asarray(b)[1], rtol=1e-12, atol=1e-12, err_msg=name)


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def unaligned(x):
    out = np.zeros(8 * len(x) + 1, np.uint8)[1:].view(np.float64)
    out[:] = x
    return out


OTHERS = [list, tuple, unaligned, read_only, lambda x: x.astype(np.float32), lambda x: x.astype(">f8"),
          lambda x: np.repeat(x, 2)[::2], lambda x: x[::-1][::-1], lambda x: x.astype(object), memoryview]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("place", range(3))
def test_other_inputs_have_the_same_result(other, place):
    given = state()
    expected = rbd.inverse_dynamics(MODEL, *given)
    given[place] = other(given[place])
    tolerance = 1e-4 if getattr(given[place], "dtype", None) == np.float32 else 0.0
    np.testing.assert_allclose(rbd.inverse_dynamics(MODEL, *given), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("wrong", [
    lambda x: x[:-1], lambda x: x[None, :, None], lambda x: np.where(np.arange(len(x)) == 2, np.nan, x), lambda x: None,
    lambda x: "text", lambda x: x.astype(complex), lambda x: np.ma.masked_array(x, x == x[0]), lambda x: {}])
@pytest.mark.parametrize("place", range(3))
def test_what_is_wrong_is_an_error_by_name(wrong, place):
    given = state()
    given[place] = wrong(given[place])
    with pytest.raises(rbd.RbdError, match=rf"\b{'qva'[place]}\b"):
        rbd.inverse_dynamics(MODEL, *given)


@pytest.mark.parametrize("model", [None, 3, "iiwa", object()])
def test_what_is_no_model(model):
    for name, door in DOORS.items():
        assert door(model, *state()) is None, name
    with pytest.raises(rbd.RbdError, match="model"):
        rbd.inverse_dynamics(model, *state())


def test_another_number_of_inputs_is_left():
    door = DOORS["inverse_dynamics"]
    assert door(MODEL) is None and door(MODEL, *state()[:2]) is None and door(MODEL, *state(), state()[0]) is None


@pytest.mark.parametrize("names", [
    (), ("link_7",), ("nobody", "body"), ("link_7", "here"), ([], "body"), ("link_7", {}), (None, None),
    ("link_7", "body", "body")])
def test_names_that_lead_nowhere_are_left(names):
    q, door = state()[0], DOORS["jacobian"]
    assert door(MODEL, q, "link_7", "world").shape == (6, 7)
    assert door(MODEL, q, *names) is None and door(MODEL) is None and door(MODEL, *names) is None


def test_the_code_is_asked_even_if_the_shape_is_right():
    """States that the kernel refuses: results that are not finite, quaternions of another length."""
    q, v, a = state()
    assert DOORS["inverse_dynamics"](MODEL, q, v, np.full_like(a, 1e308)) is None
    floating = rbd.sample("iiwa", root="floating")
    q = floating.neutral()
    q[6] = 2.0
    assert DOORS["mass_matrix"](floating, q) is None


def test_models_do_not_share_their_ways():
    other = MODEL.with_scaled_masses(2.0)
    given = state()
    np.testing.assert_allclose(rbd.inverse_dynamics(other, *given), 2.0 * rbd.inverse_dynamics(MODEL, *given))
    number = NUMBERS["inverse_dynamics"]
    assert other._ways[number] is not MODEL._ways[number]


def test_results_and_inputs_are_not_kept():
    given = state()
    call = DOORS["inverse_dynamics_derivatives"]
    watched = [*given, np.float64, rbd.InverseDerivatives, MODEL]
    call(MODEL, *given)
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(1000):
        call(MODEL, *given), call(MODEL, *given[:2], [1.0]), call(MODEL), DOORS["kinetic_energy"](MODEL, *given[:2])
        DOORS["center_of_mass"](MODEL, given[0]), DOORS["jacobian"](MODEL, given[0], "link_7", "body")
    gc.collect()
    assert max(abs(a - b) for a, b in zip(before, map(sys.getrefcount, watched), strict=True)) < 20
    result = call(MODEL, *given)
    assert type(result) is rbd.InverseDerivatives and all(each.flags.owndata for each in result)


def test_each_call_has_a_result_of_its_own():
    q, v, _ = state()
    first = rbd.centroidal_momentum(MODEL, q, v)
    kept = first.copy()
    rbd.centroidal_momentum(MODEL, q, 2.0 * v)
    np.testing.assert_array_equal(first, kept)


@needs_extension
def test_an_entry_takes_arrays_of_its_signature_alone():
    q, v, _ = state()
    B, W = MODEL._block, MODEL._work
    out = np.empty((1, 15))
    totals_entry.compile()
    call = totals_entry.call
    good = (B, q, v, 1, W, np.empty((1, totals_entry.python.__globals__["RESULTS"])))
    assert call(*good) is True
    for wrong in ((B, q, v, W), (*good, q), (B, list(q), v, W, out), (B, q, v, W, out[0]), (B, q[::2], v, W, good[4]),
                  (B, q, v.astype(">f8"), W, good[4]), (B, q, read_only(v), W, good[4]),
                  (B, q, unaligned(v), W, good[4]), (B, q, v.astype(int), W, good[4])):
        with pytest.raises(TypeError, match="no compiled version"):
            call(*wrong)
    with pytest.raises(TypeError):
        call(*good, out=None)


@needs_extension
def test_numbers_among_the_arguments():
    @entry("float64(float64, int64, boolean, int32[::1], complex128[:, ::1])")
    def total(x, n, flag, small, z):
        return x + n + (100.0 if flag else 0.0) + small[1] + z[1, 2].imag

    small, z = np.arange(3, dtype=np.int32), np.full((2, 3), 1.0 + 0.5j)
    try:
        assert total(0.25, 7, True, small, z) == total(np.float64(0.25), np.int64(7), True, small, z) == 108.75
        assert total(1, -7, False, small, z) == -4.5    # an integer is a float64, too
        for wrong in ((0.25, 7.5, True, small, z), ("a", 7, True, small, z), (0.25, 1 << 70, True, small, z)):
            with pytest.raises(TypeError):
                total(*wrong)
    finally:
        from rbd_ros.core.compiled.entry import ENTRIES
        ENTRIES.remove(total)


@needs_extension
def test_arrays_of_any_strides_where_the_signature_says_so():
    @entry("float64(float64[:, :], float64[:, ::1])")
    def total(strided, plain):
        return strided[1, 2] + 10.0 * strided[0, 1] + 100.0 * plain[1, 0] + strided.shape[1]

    x = np.arange(24.0).reshape(4, 6)
    try:
        for strided in (x, x[::2, ::-1], x.T, x[1:, 2:]):
            assert total(strided, x) == strided[1, 2] + 10.0 * strided[0, 1] + 600.0 + strided.shape[1]
        with pytest.raises(TypeError):
            total(x, x.T)
    finally:
        from rbd_ros.core.compiled.entry import ENTRIES
        ENTRIES.remove(total)


@needs_extension
def test_a_kernel_that_ends_by_an_error_is_an_error_and_no_result():
    """numba would ignore it: memory that is not there."""
    @entry("int64(int64)")
    def huge(n):
        return np.empty(n)[0] > 1.0

    try:
        with pytest.raises(MemoryError):
            huge(1 << 60)
    finally:
        from rbd_ros.core.compiled.entry import ENTRIES
        ENTRIES.remove(huge)


@needs_extension
def test_batches_release_the_lock_and_single_calls_hold_it():
    assert inverse_dynamics_batch._releases and not totals_entry._releases


WITHOUT = """
import sys
sys.modules["rbd_ros.core.compiled._door"] = None
import numpy as np, rbd_ros as rbd
from rbd_ros.core.compiled.entry import EXTENSION
assert EXTENSION is None
model = rbd.sample("two_link")
q, v, a = np.array([[0.3, 0.5], [1.0, 2.0], [-1.0, 0.5]])
print(rbd.inverse_dynamics(model, q, v, a).tolist(), rbd.inverse_dynamics(model, [q, q], [v, v], [a, a])[1].tolist())
print(float(rbd.kinetic_energy(model, q, v)), rbd.jacobian(model, q, "tip").tolist())
print(rbd.inverse_dynamics(model, q.astype(">f8"), v, a).tolist(), rbd.center_of_mass(model, q).tolist())
fast = rbd.specialize(model)
print(rbd.inverse_dynamics(fast, q, v, a).tolist())
"""


@pytest.mark.skipif(not rbd.COMPILED, reason="numba is not used")
@pytest.mark.parametrize("kept", [True, pytest.param(False, marks=pytest.mark.thorough)],
                         ids=["perhaps compiled before", "in a cache of its own"])
def test_everything_works_without_the_extension(tmp_path, kept):
    """numba compiles the same functions for its own calls."""
    cache = {} if kept else {"RBD_CACHE_DIR": str(tmp_path)}
    output = subprocess.run([sys.executable, "-W", "ignore", "-c", WITHOUT], cwd=CHECKOUT, check=True, text=True,
                            stdout=subprocess.PIPE, env=os.environ | cache).stdout
    first, second, third, fourth = output.splitlines()
    model = rbd.sample("two_link")
    q, v, a = np.array([[0.3, 0.5], [1.0, 2.0], [-1.0, 0.5]])
    tau = rbd.inverse_dynamics(model, q, v, a).tolist()
    assert first == f"{tau} {tau}" and fourth == str(tau)
    assert second == f"{float(rbd.kinetic_energy(model, q, v))} {rbd.jacobian(model, q, 'tip').tolist()}"
    assert third == f"{tau} {rbd.center_of_mass(model, q).tolist()}"


def test_positions_are_told_and_not_guessed():
    model = random_tree(1, ["revolute"], root="floating")
    assert model.nq != model.nv
    with pytest.raises(rbd.RbdError, match=rf"^tangent\.q has shape .*expected \({model.nv},\)"):
        rbd.inverse_dynamics_directional(model, model.neutral(), np.zeros(model.nv), np.zeros(model.nv),
                                         rbd.Tangent(q=model.neutral()))
    with pytest.raises(rbd.RbdError, match=rf"^q1 has shape .*expected \({model.nq},\)"):
        model.difference(model.neutral(), np.zeros(model.nv))
