"""`integrate` and `difference` are inverse to each other, near zero and near a half turn too."""

import numpy as np
import pytest
from support.robots import chain, random_states
from support.trees import TYPES, random_tree

MODEL = random_tree(31, TYPES)
BALLS = [slice(joint.idx_v, joint.idx_v + 3) for joint in MODEL.joints if joint.type in ("spherical", "floating")]
SIZES = [0.0, 1e-300, 1e-12, 1e-8, 1e-5, 1e-3, 0.1, 1.0, 3.0, np.pi - 1e-3, np.pi - 1e-6, np.pi - 1e-9]


def step(size, seed):
    """Velocity coordinates of about this size; the rotation vectors of balls exactly this long."""
    rng = np.random.default_rng(seed)
    dv = rng.normal(size=MODEL.nv) * min(1.0, size)
    for ball in BALLS:
        dv[ball] *= size / (np.linalg.norm(dv[ball]) or 1.0)
    return dv


@pytest.mark.parametrize("size", SIZES)
def test_difference_undoes_integrate(size):
    for seed in range(10):
        q, dv = MODEL.random_configuration(seed), step(size, seed)
        found = MODEL.difference(q, MODEL.integrate(q, dv))
        # what rounding of positions of order 1 leaves; near a half turn, of the translation coupled to the turn
        np.testing.assert_allclose(found, dv, rtol=0, atol=4e-15 * (1.0 + np.abs(q).max()) * max(1.0, size**2))


def test_integrate_undoes_difference():
    for seed in range(50):
        q0, q1 = MODEL.random_configuration(seed), MODEL.random_configuration(1000 + seed)
        found = MODEL.integrate(q0, MODEL.difference(q0, q1))
        for joint in MODEL.joints:
            at = slice(joint.idx_q, joint.idx_q + joint.nq)
            same = q1[at].copy()
            if joint.nq > joint.nv:    # a quaternion and its negative are one rotation
                same[-4:] *= np.sign(same[-4:] @ found[at][-4:])
            np.testing.assert_allclose(found[at], same, rtol=0, atol=1e-13)


def test_differences_of_small_steps_keep_their_digits():
    for size in (1e-3, 1e-6, 1e-9, 1e-12):
        q, dv = MODEL.neutral(), step(size, 5)
        np.testing.assert_allclose(MODEL.difference(q, MODEL.integrate(q, dv)), dv, rtol=1e-12, atol=1e-24)


def test_difference_takes_the_short_way():
    model = chain("spherical", "floating")
    for q0, q1 in zip(*(random_states(model, 30, seed)[0] for seed in (1, 2)), strict=True):
        dv = model.difference(q0, q1)
        assert np.linalg.norm(dv[:3]) <= np.pi + 1e-12 and np.linalg.norm(dv[3:6]) <= np.pi + 1e-12


def test_quaternions_stay_normal():
    model = chain("spherical", "floating")
    q, v, _ = random_states(model, 1, 3)
    for _ in range(1000):
        q = model.integrate(q, 0.1 * v)
    for at in (slice(0, 4), slice(7, 11)):
        assert np.linalg.norm(q[0, at]) == pytest.approx(1.0, abs=1e-15)


def test_a_floating_step_is_a_body_twist():
    """With the base turned a quarter about z, a body step along x moves it along world y."""
    model = chain("floating")
    q = np.array([1.0, 2.0, 3.0, 0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
    np.testing.assert_allclose(model.integrate(q, [0, 0, 0, 0.5, 0, 0]), [1, 2.5, 3, *q[3:]], rtol=0, atol=1e-15)


def test_a_batch_equals_its_states_one_by_one():
    q, v, _ = random_states(MODEL, 4, 7)
    q1 = MODEL.integrate(q, v)
    np.testing.assert_array_equal(q1, [MODEL.integrate(x, y) for x, y in zip(q, v, strict=True)])
    np.testing.assert_array_equal(MODEL.difference(q, q1),
                                  [MODEL.difference(x, y) for x, y in zip(q, q1, strict=True)])
