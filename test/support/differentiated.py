"""Models and random states for tests of functions of batches, of torch and of JAX."""
from __future__ import annotations

import numpy as np

import rbd_ros as rbd

from .trees import TYPES, mimic_tree, random_tree

FRICTION = rbd.Friction(damping=0.4, coulomb=1.0, breakaway=1.5, smoothing=0.2, asymmetry=0.3, viscous_asymmetry=0.1,
                        load=0.08)
RUBBED = ("inverse_dynamics", "forward_dynamics", "hybrid_dynamics")    # with an argument `friction`
MODELS = {"all joints": lambda: random_tree(4, TYPES), "mimic": mimic_tree,
          "floating": lambda: random_tree(7, ["floating", "spherical", "spherical_exponential", "revolute"])}
SIZES = {"inverse_dynamics": 3, "gravity_effort": 1, "bias_effort": 2, "forward_dynamics": 3, "hybrid_dynamics": 4,
         "mass_matrix": 1, "forward_kinematics": 1, "kinetic_energy": 2, "potential_energy": 1}    # numbers of inputs
TWICE = ("inverse_dynamics", "gravity_effort", "bias_effort", "potential_energy")    # with second derivatives


def text_of(model, name):
    """With every other joint's acceleration prescribed."""
    return f"{name}:{','.join(model.joint_names[::2])}" if name == "hybrid_dynamics" else name


def states(model, name, lead=(2,), seed=0):
    """Inputs of a function: q (*lead, nq), and others (*lead, nv)."""
    rng = np.random.default_rng(seed)
    q = np.array([model.random_configuration(rng) for _ in range(int(np.prod(lead)))]).reshape(*lead, model.nq)
    return [q, *rng.normal(size=(SIZES[name.partition(":")[0]] - 1, *lead, model.nv))]
