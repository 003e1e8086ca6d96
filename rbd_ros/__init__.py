"""Rigid-body dynamics for robot control, in the Lie-group formulation: `import rbd_ros as rbd`.

Everything here is free of ROS; the nodes in `rbd_ros.nodes` wrap it. Conventions: twists (ω, v) and wrenches (m, f)
angular part first, in body axes; SI units; quaternions x, y, z, w; functions take one state or a batch.
"""
from importlib import import_module
from typing import TYPE_CHECKING

from .core import lie
from .core.compiled.kernel import COMPILED
from .core.derivatives.forward import ForwardDerivatives, forward_dynamics_derivatives
from .core.derivatives.hybrid import HybridDerivatives, hybrid_dynamics_derivatives
from .core.derivatives.inverse import InverseDerivatives, inverse_dynamics_derivatives
from .core.derivatives.regressor import inertial_regressor
from .core.derivatives.time_derivatives import forward_dynamics_time_derivatives, inverse_dynamics_time_derivatives
from .core.dynamics.bodies.articulated_bodies import ArticulatedBodies, articulated_bodies
from .core.dynamics.bodies.joint_wrenches import joint_wrenches
from .core.dynamics.bodies.momenta import body_momenta, spatial_inertias
from .core.dynamics.bodies.operational_space import (
    effective_inertia, inverse_operational_space_inertia, operational_space_inertia,
)
from .core.dynamics.constrained.constraint_wrenches import constraint_wrenches
from .core.dynamics.constrained.forward import ConstrainedForward, constrained_forward_dynamics
from .core.dynamics.constrained.hybrid import ConstrainedHybrid, constrained_hybrid_dynamics
from .core.dynamics.constrained.inverse import ConstrainedInverse, constrained_inverse_dynamics
from .core.dynamics.constrained.projection import project
from .core.dynamics.constrained.values import anchored, constraint_bias, constraint_jacobian, constraint_values
from .core.dynamics.coriolis import coriolis_matrix
from .core.dynamics.energy import center_of_mass, centroidal_momentum, kinetic_energy, potential_energy
from .core.dynamics.forward import Forward, forward_dynamics
from .core.dynamics.friction import Friction, friction_effort, friction_effort_derivatives, joint_friction
from .core.dynamics.hybrid import Hybrid, hybrid_dynamics
from .core.dynamics.inverse import bias_effort, gravity_effort, inverse_dynamics
from .core.dynamics.kinematics import body_accelerations, body_velocities, forward_kinematics, jacobian
from .core.dynamics.momentum import GeneralizedMomentum, generalized_momentum
from .core.dynamics.mass_matrix import mass_matrix
from .core.dynamics.singular import SingularMassMatrix
from .core.errors import RbdError, RbdWarning
from .core.model.assembly import Description
from .core.model.constraints import (
    ConstraintSet, FixedContact, JointCoupling, LoopClosure, NonholonomicConstraint, UserConstraint,
)
from .core.model.coordinates import Joint, Mimic
from .core.model.files.urdf import load_urdf
from .core.model.inertia import Inertia
from .core.model.joints import JOINT_TYPES, JointSpec, Primitive
from .core.model.robot_model import RobotModel
from .core.model.surfaces.compliant import CompliantContact
from .core.model.surfaces.contacts import RollingContact, SlidingContact
from .core.model.surfaces.surface import Chart, Cylinder, Ellipsoid, Plane, Point, Sphere, Torus
from .core.model.surfaces.unilateral import UnilateralContact, box_contacts
from .core.model.samples import sample, sample_constraints, sample_names, sample_path
from .core.motion.splines import SplineMotion
from .core.motion.trajectory import Reference

if TYPE_CHECKING:
    from .core.actuation.actuation import Actuation, RigidDrive, SeriesDrive, VariableDrive
    from .core.actuation.actuation_yaml import load_actuation
    from .core.actuation.damped_deflection import DampedDeflection
    from .core.actuation.directional import (
        feedback_linearization_directional, link_efforts_directional, motor_reference_directional,
    )
    from .core.actuation.elastic_law import ElasticLaw, ElasticLawSettings, ElasticState
    from .core.actuation.elastic_tangent import ElasticTangent
    from .core.actuation.feedback_linearization import FeedbackLinearization, feedback_linearization
    from .core.actuation.motor import Motor
    from .core.actuation.motor_reference import MotorReference, link_efforts, motor_reference
    from .core.actuation.poles import FeedbackGains
    from .core.actuation.series_elastic import SeriesSpring
    from .core.actuation.variable_stiffness import AntagonisticExponential, AntagonisticQuadratic, StiffnessInput
    from .core.batch import batch
    from .core.compiled.ahead import compile_all
    from .core.derivatives.balafoutis_patel import BalafoutisPatel, balafoutis_patel
    from .core.derivatives.bodies import BodyDerivatives, body_derivatives
    from .core.derivatives.constrained import (
        ConstrainedForwardDerivatives, ConstrainedInverseDerivatives, constrained_forward_dynamics_derivatives,
        constrained_inverse_dynamics_derivatives,
    )
    from .core.derivatives.directional.bodies import ForwardDirectional, HybridDirectional, InverseDirectional
    from .core.derivatives.directional.constrained import (
        ConstrainedForwardDirectional, ConstrainedHybridDirectional, ConstrainedInverseDirectional,
        constrained_forward_dynamics_directional, constrained_hybrid_dynamics_directional,
        constrained_inverse_dynamics_directional,
    )
    from .core.derivatives.directional.forward import forward_dynamics_directional, hybrid_dynamics_directional
    from .core.derivatives.directional.inverse import inverse_dynamics_directional
    from .core.derivatives.directional.tangent import Tangent, Tangents
    from .core.derivatives.second_derivatives import SecondDerivatives, inverse_dynamics_second_derivatives
    from .core.dynamics.closed_form import ClosedForm, closed_form
    from .core.dynamics.constrained.solutions import (
        Solutions, constrained_hybrid_solutions, constrained_inverse_solutions,
    )
    from .core.dynamics.contact.compliant import contact_wrenches
    from .core.dynamics.contact.coordinates import (
        ContactPoint, ContactRates, closest_points, contact_accelerations, contact_rates, contact_twist,
    )
    from .core.estimation.contact_probabilities import ContactProbabilities, contact_probabilities
    from .core.estimation.external_wrench import ExternalWrench, external_wrench, touched_body
    from .core.estimation.momentum_observer import MomentumObserver
    from .core.estimation.payload_estimator import PayloadEstimator
    from .core.estimation.thresholds import ContactThresholds, contact_thresholds
    from .core.feedback.margins import LoopMargins
    from .core.feedback.tracking_gains import StateFeedback, TrackingGains, tracking_gains
    from .core.identification.base_parameters import BaseParameters, base_parameters
    from .core.identification.drive_gains import DriveGains, drive_gains
    from .core.identification.excited.excitation import Excitation, excitation
    from .core.identification.excited.poses import PoseExcitation, excitation_poses
    from .core.identification.fit import identify
    from .core.identification.float_test import FloatTest, float_test
    from .core.identification.identified import Estimate, Identification
    from .core.identification.recorded.recording import Recording
    from .core.identification.transmission import Transmission
    from .core.identification.zeros import Zeros
    from .core.learning.crocoddyl_model import crocoddyl_model
    from .core.learning.jax_function import jax_function
    from .core.learning.torch_function import torch_function
    from .core.model.files.collision_surfaces import surfaces_of
    from .core.model.files.constraint_yaml import load_constraints, load_contacts
    from .core.model.files.screws import from_screws
    from .core.motion.collision.closest import Closest
    from .core.motion.collision.clearance import Clearance
    from .core.motion.collision.collision_model import CollisionModel
    from .core.motion.collision.planned_path import PlannedPath, plan_path
    from .core.motion.collision.sampled import SampledPairs, sampled_pairs
    from .core.motion.effort_energy import EffortEnergy, effort_energy
    from .core.motion.inverse_kinematics import InverseKinematics, inverse_kinematics
    from .core.motion.optimal.limits import MotionLimits
    from .core.motion.optimization import OptimalMotion, optimize_motion
    from .core.motion.places.body_goal import BodyGoal
    from .core.motion.places.plane_limit import PlaneLimit
    from .core.motion.smoothed_path import smoothed_path
    from .core.motion.time_optimal import TimedPath, time_optimal
    from .core.motion.usage import Usage
    from .core.simulation.contact.records import ContactState
    from .core.simulation.elastic_simulator import ElasticSimulator
    from .core.simulation.pd_law import PDLaw
    from .core.simulation.simulate import Motions, simulate
    from .core.simulation.simulator import Simulator
    from .core.specialize.c_source import c_source
    from .core.specialize.casadi_function import casadi_function
    from .core.specialize.cuda_batch import CudaBatch, cuda_batch
    from .core.specialize.specialized import SpecializedModel, specialize
    from .runtime.control.standalone import TorqueCommand, TorqueController
    from .runtime.estimation.standalone import EffortObserver

__version__: str

__all__ = [
    "COMPILED", "JOINT_TYPES", "Actuation", "AntagonisticExponential", "AntagonisticQuadratic", "ArticulatedBodies",
    "BalafoutisPatel", "BaseParameters", "BodyDerivatives", "BodyGoal", "Chart", "Clearance", "ClosedForm", "Closest",
    "CollisionModel", "CompliantContact", "ConstrainedForward", "ConstrainedForwardDerivatives",
    "ConstrainedForwardDirectional", "ConstrainedHybrid", "ConstrainedHybridDirectional", "ConstrainedInverse",
    "ConstrainedInverseDerivatives", "ConstrainedInverseDirectional", "ConstraintSet", "ContactPoint",
    "ContactProbabilities", "ContactRates", "ContactState", "ContactThresholds", "CudaBatch", "Cylinder",
    "DampedDeflection", "Description", "DriveGains",
    "EffortEnergy", "EffortObserver", "ElasticLaw", "ElasticLawSettings", "ElasticSimulator", "ElasticState",
    "ElasticTangent", "Ellipsoid", "Estimate", "Excitation", "ExternalWrench", "FeedbackGains", "FeedbackLinearization",
    "FixedContact", "FloatTest", "Forward", "ForwardDerivatives", "ForwardDirectional", "Friction",
    "GeneralizedMomentum", "Hybrid", "HybridDerivatives", "HybridDirectional", "Identification", "Inertia",
    "InverseDerivatives", "InverseDirectional", "InverseKinematics", "Joint", "JointCoupling", "JointSpec",
    "LoopClosure", "LoopMargins", "Mimic", "MomentumObserver", "MotionLimits", "Motions", "Motor", "MotorReference",
    "NonholonomicConstraint", "OptimalMotion", "PDLaw", "PayloadEstimator", "Plane", "PlaneLimit", "PlannedPath",
    "Point", "PoseExcitation", "Primitive", "RbdError", "RbdWarning", "Recording", "Reference", "RigidDrive",
    "RobotModel", "RollingContact", "SampledPairs", "SecondDerivatives", "SeriesDrive", "SeriesSpring", "Simulator",
    "SingularMassMatrix", "SlidingContact", "Solutions", "SpecializedModel", "Sphere", "SplineMotion", "StateFeedback",
    "StiffnessInput", "Tangent", "Tangents", "TimedPath", "TorqueCommand", "TorqueController", "Torus", "TrackingGains",
    "Transmission", "UnilateralContact", "Usage", "UserConstraint", "VariableDrive", "Zeros", "anchored",
    "articulated_bodies", "balafoutis_patel", "base_parameters", "batch", "bias_effort", "body_accelerations",
    "body_derivatives", "body_momenta", "body_velocities", "box_contacts", "c_source", "casadi_function",
    "center_of_mass", "centroidal_momentum", "closed_form", "closest_points", "compile_all",
    "constrained_forward_dynamics", "constrained_forward_dynamics_derivatives",
    "constrained_forward_dynamics_directional", "constrained_hybrid_dynamics",
    "constrained_hybrid_dynamics_directional", "constrained_hybrid_solutions", "constrained_inverse_dynamics",
    "constrained_inverse_dynamics_derivatives", "constrained_inverse_dynamics_directional",
    "constrained_inverse_solutions", "constraint_bias", "constraint_jacobian", "constraint_values",
    "constraint_wrenches", "contact_accelerations", "contact_probabilities", "contact_rates", "contact_thresholds",
    "contact_twist", "contact_wrenches", "coriolis_matrix", "crocoddyl_model", "cuda_batch", "drive_gains",
    "effective_inertia", "effort_energy",
    "excitation", "excitation_poses", "external_wrench", "feedback_linearization", "feedback_linearization_directional",
    "float_test", "forward_dynamics", "forward_dynamics_derivatives", "forward_dynamics_directional",
    "forward_dynamics_time_derivatives", "forward_kinematics", "friction_effort", "friction_effort_derivatives",
    "from_screws", "generalized_momentum", "gravity_effort", "hybrid_dynamics", "hybrid_dynamics_derivatives",
    "hybrid_dynamics_directional", "identify", "inertial_regressor", "inverse_dynamics", "inverse_dynamics_derivatives",
    "inverse_dynamics_directional", "inverse_dynamics_second_derivatives", "inverse_dynamics_time_derivatives",
    "inverse_kinematics", "inverse_operational_space_inertia", "jacobian", "jax_function", "joint_friction",
    "joint_wrenches", "kinetic_energy", "lie", "link_efforts", "link_efforts_directional", "load_actuation",
    "load_constraints", "load_contacts", "load_urdf", "mass_matrix", "motor_reference", "motor_reference_directional",
    "operational_space_inertia", "optimize_motion", "plan_path", "potential_energy", "project", "sample",
    "sample_constraints", "sample_names", "sample_path", "sampled_pairs", "simulate", "smoothed_path",
    "spatial_inertias", "specialize", "surfaces_of", "time_optimal", "torch_function", "touched_body", "tracking_gains",
]

# What programs of control rarely ask for is imported when they do: it takes a tenth of the time to their first result.
_LATER = {
    "Actuation": "core.actuation.actuation",
    "RigidDrive": "core.actuation.actuation",
    "SeriesDrive": "core.actuation.actuation",
    "VariableDrive": "core.actuation.actuation",
    "load_actuation": "core.actuation.actuation_yaml",
    "DampedDeflection": "core.actuation.damped_deflection",
    "feedback_linearization_directional": "core.actuation.directional",
    "link_efforts_directional": "core.actuation.directional",
    "motor_reference_directional": "core.actuation.directional",
    "ElasticLaw": "core.actuation.elastic_law",
    "ElasticLawSettings": "core.actuation.elastic_law",
    "ElasticState": "core.actuation.elastic_law",
    "ElasticTangent": "core.actuation.elastic_tangent",
    "FeedbackLinearization": "core.actuation.feedback_linearization",
    "feedback_linearization": "core.actuation.feedback_linearization",
    "Motor": "core.actuation.motor",
    "MotorReference": "core.actuation.motor_reference",
    "link_efforts": "core.actuation.motor_reference",
    "motor_reference": "core.actuation.motor_reference",
    "FeedbackGains": "core.actuation.poles",
    "SeriesSpring": "core.actuation.series_elastic",
    "AntagonisticExponential": "core.actuation.variable_stiffness",
    "AntagonisticQuadratic": "core.actuation.variable_stiffness",
    "StiffnessInput": "core.actuation.variable_stiffness",
    "batch": "core.batch",
    "compile_all": "core.compiled.ahead",
    "BalafoutisPatel": "core.derivatives.balafoutis_patel",
    "balafoutis_patel": "core.derivatives.balafoutis_patel",
    "BodyDerivatives": "core.derivatives.bodies",
    "body_derivatives": "core.derivatives.bodies",
    "ConstrainedForwardDerivatives": "core.derivatives.constrained",
    "ConstrainedInverseDerivatives": "core.derivatives.constrained",
    "constrained_forward_dynamics_derivatives": "core.derivatives.constrained",
    "constrained_inverse_dynamics_derivatives": "core.derivatives.constrained",
    "ForwardDirectional": "core.derivatives.directional.bodies",
    "HybridDirectional": "core.derivatives.directional.bodies",
    "InverseDirectional": "core.derivatives.directional.bodies",
    "ConstrainedForwardDirectional": "core.derivatives.directional.constrained",
    "ConstrainedHybridDirectional": "core.derivatives.directional.constrained",
    "ConstrainedInverseDirectional": "core.derivatives.directional.constrained",
    "constrained_forward_dynamics_directional": "core.derivatives.directional.constrained",
    "constrained_hybrid_dynamics_directional": "core.derivatives.directional.constrained",
    "constrained_inverse_dynamics_directional": "core.derivatives.directional.constrained",
    "forward_dynamics_directional": "core.derivatives.directional.forward",
    "hybrid_dynamics_directional": "core.derivatives.directional.forward",
    "inverse_dynamics_directional": "core.derivatives.directional.inverse",
    "Tangent": "core.derivatives.directional.tangent",
    "Tangents": "core.derivatives.directional.tangent",
    "SecondDerivatives": "core.derivatives.second_derivatives",
    "inverse_dynamics_second_derivatives": "core.derivatives.second_derivatives",
    "ClosedForm": "core.dynamics.closed_form",
    "closed_form": "core.dynamics.closed_form",
    "Solutions": "core.dynamics.constrained.solutions",
    "constrained_hybrid_solutions": "core.dynamics.constrained.solutions",
    "constrained_inverse_solutions": "core.dynamics.constrained.solutions",
    "ContactPoint": "core.dynamics.contact.coordinates",
    "ContactRates": "core.dynamics.contact.coordinates",
    "closest_points": "core.dynamics.contact.coordinates",
    "contact_accelerations": "core.dynamics.contact.coordinates",
    "contact_rates": "core.dynamics.contact.coordinates",
    "contact_twist": "core.dynamics.contact.coordinates",
    "contact_wrenches": "core.dynamics.contact.compliant",
    "ContactProbabilities": "core.estimation.contact_probabilities",
    "contact_probabilities": "core.estimation.contact_probabilities",
    "ExternalWrench": "core.estimation.external_wrench",
    "external_wrench": "core.estimation.external_wrench",
    "touched_body": "core.estimation.external_wrench",
    "MomentumObserver": "core.estimation.momentum_observer",
    "PayloadEstimator": "core.estimation.payload_estimator",
    "ContactThresholds": "core.estimation.thresholds",
    "contact_thresholds": "core.estimation.thresholds",
    "LoopMargins": "core.feedback.margins",
    "StateFeedback": "core.feedback.tracking_gains",
    "TrackingGains": "core.feedback.tracking_gains",
    "tracking_gains": "core.feedback.tracking_gains",
    "BaseParameters": "core.identification.base_parameters",
    "base_parameters": "core.identification.base_parameters",
    "DriveGains": "core.identification.drive_gains",
    "drive_gains": "core.identification.drive_gains",
    "Excitation": "core.identification.excited.excitation",
    "excitation": "core.identification.excited.excitation",
    "PoseExcitation": "core.identification.excited.poses",
    "excitation_poses": "core.identification.excited.poses",
    "identify": "core.identification.fit",
    "FloatTest": "core.identification.float_test",
    "float_test": "core.identification.float_test",
    "Estimate": "core.identification.identified",
    "Identification": "core.identification.identified",
    "Recording": "core.identification.recorded.recording",
    "Transmission": "core.identification.transmission",
    "Zeros": "core.identification.zeros",
    "crocoddyl_model": "core.learning.crocoddyl_model",
    "jax_function": "core.learning.jax_function",
    "torch_function": "core.learning.torch_function",
    "surfaces_of": "core.model.files.collision_surfaces",
    "load_constraints": "core.model.files.constraint_yaml",
    "load_contacts": "core.model.files.constraint_yaml",
    "from_screws": "core.model.files.screws",
    "Clearance": "core.motion.collision.clearance",
    "Closest": "core.motion.collision.closest",
    "CollisionModel": "core.motion.collision.collision_model",
    "PlannedPath": "core.motion.collision.planned_path",
    "plan_path": "core.motion.collision.planned_path",
    "SampledPairs": "core.motion.collision.sampled",
    "sampled_pairs": "core.motion.collision.sampled",
    "EffortEnergy": "core.motion.effort_energy",
    "effort_energy": "core.motion.effort_energy",
    "InverseKinematics": "core.motion.inverse_kinematics",
    "inverse_kinematics": "core.motion.inverse_kinematics",
    "Usage": "core.motion.usage",
    "MotionLimits": "core.motion.optimal.limits",
    "OptimalMotion": "core.motion.optimization",
    "optimize_motion": "core.motion.optimization",
    "BodyGoal": "core.motion.places.body_goal",
    "PlaneLimit": "core.motion.places.plane_limit",
    "smoothed_path": "core.motion.smoothed_path",
    "TimedPath": "core.motion.time_optimal",
    "time_optimal": "core.motion.time_optimal",
    "ContactState": "core.simulation.contact.records",
    "ElasticSimulator": "core.simulation.elastic_simulator",
    "PDLaw": "core.simulation.pd_law",
    "Motions": "core.simulation.simulate",
    "simulate": "core.simulation.simulate",
    "Simulator": "core.simulation.simulator",
    "c_source": "core.specialize.c_source",
    "casadi_function": "core.specialize.casadi_function",
    "CudaBatch": "core.specialize.cuda_batch",
    "cuda_batch": "core.specialize.cuda_batch",
    "SpecializedModel": "core.specialize.specialized",
    "specialize": "core.specialize.specialized",
    "TorqueCommand": "runtime.control.standalone",
    "TorqueController": "runtime.control.standalone",
    "EffortObserver": "runtime.estimation.standalone",
}

if not TYPE_CHECKING:    # where it would say that there is every name
    def __getattr__(name):
        if name == "__version__":    # of what is installed, which package.xml says
            from importlib.metadata import PackageNotFoundError, version
            try:
                return version(__name__)
            except PackageNotFoundError:
                return "unknown"
        if name not in _LATER:
            raise AttributeError(f"module 'rbd_ros' has no attribute '{name}'")
        value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
        return value

    def __dir__():
        return sorted(["__doc__", "__version__", *__all__])
