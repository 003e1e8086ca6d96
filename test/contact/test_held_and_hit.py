"""What contacts hold stays where it is; impacts keep momentum; energy never grows; all integrators."""

import numpy as np
import pytest
from support.loose import FLOOR, G, at, ball, box, free, scene

import rbd_ros as rbd

INTEGRATORS = ["rk4", "variational", "semi_implicit"]
each_integrator = pytest.mark.parametrize("integrator", INTEGRATORS)


def stack():
    """Three boxes, the upper ones overhanging: corners of each on the face of the other."""
    size = (0.2, 0.2, 0.2)
    model = free(*[box(mass, size) for mass in (1.0, 1.0, 0.5)])
    contacts = list(rbd.box_contacts(FLOOR, "body_0", size, friction=0.5))
    for i in (1, 2):
        top, bottom = (rbd.Plane(f"body_{k}", frame, size=size[:2]) for k, frame in (
            (i - 1, [0, 0, 0.1]), (i, [[0, 0, -0.1], [np.pi, 0, 0]])))
        contacts += rbd.box_contacts(top, f"body_{i}", size, friction=0.5)
        contacts += rbd.box_contacts(bottom, f"body_{i - 1}", size, friction=0.5, name=f"under_{i}")
    return model, contacts, at([0.0, 0.0, 0.1], [0.06, 0.0, 0.3], [-0.03, 0.0, 0.5]), np.zeros(18)


def grasp():
    """Two fingers on rails press a ball with 5 N each, and hold its weight by friction alone."""
    r = 0.05
    finger = rbd.Inertia(0.2, np.zeros(3), 1e-4 * np.eye(3))
    rails = [rbd.JointSpec(name, "prismatic", "base", f"{name}_pad", axis=(sign, 0, 0),
                           position=np.array([-0.08 * sign, 0, 0])) for name, sign in (("left", 1.0), ("right", -1.0))]
    model = free(ball(0.3, r), joints=rails, links={"left_pad": finger, "right_pad": finger})
    pads = [rbd.Plane(f"{name}_pad", [[0.02 * sign, 0, 0], [0, sign * np.pi / 2, 0]])
            for name, sign in (("left", 1.0), ("right", -1.0))]
    contacts = [rbd.UnilateralContact(pad, rbd.Sphere("body_0", r), friction=0.4, name=name)
                for pad, name in zip(pads, ("left", "right"), strict=True)]
    effort = np.array([5.0, 5.0, *np.zeros(6)])
    return model, contacts, np.array([0.01, 0.01, 0, 0, 0, 0, 0, 0, 1.0]), effort


@each_integrator
@pytest.mark.parametrize("made", [stack, grasp])
def test_held_without_drift_over_ten_seconds(made, integrator):
    """A pause of 10 s: what drifts or creeps shows."""
    model, contacts, q, effort = made()
    simulator = rbd.Simulator(model, contacts=contacts, q=q, integrator=integrator, step=0.05)
    simulator.step(effort, n=200)
    np.testing.assert_allclose(simulator.q, q, atol=1e-9)
    assert np.abs(simulator.v).max() < 1e-9
    total = {contact.name: contact for contact in simulator.contacts}
    if made is grasp:
        for name, sign in (("left", 1.0), ("right", -1.0)):
            assert total[name].state == "sticking"
            np.testing.assert_allclose(total[name].force, [5.0 * sign, 0.0, 0.5 * 0.3 * G], atol=1e-6)
    else:
        lift = sum(contact.force for name, contact in total.items() if name.startswith("body_0"))
        np.testing.assert_allclose(lift, [0.0, 0.0, 2.5 * G], atol=1e-6)


def test_a_grasp_slips_beyond_the_cone():
    """Two fingers at 5 N hold 2 µ 5 N: a ball that weighs more falls, with what friction leaves of g."""
    model, contacts, q, effort = grasp()
    slippery = [rbd.UnilateralContact(c.first, c.second, friction=0.2, name=c.name) for c in contacts]
    simulator = rbd.Simulator(model, contacts=slippery, q=q, integrator="rk4", step=5e-3)
    simulator.step(effort, n=20)
    assert simulator.q[4] == pytest.approx(-0.5 * (G - 2 * 0.2 * 5.0 / 0.3) * 0.1**2, rel=1e-6)


@pytest.mark.parametrize("seed", range(7))
def test_energy_never_grows(seed):
    """Any step, by RK4 up to its own error; and nothing sinks in or is left without what the laws say."""
    model, contacts, q, v = scene(seed)
    simulator = rbd.Simulator(model, contacts=contacts, q=q, v=v, integrator="rk4", step=4e-3)
    energy = simulator.energy
    for i in range(150):
        simulator.step()
        assert simulator.energy <= energy + 2e-6, i
        energy = simulator.energy
        if i % 10 == 0:
            for contact, declared in zip(simulator.contacts, contacts, strict=True):
                assert contact.gap > -1e-9
                push = contact.force @ contact.normal
                rub = np.linalg.norm(contact.force - push * contact.normal)
                assert push >= 0.0 and rub <= declared.friction * push + 1e-8
                assert contact.state != "open" or not contact.force.any()


@pytest.mark.parametrize("integrator", ["variational", "semi_implicit"])
def test_steps_are_stable_at_any_size(integrator):
    """20 ms, thrown boxes and balls: energy is lost, nothing sinks in."""
    for seed in (4, 5, 21):
        model, contacts, q, v = scene(seed)
        simulator = rbd.Simulator(model, contacts=contacts, q=q, v=v, integrator=integrator, step=0.02)
        start = simulator.energy
        simulator.step(n=150)
        assert simulator.energy < start and np.abs(simulator.v).max() < 40.0
        assert min(contact.gap for contact in simulator.contacts) > -1e-9


@each_integrator
def test_impacts_of_floating_bodies_keep_momentum(integrator):
    """Three balls meet in space, with friction and restitution; the outer two hit at one time in the middle one."""
    model = free(ball(0.7, 0.1), ball(1.1, 0.1), ball(0.4, 0.1), gravity=(0.0, 0.0, 0.0))
    balls = [rbd.Sphere(f"body_{i}", 0.1) for i in range(3)]
    contacts = [rbd.UnilateralContact(balls[i], balls[j], friction=0.3, restitution=0.8) for i, j in ((0, 1), (1, 2))]
    v = np.zeros(18)
    v[[2, 3, 9, 13, 15, 16]] = 5.0, 1.0, -3.0, 2.0, -1.0, 0.2
    simulator = rbd.Simulator(model, contacts=contacts, q=at([-0.3, 0.03, 0.0], [0.0, 0.0, 0.0], [0.3, 0.0, 0.02]), v=v,
                              integrator=integrator, step=1e-3)
    before, energy = rbd.centroidal_momentum(model, simulator.q, simulator.v), simulator.energy
    for _ in range(20):
        simulator.step(n=10)
        np.testing.assert_allclose(rbd.centroidal_momentum(model, simulator.q, simulator.v), before,
                                   atol=1e-11)
    assert simulator.energy < 0.9 * energy and all(contact.gap > 1e-3 for contact in simulator.contacts)


@pytest.mark.parametrize("seed", range(3))
@each_integrator
def test_a_frictionless_box_that_bounces_keeps_energy_and_horizontal_momentum(integrator, seed):
    rng = np.random.default_rng(seed)
    size, turn = (0.2, 0.3, 0.4), rng.standard_normal(4)
    model = free(box(2.0, size))
    contacts = rbd.box_contacts(FLOOR, "body_0", size, restitution=1.0)
    simulator = rbd.Simulator(model, contacts=contacts, integrator=integrator, v=rng.standard_normal(6),
                              q=[0.0, 0.0, 0.5, *(turn / np.linalg.norm(turn))])
    energy, before = simulator.energy, rbd.centroidal_momentum(model, simulator.q, simulator.v)
    bounces = 0
    for _ in range(1000):
        simulator.step()
        bounces += any(contact.impulse.any() for contact in simulator.contacts)
        assert simulator.energy < energy * (1.0 + 2e-6)    # at order 2 in flight
    after = rbd.centroidal_momentum(model, simulator.q, simulator.v)
    np.testing.assert_allclose(after[3:5], before[3:5], atol=1e-12 if integrator != "rk4" else 1e-7)
    assert bounces >= 3 and simulator.energy > 0.9 * energy    # slow impacts of other corners do not bounce


@each_integrator
def test_a_ball_that_bounces_without_loss_comes_back_to_its_height(integrator):
    simulator = rbd.Simulator(free(ball(0.7, 0.1)), q=at([0.0, 0.0, 0.5]), integrator=integrator, contacts=[
        rbd.UnilateralContact(FLOOR, rbd.Sphere("body_0", 0.1), restitution=1.0)])
    energy = simulator.energy
    simulator.step(n=5000)
    assert simulator.energy == pytest.approx(energy, rel=1e-9)


def test_an_arm_on_a_table_with_a_stop_and_friction():
    """Pressed on a table, contact and dry friction share what the motor gives; then it lifts and turns to its stop."""
    joints = [rbd.JointSpec("arm", "revolute", "base", "arm", axis=(0.0, -1.0, 0.0), lower=-1.0, upper=0.8,
                            velocity=10.0, effort=10.0)]
    model = free(ball(), joints=joints, links={"arm": rbd.Inertia(1.0, np.array([0.5, 0, 0]), 0.02 * np.eye(3))})
    model = model.with_(friction=np.array([0.3] + [0.0] * 6))
    table = rbd.Plane("base", [0, 0, -0.1])
    contacts = [rbd.UnilateralContact(table, rbd.Sphere("arm", 0.1, [1.0, 0, 0]), friction=0.5, name="tip")]
    for integrator in INTEGRATORS:
        simulator = rbd.Simulator(model, contacts=contacts, integrator=integrator, step=2e-3)
        effort = np.zeros(7)
        effort[0] = -2.0
        simulator.step(effort, n=20)
        assert simulator.q[0] == pytest.approx(0.0, abs=1e-12)
        force = simulator.contacts[0].force
        assert force[2] + 0.1 * force[0] == pytest.approx(1.0 * G * 0.5 + 2.0, abs=0.3 + 1e-3)
        effort[0] = 12.0
        simulator.step(effort, n=600)
        assert simulator.q[0] == pytest.approx(0.8, abs=1e-9 if integrator == "rk4" else 1e-3)
        assert simulator.contacts[0].state == "open"
        assert abs(simulator.v[0]) < 1e-9


def test_mujoco_agrees_within_its_softness():
    """A box is thrown onto the floor: falls, tips, slides and stops. MuJoCo's contacts give way: 1 mm and 2 %."""
    import mujoco

    size, mu = np.array([0.2, 0.3, 0.1]), 0.4
    half = " ".join(map(str, 0.5 * size))
    spec = f"""<mujoco><option timestep="2e-4" cone="elliptic" impratio="100" gravity="0 0 {-G}"/><worldbody>
      <geom type="plane" size="5 5 1" friction="{mu} 0 0" condim="3" solref="0.002 1" solimp="0.99 0.999 0.0001"/>
      <body pos="0 0 0.05"><freejoint/><geom type="box" size="{half}" mass="1.3" friction="{mu} 0 0" condim="3"
      solref="0.002 1" solimp="0.99 0.999 0.0001"/></body></worldbody></mujoco>"""
    for v, height in (([0, 0, 0, 1.2, 0.4, 0], 0.05), ([0, 0, 0, 0.5, 0.0, 0], 0.25)):
        other = mujoco.MjModel.from_xml_string(spec)
        data = mujoco.MjData(other)
        data.qpos[:3], data.qvel[:3] = [0.0, 0.0, height], v[3:]
        while data.time < 1.0:
            mujoco.mj_step(other, data)
        simulator = rbd.Simulator(free(box(1.3, size)), contacts=rbd.box_contacts(FLOOR, "body_0", size, friction=mu),
                                  q=at([0.0, 0.0, height]), v=v, integrator="rk4", step=5e-3)
        simulator.step(n=200)
        np.testing.assert_allclose(simulator.q[:3], data.qpos[:3], atol=1e-3, rtol=0.02)
        assert np.abs(simulator.v).max() < 1e-9


WRONG = [
    (lambda: rbd.closest_points(FLOOR, rbd.Point("body_0"), np.eye(4)), "point on 'body_0' has no chart"),
    (lambda: rbd.UnilateralContact(FLOOR, rbd.Plane("body_0")), "planes touch all over"),
    (lambda: rbd.UnilateralContact(rbd.Sphere("base", 0.1, inside=True), rbd.Sphere("body_0", 0.2)), "inside out"),
    (lambda: rbd.UnilateralContact(FLOOR, "body_0"), "second is 'body_0', expected a surface"),
    (lambda: rbd.UnilateralContact(rbd.Sphere("base", 0.1), rbd.Point("body_0")), "a point touches planes"),
    (lambda: rbd.UnilateralContact(rbd.Plane("base", size=(1, 1)), rbd.Ellipsoid("body_0", (1, 1, 2))), "with a size"),
    (lambda: rbd.UnilateralContact(FLOOR, rbd.Point("body_0"), friction=-0.1, name="c"), "'c'.*friction is -0.1"),
    (lambda: rbd.UnilateralContact(FLOOR, rbd.Point("body_0"), restitution=1.1), "restitution is 1.1"),
    (lambda: rbd.Plane("base", size=(1.0, 0.0)), "size of the plane on 'base'"),
    (lambda: rbd.box_contacts(FLOOR, "body_0", (1, 1, -1)), "size of the box on 'body_0'"),
    (lambda: simulated(rbd.UnilateralContact(FLOOR, rbd.Point("nobody"), name="c")), "'c'.*unknown second"),
    (lambda: simulated(rbd.UnilateralContact(FLOOR, rbd.Point("base"), name="c")), "'c'.*one rigid body"),
    (lambda: simulated(rbd.UnilateralContact(FLOOR, rbd.Sphere("body_0", 0.2), name="c")), "'c'.*overlap by 0.1"),
    (lambda: simulated(FLOOR), "contact 0 is Plane, expected UnilateralContact"),
    (lambda: rbd.Simulator(free(ball()), contacts=rbd.UnilateralContact(FLOOR, rbd.Point("body_0"))),
     "contacts: expected a list of UnilateralContact"),
    (lambda: rbd.Simulator(free(ball()), contacts=3), "contacts: expected a list .*got 3"),
    (lambda: simulated(*[rbd.UnilateralContact(FLOOR, rbd.Point("body_0"), name="c")] * 2), "duplicate.*'c'"),
    (lambda: simulated(rbd.UnilateralContact(FLOOR, rbd.Point("body_0")), velocity_limits=True), "velocity_limits"),
    (lambda: simulated(rbd.UnilateralContact(rbd.Sphere("base", 1.0, inside=True), rbd.Sphere("body_0", 0.1), name="c"),
                       place=(3.0, 0.0, 0.0)).step(), "'c'.*closest points|overlap"),
    (lambda: rbd.ConstraintSet([rbd.UnilateralContact(FLOOR, rbd.Point("body_0"))]), "is UnilateralContact, expected"),
]


def test_a_point_is_a_constraint_too():
    """A box that turns about one of its corners keeps its energy and the corner; derivatives by differences."""
    model = free(box(1.0, (0.2, 0.2, 0.2)))
    constraints = rbd.ConstraintSet([rbd.RollingContact(FLOOR, rbd.Point("body_0", [0.05, 0, -0.1]))])
    simulator = rbd.Simulator(model, constraints=constraints, q=at([0.0, 0.0, 0.1]), v=[0.3, 0.1, 0.2, 0, 0, 0],
                              integrator="rk4")
    energy = simulator.energy
    simulator.step(n=300)
    q, v, tau, h = simulator.q, simulator.v, np.zeros(6), 1e-6
    assert simulator.energy == pytest.approx(energy, abs=1e-9)
    np.testing.assert_allclose(rbd.forward_kinematics(model, q)[1] @ [0.05, 0, -0.1, 1], [0.05, 0, 0, 1], atol=1e-9)

    def acceleration(e):
        return rbd.constrained_forward_dynamics(model, constraints, model.integrate(q, e), v, tau).acceleration

    numeric = np.stack([(acceleration(h * e) - acceleration(-h * e)) / (2 * h) for e in np.eye(6)], axis=1)
    found = rbd.constrained_forward_dynamics_derivatives(model, constraints, q, v, tau)
    np.testing.assert_allclose(found[0], numeric, atol=1e-6)


def simulated(*contacts, place=(0.0, 0.0, 0.1), **options):
    model = free(ball(), joints=[rbd.JointSpec("slide", "prismatic", "base", "slide", velocity=1.0)])
    return rbd.Simulator(model, contacts=contacts, q=[0.0, *place, 0, 0, 0, 1], **options)


@pytest.mark.parametrize(("wrong", "says"), WRONG, ids=[says for _, says in WRONG])
def test_what_cannot_touch_is_refused_by_name(wrong, says):
    with pytest.raises(rbd.RbdError, match=says):
        wrong()


def test_a_state_without_steps_and_a_little_overlap():
    sim = simulated(rbd.UnilateralContact(FLOOR, rbd.Sphere("body_0", 0.1), name="c", friction=0.2),
                    place=(0.0, 0.0, 0.0995))
    assert sim.q[3] == pytest.approx(0.1, abs=1e-12)
    (contact,) = sim.contacts
    assert (contact.name, contact.state) == ("c", "sticking") and not contact.force.any()
    sim.step(n=3)
    assert sim.contacts[0].force[2] == pytest.approx(0.7 * G, rel=1e-6)
    sim.reset([0.0, 0, 0, 1.0, 0, 0, 0, 1])
    assert sim.contacts[0].state == "open" and sim.contacts[0].gap == pytest.approx(0.9)


@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit"])
@pytest.mark.parametrize("seed", range(3))
def test_forces_in_a_stack_are_those_of_least_norm(integrator, seed):
    """Five boxes of any masses, a little askew: beside `pinv` of all rows, which knows of no trees."""
    rng, size = np.random.default_rng(seed), (0.2, 0.2, 0.2)
    masses = rng.uniform(0.5, 2.0, 5)
    model = free(*[box(mass, size) for mass in masses])
    contacts = list(rbd.box_contacts(FLOOR, "body_0", size, friction=0.8))
    for i in range(1, 5):
        top = rbd.Plane(f"body_{i - 1}", [0, 0, 0.1], size=(0.4, 0.4))
        contacts += rbd.box_contacts(top, f"body_{i}", size, friction=0.8)
    q = at(*[[0.01 * rng.normal(), 0.01 * rng.normal(), 0.1 + 0.2 * i] for i in range(5)])
    simulator = rbd.Simulator(model, contacts=contacts, q=q, integrator=integrator)
    simulator.step(n=20)
    held = [i for i, contact in enumerate(simulator.contacts) if contact.state == "sticking"]
    assert len(held) == 20
    rows, poses = [], rbd.forward_kinematics(model, simulator.q)
    for i in held:
        part = np.zeros((3, model.nv))
        for surface, sign in ((contacts[i].second, 1.0), (contacts[i].first, -1.0)):
            if surface.link != "base":
                k = int(surface.link[5:])
                pose = poses[model.body_index(surface.link)]
                arm = pose[:3, :3].T @ (simulator.contacts[i].point - pose[:3, 3])
                cross = np.cross(np.eye(3), arm)    # ω × r = −r × ω
                part[:, 6 * k:6 * k + 6] += sign * pose[:3, :3] @ np.hstack([cross.T, np.eye(3)]).reshape(3, 6)
        rows.append(part)
    A = np.concatenate(rows)
    expected = np.linalg.pinv(A.T) @ rbd.gravity_effort(model, simulator.q)
    np.testing.assert_allclose(np.concatenate([simulator.contacts[i].force for i in held]), expected, atol=1e-7)
