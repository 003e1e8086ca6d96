"""G's P = ∫ Σ τ² and its gradient: complex step, G's own recursion, closed forms, finer quadrature, optimal motions."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.interpolate import BSpline
from support import complex_step
from support.robots import chain
from support.trees import TYPES, mimic_tree, random_tree

import rbd_ros as rbd
from rbd_ros.core.dynamics.balafoutis_patel import balafoutis_patel
from rbd_ros.core.lie import so3
from rbd_ros.core.model import block
from rbd_ros.core.model.joint_kinds import FREE, SPHERICAL
from rbd_ros.core.motion.optimal.nodes import Nodes
from rbd_ros.core.motion.splines import basis

STEP = 1e-30
MODELS = {"all": lambda: random_tree(61, list(TYPES)),
          "floating": lambda: random_tree(62, ["spherical", "revolute", "cam"], root="floating"), "mimic": mimic_tree}


def knots(K, degree):
    return np.concatenate([np.zeros(degree), np.linspace(0.0, 1.0, K - degree + 1), np.ones(degree)])


def splines(control, T, s, degree):
    """x, ẋ, ẍ (3, N, nv) of SciPy's splines at s, also for complex control points and T."""
    parts = [BSpline(knots(len(control), degree), part, degree) for part in (control.real, control.imag)]
    return np.array([(parts[0](s, nu=d) + 1j * parts[1](s, nu=d)) / T**d for d in range(3)])


def turned(quaternion, x, rate, acceleration):
    """Quaternion, ω and ω̇ of R_0 exp(x(t)) at complex numbers, from the power series of exp for a parabola x(t)."""
    hats = [np.einsum("k,kij->ij", y, np.array([so3.hat(e) for e in np.eye(3)])) for y in (
        x, rate, 0.5 * acceleration)]
    power = [np.eye(3, dtype=complex), np.zeros((3, 3), complex), np.zeros((3, 3), complex)]
    R = [part.copy() for part in power]
    for k in range(1, 60):
        power = [sum(power[i] @ hats[order - i] for i in range(order + 1)) / k for order in range(3)]
        R = [total + part for total, part in zip(R, power, strict=True)]
    skew, rate_of = R[0].T @ R[1], R[1].T @ R[1] + 2.0 * R[0].T @ R[2]
    angle = np.sqrt(x @ x)
    p, w = np.sin(0.5 * angle) / angle * x, np.cos(0.5 * angle)
    a, b = np.asarray(quaternion[:3]), quaternion[3]
    out = np.concatenate([b * p + w * a + np.cross(a, p), [b * w - a @ p]])
    return out, *(np.array([m[2, 1], m[0, 2], m[1, 0]]) for m in (skew, rate_of)), R


def state(model, reference, x, rate, acceleration):
    """(q, v, a) at complex numbers, by the definition of the coordinates."""
    q, v, a = reference.astype(complex), rate.copy(), acceleration.copy()
    taken = set()
    for row in model._node_rows:
        iq, iv, kind = int(row[block.IQ]), int(row[block.IV]), int(row[block.TYPE])
        if kind not in (SPHERICAL, FREE):
            continue
        at = iq + 3 * (kind == FREE)
        now, place = slice(iv, iv + 3), slice(iv + 3, iv + 6)
        q[at:at + 4], v[now], a[now], R = turned(reference[at:at + 4], x[now], rate[now], acceleration[now])
        if kind == FREE:
            q[iq:iq + 3] = reference[iq:iq + 3] + x[place]
            R = [so3.from_quaternion(reference[at:at + 4]) @ part for part in R]
            v[place] = R[0].T @ rate[place]
            a[place] = R[0].T @ acceleration[place] + R[1].T @ rate[place]
        taken |= set(range(iq, at + 4))
    for joint in model.joints:
        for k in range(joint.nq if joint.nq == joint.nv else 0):
            if joint.idx_q + k not in taken:
                q[joint.idx_q + k] += x[joint.idx_v + k]
    return q, v, a


def energy(model, reference, control, T, nodes, weights, wrenches=None, degree=5):
    F = None if wrenches is None else complex_step.wrenches_of(model, wrenches)
    total = 0.0
    for weight, *row in zip(nodes.weight, *splines(control, T, nodes.s, degree), strict=True):
        tau = complex_step.inverse_dynamics(model, *state(model, reference, *row), F)
        total = total + T * weight * (weights * tau) @ tau
    return total


@pytest.mark.parametrize("name", MODELS)
def test_gradient_by_complex_step(name):
    model = MODELS[name]()
    rng = np.random.default_rng(5)
    control, T = 0.5 * rng.normal(size=(8, model.nv)), 1.3
    reference = model.random_configuration(2)
    weights = rng.uniform(0.5, 2.0, model.nv)
    F = {model.body_names[-1]: rng.normal(size=6)}
    found = rbd.effort_energy(model, control, T, reference=reference, weights=weights, external_wrenches=F, nodes=9)
    nodes = Nodes.gauss(basis(5, 8), 9, 3)

    def P(c, t):
        return energy(model, reference, np.asarray(c, dtype=complex), t, nodes, weights, F)

    assert found.value == pytest.approx(P(control, T).real, rel=1e-12)
    assert found.by_duration == pytest.approx(P(control, T + 1j * STEP).imag / STEP, abs=1e-10 * found.value)
    bound = 1e-10 * np.abs(found.by_control).max()
    for _ in range(6):    # ways of all control points at once
        change = rng.normal(size=control.shape)
        exact = P(control + 1j * STEP * change, T).imag / STEP
        assert abs(np.sum(found.by_control * change) - exact) < bound


def test_it_is_that_of_g_s_own_recursion():
    model = random_tree(41, ["revolute", "prismatic", "helical", "cylindrical", "universal", "planar"])
    control, T = 0.4 * np.random.default_rng(1).normal(size=(9, model.nv)), 0.9
    nodes = Nodes.gauss(basis(5, 9), 16, 3)
    rows = np.array([BSpline(knots(9, 5), np.eye(9), 5)(nodes.s, nu=d) / T**d for d in range(3)])    # (3, N, K)
    value, gradient = 0.0, np.zeros_like(control)
    for weight, by in zip(nodes.weight, rows.transpose(1, 0, 2), strict=True):
        partials = balafoutis_patel(model, *(by @ control))
        value += T * weight * partials.effort @ partials.effort
        for B, slope in zip(by, partials[1:], strict=True):
            gradient += 2.0 * T * weight * np.outer(B, partials.effort @ slope)
    found = rbd.effort_energy(model, control, T, nodes=16)
    assert found.value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found.by_control, gradient, atol=1e-12 * np.abs(gradient).max())


def test_one_joint_by_hand():
    """A sliding mass: P = m² ∫ (q̈ + g)² dt, exactly, as q̈ is a cubic between knots."""
    model = rbd.RobotModel.from_description(rbd.Description(
        "slide", {"base": rbd.Inertia.zero(), "mass": rbd.Inertia(2.5, np.zeros(3), np.zeros((3, 3)))},
        (rbd.JointSpec("lift", "prismatic", "base", "mass", axis=(0.0, 0.0, 1.0)),), gravity=(0.0, 0.0, -9.81)))
    rng, T, K = np.random.default_rng(4), 1.7, 11
    control = rng.normal(size=(K, 1))
    lines = [BSpline(knots(K, 5), np.eye(K)[k], 5).derivative(2) for k in range(K)]
    x, w = np.polynomial.legendre.leggauss(6)
    ends = np.linspace(0.0, 1.0, K - 4)
    s = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b in pairwise(ends)])
    w = np.tile(w / 2 / (K - 5), K - 5)
    B = np.array([line(s) for line in lines]) / T**2    # (K, N)
    effort = 2.5 * (control[:, 0] @ B + 9.81)
    found = rbd.effort_energy(model, control, T)
    assert found.value == pytest.approx(T * w @ effort**2, rel=1e-12)
    np.testing.assert_allclose(found.by_control[:, 0], 2 * T * 2.5 * B @ (w * effort), rtol=1e-10)
    still = rbd.effort_energy(model, np.full((K, 1), 0.3), T)    # at rest: (m g)² T
    assert still.value == pytest.approx((2.5 * 9.81) ** 2 * T, rel=1e-12)
    assert still.by_duration == pytest.approx((2.5 * 9.81) ** 2, rel=1e-12)


def test_more_nodes_change_nothing_and_batches_are_motions_one_by_one():
    model = random_tree(63, ["revolute", "spherical", "universal"])
    control = 0.3 * np.random.default_rng(2).normal(size=(3, 12, model.nv))
    fine = rbd.effort_energy(model, control, 1.1, nodes=1000)
    coarse = rbd.effort_energy(model, control, 1.1, nodes=150)
    for got, want in zip(coarse, fine, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-9 * np.abs(want).max())
    for i, one in enumerate(control):
        for got, want in zip(rbd.effort_energy(model, one, 1.1, nodes=150), coarse, strict=True):
            np.testing.assert_array_equal(got, want[i])


def test_it_is_what_optimal_motions_make_least():
    model = chain("revolute", "revolute", gravity=(0.0, 0.0, -9.81))
    motion = rbd.optimize_motion(model, [0.0, 0.0], [1.0, -0.5], 1.0, limits=rbd.MotionLimits(effort=np.inf)).check()
    found = rbd.effort_energy(model, motion.spline.control, motion.duration, nodes=500)
    assert found.value == pytest.approx(motion.cost, rel=1e-6)
    inner = found.by_control[3:-3]    # the others are the ends'
    start = rbd.effort_energy(model, np.linspace([0.0, 0.0], [1.0, -0.5], 20), 1.0)
    assert np.abs(inner).max() < 1e-3 * np.abs(start.by_control).max()


@pytest.mark.parametrize(("change", "words"), [
    ({"control": np.zeros((9, 3))}, "control"), ({"control": np.full((9, 2), np.nan)}, "control"),
    ({"control": np.zeros((3, 2))}, "control_points"), ({"duration": 0.0}, "duration"), ({"degree": 4}, "degree"),
    ({"weights": [1.0]}, "weights"), ({"weights": [1.0, -1.0]}, "weights"), ({"reference": [0.0]}, "reference"),
    ({"reference": np.zeros((2, 2))}, "reference"), ({"nodes": 0}, "nodes"),
    ({"external_wrenches": {"hand": np.zeros(6)}}, "hand"), ({"control": np.full((9, 2), 1e200)}, "not be finite"),
    ({"control": 1e80 * np.eye(9)[:, :2]}, "floating point")])
def test_what_it_does_not_take_is_said(change, words):
    given = {"control": np.zeros((9, 2)), "duration": 1.0} | change
    with pytest.raises(rbd.RbdError, match=words):
        rbd.effort_energy(rbd.sample("two_link"), given.pop("control"), given.pop("duration"), **given)
