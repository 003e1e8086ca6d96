"""Kernel of `semi_implicit_euler` for trees of joints with damping, dry friction, stops and velocity limits."""
from __future__ import annotations

import numpy as np

from ..compiled.assign import assign
from ..compiled.entry import entry
from ..compiled.kernel import kernel, routine, sweep
from ..dynamics.articulated import SIZE as ARTICULATED_SIZE
from ..dynamics.articulated import shared_size, tree_recursion
from ..dynamics.mass_matrix import SIZE as MASS_SIZE
from ..dynamics.mass_matrix import mass_matrix_recursion
from ..dynamics.spring_kernels import add_spring_efforts, spring_stiffness
from ..model.block import node_count, size_v
from ..model.configuration import integrate_state
from ..specialize.one_state import forward_dynamics_at
from .impulses import boxed
from .joint_data import BOX_ROWS, DAMPING, finite, friction_boxes, is_limited, is_rough, limit_boxes
from .linear_equations import inverse_of_symmetric, solve_symmetric
from .pd_law import command


@kernel
def moved(B, q, v, h, dv, out):
    """`out = q ⊕ h v`."""
    if q.shape[0] == v.shape[0]:    # plain coordinates
        for i in range(v.shape[0]):
            out[i] = q[i] + h * v[i]
    else:
        turned(B, q, v, h, dv, out)


@sweep
def turned(B, q, v, h, dv, out):
    """`moved` with quaternions."""
    for i in range(v.shape[0]):
        dv[i] = h * v[i]
    integrate_state(B, q, 0, dv, 0, out)


@kernel
def accelerations(B, q, v, tau, prescribed, wrench, code, W, H, a, effort):
    """`tree_recursion` of one state; by specialised code (`ManySteps.code`), if any, where nothing is prescribed and no
    wrench acts.
    """
    suited = code.shape[0] > 0 and wrench.shape[0] == 0 and prescribed[0].shape[0] == 0
    if suited and forward_dynamics_at(code, q, v, tau, a):
        return 0
    return tree_recursion(B, q, 0, v, tau, 0, prescribed, (wrench, 0), W, H, a, effort)


@routine
def implicit(springs, resistance, q, v, h, K, M, factors, b, a):
    """a (nv,), in: accelerations under springs that are constant in a step of h (s); out: under these springs at its
    end. M (nv·nv) becomes the inertia with that of the springs; K (nv, nv), factors (nv·nv), b (nv,): space.
    """
    n = v.shape[0]
    spring_stiffness(springs, q, K)
    for i in range(n):
        b[i] = 0.0
        for k in range(n):
            b[i] += M[n * i + k] * a[k] - h * K[i, k] * v[k]
            M[n * i + k] += h * h * K[i, k] + (h * resistance[i, k] if resistance.shape[0] > 0 else 0.0)
    assign(factors, M)
    assign(a, b)
    solve_symmetric(factors, n, a)


@routine
def semi_implicit(B, q, v, efforts, law, loads, joints, h, first, last):
    """Advance q, v in place by steps `first` … `last` − 1 of h (s); returns the step before which it stops, as its
    mass matrix is singular or its result is not finite, or `last`.

    B: of the model with additional armature h·damping, which makes damping implicit. efforts, law: as of `command`.
    loads: wrenches in node frames, or empty; table of springs, and their damping (nv, nv), or (0, 0); specialised code
    (`ManySteps.code`). joints (ROWS, nv): see `joint_data`.
    """
    wrench, springs, resistance, code = loads
    n = size_v(B)
    W, H = np.empty(ARTICULATED_SIZE * node_count(B)), np.empty(shared_size(B))
    mass_work = np.empty(MASS_SIZE * node_count(B))
    q1, v1, a, tau, dv, free, p = q.copy(), v.copy(), v.copy(), v.copy(), v.copy(), v.copy(), v.copy()
    M, inverse = np.zeros(n * n), np.zeros(n * n)
    boxes, K = np.zeros((BOX_ROWS, n)), np.empty((n, n) if springs.shape[0] > 0 else (0, 0))
    rough, limited, bounded = is_rough(joints), is_limited(joints), False
    free_joints = W[:0].view(np.bool_), v    # no acceleration is prescribed
    for s in range(first, last):
        command(B, q, v, efforts, law, s, tau)
        if rough or bounded:    # else all boxes are still 0
            bounded = friction_boxes(joints, v, tau, h, boxes)
        inverted = False
        for i in range(n):
            tau[i] -= joints[DAMPING, i] * v[i]
            for k in range(resistance.shape[0]):
                tau[i] -= resistance[i, k] * v[k]
        if springs.shape[0] > 0:
            add_spring_efforts(springs, q, tau)
        if accelerations(B, q, v, tau, free_joints, wrench, code, W, H, a, a) != 0:
            return s
        if springs.shape[0] > 0:
            mass_matrix_recursion(B, q, 0, mass_work, M, 0)
            implicit(springs, resistance, q, v, h, K, M, inverse, free, a)
        for i in range(n):
            free[i] = v[i] + h * a[i]
            p[i] = 0.0
        while True:    # repeat with added boxes until no further limit is exceeded
            assign(v1, free)
            if bounded:
                if not inverted:
                    if springs.shape[0] == 0:
                        mass_matrix_recursion(B, q, 0, mass_work, M, 0)
                    inverse_of_symmetric(M, n, inverse)
                    inverted = True
                boxed(inverse, boxes, v1, p)
            moved(B, q, v1, h, dv, q1)
            if not limited or limit_boxes(joints, q1, v1, boxes) == 0:
                break
            bounded = True
        if not finite(q1, v1):
            return s
        assign(q, q1)
        assign(v, v1)
    return last


@entry("int64(float64[::1], float64[::1], float64[::1], float64[:, :, ::1], float64[::1], float64[:, ::1], "
       "float64[:, ::1], int64[::1], float64[:, ::1], float64, int64)", nogil=True)
def semi_implicit_steps(B, q, v, efforts, wrench, springs, resistance, code, joints, h, steps):
    """At most `steps` steps of `semi_implicit` without a law; returns the number made."""
    law, loads = (joints[:0], joints[:0], 1, joints[:0]), (wrench, springs, resistance, code)
    return semi_implicit(B, q, v, efforts, law, loads, joints, h, 0, steps)
