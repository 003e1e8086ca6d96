"""Every public function of a model and a state, as arrays of q, v, a: what holds for all of them is tested by this."""

import numpy as np

import rbd_ros as rbd


def functions(model):
    """By name: `call(q, v, a)` for one state or a batch gives an array."""
    last = model.body_names[-1]
    free = next((joint.child for joint in model.joints if joint.nv == 6), last)    # moves in all directions
    held = np.arange(model.nv) % 2 == 0
    along = rbd.Tangent(v=np.ones(model.nv))
    return {
        "inverse_dynamics": lambda q, v, a: rbd.inverse_dynamics(model, q, v, a),
        "forward_dynamics": lambda q, v, a: rbd.forward_dynamics(model, q, v, a),
        "hybrid_dynamics": lambda q, v, a: rbd.hybrid_dynamics(model, q, v, a, a, held).acceleration,
        "bias_effort": lambda q, v, a: rbd.bias_effort(model, q, v),
        "gravity_effort": lambda q, v, a: rbd.gravity_effort(model, q),
        "mass_matrix": lambda q, v, a: rbd.mass_matrix(model, q),
        "coriolis_matrix": lambda q, v, a: rbd.coriolis_matrix(model, q, v),
        "closed_form": lambda q, v, a: rbd.closed_form(model, q, v, a, v).effort,
        "forward_kinematics": lambda q, v, a: rbd.forward_kinematics(model, q),
        "body_velocities": lambda q, v, a: rbd.body_velocities(model, q, v),
        "body_accelerations": lambda q, v, a: rbd.body_accelerations(model, q, v, a),
        "body_momenta": lambda q, v, a: rbd.body_momenta(model, q, v),
        "generalized_momentum": lambda q, v, a: rbd.generalized_momentum(model, q, v).rate,
        "external_wrench": lambda q, v, a: rbd.external_wrench(model, q, a, free, covariance=np.ones(model.nv)).wrench,
        "contact_probabilities": lambda q, v, a: rbd.contact_probabilities(model, q, a, np.ones(model.nv)).probability,
        "joint_wrenches": lambda q, v, a: rbd.joint_wrenches(model, q, v, a),
        "articulated_bodies": lambda q, v, a: rbd.articulated_bodies(model, q, v, a).bias,
        "inverse_operational_space_inertia": lambda q, v, a: rbd.inverse_operational_space_inertia(
            model, q, last, "world"),
        "operational_space_inertia": lambda q, v, a: rbd.operational_space_inertia(model, q, free),
        "effective_inertia": lambda q, v, a: rbd.effective_inertia(model, q, free, np.linspace(0.3, 1.1, 6)),
        "jacobian": lambda q, v, a: rbd.jacobian(model, q, last, "world"),
        "kinetic_energy": lambda q, v, a: rbd.kinetic_energy(model, q, v),
        "potential_energy": lambda q, v, a: rbd.potential_energy(model, q),
        "center_of_mass": lambda q, v, a: rbd.center_of_mass(model, q),
        "centroidal_momentum": lambda q, v, a: rbd.centroidal_momentum(model, q, v),
        "inverse_dynamics_derivatives": lambda q, v, a: rbd.inverse_dynamics_derivatives(model, q, v, a).q,
        "body_derivatives": lambda q, v, a: rbd.body_derivatives(model, q, v, a).wrench.q,
        "balafoutis_patel": lambda q, v, a: rbd.balafoutis_patel(model, q, v, a).r_ddot.q,
        "forward_dynamics_derivatives": lambda q, v, a: rbd.forward_dynamics_derivatives(model, q, v, a).q,
        "hybrid_dynamics_derivatives": lambda q, v, a: rbd.hybrid_dynamics_derivatives(model, q, v, a, a, held)[0],
        "inverse_dynamics_directional": lambda q, v, a: rbd.inverse_dynamics_directional(model, q, v, a, along),
        "forward_dynamics_directional": lambda q, v, a: rbd.forward_dynamics_directional(model, q, v, a, along),
        "hybrid_dynamics_directional": lambda q, v, a: rbd.hybrid_dynamics_directional(
            model, q, v, a, a, held, along),
        "inverse_dynamics_second_derivatives": lambda q, v, a: rbd.inverse_dynamics_second_derivatives(
            model, q, v, a)[0],
        "inverse_dynamics_time_derivatives": lambda q, v, a: rbd.inverse_dynamics_time_derivatives(
            model, q, v, a, v, a),
        "forward_dynamics_time_derivatives": lambda q, v, a: rbd.forward_dynamics_time_derivatives(model, q, v, a, v),
        "inertial_regressor": lambda q, v, a: rbd.inertial_regressor(model, q, v, a),
        "simulate": lambda q, v, a: rbd.simulate(model, q, v, n=1, limits=False).v,
        "integrate": lambda q, v, a: model.integrate(q, v),
        "difference": lambda q, v, a: model.difference(q, model.neutral()),
    }
