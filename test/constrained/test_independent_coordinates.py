"""Which coordinates of a mechanism are chosen as independent."""
from __future__ import annotations

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.dynamics.constrained.mechanism import Mechanism, independent_coordinates

MODEL = rbd.sample("iiwa")


@pytest.mark.parametrize("rank", range(7))
@pytest.mark.parametrize("preferred", [[], [4], [1, 6], [0, 2, 3], range(7)])
def test_preferred_ones_first_and_the_others_follow_from_them(rank, preferred):
    """Of random constraints any coordinates are independent; the rest must be a regular function of these."""
    rng = np.random.default_rng(rank)
    A = np.zeros((3, 6, 7))
    A[:, :rank] = rng.standard_normal((3, rank, 7))
    mask = np.isin(np.arange(7), list(preferred))
    chosen = independent_coordinates(MODEL, A, mask)
    assert len(set(chosen.tolist())) == 7 - rank
    assert mask[chosen].sum() == min(len(preferred), 7 - rank)
    dependent = np.linalg.svd(np.delete(A, chosen, axis=2), compute_uv=False)[:, :rank]
    assert (dependent[:, -1:] > 1e-3 * dependent[:, :1]).all()


def test_a_preferred_one_that_follows_from_another_is_not_chosen():
    """Joints 1 and 2 are coupled: only one of the two is independent."""
    A = np.zeros((1, 1, 7))
    A[0, 0, :2] = 1.0, -2.0
    chosen = independent_coordinates(MODEL, A, np.isin(np.arange(7), [0, 1]))
    assert len(chosen) == 6 and np.isin(chosen, [0, 1]).sum() == 1


def test_a_mechanism_without_freedom_is_refused():
    with pytest.raises(rbd.RbdError, match="cannot move: its constraints have rank 7"):
        independent_coordinates(MODEL, np.eye(7)[None], np.zeros(7, dtype=bool))


def test_a_mechanism_is_closed_from_far_guesses():
    """Newton's steps are limited there; a posture that is farther from its guess than allowed is none."""
    model = rbd.sample("five_bar")
    loop = rbd.sample_constraints("five_bar", model)
    begin = rbd.project(model, loop, model.neutral())[0]
    chain = Mechanism(model, loop, independent_coordinates(
        model, rbd.constraint_jacobian(model, loop, begin)[None], np.zeros(model.nv, dtype=bool)))
    rng = np.random.default_rng(3)
    u = begin[chain.own] + rng.uniform(-0.2, 0.2, (25, chain.size))
    exact = chain.closed(u, np.tile(begin, (25, 1)), 1.0)
    guess = exact.copy()
    guess[:, chain.dependent] += rng.choice([-0.5, 0.5], (25, len(chain.dependent)))
    found = chain.closed(u, guess, 2.0)
    assert np.abs(rbd.constraint_values(model, loop, found)).max() < 1e-12
    np.testing.assert_allclose(found, exact, atol=1e-10)
    assert np.isnan(chain.closed(u, guess, 0.4)).all()
