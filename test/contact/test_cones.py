"""Forces in friction cones: the laws, checked one by one, on random and degenerate problems."""

import numpy as np
import pytest

from rbd_ros.core.simulation.contact.cones import Rows, Unsolved, cone_forces
from rbd_ros.core.simulation.contact.impacts import contact_rows, impact


def check(G, c, rows, lam, bound=1e-8):
    """Signorini, Coulomb and the boxes, each from its definition."""
    w, size = G @ lam + c, np.abs(lam).max() + 1e-12
    speed = np.abs(c).max()
    push, apart = lam[rows.normal], w[rows.normal]
    assert (push >= 0.0).all() and (apart > -bound * speed).all() and np.abs(push * apart).max() <= bound * size * speed
    for (i, j), n, mu in zip(rows.tangent, rows.bound, rows.friction, strict=True):
        pull, slip = lam[[i, j]], w[[i, j]]
        assert np.hypot(*pull) <= mu * lam[n] + bound * size
        if np.hypot(*slip) > bound * speed * 10:
            np.testing.assert_allclose(pull, -mu * lam[n] * slip / np.hypot(*slip), atol=1e-6 * size)
    for i, most in zip(rows.box, rows.limit, strict=True):
        assert abs(lam[i]) <= most + bound * size
        if abs(w[i]) > bound * speed * 10:
            assert lam[i] == pytest.approx(-most * np.sign(w[i]), abs=1e-6 * size)


@pytest.mark.parametrize("rank", [30, 12, 6], ids=["independent", "redundant", "one body"])
def test_random_problems(rank):
    rng = np.random.default_rng(rank)
    for _ in range(60):
        k, b = int(rng.integers(1, 7)), int(rng.integers(0, 3))
        mu = rng.choice([0.0, 0.2, 0.7, 1.5], size=k)
        own, rows = contact_rows(mu, np.zeros(k, dtype=bool), rng.uniform(0.1, 1.0, b))
        J = rng.normal(size=(3 * k + b, rank))[own]
        c = J @ rng.normal(size=rank)    # as of a motion, so that redundant rows agree
        G = J @ J.T
        check(G, c, rows, cone_forces(G, c, rows))


def test_legs_of_a_table_share_alike_or_three_stand():
    """Four points on one body: equal forces where the ground is even, no force on the one that hangs in the air."""
    J = np.array([[1.0, x, y] for x in (-1, 1) for y in (-1, 1)])
    rows = Rows(np.arange(4), np.zeros((0, 2), dtype=int), np.zeros(0, dtype=int), np.zeros(0),
                np.zeros(0, dtype=int), np.zeros(0))
    np.testing.assert_allclose(cone_forces(J @ J.T, np.full(4, -1.0), rows), 0.25, atol=1e-12)
    c = np.array([-1.0, -1.0, -1.0, -0.99])
    lam = cone_forces(J @ J.T, c, rows)
    check(J @ J.T, c, rows, lam)
    assert lam[3] == 0.0 and (lam[[1, 2]] > 0.0).all()


def test_what_has_no_solution_says_so():
    """Painlevé's rod: sliding friction that presses the contact together more than the normal force parts it."""
    rows = Rows(np.array([0]), np.zeros((0, 2), dtype=int), np.zeros(0, dtype=int), np.zeros(0),
                np.zeros(0, dtype=int), np.zeros(0))
    with pytest.raises(Unsolved):
        cone_forces(np.array([[-0.5]]), np.array([-1.0]), rows)


def test_impacts_never_add_kinetic_energy():
    """Any contacts, friction and restitution of each, Kane's example of a rod (where Newton's law gains) among them."""
    rng = np.random.default_rng(1)
    gained = 0
    for i in range(25):
        k, nv = int(rng.integers(1, 6)), int(rng.integers(3, 9))
        J, v = rng.normal(size=(k, 3, nv)), rng.normal(size=nv)
        A = rng.normal(size=(nv, nv))
        W = A @ A.T + 0.05 * np.eye(nv)
        mu, e = rng.choice([0.0, 0.5, 2.0], size=k), rng.choice([0.0, 0.6, 1.0], size=k)
        after, p = impact(W, J, v, mu, e)
        M = np.linalg.inv(W)
        before, now = v @ M @ v, after @ M @ after
        assert now <= before * (1.0 + 1e-10), i
        np.testing.assert_allclose(after, v + W @ np.einsum("ijk,ij->k", J, p), atol=1e-9)
        assert (np.hypot(*p[:, 1:].T) <= mu * p[:, 0] + 1e-9).all() and (J[:, 0] @ after > -1e-8).all()
        bounces = (J[:, 0] @ after + e * np.minimum(J[:, 0] @ v, 0.0))[p[:, 0] > 0]
        gained += not np.allclose(bounces, 0.0, atol=1e-7)
    assert gained    # some of them had to bounce less than Newton says
