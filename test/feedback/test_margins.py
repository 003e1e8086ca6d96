"""Margins, against closed loops that have the factor, lag or delay in them, and a simulated robot with delay."""
from __future__ import annotations

import numpy as np
import pytest
from feedback.plants import Resting, spline

import rbd_ros as rbd
from rbd_ros.core.feedback.margins import loop_margins

MS = 1e-3
IIWA_Q, IIWA_R = np.concatenate([np.full(7, 1e3), np.full(7, 1.0)]), np.full(7, 1e-2)


def radius(matrix):
    return np.abs(np.linalg.eigvals(matrix)).max()


def delayed(A, B, K, which, d):
    """The closed loop with inputs `which` d periods late, as one matrix: its states are x and the inputs under way."""
    nx, late = len(A), len(which)
    prompt = [i for i in range(len(K)) if i not in which]
    M = np.zeros((nx + d * late, nx + d * late))
    M[:nx, :nx] = A + B[:, prompt] @ K[prompt]
    if d == 0:
        M[:nx, :nx] += B[:, which] @ K[which]
        return M
    M[:nx, nx:nx + late] = B[:, which]    # the oldest comes first
    M[nx:-late, nx + late:] = np.eye((d - 1) * late)
    M[-late:, :nx] = K[which]
    return M


def loops(seed):
    """Random unstable systems with the gains of random weights, and a robot's."""
    rng = np.random.default_rng(seed)
    if seed % 3 == 0:
        gains = rbd.tracking_gains(rbd.sample("iiwa"), spline(0.5 * rng.normal(size=7), 0.5 * rng.normal(size=7), 0.5),
                                   IIWA_Q, IIWA_R, period=2 * MS)
        k = int(rng.integers(250))
        return gains.A[k], gains.B[k], gains.gains[k]
    from rbd_ros.core.feedback.tracking_gains import riccati
    nx, nu = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    A = np.eye(nx) + 0.1 * rng.normal(size=(nx, nx))
    B = 0.1 * rng.normal(size=(nx, nu))
    return A, B, riccati(np.tile(A, (2000, 1, 1)), np.tile(B, (2000, 1, 1)), np.eye(nx), np.eye(nu), np.eye(nx))[0]


@pytest.mark.parametrize("seed", range(9))
def test_at_its_margin_a_loop_is_at_the_edge(seed):
    """Stable just inside each margin, unstable just beyond it: by closed loops, not by a frequency response."""
    A, B, K = loops(seed)
    nu, found = len(K), loop_margins(A[None], B[None], K[None], MS)
    assert found.delay.shape == (1, nu) and found.together.delay.shape == (1,)
    for i in range(nu + 1):
        which = list(range(nu)) if i == nu else [i]
        low, high, phase, delay = (x[0] if i == nu else x[0, i] for x in (found.together if i == nu else found)[:4])
        part, closed = B[:, which] @ K[which], A + B @ K

        def of(factor, part=part, closed=closed):
            return radius(closed + (factor - 1.0) * part) <= 1.0 + 1e-6

        assert 0.0 <= low < 1.0 < high
        for stable, unstable, end in ((low * 1.001, low * 0.999, low > 0.0),
                                      (high * 0.999, high * 1.001, high < np.inf)):
            if end:
                assert of(stable) and not of(unstable)
            else:
                assert of(1e-3 if low == 0.0 and unstable < 1.0 else 900.0)
        assert all(of(np.exp(-1j * x)) for x in np.linspace(0.0, 0.999 * phase, 50))
        assert phase == np.pi or not of(np.exp(-1.002j * phase))
        periods = delay / MS
        for d in range(40):
            if abs(d - periods) > 0.02:
                if d > periods:
                    assert radius(delayed(A, B, K, which, d)) > 1.0 + 1e-9, (d, periods)
                    break
                assert radius(delayed(A, B, K, which, d)) < 1.0 + 1e-6, (d, periods)


def test_the_margins_of_lqr_in_continuous_time():
    """As Safonov and Athans (1977) have it, for R diagonal: 60°, and factors from ½ on, of each input and of all."""
    model = rbd.sample("iiwa").with_(armature=0.1)
    gains = rbd.tracking_gains(model, Resting(np.linspace(0.3, 0.9, 7), 7, 1e-3), IIWA_Q, IIWA_R, period=2e-5)
    found = gains.margins([0.0])
    for margins in (found, found.together):
        assert margins.phase.min() > np.deg2rad(60.0) - 1e-3
        assert margins.lower_gain.max() < 0.5 and margins.upper_gain.min() > 50.0


def test_a_double_integrator_in_closed_form():
    """A slider of mass m, u = −k x − d v: |L(jω)| = 1 at ω² = (d² + √(d⁴ + 4 k² m²))/2 m², and the phase there is that
    of atan(ω d/k).
    """
    m, k, d, h = 2.0, 50.0, 15.0, 1e-5
    A, B, K = np.array([[1.0, h], [0.0, 1.0]]), np.array([[h * h / 2], [h]]) / m, np.array([[-k, -d]])
    found = loop_margins(A[None], B[None], K[None], h)
    crossing = np.sqrt((d**2 + np.sqrt(d**4 + 4 * k**2 * m**2)) / (2 * m**2))
    phase = np.arctan2(crossing * d, k)
    np.testing.assert_allclose(found.phase[0, 0], phase, rtol=1e-4)
    np.testing.assert_allclose(found.delay[0, 0], phase / crossing, rtol=1e-4)
    np.testing.assert_allclose(found.upper_gain[0, 0], np.inf if found.upper_gain[0, 0] == np.inf else 2 * m / (d * h),
                               rtol=1e-2)
    for one, both in zip(found, found.together, strict=False):
        if one is not None and not isinstance(one, rbd.LoopMargins):
            np.testing.assert_allclose(one[0], both)


def test_a_robot_with_delay_is_stable_as_far_as_they_say():
    """The whole arm, simulated, with all its efforts a whole number of periods late."""
    model, q = rbd.sample("iiwa").with_(armature=0.1), np.linspace(0.3, 0.9, 7)
    gains = rbd.tracking_gains(model, Resting(q, 7, 0.01), IIWA_Q, IIWA_R)
    most = gains.margins([0.0]).together.delay[0] / MS
    assert 2.0 < most < 40.0

    def grown(d):
        simulated = rbd.Simulator(model, step=MS, integrator="rk4", limits=False, q=q + 1e-6)
        under_way, far = [gains.effort[0]] * d, []
        for _ in range(3000):
            under_way.append(gains.applied(gains.at(0.0), simulated.q, simulated.v))
            simulated.step(under_way.pop(0))
            far.append(np.abs(simulated.q - q).max())
        return max(far[-300:]) / max(far[1000:1300])

    assert grown(int(np.floor(most))) < 1.0
    assert grown(int(np.ceil(most))) > 1.0


def test_an_unstable_loop_has_none():
    A, B = np.array([[1.2]]), np.array([[1.0]])
    found = loop_margins(A[None], B[None], np.array([[[0.0]]]), MS)
    assert (found.lower_gain[0, 0], found.upper_gain[0, 0], found.phase[0, 0], found.delay[0, 0]) == (1, 1, 0, 0)


def test_times_and_shapes():
    gains = rbd.tracking_gains(rbd.sample("two_link"), spline([0.0, 0.0], [1.0, -0.5], 0.5), [1e2, 1e2, 1, 1],
                               [0.01, 0.01])
    found = gains.margins()
    assert found.phase.shape == (11, 2) and found.together.delay.shape == (11,)
    one = gains.margins(0.25)
    for part, whole in zip(one[:4], found[:4], strict=True):
        np.testing.assert_array_equal(part[0], whole[5])
    assert not found.phase.flags.writeable
