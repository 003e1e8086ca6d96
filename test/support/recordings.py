"""Recordings of simulated arms whose parameters are known: periodic motions, efforts of inverse dynamics, noise."""

import dataclasses

import numpy as np

import rbd_ros as rbd
from rbd_ros.core.identification.consistency import is_consistent
from rbd_ros.core.model.payload import with_payloads
from rbd_ros.core.motion.periodic_motion import PeriodicMotion, fourier


def perturbed(model, seed=0, mass=0.2, place=0.02, size=0.3, rotors=True, friction=True):
    """A robot as its description should have been: other masses, places, inertias, rotors, friction; real bodies."""
    rng = np.random.default_rng((7, seed))
    links = {}
    for name, old in model.description.links.items():
        if old.is_zero:
            links[name] = old
            continue
        m = old.mass * rng.uniform(1.0 - mass, 1.0 + mass)
        second = 0.5 * np.trace(old.matrix) * np.eye(3) - old.matrix
        sizes, axes = np.linalg.eigh(second)
        sizes = np.maximum(sizes, 0.05 * sizes[-1]) * rng.uniform(1.0 - size, 1.0 + size, 3)
        second = axes @ np.diag(sizes) @ axes.T
        links[name] = rbd.Inertia(m, old.com + place * rng.normal(size=3), np.trace(second) * np.eye(3) - second)
    found = rbd.RobotModel.from_description(dataclasses.replace(model.description, links=links))
    if rotors:
        found = found.with_(armature=rng.uniform(0.02, 0.1, model.nv))
    if friction:
        found = found.with_(damping=rng.uniform(0.2, 1.0, model.nv), friction=rng.uniform(0.2, 1.0, model.nv))
    return found


def periodic(model, seed=0, period=10.0, periods=2, harmonics=5, reach=0.9):
    """A random periodic motion about neutral."""
    rng = np.random.default_rng((8, seed))
    c = rng.normal(size=(2 * harmonics + 1, model.nv)) / np.sqrt(harmonics) * reach
    return PeriodicMotion(c, period, periods)


def record(truth, motion, seed=0, rate=250.0, noise=0.05, encoder=1e-6, delay=0.0, offset=0.0, **options):
    """What its drivers would have written: efforts with white noise (N m), positions with noise (rad), a delay (s)."""
    rng = np.random.default_rng((9, seed))
    t = np.arange(0.0, motion.duration, 1.0 / rate)
    tau = efforts(truth, motion, t - delay) + offset
    tau += noise * rng.normal(size=tau.shape)
    q = motion(t).q + encoder * rng.normal(size=tau.shape)
    return rbd.Recording(t, q, tau=tau, **{"joints": truth.velocity_names, **options})


def efforts(truth, motion, t):
    """What the motors do at these times, the motion going on before and after as it is periodic."""
    q, v, a = motion(np.mod(t, motion.duration))[:3]
    return rbd.inverse_dynamics(truth, q, v, a) + rbd.friction_effort(truth, v)


def currents(truth, gains, motion, rng, load_friction, one_sided, rate=250.0, noise=0.01, bits=14, jitter=3e-4):
    """What drives with these gains would have recorded: friction that grows with the load of the gear and is larger in
    one direction, noise (share of the largest joint's current, at most all of a joint's own), encoders of so many bits
    per turn, stamps that are off (s).
    """
    t = np.arange(0.0, motion.duration, 1.0 / rate)
    q, v, a = motion(t)[:3]
    carried, slip = rbd.inverse_dynamics(truth, q, v, a), np.tanh(v / 0.01)
    tau = carried + rbd.friction_effort(truth, v) + load_friction * np.abs(carried) * slip
    tau += one_sided * truth.friction * slip**2
    current = tau / gains
    size = np.std(current, axis=0)
    current += noise * np.minimum(size.max(), 10.0 * size) * rng.normal(size=current.shape)
    step = 2.0 * np.pi / 2**bits
    return rbd.Recording(t + jitter * rng.normal(size=len(t)), step * np.round(q / step), tau=current,
                         joints=truth.velocity_names)


def with_known_load(model, seed, body, mass=None, **options):
    """The gains of an arm that is not as described, a load on `body`, and recordings without and with it."""
    rng = np.random.default_rng((10, seed))
    truth = perturbed(model, seed)
    q, v, a = (x[:200] for x in periodic(model, seed)(np.arange(0.0, 20.0, 0.1))[:3])
    size = np.sqrt(np.mean(rbd.inverse_dynamics(truth, q, v, a)**2, axis=0))
    wet, dry = rng.uniform(0.05, 0.2, (2, model.nv)) * size
    truth = truth.with_(damping=wet, friction=dry)
    signs = rng.choice([1.0, 1.0, 1.0, -1.0], model.nv)
    gains = signs * rng.uniform(5.0, 15.0) * 1.3 ** rng.uniform(-1.0, 1.0, model.nv)
    share = rng.uniform(0.1, 0.2) if mass is None else mass
    load = rbd.Inertia(share * model.total_mass, rng.uniform([-0.1, -0.1, 0.05], [0.1, 0.1, 0.15]),
                       share * model.total_mass * np.diag([0.002, 0.003, 0.002]))
    rubs = rng.uniform(0.0, 0.1, model.nv), rng.uniform(-0.2, 0.2, model.nv)
    heavier = with_payloads(truth, {body: load}).with_(armature=truth.armature, damping=truth.damping,
                                                       friction=truth.friction)
    pair = [currents(arm, gains, periodic(model, 100 * seed + k, period=15.0), rng, *rubs, **options)
            for k, arm in enumerate((truth, heavier))]
    return gains, load, pair[0], pair[1]


def rest_to_rest(motion):
    """A motion with the same harmonics that is at rest at its ends."""
    count = len(motion.coefficients) // 2
    start = np.concatenate([fourier(np.zeros(1), count, motion.period, d) for d in (1, 2)])
    c = motion.coefficients - np.linalg.pinv(start) @ (start @ motion.coefficients)
    return type(motion)(c, motion.period, motion.periods)


def on_the_loops(model, constraints, motors, motion, t):
    """q, v, a (N, nv) of a robot with closed loops whose motors move so: loops closed by Newton's method."""
    driven = [model.velocity_names.index(name) for name in motors]
    passive = [j for j in range(model.nv) if j not in driven]
    wanted = motion(t)
    q, v, a = (np.zeros((len(t), model.nv)) for _ in range(3))
    at = rbd.project(model, constraints, model.neutral()).q
    begin = at[driven].copy()
    for share in np.linspace(0.0, 1.0, 50):    # from where it is closed
        at[driven] = begin + share * (wanted.q[0] - begin)
        at = _closed(model, constraints, at, passive)
    for i in range(len(t)):
        at[driven] = wanted.q[i]
        q[i] = at = _closed(model, constraints, at, passive)
    v[:, driven], a[:, driven] = wanted.v, wanted.a
    A = rbd.constraint_jacobian(model, constraints, q)
    inverse = np.linalg.pinv(A[:, :, passive], rcond=1e-6)
    v[:, passive] = -(inverse @ (A[:, :, driven] @ wanted.v[..., None]))[..., 0]
    bias = rbd.constraint_bias(model, constraints, q, v)
    a[:, passive] = -(inverse @ (A[:, :, driven] @ wanted.a[..., None] + bias[..., None]))[..., 0]
    return q, v, a


def _closed(model, constraints, q, passive):
    q = q.copy()
    for _ in range(30):
        f = rbd.constraint_values(model, constraints, q)
        if np.abs(f).max() < 1e-11:
            return q
        q[passive] -= np.linalg.lstsq(rbd.constraint_jacobian(model, constraints, q)[:, passive], f, rcond=1e-7)[0]
    raise ValueError("the loops do not close")


def record_closed(truth, constraints, motors, motion, seed=0, rate=250.0, noise=0.02, encoder=1e-6, whole=True):
    """A recording of a robot with closed loops: joints without motors have positions only if `whole`, and no effort."""
    rng = np.random.default_rng((9, seed))
    t = np.arange(0.0, motion.duration, 1.0 / rate)
    q, v, a = on_the_loops(truth, constraints, motors, motion, t)
    rubbing = rbd.friction_effort(truth, v)
    driven = [truth.velocity_names.index(name) for name in motors]
    tau = rbd.constrained_inverse_dynamics(truth, constraints, q, v, a, motors, passive_effort=-rubbing).effort
    shown = np.zeros_like(tau)
    shown[:, driven] = tau[:, driven] + rubbing[:, driven] + noise * rng.normal(size=(len(t), len(driven)))
    q = q + encoder * rng.normal(size=q.shape)
    kept = range(truth.nv) if whole else driven
    return rbd.Recording(t, q[:, kept], tau=shown[:, kept], joints=[truth.velocity_names[j] for j in kept])


def mutilated(recording, rng):
    """The recording with a lot wrong: holes, infinities, gaps, swapped or constant joints, degrees, no order."""
    for _ in range(int(rng.integers(1, 4))):
        t, q, tau = recording.t.copy(), recording.q.copy(), recording.tau.copy()
        n, nv = q.shape
        at, width = int(rng.integers(n)), int(rng.integers(1, max(n, 2)))
        match int(rng.integers(10)):
            case 0:
                q[rng.integers(0, n, width), rng.integers(nv)] = rng.choice([np.nan, np.inf, 1e300, 0.0])
            case 1:
                tau[at:at + width] = rng.choice([np.nan, 0.0, 1e12, -np.inf])
            case 2:
                t[at:] += rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-4, 12)
            case 3:
                order = rng.permutation(n)
                t = t[order]
            case 4:
                q, tau = q[:, ::-1], tau[:, rng.permutation(nv)]
            case 5:
                rows = slice(at, at + max(int(rng.integers(300)), 1))
                t, q, tau = t[rows], q[rows], tau[rows]
            case 6:
                q[:, rng.integers(nv)] = rng.choice([0.0, 1.0, 1e5])
            case 7:
                t[at:at + width] = t[at]
            case 8:
                t = np.full(n, rng.choice([0.0, np.nan, 1e18]))
            case 9:
                q = q * 180.0 / np.pi
        recording = rbd.Recording(t, q, tau=tau, joints=recording.joints)
    return recording


def mutilated_pair(unloaded, loaded, rng):
    """Recordings without and with a load of which one or two things are wrong, mostly with one of them."""
    pair = [unloaded, loaded]
    for _ in range(int(rng.integers(1, 3))):
        which = int(rng.integers(2))
        old = pair[which]
        t, q, tau, joints = old.t.copy(), old.q.copy(), old.tau.copy(), old.joints
        n, nv = q.shape
        at, width, j = int(rng.integers(n)), int(rng.integers(1, n)), int(rng.integers(nv))
        match int(rng.integers(15)):
            case 0:
                q[at:at + width, j] = np.nan
            case 1:
                tau[at:at + width] = rng.choice([0.0, np.inf])
            case 2:
                t, q, tau = (x[at:at + width] for x in (t, q, tau))
            case 3:
                tau = tau[:, np.roll(np.arange(nv), 1)]
            case 4:
                q = q[:, np.roll(np.arange(nv), 1)]
            case 5:
                q = q * 180.0 / np.pi
            case 6:
                tau[:, j] = 1.0
            case 7:
                q[:, j] = 1.0
            case 8:
                tau = np.roll(tau, int(rng.integers(-200, 200)), axis=0)
            case 9:
                t = t[rng.permutation(n)]
            case 10:
                tau[:, j] *= 10.0 ** rng.uniform(-3.0, 3.0) * rng.choice([-1.0, 1.0])
            case 11:
                pair.reverse()
                continue
            case 12:
                q = q[:1] + 1e-5 * rng.normal(size=q.shape)
            case 13:
                q, tau, joints = q[:, :-1], tau[:, :-1], joints[:-1]
            case 14:
                pair[which] = pair[1 - which]
                continue
        try:
            pair[which] = rbd.Recording(t, q, tau=tau, joints=joints)
        except rbd.RbdError:    # nothing remains
            continue
    return pair


def judged(recording, found):
    """What is wrong with a result of a mutilated recording, in words; nothing if it is finite, of bodies that can be,
    and says what was left out.
    """
    numbers = np.isfinite(np.column_stack([recording.t, recording.q, recording.tau])).all(axis=1)
    if not (np.isfinite(found.model.inertial_parameters).all() and np.isfinite(found.offset).all()):
        return "not finite"
    if not all(is_consistent(body) for body in found.model.inertial_parameters.reshape(-1, 10) if body[0] > 0.0):
        return "no body"
    return "" if numbers.all() or found.findings else "nothing is said"
