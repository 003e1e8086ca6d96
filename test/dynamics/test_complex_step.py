"""The kernels run on complex numbers, so that an imaginary step of 1e-30 gives derivatives to rounding."""

import numpy as np
import pytest
from support.plain import plain
from support.robots import assert_close, random_state
from support.trees import random_tree

import rbd_ros as rbd
from rbd_ros.core.dynamics import energy, inverse, mass_matrix
from rbd_ros.core.model import block

STEP = 1e-30
# q̇ = v: positions can be stepped coordinate by coordinate
KINDS = ["revolute", "spherical_exponential", "prismatic", "universal", "helical", "planar", "spherical_euler",
         "composite"]
MODEL = random_tree(51, KINDS)


def run_inverse(M, q, v, a, W, tau):
    plain(inverse.inverse_dynamics_recursion)(M, q, 0, v, a, 0, W[:0], 0, W, tau)


def run_energy(M, q, v, W, out):
    plain(energy.totals)(M, q, 0, v, 0, 1, W, out, 0)


def run_mass_matrix(M, q, W, H):
    plain(mass_matrix.mass_matrix_recursion)(M, q, 0, W, H, 0)


def complex_arrays(*arrays):
    return [np.asarray(x, dtype=complex) for x in arrays]


def efforts(q, v, a, M=None):
    nodes = int(MODEL._block[block.NODES])
    tau = np.zeros(MODEL.nv, dtype=complex)
    run_inverse(*complex_arrays(MODEL._block if M is None else M, q, v, a, np.zeros(inverse.SIZE * nodes)), tau)
    return tau


def energies(q, v):
    nodes = int(MODEL._block[block.NODES])
    out = np.zeros(energy.RESULTS, dtype=complex)
    run_energy(*complex_arrays(MODEL._block, q, v, np.zeros(energy.SIZE * nodes)), out)
    return out


def masses(q):
    nodes = int(MODEL._block[block.NODES])
    H = np.zeros(MODEL.nv**2, dtype=complex)
    run_mass_matrix(*complex_arrays(MODEL._block, q, np.zeros(mass_matrix.SIZE * nodes)), H)
    return H.reshape(MODEL.nv, MODEL.nv)


def test_real_parts_are_the_real_results():
    q, v, a = random_state(MODEL, 1)
    assert_close(efforts(q, v, a).real, rbd.inverse_dynamics(MODEL, q, v, a), 1e-14)
    assert_close(energies(q, v)[0].real, rbd.kinetic_energy(MODEL, q, v), 1e-14)
    assert_close(masses(q).real, rbd.mass_matrix(MODEL, q), 1e-14)


def test_power_balance_to_rounding():
    """dE/dt along (q̇, v̇) = (v, a) is τᵀ v: holds only with every velocity term, Ṡ v included."""
    for seed in range(20):
        q, v, a = random_state(MODEL, seed)
        out = energies(q + 1j * STEP * v, v + 1j * STEP * a)
        power = (out[0] + out[1]).imag / STEP
        terms = np.abs(rbd.inverse_dynamics(MODEL, q, v, a) * v).max()
        assert abs(power - rbd.inverse_dynamics(MODEL, q, v, a) @ v) < 1e-13 * max(1.0, terms)


def test_lagrange_equations_from_the_kinetic_energy():
    """τ = d/dt ∂L/∂v − ∂L/∂q, with ∂L/∂v = M v: derivatives of M along the motion, of L along each coordinate."""
    for seed in range(5):
        q, v, a = random_state(MODEL, seed)
        rate = masses(q + 1j * STEP * v).imag / STEP @ v
        gradient = []
        for e in np.eye(MODEL.nv):
            out = energies(q + 1j * STEP * e, v)
            gradient.append((out[0] - out[1]).imag / STEP)
        tau = rbd.mass_matrix(MODEL, q) @ a + rate - np.array(gradient)
        assert_close(rbd.inverse_dynamics(MODEL, q, v, a), tau, 1e-12)


def test_derivative_by_acceleration_is_the_mass_matrix():
    q, v, a = random_state(MODEL, 2)
    columns = [efforts(q, v, a + 1j * STEP * e).imag / STEP for e in np.eye(MODEL.nv)]
    assert_close(np.transpose(columns), rbd.mass_matrix(MODEL, q), 1e-13)


def test_derivative_of_the_potential_energy_is_the_gravity_effort():
    q = MODEL.random_configuration(3)
    gradient = [energies(q + 1j * STEP * e, np.zeros(MODEL.nv))[1].imag / STEP for e in np.eye(MODEL.nv)]
    assert_close(gradient, rbd.gravity_effort(MODEL, q), 1e-13)


@pytest.mark.parametrize("which", ["q", "v"])
def test_derivatives_of_the_efforts_against_differences(which):
    q, v, a = random_state(MODEL, 4)
    h = 1e-6
    for e in np.eye(MODEL.nv):
        dq, dv = (e, 0 * e) if which == "q" else (0 * e, e)
        exact = efforts(q + 1j * STEP * dq, v + 1j * STEP * dv, a).imag / STEP
        rough = (rbd.inverse_dynamics(MODEL, q + h * dq, v + h * dv, a)
                 - rbd.inverse_dynamics(MODEL, q - h * dq, v - h * dv, a)) / (2 * h)
        np.testing.assert_allclose(exact, rough, rtol=0, atol=1e-7 * max(1.0, np.abs(exact).max()))


def test_derivative_by_a_parameter_of_the_model():
    """The packed array itself may be complex: a step in one body's mass."""
    q, v, a = random_state(MODEL, 5)
    last = int(MODEL._block[block.NODES]) - 1
    M = MODEL._block.astype(complex)
    M[block.HEADER + block.NODE * last + block.MASS] += 1j * STEP
    exact = efforts(q, v, a, M).imag / STEP
    heavy, light = MODEL._block.copy(), MODEL._block.copy()
    for B, sign in ((heavy, 1.0), (light, -1.0)):
        B[block.HEADER + block.NODE * last + block.MASS] += sign    # efforts are linear in the mass
    assert_close(exact, (efforts(q, v, a, heavy) - efforts(q, v, a, light)).real / 2, 1e-12)
