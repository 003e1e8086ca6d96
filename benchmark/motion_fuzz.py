"""Random problems for `optimize_motion`: good, tight, contradictory, impossible, malformed; each answer is judged."""
from __future__ import annotations

import re
import time
from typing import Any

import numpy as np

import rbd_ros as rbd

from .timing import table

SPARE = 0.05      # s, beside 10 % of the time limit: one iteration, and a processor that others use
SAMPLES = 3001
EXCUSE = re.compile(r"(the [a-z_]+ of joint '[^']+' is \S+ times its limit|point '[^']+' is \S+ m beyond its plane) at "
                    r"\S+ s")
WRONG: tuple[Any, ...] = (None, "much", np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 1e-300, [], {}, object(), True,
                          np.zeros((2, 3)), 10**400, b"x", [[1.0], [2.0, 3.0]], 1j)


def models() -> list[rbd.RobotModel]:
    """A slide, a planar arm, the iiwa, the iiwa with friction, and a five-bar, which has a loop."""
    slide = rbd.JointSpec("rail", "prismatic", "world", "mass", axis=(1.0, 0.0, 0.0), lower=-1.0, upper=1.0,
                          velocity=2.0, effort=30.0)
    bodies = {"mass": rbd.Inertia(2.0, np.zeros(3), 0.01 * np.eye(3))}
    description = rbd.Description("slide", {"world": rbd.Inertia.zero(), **bodies}, [slide])
    iiwa = rbd.sample("iiwa")
    return [rbd.RobotModel.from_description(description), rbd.sample("two_link"), iiwa,
            iiwa.with_(damping=2.0, friction=1.0), rbd.sample("five_bar")]


def warmed(made: list[rbd.RobotModel]) -> list[rbd.RobotModel]:
    """The same models, with what they need compiled."""
    for term in ("effort", "effort_rate", "duration"):
        rbd.optimize_motion(made[3], np.zeros(7), np.full(7, 0.3), (1.0, 2.0), term, starts=1)
    loops = rbd.sample_constraints("five_bar", made[4])
    rest = rbd.project(made[4], loops, np.zeros(5)).q
    for rule in ("effort", "multipliers"):
        rbd.optimize_motion(made[4], rest, rest, 1.0, constraints=loops, minimize=rule, starts=1,
                            actuated=["left_shoulder", "right_shoulder", "left_elbow"])
    return made


def problem(rng: np.random.Generator, made: list[rbd.RobotModel]) -> tuple[rbd.RobotModel, dict[str, Any]]:
    """A model, and arguments of `optimize_motion`: each is ordinary with some probability, else odd or malformed."""
    model = made[rng.integers(len(made))]
    n = model.nv

    def chance(p: float) -> bool:
        return bool(rng.random() < p)

    def wrong() -> Any:
        return WRONG[rng.integers(len(WRONG))]

    def size(low: float, high: float) -> float:
        return float(10.0 ** rng.uniform(low, high))

    loops = rbd.sample_constraints("five_bar", model) if model.name == "five_bar" else None

    def posture() -> Any:
        q = 0.9 * model.random_configuration(rng)
        if loops is not None and chance(0.95):
            try:
                return rbd.project(model, loops, 0.3 * rng.normal(size=n)).q
            except rbd.RbdError:
                pass
        return q * size(-2, 20) if chance(0.03) else q

    def end() -> Any:
        if chance(0.02):
            return wrong()
        if chance(0.1):
            rows = [size(-2, 3) * rng.normal(size=n) for _ in range(rng.integers(2, 5))]
            return rbd.Reference(posture(), *rows) if chance(0.9) else rbd.Reference(posture(), rows[0], wrong())
        return posture()

    def limits() -> Any:
        names = [name for name in rbd.MotionLimits.__dataclass_fields__ if chance(0.3)]
        usual = {"velocity": model.velocity_limit, "effort": model.effort_limit}
        values = {name: (size(-3, 4) if chance(0.2) else size(-0.3, 1.0) * usual.get(name, 20.0))
                  * (np.ones(n) if chance(0.5) else rng.uniform(0.3, 1.0, n)) for name in names}
        if "position_lower" in values:
            values["position_lower"] = -values["position_lower"]
        if names and chance(0.1):
            values[names[0]] = wrong()
        return rbd.MotionLimits(**values)

    def objective() -> Any:
        terms = ("effort", "effort_rate", "power", "velocity", "acceleration", "jerk", "duration",
                 *["beauty"] * chance(0.1))
        if chance(0.5):
            return str(rng.choice(terms))
        return {str(rng.choice(terms)): wrong() if chance(0.05) else size(-4, 4) * (
            1.0 if chance(0.5) else rng.uniform(size=n)) for _ in range(rng.integers(0, 4))}

    def waypoints() -> Any:
        count = int(rng.integers(1, 6 if chance(0.9) else 40))
        times = np.sort(rng.uniform(0.0, 1.0, count)) if chance(0.9) else rng.uniform(-0.5, 1.5, count)
        return [(t, end() if chance(0.2) else posture()) for t in times.tolist()]

    def duration() -> Any:
        fixed = 2.0 * size(-0.5, 0.5) if chance(0.8) else size(-9, 9)
        return (fixed, fixed * size(-0.2, 2)) if chance(0.3) else fixed if chance(0.7) else None

    given = {"start": end(), "goal": end(), "duration": wrong() if chance(0.03) else duration(),
             "objective": wrong() if chance(0.03) else objective(), "time_limit": float(rng.uniform(0.2, 1.0))}
    given["degree"] = int(rng.choice([5, 7]))
    given["control_points"] = int(rng.integers(10, 30))
    if loops is not None:
        given["constraints"] = loops if chance(0.95) else wrong()
        motors = [name for name in model.velocity_names if chance(0.3 if "elbow" in name or name == "tip" else 0.95)]
        given["actuated"] = motors if chance(0.95) else wrong()
        given["minimize"] = ("effort", "multipliers", "noise")[min(int(2.1 * rng.random()), 2)]
    elif chance(0.1):
        last = model.body_names[-1]
        given["goal"] = rbd.BodyGoal(last, size(-1, 0.5) * rng.normal(size=3))
    if chance(0.1):
        given["planes"] = [rbd.PlaneLimit(str(rng.choice(model.body_names)), rng.normal(size=3), size(-2, 1) - 1.0)]
    odd = {"planes": wrong, "limits": limits, "waypoints": waypoints, "nodes": lambda: int(size(0, 3)),
           "tolerance": lambda: size(-12, 1), "smoothing": lambda: size(-9, 3), "starts": lambda: int(size(0, 3)),
           "external_wrenches": lambda: {model.body_names[-1]: size(-1, 4) * rng.normal(size=6)},
           "control_points": lambda: int(size(0, 3.5)), "degree": lambda: int(rng.integers(0, 10))}
    for name, make in odd.items():
        if chance(0.5 if name == "limits" else 0.08):
            given[name] = wrong() if chance(0.1) else make()
    return model, given


def judged(model: rbd.RobotModel, given: dict[str, Any]) -> tuple[str, str]:
    """What came of it ("good", "marked", "refused"), and what is wrong with that, or ""."""
    limit, wall, spent = given["time_limit"], time.perf_counter(), time.process_time()
    motion, fault = None, ""
    try:
        motion = rbd.optimize_motion(model, **given)
    except rbd.RbdError as error:
        fault = "" if len(str(error)) > 10 else f"says nothing: {error!r}"
    except BaseException as error:
        fault = f"{type(error).__name__} left: {error}"
    # others may use the machine, and BLAS several processors: the lesser of the two is what it took
    took = min(time.perf_counter() - wall, time.process_time() - spent)
    outcome = "refused" if motion is None else "good" if motion.good else "marked"
    if took > 1.1 * limit + SPARE:
        fault = fault or f"took {took:.3f} s of {limit:.3f} s: {getattr(motion, 'reason', 'refused')}"
    return outcome, fault or ("" if motion is None else _dishonest(model, given, motion))


def _dishonest(model: rbd.RobotModel, given: dict[str, Any], motion: rbd.OptimalMotion) -> str:
    t = np.linspace(0.0, motion.duration, SAMPLES)
    q, v, a, jerk = motion(t)[:4]
    loops = given.get("constraints")
    if loops is not None:
        jerk = np.zeros_like(v)    # of the independent coordinates, whose limits are not looked at here
        if np.abs(rbd.constraint_values(model, loops, q)).max() > 1e-9:
            return "loops that are open"
    if not all(np.isfinite(x).all() for x in (q, v, a, jerk, motion.cost)):
        return "not finite"
    try:
        motion.check()
        said_good = True
    except rbd.RbdError as error:
        said_good = False
        if not motion.feasible and not EXCUSE.search(str(error)):
            return f"does not say what is broken: {error}"
    if said_good != motion.good:
        return "good, and not good"
    if not motion.good:
        return ""
    limits = (given.get("limits") or rbd.MotionLimits()).checked(model)
    tau = motion.effort(t)
    for name, values in (("position", q), ("velocity", v), ("acceleration", a), ("jerk", jerk), ("effort", tau)):
        low, high = limits.of(name)
        room = np.minimum(np.where(np.isfinite(high - low), high - low, 1.0), 1e300) + 1e-6 * np.abs(values)
        over = np.max(np.maximum(values - high, low - values) / room)
        if over > 1e-3:
            return f"said to be good, but {name} is beyond its limit by {over:.2g} of its range"
    return ""


def run(count: int = 1000, seed: int = 1) -> dict[str, Any]:
    """Print the table and what is wrong; returns counts, and violations."""
    made, outcomes, wrong, slowest = models(), {"good": 0, "marked": 0, "refused": 0}, [], 0.0
    warmed(made)
    for i in range(count):
        model, given = problem(np.random.default_rng((seed, i)), made)
        begin = time.perf_counter()
        outcome, fault = judged(model, given)
        slowest = max(slowest, time.perf_counter() - begin)
        outcomes[outcome] += 1
        if fault:
            wrong.append(f"{seed}, {i}: {fault}")
            print(wrong[-1], flush=True)
    table("Random problems, most of them impossible, contradictory or malformed", ["of problems", str(count)], [
        ["solved", str(outcomes["good"])], ["answered with a motion marked as not good", str(outcomes["marked"])],
        ["refused with an error", str(outcomes["refused"])], ["slowest (s)", f"{slowest:.3f}"],
        ["answered wrongly", str(len(wrong))]])
    return {**outcomes, "slowest": slowest, "violations": len(wrong)}
