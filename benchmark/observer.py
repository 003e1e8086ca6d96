"""External efforts, contacts and loads against truth: exact filter, an arm in MuJoCo that is pushed, known loads.

The arm in MuJoCo has masses up to 5 % and friction up to 20 % off, sticks at rest, has encoders of 16 bits at motors
behind gears of 100 with noise of 1e-6 rad, velocities that are differences of these, and follows random motions by
feed-forward and PD at 1 kHz. All that is known of it is what `identify` finds in a recording of 30 s.
"""
from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rbd_ros as rbd

from .drive_gains import ARMS
from .drive_gains import arm as described
from .timing import interleaved, table

sys.path.append(str(Path(__file__).parents[1] / "test"))
IIWA = rbd.sample("iiwa")
H = 1e-3                                       # s
GAIN = 50.0                                    # 1/s
ROTORS = [0.4, 0.4, 0.25, 0.25, 0.15, 0.08, 0.05]    # kg m²
COULOMB = [1.2, 1.2, 0.8, 0.8, 0.5, 0.4, 0.3]        # N m
DAMPING = [0.8, 0.8, 0.5, 0.5, 0.3, 0.2, 0.15]       # N m s/rad
STIFFNESS = np.array([800.0, 800.0, 500.0, 500.0, 200.0, 120.0, 60.0])    # of the controller, N m/rad
BRAKING = np.array([60.0, 60.0, 35.0, 35.0, 12.0, 6.0, 3.0])              # N m s/rad
TICK, NOISE = 2.0 * np.pi / 2**16 / 100.0, 1e-6      # rad
RADIUS = 0.08                                  # m: of the links, about their centres of mass
PUSHED = 10.0                                  # rad/s² or m/s²
CLEARLY = 1.2                                  # thresholds that a joint feels for the link behind it to be told
MEAN = 20                                      # rows: 20 ms, of which links are judged
CARRIERS = 10                                  # arms that carry loads in MuJoCo
MOMENT, FORCE = slice(0, 3), slice(3, 6)


def run(quick: bool = False) -> dict[str, Any]:
    """Print the tables. Violations: see each part."""
    parts = {"cost": cost(), "exactness": exactness(2 if quick else 20),
             "pushes": pushes(60 if quick else 500, 2 if quick else 10),
             "false_alarms": false_alarms(2 if quick else 60, 2 if quick else 10),
             "payloads": payloads(20 if quick else 200)}
    return {**parts, "violations": sum(part["violations"] for part in parts.values())}


# --- against the exact filter

class Moved(NamedTuple):
    """A robot under efforts (n, nv) of its motors and of the world that are constant within steps of `H`: its states,
    (q, v) or (q, v, velocities of motors), at the ends and in the middle of each.
    """

    model: rbd.RobotModel
    states: list[tuple[np.ndarray, ...]]
    efforts: np.ndarray
    external: np.ndarray

    def error(self, gain: float, parts: int) -> float:
        """Of the residual at rate parts/H, from the truth through K/(s + K), of the largest effort."""
        observer, truth, worst = rbd.MomentumObserver(self.model, gain), np.zeros(self.model.nv), 0.0
        states = self.states[::2 // parts]
        for k, state in enumerate(states):
            option = {"motor_velocity": state[2]} if len(state) > 2 else {}
            if k == 0:
                observer.reset(*state[:2], **option)
                continue
            row = (k - 1) // parts
            truth += (1.0 - np.exp(-gain * H / parts)) * (self.external[row] - truth)
            found = observer.update(H / parts, *state[:2], self.efforts[row], **option)
            worst = max(worst, float(np.abs(found - truth).max()))
        return worst / max(1.0, float(np.abs(self.efforts).max()))


def disturbances(rng: np.random.Generator, n: int, inertia: np.ndarray) -> np.ndarray:
    """A step and a ramp (n, nv) per joint, which would accelerate it by about `PUSHED`."""
    out = np.zeros((n, len(inertia)))
    for j, size in enumerate(PUSHED * inertia):
        (begin, end), (foot, top) = (np.sort(rng.choice(n, 2, replace=False)) for _ in range(2))
        out[begin:end, j] = size * rng.normal()
        out[foot:top, j] += size * rng.normal() * np.linspace(0.0, 1.0, top - foot)
    return out


def moved(model: rbd.RobotModel, seed: int, n: int) -> Moved:
    """From a random state, under efforts that hold it up and brake it, and of the world."""
    rng = np.random.default_rng((13, seed))
    q, v = model.random_configuration(rng), 0.3 * rng.normal(size=model.nv)
    inertia = 1.0 / np.diag(np.linalg.inv(rbd.mass_matrix(model, q)))    # of each joint, the others free
    external, efforts = disturbances(rng, n, inertia), np.zeros((n, model.nv))
    state = rbd.Simulator(model, step=H / 10.0, integrator="rk4", limits=False, q=q, v=v)
    states = [(q, v)]
    for k in range(n):
        efforts[k] = rbd.inverse_dynamics(model, state.q, state.v, -5.0 * state.v)
        for _ in range(2):
            state.step(efforts[k] + external[k], 5)
            states.append((state.q.copy(), state.v.copy()))
    return Moved(model, states, efforts, external)


def tree(seed: int, root: str, n: int) -> Moved:
    """Of a random tree of five joints of five kinds."""
    from support.trees import TYPES, random_tree

    kinds = np.random.default_rng((16, seed)).permutation(TYPES)[:5]
    return moved(random_tree(seed, [str(kind) for kind in kinds], root=root), seed, n)


def sprung(seed: int, n: int) -> Moved:
    """Of two elastic joints; the model has their rotors."""
    rng = np.random.default_rng((14, seed))
    arm, rotor = rbd.sample("two_link"), 1e-4 * 100.0**2
    drive = rbd.SeriesDrive(rbd.SeriesSpring([800.0]), motor=rbd.Motor(rotor_inertia=1e-4, gear_ratio=100.0))
    plant = rbd.ElasticSimulator(rbd.Actuation(arm, {"shoulder": drive, "elbow": drive}), step=H / 50.0,
                                 integrator="rk4", q=rng.normal(size=2), limits=False)
    body, moments, efforts = arm.body_names[-1], disturbances(rng, n, np.ones(1)), np.zeros((n, 2))
    axes = rbd.jacobian(arm, plant.q, body)[MOMENT]    # parallel: the same at any pose
    states = [(plant.q.copy(), plant.v.copy(), plant.motor_velocity.copy())]
    for k in range(n):
        efforts[k] = rbd.gravity_effort(arm, plant.q) - 2.0 * plant.v
        for _ in range(2):
            plant.step(efforts[k], 25, {body: np.concatenate([moments[k] * axes[:, 0], np.zeros(3)])})
            states.append((plant.q.copy(), plant.v.copy(), plant.motor_velocity.copy()))
    return Moved(arm.with_(armature=rotor), states, efforts, moments * (axes[:, 0] @ axes))


def exactness(seeds: int, n: int = 200) -> dict[str, Any]:
    """Violations: residuals off by more than 1e-6; errors that half a step does not divide by three."""
    arms = [name for name in ARMS for _ in range(-(-seeds // len(ARMS)))]
    kinds = {"arms: " + ", ".join(ARMS): [moved(described(name).with_(damping=0.0, friction=0.0), seed, n)
                                          for seed, name in enumerate(arms)],
             "random trees, fixed base": [tree(seed, "fixed", n) for seed in range(seeds)],
             "random trees, floating base": [tree(seed, "floating", n) for seed in range(seeds)],
             "elastic joints, from the motors": [sprung(seed, n) for seed in range(seeds)]}
    cases = ((25.0, 1), (100.0, 1), (500.0, 1), (500.0, 2))
    errors = {name: np.max([[one.error(*case) for case in cases] for one in each], axis=0)
              for name, each in kinds.items()}
    table("Residual less the truth through K/(s + K), of the largest effort",
          [f"largest of {seeds}", *(f"{parts} kHz, K dt {gain * H / parts:g}" for gain, parts in cases)],
          [[name, *(f"{error:.1e}" for error in row)] for name, row in errors.items()])
    return {**{name: row.tolist() for name, row in errors.items()},
            "violations": sum(int(row.max() > 1e-6) + int(row[2] < 3.0 * row[3]) for row in errors.values())}


# --- an arm in MuJoCo

class Ride(NamedTuple):
    """What was recorded: times (N,), positions, velocities, commands that were held after each row (N, nv)."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray

    @property
    def recording(self) -> rbd.Recording:
        acted = np.concatenate([self.tau[:1], self.tau[:-1]])    # as a driver reports it with the state
        return rbd.Recording(self.t, self.q, self.v, tau=acted, joints=IIWA.joint_names)


class Push(NamedTuple):
    """Rows (begin, end] in which a force acts on body `link_<link>` at a point, in its frame."""

    begin: int
    end: int
    link: int
    point: np.ndarray
    force: np.ndarray

    @property
    def body(self) -> str:
        return f"link_{self.link}"

    @property
    def wrench(self) -> np.ndarray:
        return np.concatenate([np.cross(self.point, self.force), self.force])


def truth(seed: int) -> rbd.RobotModel:
    """An arm that is not as described."""
    rng = np.random.default_rng((11, seed))
    links = {}
    for name, old in IIWA.description.links.items():
        scale = rng.uniform(0.95, 1.05)
        links[name] = rbd.Inertia(scale * old.mass, old.com, scale * old.matrix)
    arm = rbd.RobotModel.from_description(dataclasses.replace(IIWA.description, links=links))
    return arm.with_(armature=ROTORS, damping=DAMPING * rng.uniform(0.8, 1.2, 7),
                     friction=COULOMB * rng.uniform(0.8, 1.2, 7))


def ride(arm: Any, model: rbd.RobotModel, friction: Any, seed: int, seconds: float, held: list[Push] | None = None,
         reach: float = 0.5) -> Ride:
    """A random motion of an arm in MuJoCo, controlled by this model, while it is pushed."""
    from support.recordings import periodic

    rng, motion = np.random.default_rng((12, seed)), periodic(IIWA, seed, period=10.0, reach=reach)
    n = round(seconds / H) + 1
    t = H * np.arange(n)
    wanted = motion(np.mod(t, motion.duration))
    feed_forward = rbd.inverse_dynamics(model, *wanted[:3], friction=friction)
    q, v, tau = np.zeros((3, n, IIWA.nv))
    arm.reset(wanted.q[0], wanted.v[0])
    noise = NOISE * rng.normal(size=q.shape)
    wrenches = {k: push for push in held or () for k in range(push.begin, push.end)}
    before = TICK * np.round((arm.q - H * arm.v) / TICK)
    for k in range(n):
        q[k] = TICK * np.round((arm.q + noise[k]) / TICK)
        v[k], before = (q[k] - before) / H, q[k]
        tau[k] = feed_forward[k] + STIFFNESS * (wanted.q[k] - q[k]) + BRAKING * (wanted.v[k] - v[k])
        external = None
        if push := wrenches.get(k):
            external = np.zeros((len(IIWA.body_names), 6))
            external[IIWA.body_index(push.body)] = push.wrench
        arm.step(tau[k], 1, external)
    return Ride(t, q, v, tau)


@cache
def identified(seed: int) -> tuple[Any, rbd.Identification]:
    """The arm in MuJoCo, and what was identified of it."""
    from rbd_ros.runtime.cosimulation.mujoco_robot import MujocoRobot

    arm = MujocoRobot(truth(seed), str(rbd.sample_path("iiwa")), step=H, limits=False)
    return arm, rbd.identify(IIWA, ride(arm, IIWA, None, seed, 30.0, reach=0.6).recording)


def known_arm(seed: int) -> tuple[Any, rbd.RobotModel, Any]:
    """The arm in MuJoCo, and the model and friction that were identified."""
    arm, found = identified(seed)
    return arm, found.model, found.friction


@cache
def thresholds(minutes: int) -> rbd.ContactThresholds:
    """Of motions without contact."""
    arm, model, friction = known_arm(0)
    rides = [ride(arm, model, friction, 100 + k, 60.0).recording for k in range(minutes)]
    return rbd.contact_thresholds(model, rides, gain=GAIN, friction=friction)


def observed(row: Ride) -> tuple[np.ndarray, np.ndarray]:
    """Residual and what of it friction near rest may be, (N, nv) each."""
    _, model, friction = known_arm(0)
    observer = rbd.MomentumObserver(model, GAIN, friction)
    residual, uncertainty = np.zeros((2, *row.q.shape))
    observer.reset(row.q[0], row.v[0])
    for k in range(1, len(row.t)):
        residual[k] = observer.update(H, row.q[k], row.v[k], row.tau[k - 1])
        uncertainty[k] = observer.friction_uncertainty
    return residual, uncertainty


def random_pushes(seed: int, count: int) -> list[Push]:
    """One after the other: 5 to 50 N for 100 to 300 ms, on a sphere about a link's centre of mass, not from within."""
    rng, found, begin = np.random.default_rng((15, seed)), [], 1000
    for _ in range(count):
        link, outwards, along = int(rng.integers(1, 8)), *rng.normal(size=(2, 3))
        outwards, along = outwards / np.linalg.norm(outwards), along / np.linalg.norm(along)
        along *= -np.sign(along @ outwards)
        point = np.asarray(IIWA.description.links[f"link_{link}"].com) + RADIUS * outwards
        end = begin + int(rng.integers(100, 301))
        found.append(Push(begin, end, link, point, rng.uniform(5.0, 50.0) * along))
        begin = end + int(rng.integers(1000, 1500))
    return found


def pushes(count: int, minutes: int) -> dict[str, Any]:
    """Violations: median errors of forces above 10 % + 2 N; likeliest links of forces that are felt less often right
    than 95 %, those of probabilities above 95 % than 97 %, and links that joints clearly feel named so by
    `touched_body`; a median delay above 8 ms of forces 10 N above what is felt at all.
    """
    arm, model, friction = known_arm(0)
    limits, rows = thresholds(minutes), []
    each = 20
    for k in range(count // each):
        held = random_pushes(k, each)
        row = ride(arm, model, friction, 1000 + k, H * (held[-1].end + 500), held)
        rows += [judged(model, row, *residual, push, limits) for residual in [observed(row)] for push in held]
    shown = [one for one in rows if one["felt"]]
    above = [one["delay"] for one in rows if one["above"] >= 10.0]
    named = [one["named"] == one["link"] for one in rows if one["clear"]]
    likeliest = [one["likeliest"] == one["link"] for one in shown]
    certain = [one["likeliest"] == one["link"] for one in shown if one["probability"] > 0.95]
    body, links = [], []
    for link in [*range(1, 8), None]:
        mine = [one for one in rows if link in (one["link"], None)]
        clear = [one["named"] == one["link"] for one in mine if one["clear"]]
        off = [one["named"] - one["link"] for one in mine if one["named"]]
        felt = [(one["likeliest"] == one["link"], one["probability"] > 0.95) for one in mine if one["felt"]]
        links.append([f"link {link}" if link else "all", str(len(felt)), str(sum(right for right, _ in felt)),
                      f"{sum(right for right, sure in felt if sure)} of {sum(sure for _, sure in felt)}"])
        body.append([f"link {link}" if link else "all", str(len(mine)), str(sum(one["felt"] for one in mine)),
                     f"{sum(clear)} of {len(clear)}", *(str(off.count(0) if k == 0 else sum(k * x > 0 for x in off))
                                                        for k in (0, -1, 1)),
                     *(f"{q:.2f}" for q in np.percentile([one["error"] for one in mine], [50, 90])),
                     f"{100.0 * np.median([one['relative'] for one in mine]):.1f} %"])
    table(f"Pushes of 5 to 50 N; thresholds {np.round(limits.threshold, 2).tolist()} N m",
          ["", "pushes", "felt", "right where clear", "in all right", "before it", "beyond it", "error, N", "90 %",
           "of the force"], body)
    table("The likeliest link of those felt, shapes of links unknown",
          ["", "felt", "right", "right where its probability is above 95 %"], links)
    delay = float(np.median(above))
    error, right = float(np.median([one["share"] for one in rows])), float(np.mean(named))
    table("Delay of forces that are 10 N above what is felt at all", ["pushes", str(len(above))], [
        ["median, 90 %", ", ".join(f"{q:.0f} ms" for q in np.percentile(above, [50, 90]))]])
    return {"felt": len(shown), "right": right, "likeliest": float(np.mean(likeliest)), "delay": delay, "error": error,
            "violations": int(error > 1.0) + int(right < 0.95) + int(np.mean(likeliest) < 0.95)
            + int(np.mean(certain) < 0.97) + int(not delay <= 8.0)}


def judged(model: rbd.RobotModel, row: Ride, residual: np.ndarray, uncertainty: np.ndarray, push: Push,
           limits: rbd.ContactThresholds) -> dict[str, Any]:
    """What a push was and what was made of it. above: N by which its force is above the smallest that is felt; clear:
    whether the joint before the link feels it by `CLEARLY` thresholds; delay: ms, infinite if not felt; error: of the
    force, N, as far as joints feel it, and its share of 10 % + 2 N.
    """
    rows, last = slice(push.begin + 1, push.end + 1), push.end
    level = np.hypot(limits.threshold, uncertainty)
    effort = [rbd.jacobian(model, row.q[k], push.body).T @ push.wrench for k in (push.begin, last)]
    force = float(np.linalg.norm(push.force))
    passed = np.flatnonzero((np.abs(residual[rows]) > level[rows]).any(axis=1))
    touched = rbd.touched_body(model, residual[last], limits.threshold, uncertainty[last])
    found = rbd.external_wrench(model, row.q[last], residual[last], push.body, point=push.point,
                                covariance=limits.covariance)
    mean = slice(last + 1 - MEAN, last + 1)
    links = rbd.contact_probabilities(model, row.q[mean].mean(axis=0), residual[mean].mean(axis=0),
                                      limits.mean_covariance
                                      + np.diag((0.5 * uncertainty[mean].mean(axis=0)) ** 2))
    error = float(np.linalg.norm((found.wrench - push.wrench + found.unseen @ push.wrench)[FORCE]))
    return {"link": push.link, "felt": len(passed) > 0, "delay": passed[0] + 1.0 if len(passed) else np.inf,
            "named": 0 if touched is None else int(touched.removeprefix("link_")),
            "likeliest": 1 + int(np.argmax(links.probability)), "probability": float(links.probability.max()),
            "clear": bool(abs(effort[1][push.link - 1]) > CLEARLY * level[last, push.link - 1]),
            "above": force * (1.0 - 1.0 / np.max(np.abs(effort[0]) / level[push.begin])),
            "error": error, "relative": error / force, "share": error / (0.1 * force + 2.0)}


def false_alarms(minutes: int, learnt: int) -> dict[str, Any]:
    """Violations: alarms in motions without contact."""
    arm, model, friction = known_arm(0)
    limits, alarms, nearest = thresholds(learnt), 0, 0.0
    for k in range(minutes):
        residual, uncertainty = observed(ride(arm, model, friction, 10_000 + k, 60.0))
        share = np.abs(residual) / np.hypot(limits.threshold, uncertainty)
        nearest = max(nearest, float(share.max()))
        alarms += int(np.sum(np.diff((share > 1.0).any(axis=1).astype(int)) == 1))
    table("Motion without contact", ["minutes", str(minutes)], [
        ["minutes of others, from which thresholds are", str(learnt)], ["false alarms", str(alarms)],
        ["largest residual, of its threshold", f"{nearest:.2f}"]])
    return {"minutes": minutes, "alarms": alarms, "nearest": nearest, "violations": alarms}


# --- loads

def simulated(seed: int, load: rbd.Inertia, rate: float, correlated: float) -> rbd.PayloadEstimator:
    """After 4 s of motion, efforts with noise of 0.5 N m."""
    from estimation.test_payload_estimator import fed

    return fed(load, seed, rate=rate, noise=0.5, correlated=correlated)    # type: ignore[no-any-return]


def at_1_khz(seed: int, load: rbd.Inertia) -> rbd.PayloadEstimator:
    """After 4.5 s of motion, noise of 0.5 N m in efforts and 0.01 rad/s in velocities."""
    from estimation.test_payload_estimator import Moving

    moving, estimator = Moving(seed), rbd.PayloadEstimator(IIWA, "link_7")
    moving.truth = IIWA.with_payload("link_7", load)
    moving.feed(estimator, 4.5, noise=0.5, speed_noise=0.01)
    return estimator


def carried(seed: int, load: rbd.Inertia) -> rbd.PayloadEstimator:
    """After 4.4 s of motion in MuJoCo with this load, on one of `CARRIERS` arms that were identified before; states of
    the loop at 1 kHz.
    """
    import mujoco

    plant, found = identified(seed % CARRIERS)
    model, friction = found.model, found.friction
    mj, body = plant.mj, plant.mj.body("link_7").id
    before = [np.array(x[body]) for x in (mj.body_mass, mj.body_ipos, mj.body_inertia, mj.body_iquat)]
    whole = plant.model.with_payload("link_7", load).description.links["link_7"]
    moments, axes = np.linalg.eigh(whole.matrix)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    mj.body_mass[body], mj.body_ipos[body], mj.body_inertia[body] = whole.mass, whole.com, moments
    mujoco.mju_mat2Quat(mj.body_iquat[body], axes.reshape(9))
    try:
        row = ride(plant, model, friction, 20_000 + seed, 4.4)
    finally:
        mj.body_mass[body], mj.body_ipos[body], mj.body_inertia[body], mj.body_iquat[body] = before
    estimator = rbd.PayloadEstimator(model, "link_7", friction, identification=found)
    for k in range(1, len(row.t)):
        estimator.update(row.t[k], row.q[k], row.v[k], None, row.tau[k - 1])
    return estimator


def payloads(seeds: int) -> dict[str, Any]:
    """Violations: errors of mass above 1 % or centre above 5 mm (95 % of the loads), coverage outside 93 to 97 % where
    noise is all that is wrong.
    """
    from estimation.test_payload_estimator import random_load, ten

    kinds: dict[str, tuple[Callable[[int, rbd.Inertia], rbd.PayloadEstimator], bool]] = {
        "white noise, 200 Hz": (lambda seed, load: simulated(seed, load, 200.0, 0.0), True),
        "white noise, 100 Hz": (lambda seed, load: simulated(seed, load, 100.0, 0.0), True),
        "correlated by 0.9, 100 Hz": (lambda seed, load: simulated(seed, load, 100.0, 0.9), True),
        "states at 1 kHz, no accelerations": (at_1_khz, True),
        "the arm in MuJoCo, identified, no accelerations": (carried, False)}
    rows, violations, found = [], 0, {}
    for name, (make, noise_alone) in kinds.items():
        mass, com, inside = [], [], []
        for seed in range(seeds):
            load = random_load(np.random.default_rng(seed))
            one = make(seed, load)
            parameters = one._fit[0]
            mass.append(abs(parameters[0] / load.mass - 1.0))
            com.append(np.linalg.norm(parameters[1:4] / parameters[0] - load.com))
            inside.append(np.abs(parameters - ten(load)) <= one.confidence)
        coverage = float(np.mean(inside))
        (m, m95, m100), (c, c95, c100) = (np.percentile(x, [50, 95, 100]) for x in (mass, com))
        violations += int(m95 > 0.01) + int(c95 > 5e-3)
        violations += int(noise_alone and seeds >= 200 and not 0.93 <= coverage <= 0.97)
        found[name] = {"mass": float(m95), "com": float(c95), "coverage": coverage}
        rows.append([name, *(f"{100.0 * x:.2f}" for x in (m, m95, m100)), *(f"{1e3 * x:.1f}" for x in (c, c95, c100)),
                     f"{100.0 * coverage:.1f} %"])
    table(f"{seeds} loads of 0.5 to 4 kg after 4 s of motion",
          ["error: median, 95 %, worst", "mass, %", "", "", "centre, mm", "", "", "intervals hold"], rows)
    return {**found, "violations": violations}


def cost() -> dict[str, Any]:
    """Violations: more than 3 µs a step."""
    observer = rbd.MomentumObserver(IIWA, GAIN, rbd.Friction(0.5, 1.0))
    plain, q, v = rbd.MomentumObserver(IIWA, GAIN), np.linspace(0.2, 1.0, 7), np.linspace(-1.0, 1.0, 7)
    spent = interleaved({"without friction": lambda: plain.update(H, q, v, v),
                         "with friction": lambda: observer.update(H, q, v, v)})
    table("One step of the observer, iiwa", ["", "µs"], [[name, f"{1e6 * x:.1f}"] for name, x in spent.items()])
    asked = interleaved({"contact_probabilities": lambda: rbd.contact_probabilities(IIWA, q, 10.0 * v, np.ones(7))})
    table("Once per contact", ["", "ms"], [[name, f"{1e3 * x:.1f}"] for name, x in asked.items()])
    return {**spent, "violations": int(max(spent.values()) > 3e-6)}
