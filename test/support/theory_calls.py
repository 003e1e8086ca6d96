"""One call of every public name in the tables of docs/theory.md: what it gives, and the shapes that are documented."""

from functools import cache

import numpy as np

import rbd_ros as rbd
from support.recordings import periodic, record

T = rbd.lie.se3.pose([0.3, -0.2, 0.5], [0.4, 0.2, -0.7])
R = T[:3, :3]
XI, ETA = np.linspace(-0.3, 0.4, 6), np.linspace(0.5, -0.2, 6)
W = np.array([0.3, -0.2, 0.4])


@cache
def robot():
    """Model, q, v, a, τ of an arm."""
    model = rbd.sample("iiwa").with_(damping=0.5, friction=0.3)
    x = np.linspace(-0.4, 0.8, 7)
    return model, x, 0.5 * x[::-1], x + 0.1, 3.0 * x


@cache
def loop():
    """Model, constraints, q, v, a, τ of a mechanism on its manifold."""
    model = rbd.sample("five_bar")
    constraints = rbd.sample_constraints("five_bar", model)
    q, v = rbd.project(model, constraints, model.neutral(), np.linspace(0.1, 0.5, model.nv))
    a = rbd.constrained_forward_dynamics(model, constraints, q, v, v).acceleration
    return model, constraints, q, v, a, np.linspace(-1.0, 1.0, model.nv)


@cache
def elastic():
    """Actuation, q … snap, efforts, gains."""
    model = robot()[0]
    drives = {name: rbd.SeriesDrive(rbd.SeriesSpring(np.array([1.0e4])), motor=rbd.Motor(rotor_inertia=1.0))
              for name in model.joint_names}
    actuation = rbd.Actuation(model, drives)
    motion = [*robot()[1:4], robot()[1], robot()[2]]
    return actuation, motion, rbd.link_efforts(actuation, *motion), rbd.FeedbackGains.placed(actuation, 20.0)


def skate():
    """A wheel that does not slip sideways, as a set of constraints on a plane."""
    description = rbd.Description("skate", {"ground": rbd.Inertia.zero(), "skate": rbd.Inertia(
        2.0, np.zeros(3), 0.1 * np.eye(3))}, (rbd.JointSpec("plane", "planar", "ground", "skate"),))
    model = rbd.RobotModel.from_description(description)
    constraint = rbd.NonholonomicConstraint(lambda q: [-np.sin(q[2]), np.cos(q[2]), 0.0],
                                            lambda q, v: -(np.cos(q[2]) * v[0] + np.sin(q[2]) * v[1]) * v[2])
    found = rbd.constrained_forward_dynamics(model, rbd.ConstraintSet([constraint]), np.zeros(3),
                                             np.array([1.0, 0.0, 0.5]), np.ones(3))
    return [found.acceleration, found.multipliers]


def lie():
    SO3, SE3, co = rbd.lie.so3, rbd.lie.se3, rbd.lie.coadjoint
    I = rbd.spatial_inertias(robot()[0])[3]
    metric = rbd.lie.Metric(np.diag([1.0, 2.0, 3.0, 1.0, 1.0, 1.0]))
    return {
        "so3.exp": (lambda: SO3.exp(W), (3, 3)), "so3.log": (lambda: SO3.log(R), (3,)),
        "so3.hat": (lambda: SO3.hat(W), (3, 3)), "so3.dexp": (lambda: SO3.dexp(W), (3, 3)),
        "so3.dexp_inv": (lambda: SO3.dexp_inv(W), (3, 3)), "so3.to_quaternion": (lambda: SO3.to_quaternion(R), (4,)),
        "so3.from_quaternion": (lambda: SO3.from_quaternion(SO3.to_quaternion(R)), (3, 3)),
        "se3.from_rotation": (lambda: SE3.from_rotation(R, W), (4, 4)), "se3.inverse": (lambda: SE3.inverse(T), (4, 4)),
        "se3.hat": (lambda: SE3.hat(XI), (4, 4)), "se3.compose": (lambda: SE3.compose(T, T), (4, 4)),
        "se3.Ad": (lambda: SE3.Ad(T), (6, 6)), "se3.Ad_inv": (lambda: SE3.Ad_inv(T), (6, 6)),
        "se3.ad": (lambda: SE3.ad(XI), (6, 6)), "se3.exp": (lambda: SE3.exp(XI), (4, 4)),
        "se3.log": (lambda: SE3.log(T), (6,)), "se3.dexp": (lambda: SE3.dexp(XI), (6, 6)),
        "se3.dexp_inv": (lambda: SE3.dexp_inv(XI), (6, 6)), "se3.dexp_dot": (lambda: SE3.dexp_dot(XI, ETA), (6, 6)),
        "coadjoint.Ad_star": (lambda: co.Ad_star(T), (6, 6)),
        "coadjoint.Ad_star_inv": (lambda: co.Ad_star_inv(T), (6, 6)),
        "coadjoint.ad_star": (lambda: co.ad_star(XI), (6, 6)),
        "coadjoint.transform_wrench": (lambda: co.transform_wrench(T, XI), (6,)),
        "coadjoint.transform_inertia": (lambda: co.transform_inertia(T, I), (6, 6)),
        **{f"coadjoint.{name}": (lambda name=name: getattr(co, name)(T, XI), (6, 6))
           for name in ("Ad_dot", "Ad_inv_dot", "Ad_star_dot", "Ad_star_inv_dot")},
        "bch": (lambda: list(rbd.lie.bch(XI, ETA, 8)), [(6,), (6,)]),
        "left_velocity": (lambda: rbd.lie.left_velocity(T, T @ SE3.hat(XI)), (6,)),
        "right_velocity": (lambda: rbd.lie.right_velocity(T, SE3.hat(XI) @ T), (6,)),
        **{name: (lambda name=name: getattr(rbd.lie, name)(XI), (6, 6))
           for name in ("dexp_left", "dexp_right", "dlog_left", "dlog_right")},
        "cayley": (lambda: rbd.lie.cayley(W), (3, 3)), "cayley_inverse": (lambda: rbd.lie.cayley_inverse(R), (3,)),
        "rodrigues.dcayley_left": (lambda: rbd.lie.rodrigues.dcayley_left(W), (3, 3)),
        "Metric": (lambda: metric.inner(T, T @ SE3.hat(XI), T @ SE3.hat(ETA)), ()),
        "geodesics.minimum_velocity": (lambda: list(rbd.lie.geodesics.minimum_velocity(np.eye(4), T, 1.0, metric)(0.4)),
                                       [(4, 4), (6,), (6,)]),
        "geodesics.minimum_acceleration": (
            lambda: list(rbd.lie.geodesics.minimum_acceleration(np.eye(4), T, XI, ETA)(0.4)), [(4, 4), (6,), (6,)])}


def trees():
    model, q, v, a, tau = robot()
    nb, n = len(model.body_names), 7
    tip, along = model.body_names[-1], rbd.Tangent(q=v, gravity=[0.0, 0.1, 1.0])
    held, of = ["joint_2"], [(), (n,), (n,), (n,)]    # a value and its partials
    law = rbd.joint_friction(model)
    screws = np.tile(np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), (2, 1))
    made = rbd.from_screws(screws, np.stack([np.eye(4), T]), [rbd.Inertia(1.0, np.zeros(3), np.eye(3))] * 2,
                           frame="body")
    form = rbd.closed_form(model, q, v, a, q, v)
    return {
        "body_velocities": (lambda: rbd.body_velocities(model, q, v), (nb, 6)),
        "body_accelerations": (lambda: rbd.body_accelerations(model, q, v, a), (nb, 6)),
        "forward_kinematics": (lambda: rbd.forward_kinematics(model, q), (nb, 4, 4)),
        "jacobian": (lambda: rbd.jacobian(model, q, tip), (6, n)),
        "generalized_momentum": (lambda: rbd.generalized_momentum(model, q, v).rate, (7,)),
        "MomentumObserver": (lambda: rbd.MomentumObserver(model).update(0.001, q, v, tau), (7,)),
        "external_wrench": (lambda: rbd.external_wrench(model, q, tau, "link_7").wrench, (6,)),
        "contact_probabilities": (lambda: rbd.contact_probabilities(model, q, tau, np.ones(7)).probability, (7,)),
        "PayloadEstimator": (lambda: rbd.PayloadEstimator(model, "link_7").load.com, (3,)),
        "kinetic_energy": (lambda: rbd.kinetic_energy(model, q, v), ()),
        "spatial_inertias": (lambda: rbd.spatial_inertias(model), (nb, 6, 6)),
        "body_momenta": (lambda: rbd.body_momenta(model, q, v), (nb, 6)),
        "centroidal_momentum": (lambda: rbd.centroidal_momentum(model, q, v), (6,)),
        "joint_wrenches": (lambda: rbd.joint_wrenches(model, q, v, a), (nb, 6)),
        "inverse_dynamics": (lambda: rbd.inverse_dynamics(model, q, v, a), (n,)),
        "mass_matrix": (lambda: rbd.mass_matrix(model, q), (n, n)),
        "bias_effort": (lambda: rbd.bias_effort(model, q, v), (n,)),
        "gravity_effort": (lambda: rbd.gravity_effort(model, q), (n,)),
        "hybrid_dynamics": (lambda: list(rbd.hybrid_dynamics(model, q, v, a, tau, held)), [(n,), (n,)]),
        "forward_dynamics": (lambda: rbd.forward_dynamics(model, q, v, tau), (n,)),
        "articulated_bodies": (lambda: list(rbd.articulated_bodies(model, q, v, tau)), [(nb, 6, 6), (nb, 6)]),
        "Tangent": (lambda: rbd.Tangent(q=v, inertias={tip: np.ones(10)}).q, (n,)),
        "Tangents": (lambda: rbd.forward_dynamics_directional(model, q, v, tau, rbd.Tangents(model, [along] * 3)),
                     (3, n)),
        "inverse_dynamics_directional": (lambda: list(rbd.inverse_dynamics_directional(
            model, q, v, a, along, bodies=True)), [(n,), (nb, 6), (nb, 6)]),
        "forward_dynamics_directional": (lambda: list(rbd.forward_dynamics_directional(
            model, q, v, tau, along, bodies=True)), [(n,), (nb, 6), (nb, 6)]),
        "hybrid_dynamics_directional": (lambda: list(rbd.hybrid_dynamics_directional(
            model, q, v, a, tau, held, along, bodies=True)), [(n,), (n,), (nb, 6), (nb, 6)]),
        "inverse_dynamics_derivatives": (lambda: list(rbd.inverse_dynamics_derivatives(model, q, v, a)), [(n, n)] * 3),
        "forward_dynamics_derivatives": (lambda: list(rbd.forward_dynamics_derivatives(model, q, v, tau)),
                                         [(n, n)] * 3),
        "hybrid_dynamics_derivatives": (lambda: list(rbd.hybrid_dynamics_derivatives(model, q, v, a, tau, held)),
                                        [(n, n)] * 3),
        "inverse_dynamics_second_derivatives": (lambda: list(rbd.inverse_dynamics_second_derivatives(model, q, v, a)),
                                                [(n, n, n)] * 4),
        "inertial_regressor": (lambda: rbd.inertial_regressor(model, q, v, a), (n, 10 * nb)),
        "operational_space_inertia": (lambda: rbd.operational_space_inertia(model, q, tip), (6, 6)),
        "inverse_operational_space_inertia": (lambda: rbd.inverse_operational_space_inertia(model, q, tip), (6, 6)),
        "effective_inertia": (lambda: rbd.effective_inertia(model, q, tip, XI), ()),
        "joint_friction": (lambda: rbd.inverse_dynamics(model, q, v, a, friction=law), (n,)),
        "friction_effort": (lambda: rbd.friction_effort(model, v), (n,)),
        "friction_effort_derivatives": (lambda: list(rbd.friction_effort_derivatives(model, v, a, q)), [(n,), (n,)]),
        "coriolis_matrix": (lambda: rbd.coriolis_matrix(model, q, v), (n, n)),
        "closed_form": (lambda: [form.mass[2], form.coriolis[2], form.skew_coriolis[2], form.gravity_ddot,
                                 form.external_ddot, form.effort_ddot, form.A[2], form.J[2]],
                        [(n, n), (n, n), (n, n), (n,), (n,), (n,), (len(form.A[0]),) * 2,
                         (len(form.A[0]), n)]),
        "from_screws": (lambda: rbd.forward_kinematics(made, np.array([0.2, 0.3])), (len(made.body_names), 4, 4)),
        "sample": (lambda: [np.array(rbd.sample(name).nv) for name in ("two_link_mueller", "iiwa")], [(), ()]),
        "inverse_dynamics_time_derivatives": (lambda: rbd.inverse_dynamics_time_derivatives(model, q, v, a, q, v),
                                              (3, n)),
        "balafoutis_patel": (lambda: [part for quantity in rbd.balafoutis_patel(model, q, v, a) for part in quantity],
                             [(nb, *size, *more) for size in [(3,), (3,), (3, 3)] + [(3,)] * 6 for more in of]
                             + [(n,), (n, n), (n, n), (n, n)]),
        "body_derivatives": (lambda: [part for partials in rbd.body_derivatives(model, q, v, a) for part in partials],
                             [(nb, 6, n)] * 9),
        "forward_dynamics_time_derivatives": (lambda: rbd.forward_dynamics_time_derivatives(model, q, v, tau, v),
                                              (2, n))}


def mechanisms():
    model, constraints, q, v, a, tau = loop()
    n, m, nb = model.nv, constraints.size, len(model.body_names)
    every, driven = np.ones(n, dtype=bool), np.arange(n) == 0
    lam = np.linspace(1.0, 2.0, m)
    along = rbd.Tangent(q=v, gravity=[0.0, 0.1, 1.0])
    solutions = rbd.constrained_inverse_solutions(model, constraints, q, v, a, every)
    k = solutions.effort_null.shape[1]
    return {
        "constraint_values": (lambda: rbd.constraint_values(model, constraints, q), (m,)),
        "constraint_jacobian": (lambda: rbd.constraint_jacobian(model, constraints, q), (m, n)),
        "constraint_bias": (lambda: rbd.constraint_bias(model, constraints, q, v), (m,)),
        "project": (lambda: list(rbd.project(model, constraints, q, v)), [(n,), (n,)]),
        "constraint_wrenches": (lambda: rbd.constraint_wrenches(model, constraints, q, lam), (nb, 6)),
        "NonholonomicConstraint": (skate, [(3,), (1,)]),
        "constrained_inverse_dynamics": (lambda: [rbd.constrained_inverse_dynamics(
            model, constraints, q, v, a, every, minimize).effort for minimize in ("multipliers", "effort")],
            [(n,), (n,)]),
        "constrained_inverse_solutions": (lambda: list(solutions)[:4], [(n,), (m,), (n, k), (m, k)]),
        "constrained_forward_dynamics": (lambda: list(rbd.constrained_forward_dynamics(
            model, constraints, q, v, tau))[:2], [(n,), (m,)]),
        "constrained_hybrid_dynamics": (lambda: list(rbd.constrained_hybrid_dynamics(
            model, constraints, q, v, a, tau, driven))[:3], [(n,), (n,), (m,)]),
        "constrained_hybrid_solutions": (lambda: [rbd.constrained_hybrid_solutions(
            model, constraints, q, v, a, tau, every)[1].effort_null], [(n, k)]),
        "constrained_inverse_dynamics_directional": (lambda: list(rbd.constrained_inverse_dynamics_directional(
            model, constraints, q, v, a, every, along)), [(n,), (m,)]),
        "constrained_forward_dynamics_directional": (lambda: list(rbd.constrained_forward_dynamics_directional(
            model, constraints, q, v, tau, along)), [(n,), (m,)]),
        "constrained_hybrid_dynamics_directional": (lambda: list(rbd.constrained_hybrid_dynamics_directional(
            model, constraints, q, v, a, tau, driven, along)), [(n,), (n,), (m,)]),
        "constrained_forward_dynamics_derivatives": (lambda: list(rbd.constrained_forward_dynamics_derivatives(
            model, constraints, q, v, tau)), [(n, n)] * 3 + [(m, n)] * 3),
        "constrained_inverse_dynamics_derivatives": (lambda: list(rbd.constrained_inverse_dynamics_derivatives(
            model, constraints, q, v, a, ["left_shoulder", "right_shoulder"])), [(n, n)] * 3 + [(m, n)] * 3)}


def drives():
    actuation, motion, efforts, gains = elastic()
    n = 7
    q, v, a = motion[:3]
    now = rbd.motor_reference(actuation, q, v, a, efforts)
    measured = (q, v, now.position, now.velocity, np.array(motion))
    along = rbd.ElasticTangent(springs={"joint_2": {"coefficients": 1.0}}, inertias={"link_7": np.ones(10)})
    return {
        "link_efforts": (lambda: rbd.link_efforts(actuation, *motion), (3, n)),
        "motor_reference": (lambda: list(now), [(n,)] * 6),
        "feedback_linearization": (lambda: list(rbd.feedback_linearization(actuation, gains, *measured)), [(n,)] * 7),
        "ElasticTangent": (lambda: rbd.ElasticTangent(efforts=efforts).efforts, (3, n)),
        "link_efforts_directional": (lambda: rbd.link_efforts_directional(actuation, *motion, along), (3, n)),
        "motor_reference_directional": (lambda: list(rbd.motor_reference_directional(
            actuation, q, v, a, efforts, along)), [(n,)] * 6),
        "feedback_linearization_directional": (lambda: list(rbd.feedback_linearization_directional(
            actuation, gains, *measured, along)), [(n,)] * 7)}


def motions():
    arm = rbd.sample("two_link").with_(velocity_limit=2.0, effort_limit=60.0)
    ends = np.array([[0.1, 0.2], [0.6, -0.3]])
    limits = rbd.MotionLimits(velocity=np.full(2, 2.0), effort=np.full(2, 60.0))

    def simulated():
        simulator = rbd.Simulator(arm, q=ends[0])
        simulator.step(np.zeros(2), 10)
        return [simulator.q, simulator.v]

    def tracked():
        motion = rbd.SplineMotion(np.repeat(ends, 6, axis=0), 0.1)
        return rbd.tracking_gains(arm, motion, np.ones(4), np.ones(2))

    return {
        "Simulator": (simulated, [(2,), (2,)]),
        "inverse_kinematics": (lambda: rbd.inverse_kinematics(arm, arm.body_names[-1], np.eye(4)).q, (2,)),
        "optimize_motion": (lambda: rbd.optimize_motion(arm, *ends, 1.5, limits=limits)(0.5).q, (2,)),
        "time_optimal": (lambda: rbd.time_optimal(arm, ends, limits=limits)(0.1).q, (2,)),
        "tracking_gains": (lambda: tracked().gains, (101, 2, 4)),
        "LoopMargins": (lambda: [tracked().margins([0.05]).phase, tracked().margins([0.05]).delay], [(1, 2)] * 2),
        "effort_energy": (lambda: list(rbd.effort_energy(arm, np.linspace(0.0, 1.0, 20).reshape(10, 2), 1.5)),
                          [(), (10, 2), ()]),
        "base_parameters": (lambda: np.array(float(rbd.base_parameters(arm).rank)), ()),
        "identify": (lambda: rbd.identify(arm, record(arm, periodic(arm), rate=100.0)).model.inertial_parameters,
                     (10 * len(arm.body_names),)),
        "excitation": (lambda: rbd.excitation(arm, 8.0, limits=limits, seconds=1.0)(1.0).q, (2,))}


def contacts():
    ball, plate = rbd.Sphere("ball", radius=0.1), rbd.Plane("plate")
    pose = np.eye(4)
    pose[:3, 3] = 0.2, -0.1, 0.1
    twist = np.array([0.3, -0.2, 0.5, 0.1, 0.2, 0.0])

    @cache
    def touch():
        return rbd.closest_points(plate, ball, pose)

    @cache
    def rates():
        return rbd.contact_rates(touch(), twist)

    model = rbd.sample("ball_on_plate")
    constraints = rbd.sample_constraints("ball_on_plate", model)
    soft = rbd.CompliantContact(rbd.Plane("plate", [0.25, 0, 0.026]), ball, stiffness=1e5, dissipation=0.1)

    def surface(made):
        return lambda: list(made.chart(np.array([0.2, 0.3]))), [(3,), (3, 3), (2, 2), (2, 2), (2,)]

    def rows(kind):
        items = [kind(item.first, item.second) for item in constraints.constraints]
        return rbd.constraint_jacobian(model, rbd.ConstraintSet(items), rbd.project(
            model, constraints, model.neutral(), np.zeros(model.nv))[0])

    return {
        "Plane": surface(plate), "Sphere": surface(ball), "Cylinder": surface(rbd.Cylinder("a", radius=0.1)),
        "Ellipsoid": surface(rbd.Ellipsoid("a", (0.1, 0.2, 0.3))),
        "Torus": surface(rbd.Torus("a", 0.3, 0.1)),
        "closest_points": (lambda: [touch().point_1, touch().point_2, touch().gap], [(3,), (3,), ()]),
        "contact_rates": (lambda: list(rates()), [(2,), (2,), (), ()]),
        "contact_twist": (lambda: rbd.contact_twist(touch(), rates()), (6,)),
        "contact_accelerations": (lambda: list(rbd.contact_accelerations(touch(), twist, twist)), [(2,), (2,), (), ()]),
        "CompliantContact": (lambda: np.array(soft.law), (5,)),
        "contact_wrenches": (lambda: rbd.contact_wrenches(model, [soft], model.neutral(), np.zeros(model.nv)),
                             (len(model.body_names), 6)),
        "RollingContact": (lambda: rows(rbd.RollingContact), (3, model.nv)),
        "SlidingContact": (lambda: rows(rbd.SlidingContact), (1, model.nv))}


def calls():
    """By public name: the call, and the shape of what it gives, or a list of these."""
    return ({f"lie.{name}": call for name, call in lie().items()} | trees() | mechanisms() | drives() | motions()
            | contacts())
