"""Unilateral contacts that open, stick and slide: motions that textbooks know, each to 1e-6."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.loose import FLOOR, G, at, ball, box, free, inclined

import rbd_ros as rbd

MASS, RADIUS = 0.7, 0.12
SPHERE = rbd.Sphere("body_0", RADIUS)
ON_FLOOR = [0.0, 0.0, RADIUS]


def simulator(model, contacts, q, v=None, step=4e-3, **options):
    return rbd.Simulator(model, contacts=contacts, q=q, v=v, integrator="rk4", step=step, **options)


@pytest.mark.parametrize("angle", [0.3, 0.55, 0.9])
def test_a_ball_on_an_incline_rolls_below_the_cone_and_slides_beyond(angle):
    """Up to tan α = 7/2 µ it rolls, with 5/7 g sin α; beyond it slides, with g (sin α − µ cos α), and turns slower."""
    mu = 0.2
    model = free(ball(MASS, RADIUS), gravity=inclined(angle))
    sim = simulator(model, [rbd.UnilateralContact(FLOOR, SPHERE, friction=mu)], at(ON_FLOOR))
    sim.step(n=125)
    rolls = np.tan(angle) < 3.5 * mu
    down = 5 / 7 * G * np.sin(angle) if rolls else G * (np.sin(angle) - mu * np.cos(angle))
    assert sim.q[0] == pytest.approx(0.5 * down * 0.5**2, rel=1e-6)
    turning = down / RADIUS if rolls else 2.5 * mu * G * np.cos(angle) / RADIUS
    assert np.linalg.norm(sim.v[:3]) == pytest.approx(turning * 0.5, rel=1e-6)
    (contact,) = sim.contacts
    assert contact.state == ("sticking" if rolls else "sliding")
    friction = 2 / 7 * MASS * G * np.sin(angle) if rolls else mu * MASS * G * np.cos(angle)
    np.testing.assert_allclose(contact.force, [-friction, 0.0, MASS * G * np.cos(angle)], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(contact.point, [sim.q[0], 0.0, 0.0], atol=1e-12)
    np.testing.assert_array_equal(contact.normal, [0.0, 0.0, 1.0])


@pytest.mark.parametrize("mu", [0.15, 0.5])
def test_a_cylinder_on_an_incline(mu):
    """2/3 g sin α up to tan α = 3 µ; its axis is held parallel by a constraint."""
    model = free((MASS, [0.03, 0.5 * MASS * RADIUS**2, 0.03]), gravity=inclined(0.6))
    roller = rbd.Cylinder("body_0", RADIUS, [[0.0, 0.0, 0.0], [np.pi / 2, 0.0, 0.0]])
    loop = rbd.ConstraintSet([rbd.LoopClosure("base", "body_0", ["ry"], None, [[0, 0, 0], [0, 0, np.pi / 2]])])
    sim = simulator(model, [rbd.UnilateralContact(FLOOR, roller, friction=mu)], at(ON_FLOOR), constraints=loop)
    sim.step(n=100)
    rolls = np.tan(0.6) < 3 * mu
    down = 2 / 3 * G * np.sin(0.6) if rolls else G * (np.sin(0.6) - mu * np.cos(0.6))
    assert sim.q[0] == pytest.approx(0.5 * down * 0.4**2, rel=1e-6)
    assert sim.multipliers.shape == (1,) and sim.contacts[0].state == ("sticking" if rolls else "sliding")


def test_from_sliding_to_rolling():
    """At t = 2 v₀ / (7 µ g), with v = 5/7 v₀: the event is found within a step."""
    mu, v0 = 0.2, 2.0
    end = 2 * v0 / (7 * mu * G)
    model = free(ball(MASS, RADIUS))
    for share, state in ((1.0 - 2e-6, "sliding"), (1.0 + 2e-6, "sticking")):
        sim = simulator(model, [rbd.UnilateralContact(FLOOR, SPHERE, friction=mu)], at(ON_FLOOR),
                        [0, 0, 0, v0, 0, 0], step=share * end / 60)
        sim.step(n=60)
        assert sim.contacts[0].state == state
    sim.step(n=20)
    v, t = 5 / 7 * v0, sim.time
    assert np.hypot(*sim.v[[3, 5]]) == pytest.approx(v, rel=1e-6)
    assert sim.q[0] == pytest.approx(v0 * end - 0.5 * mu * G * end**2 + v * (t - end), rel=1e-6)


def test_a_ball_on_a_turntable_circles_at_two_sevenths():
    """As with `RollingContact`, while friction is within its cone. The table is heavy, so that it keeps its speed."""
    speed, radius = 1.7, 0.5
    table = rbd.JointSpec("table", "revolute", "base", "disc", axis=(0.0, 0.0, 1.0))
    model = free(ball(MASS, radius), joints=[table], links={"disc": rbd.Inertia(1.0, np.zeros(3), 1e12 * np.eye(3))})
    v = np.array([speed, 0.3, -0.4, 2.0, 0.0, 0.0, 0.0])
    v[4:6] = np.cross(speed * np.array([0, 0, 1.0]), [0.4, -0.1, 0.0])[:2] + np.cross(v[1:4], [0, 0, radius])[:2]
    turning = 2 / 7 * speed
    sim = simulator(model, [rbd.UnilateralContact(rbd.Plane("disc"), rbd.Sphere("body_0", radius), friction=0.5)],
                    [0.0, 0.4, -0.1, radius, 0, 0, 0, 1], v, step=2 * np.pi / turning / 1500)
    sim.step(n=750)    # half of the circle: across its diameter
    across = 2.0 / turning * np.array([-v[5], v[4]])
    np.testing.assert_allclose(sim.q[1:3], np.array([0.4, -0.1]) + across, atol=1e-6 * np.hypot(*across))


def test_a_bouncing_ball():
    """Impulses m v₀ (1 + e) eⁿ, and rest after √(2 h/g) (1 + e)/(1 − e), both found within steps."""
    e, height = 0.7, 0.5
    v0, total = np.sqrt(2 * G * height), np.sqrt(2 * height / G) * (1 + e) / (1 - e)
    model = free(ball(MASS, RADIUS))
    for share in (1.0 - 1e-6, 1.0 + 1e-6):
        sim = simulator(model, [rbd.UnilateralContact(FLOOR, SPHERE, restitution=e)],
                        at([0.0, 0.0, RADIUS + height]), step=share * total / 150)
        impulses = []
        for _ in range(150):
            sim.step()
            impulses += [sim.contacts[0].impulse[2]] if sim.contacts[0].impulse.any() else []
        rests = sim.q[2] <= RADIUS + 1e-12 and abs(sim.v[5]) < 1e-12
        assert rests == (share > 1.0)
    np.testing.assert_allclose(impulses[:8], MASS * v0 * (1 + e) * e**np.arange(8), rtol=1e-9)
    assert sum(impulses) == pytest.approx(MASS * v0 * (1 + e) / (1 - e), rel=1e-6)
    np.testing.assert_allclose(sim.contacts[0].force, [0.0, 0.0, 0.0 if not rests else sim.contacts[0].force[2]])
    sim.step()
    assert sim.contacts[0].force[2] == pytest.approx(MASS * G) and sim.contacts[0].state != "open"


def test_restitution_one_loses_nothing():
    """Some thirty bounces, on the way of a ball that spins, too; impacts of rounding size take no energy."""
    sim = simulator(free(ball(MASS, RADIUS)), [rbd.UnilateralContact(FLOOR, SPHERE, restitution=1.0)],
                    at([0.0, 0.0, RADIUS + 0.1]), [1.0, 2.0, 3.0, 0.5, 0.0, 0.0])
    energy = sim.energy
    sim.step(n=2000)
    assert sim.energy == pytest.approx(energy, rel=1e-9)    # RK4 of a ball that spins


@pytest.mark.parametrize("mu", [1e2, 1e6, 1e9, 1e300])
def test_friction_however_large_is_rolling_at_once(mu):
    """A slip u is over within so small a part of a step that it is an impulse: v − 2/7 u."""
    radius = 0.07
    model = free(ball(2.3, radius))
    for turning in ([0.0, 0.0, 0.0], [5.0, -3.0, 2.0]):
        contact = rbd.UnilateralContact(FLOOR, rbd.Sphere("body_0", radius), friction=mu)
        sim = simulator(model, [contact], at([0.0, 0.0, radius]), [*turning, 1.0, 0.3, 0.0], step=1e-3)
        sim.step(n=60)
        start = np.array([1.0, 0.3, 0.0])
        rolls = start - 2 / 7 * (start + np.cross(turning, [0.0, 0.0, -radius]))
        v = rbd.forward_kinematics(model, sim.q)[model.body_index("body_0")][:3, :3] @ sim.v[3:]
        np.testing.assert_allclose(v, rolls, atol=1e-3)
        assert sim.contacts[0].state == "sticking" and abs(sim.contacts[0].gap) < 1e-12


def test_a_ball_leaves_a_big_ball_where_it_would_have_to_pull():
    """Without friction at 2/3 of the height it starts from, where it rolls at 10/17; then it flies in a parabola."""
    start, length = 0.2, 1.2

    def fall(share):
        return lambda t, y: [y[1], G / length / (1 + share) * np.sin(y[0])]

    for mu, share, ends in ((0.0, 0.0, 2 / 3 * np.cos(start)), (30.0, 0.4, 10 / 17 * np.cos(start))):
        model = free((MASS, [0.4 * MASS * 0.2**2] * 3))
        contact = rbd.UnilateralContact(rbd.Sphere("base", 1.0), rbd.Sphere("body_0", 0.2), friction=mu)
        sim = simulator(model, [contact], at([length * np.sin(start), 0.0, length * np.cos(start)]), step=2e-3)
        while sim.contacts[0].state != "open":
            sim.step()
        angle = np.arccos(ends)
        rate = np.sqrt(2.0 * G / length / (1 + share) * (np.cos(start) - ends))
        leaves = solve_ivp(fall(share), (0.0, 2.0), [start, 0.0], rtol=1e-11, atol=1e-12,
                           events=lambda t, y, angle=angle: y[0] - angle).t_events[0][0]
        flight = sim.time - leaves
        assert -1e-6 < flight < 3 * 2e-3
        assert sim.q[0] == pytest.approx(length * (np.sin(angle) + rate * np.cos(angle) * flight), rel=1e-6)


SIDE = (0.1, 0.1, 0.2)


@pytest.mark.parametrize(("mu", "width", "happens"), [(0.4, 0.1, "slides"), (0.6, 0.1, "tips"), (0.6, 0.2, "rests")])
def test_a_block_tips_or_slides_at_the_right_angle(mu, width, happens):
    """tan α = µ or b/h, whichever is less: a hundredth of a radian below all rests, above what comes first begins."""
    size = (width, 0.1, 0.2)
    limit = np.arctan(min(mu, width / 0.2))
    for angle in (limit - 0.01, limit + 0.01):
        model = free(box(1.3, size), gravity=inclined(angle))
        sim = simulator(model, rbd.box_contacts(FLOOR, "body_0", size, friction=mu), at([0.0, 0.0, 0.1]))
        sim.step(n=50)
        if angle < limit:
            np.testing.assert_allclose(sim.q, at([0.0, 0.0, 0.1]), atol=1e-12)
            assert sum(contact.force for contact in sim.contacts) == pytest.approx(
                1.3 * G * np.array([-np.sin(angle), 0.0, np.cos(angle)]), rel=1e-9)
        elif mu < width / 0.2 or happens != "tips":
            down = G * (np.sin(angle) - mu * np.cos(angle))
            assert sim.q[0] == pytest.approx(0.5 * down * 0.2**2, rel=1e-6) and abs(sim.q[4]) < 1e-12
        else:    # about its lower edge, as a pendulum upside down
            arm, inertia = np.hypot(0.5 * width, 0.1), box(1.3, size)[1][1] / 1.3
            lean, pull = angle - np.arctan2(width, 0.2), arm * G / (inertia + arm**2)
            turn = solve_ivp(lambda t, y, lean=lean, pull=pull: [y[1], pull * np.sin(y[0] + lean)],
                             (0.0, 0.2), [0.0, 0.0], rtol=1e-11, atol=1e-13).y[0, -1]
            assert 2.0 * np.arctan2(sim.q[4], sim.q[6]) == pytest.approx(turn, rel=1e-6)
            assert sorted(c.state for c in sim.contacts) == ["open"] * 6 + ["sticking"] * 2


def test_a_sliding_block_stops():
    """After v₀²/(2 µ g), and stays there: no creep."""
    model = free(box(1.3, SIDE))
    contacts = rbd.box_contacts(FLOOR, "body_0", (0.2, 0.2, 0.05), friction=0.3)
    sim = simulator(model, contacts, at([0.0, 0.0, 0.025]), [0, 0, 0, 1.0, 0.5, 0])
    sim.step(n=150)
    stop = sim.q[:3].copy()
    np.testing.assert_allclose(stop, [*(np.hypot(1.0, 0.5) / (2 * 0.3 * G) * np.array([1.0, 0.5])), 0.025], rtol=1e-6)
    sim.step(n=100)
    np.testing.assert_allclose(sim.q[:3], stop, atol=1e-12)


def test_a_block_falls_off_a_face():
    """A plane with a size ends: when its leading corners are beside it the block tips over and falls."""
    model = free(box(1.3, (0.1, 0.1, 0.1)))
    contacts = rbd.box_contacts(rbd.Plane("base", size=(1.0, 1.0)), "body_0", (0.1, 0.1, 0.1))
    sim = simulator(model, contacts, at([0.4, 0.0, 0.05]), [0, 0, 0, 1.0, 0, 0])
    sim.step(n=12)
    assert sim.q[2] == pytest.approx(0.05, abs=1e-12)
    sim.step(n=88)
    assert sim.q[2] < -0.1 and all(contact.state == "open" for contact in sim.contacts)
