"""Which coordinates of a mechanism are chosen as independent."""
from __future__ import annotations

import numpy as np
import pytest

import rbd_ros as rbd
from rbd_ros.core.dynamics.constrained.mechanism import independent_coordinates

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
