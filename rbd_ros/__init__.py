"""Rigid-body dynamics for robot control, in the Lie-group formulation: `import rbd_ros as rbd`.

Everything here is free of ROS; the nodes in `rbd_ros.nodes` wrap it. Conventions: twists (ω, v) and wrenches (m, f)
angular part first, in body axes; SI units; quaternions x, y, z, w; every function takes one state or a batch.
"""
from .core.compile import COMPILED, compile_all
from .core.dynamics.constrained_forward import ConstrainedForward, constrained_forward_dynamics
from .core.dynamics.constrained_hybrid import ConstrainedHybrid, constrained_hybrid_dynamics
from .core.dynamics.constrained_inverse import ConstrainedInverse, constrained_inverse_dynamics
from .core.dynamics.constraint_values import anchored, constraint_bias, constraint_jacobian, constraint_values
from .core.dynamics.energy import center_of_mass, centroidal_momentum, kinetic_energy, potential_energy
from .core.dynamics.forward import forward_dynamics
from .core.dynamics.hybrid import HybridResult, hybrid_dynamics
from .core.dynamics.inverse import bias_effort, gravity_effort, inverse_dynamics
from .core.dynamics.kinematics import body_accelerations, body_velocities, forward_kinematics, jacobian
from .core.dynamics.mass_matrix import mass_matrix
from .core.dynamics.projection import project
from .core.errors import RbdError, RbdWarning
from .core.model.assembly import Description
from .core.model.constraint_yaml import load_constraints
from .core.model.constraints import ConstraintSet, FixedContact, JointCoupling, LoopClosure, UserConstraint
from .core.model.inertia import Inertia
from .core.model.joints import JOINT_TYPES, Joint, JointSpec, Mimic, Primitive
from .core.model.robot_model import RobotModel
from .core.model.samples import sample, sample_constraints, sample_names, sample_path
from .core.model.urdf import load_urdf

__all__ = [
    "COMPILED", "JOINT_TYPES", "ConstrainedForward", "ConstrainedHybrid", "ConstrainedInverse", "ConstraintSet",
    "Description", "FixedContact", "HybridResult", "Inertia", "Joint", "JointCoupling", "JointSpec", "LoopClosure",
    "Mimic", "Primitive", "RbdError", "RbdWarning", "RobotModel", "UserConstraint", "anchored", "bias_effort",
    "body_accelerations", "body_velocities", "center_of_mass", "centroidal_momentum", "compile_all",
    "constrained_forward_dynamics", "constrained_hybrid_dynamics", "constrained_inverse_dynamics", "constraint_bias",
    "constraint_jacobian", "constraint_values", "forward_dynamics", "forward_kinematics", "gravity_effort",
    "hybrid_dynamics", "inverse_dynamics", "jacobian", "kinetic_energy", "load_constraints", "load_urdf",
    "mass_matrix", "potential_energy", "project", "sample", "sample_constraints", "sample_names", "sample_path",
]
