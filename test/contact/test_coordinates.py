"""Closest points of all pairs of surfaces, and Montana's equations, against finite differences of closest points."""

import numpy as np
import pytest
from scipy.spatial import KDTree
from support.contacts import FRAMES, PAIRS, bodies, placed, surface

import rbd_ros as rbd
from rbd_ros.core.lie import se3

POINTS = [pair for pair in PAIRS if set(pair) != {"plane", "cylinder"}]    # not those that touch along a line


def surfaces(pair):
    return surface(pair[0], "one", FRAMES[0]), surface(pair[1], "two", FRAMES[1])


def relative(pair, seed, gap=0.0):
    """Pose of the second's link in the first's, of a state in which they are a gap apart."""
    model = bodies()
    q, _ = placed(*pair, seed, gap)
    at = rbd.forward_kinematics(model, q)
    return se3.inverse(at[model.body_index("one")]) @ at[model.body_index("two")]


def samples(item, around):
    """Points of a surface in its link's frame, those of endless ones around a point."""
    n = 90
    u, v = np.meshgrid(np.linspace(-np.pi, np.pi, n), np.linspace(-np.pi, np.pi, n))
    if item.kind == 0:
        return None
    a, b, c = item.sizes
    if isinstance(item, rbd.Torus):
        x = np.stack([(a + b * np.cos(v)) * np.cos(u), (a + b * np.cos(v)) * np.sin(u), b * np.sin(v)], -1)
    elif isinstance(item, rbd.Cylinder):
        middle = (se3.inverse(np.asarray(item.frame)) @ [*around, 1.0])[2]
        x = np.stack([a * np.cos(u), a * np.sin(u), middle + v], -1)
    else:
        size = (a, a, a) if isinstance(item, rbd.Sphere) else (a, b, c)
        x = np.stack([np.cos(v / 2) * np.cos(u), np.cos(v / 2) * np.sin(u), np.sin(v / 2)], -1) * size
    F = np.asarray(item.frame)
    return x.reshape(-1, 3) @ F[:3, :3].T + F[:3, 3]


@pytest.mark.parametrize("kind", ["rod", "ring"])
@pytest.mark.parametrize("angle", np.linspace(-3.0, 3.0, 13))
def test_the_nearer_side_of_a_ring_is_found(kind, angle):
    """A rod, or a ring upright, reaches both sides of a ring, one more than the other: distances have two minima."""
    s, c = np.sin(angle), np.cos(angle)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    upright = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]) @ R    # turned about its own axis too
    other = rbd.Ellipsoid("two", (0.7, 0.2, 0.2)) if kind == "rod" else rbd.Torus("two", 0.6, 0.1, se3.from_rotation(
        upright))
    touch = rbd.closest_points(rbd.Torus("one", 1.0, 0.1), other, se3.from_rotation(R, R @ [0.1, 0.0, 0.0]))
    assert touch.gap == pytest.approx(0.1, abs=1e-12)
    np.testing.assert_allclose(touch.point_1, R @ [0.9, 0.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("pair", POINTS, ids="-".join)
@pytest.mark.parametrize("gap", [0.0, 0.07, 0.6])
def test_no_other_points_are_closer(pair, gap):
    """Points of one surface against those of the other, by hundreds of thousands; hollow ones have no room for 0.6."""
    if gap > 0.1 and "hollow" in pair[0] + pair[1]:
        gap = 0.12
    for seed in range(2):
        T = relative(pair, seed, gap)
        first, second = surfaces(pair)
        touch = rbd.closest_points(first, second, T)
        assert np.linalg.norm(touch.point_2 - touch.point_1) == pytest.approx(abs(touch.gap), abs=1e-12)
        np.testing.assert_allclose(touch.point_2 - touch.point_1, touch.gap * touch.axes[:, 2], atol=1e-12)
        for item, point, chart, X in ((first, touch.point_1, touch.chart_1, np.eye(4)),
                                      (second, touch.point_2, touch.chart_2, T)):
            np.testing.assert_allclose((X @ np.asarray(item.frame) @ [*chart.point, 1.0])[:3], point, atol=1e-12)
        normal = (T @ np.asarray(second.frame))[:3, :3] @ touch.chart_2.axes[:, 2]
        np.testing.assert_allclose(normal, -touch.axes[:, 2], atol=1e-10)
        if gap:
            one = samples(first, touch.point_1)
            two = samples(second, (se3.inverse(T) @ [*touch.point_2, 1.0])[:3])
            if one is not None and two is not None:
                distance = KDTree(one).query(two @ T[:3, :3].T + T[:3, 3])[0].min()
            else:
                flat, points, X = ((first, two @ T[:3, :3].T + T[:3, 3], np.eye(4)) if one is None
                                   else (second, one, T))
                F = X @ np.asarray(flat.frame)
                distance = ((points - F[:3, 3]) @ F[:3, 2]).min()
            assert distance > touch.gap - 1e-9


class Moving:
    """A pair along a screw motion whose speed changes: pose, closest points and relative twist at a time."""

    def __init__(self, pair, T, seed):
        self.first, self.second, self.T = *surfaces(pair), T
        self.xi, self.more = np.random.default_rng(seed).normal(size=(2, 6))

    def touch(self, t):
        return rbd.closest_points(self.first, self.second, se3.exp(t * self.xi + t * t * self.more) @ self.T)

    def coordinates(self, t):
        touch = self.touch(t)
        return (touch.index_1, touch.index_2), np.array([*touch.u_1, *touch.u_2, touch.psi, touch.gap])

    def twist(self, t):
        """(ω, v) of the second body against the first, of its point at the contact, in the contact's axes."""
        touch = self.touch(t)
        V = se3.dexp(-t * self.xi - t * t * self.more) @ (self.xi + 2 * t * self.more)    # in the first's frame
        return np.concatenate([touch.axes.T @ V[:3], touch.axes.T @ (V[3:] + np.cross(V[:3], touch.point_2))])

    def rates(self, t):
        return rbd.contact_rates(self.touch(t), self.twist(t))


def numbers(rates):
    return np.array([*rates.u_1, *rates.u_2, rates.psi, rates.gap])


@pytest.mark.parametrize("pair", POINTS, ids="-".join)
@pytest.mark.parametrize("gap", [0.0, 0.05])
def test_rates_and_accelerations_by_differences(pair, gap):
    """Of closest points found anew, where they stay in their charts; and the twist back from the rates."""
    looked = 0
    for seed in range(3):
        moving, h = Moving(pair, relative(pair, seed, gap), seed), 1e-5
        touch, twist = moving.touch(0.0), moving.twist(0.0)
        (before, x), (after, y) = moving.coordinates(-h), moving.coordinates(h)
        if before != after:
            continue
        change = y - x
        change[:5] -= 2 * np.pi * np.round(change[:5] / (2 * np.pi))
        rates = rbd.contact_rates(touch, twist)
        bound = max(1.0, np.abs(numbers(rates)).max())
        np.testing.assert_allclose(numbers(rates), change / (2 * h), atol=1e-7 * bound)
        np.testing.assert_allclose(rbd.contact_twist(touch, rates), twist, atol=1e-11 * bound)
        found = numbers(rbd.contact_accelerations(touch, twist, (moving.twist(h) - moving.twist(-h)) / (2 * h)))
        slope = (numbers(moving.rates(h)) - numbers(moving.rates(-h))) / (2 * h)
        np.testing.assert_allclose(found, slope, atol=2e-7 * max(1.0, np.abs(found).max()) * bound)
        looked += 1
    assert looked


@pytest.mark.parametrize("seed", range(40))
def test_bodies_of_any_size_far_apart(seed):
    """Slim ones, too: sizes of 0.05 … 1 m, where the search has no help from being near."""
    rng = np.random.default_rng(seed)

    def body(link):
        a, b, c = np.exp(rng.uniform(np.log(0.05), 0.0, 3))
        return (rbd.Ellipsoid(link, (a, b, c)), rbd.Torus(link, max(a, b), 0.95 * min(a, b)), rbd.Sphere(link, a),
                rbd.Ellipsoid(link, (a, b, c)))[rng.integers(4)]

    first, second = body("one"), body("two")
    T = se3.exp([*(2.0 * rng.normal(size=3)), 0.0, 0.0, 0.0])
    reach = sum(sum(item.sizes[:2]) if isinstance(item, rbd.Torus) else max(item.sizes[:1 if isinstance(
        item, rbd.Sphere) else 3]) for item in (first, second))
    x = rng.normal(size=3)
    T[:3, 3] = x / np.linalg.norm(x) * (reach + rng.uniform(0.01, 2.0))
    touch = rbd.closest_points(first, second, T)
    distance = KDTree(samples(first, None)).query(samples(second, None) @ T[:3, :3].T + T[:3, 3])[0].min()
    assert 0.0 < touch.gap < distance + 1e-9
    assert touch.gap > 0.9 * distance - 0.05
    np.testing.assert_allclose(touch.point_2 - touch.point_1, touch.gap * touch.axes[:, 2], atol=1e-11)
