"""Motions of arms that hit nothing: how many are found, how soon, how long they are; each checked at 10 kHz.

Four arms in four scenes, random problems by seed. Each is also given to another planner, whose share says how many have
a solution at all: RRT-Connect on Pinocchio's collisions (which also check the motions), in steps of 0.02 rad, without
certificates, clearance or time law. The motions' pairs of links are those of the SRDF that `rbd doctor --collisions`
writes; that planner and the check have those that never touched in its samples, too. "closed": unsolved problems of
which it finds no path either with what the motions have to keep, hulls and the clearance, by coal's distances.
"""
from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import coal
import numpy as np
import pinocchio as pin

import rbd_ros as rbd

from .robots import robot_file
from .timing import table

sys.path.append(str(Path(__file__).parents[1] / "test"))
CLEARANCE = 0.01      # m
CLOSER = {"ur5": 0.005}    # m: upper arm and base, as meshes, pass each other with 8 mm at most
ENDS = 0.012          # m, of the random ends
RATE = 10_000.0       # Hz, of the check
POOL = 4000           # random configurations at a time
OBJECTIVE = {"duration": 1.0, "jerk_share": 0.1}    # of `rbd plan`
TIME_LIMIT = 60.0     # s, so that other load of the machine decides nothing
STEP, LONGEST, AGAIN = 0.02, 10.0, 2.0    # rad, s, s: of the other planner; with hulls and clearance
FILES = {"panda": "panda_description/urdf/panda.urdf", "ur5": "ur_description/urdf/ur5_robot.urdf",
         "xarm7": "xarm_description/urdf/xarm7.urdf"}
LOCKED = {"panda": {"panda_finger_joint1": 0.02}}
MIMICS = {"panda": {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.02}}
ARMS = ("iiwa", *FILES)
TIPS = {"ur5": "tool0"}    # what is in the region, where it is not the last link


def box(name: str, size: list[float], place: list[float]) -> dict[str, Any]:
    return {"name": name, "shape": "box", "size": size, "frame": place}


SHELF = [*(box(f"board_{k}", [0.35, 1.0, 0.03], [0.7, 0.0, z]) for k, z in enumerate((0.2, 0.55, 0.9))),
         *(box(f"side_{k}", [0.35, 0.03, 0.75], [0.7, y, 0.55]) for k, y in enumerate((-0.5, 0.0, 0.5))),
         box("back", [0.03, 1.0, 0.75], [0.88, 0.0, 0.55])]
SCENES: dict[str, list[dict[str, Any]]] = {
    "free": [],
    "table": [box("table", [0.8, 1.6, 0.05], [0.65, 0.0, 0.1]), box("wall", [0.1, 3.0, 2.0], [-0.6, 0.0, 1.0]),
              box("crate", [0.2, 0.2, 0.3], [0.5, 0.2, 0.3])],
    "shelf": SHELF,
    "passage": [box("left", [0.6, 0.2, 1.2], [0.65, 0.32, 0.6]), box("right", [0.6, 0.2, 1.2], [0.65, -0.32, 0.6]),
                box("lintel", [0.6, 0.9, 0.1], [0.65, 0.0, 1.25])]}
# m: where the last link is at the goal, its corners in the world
REGIONS = {"table": ([0.3, -0.5, 0.13], [0.9, 0.5, 0.5]), "shelf": ([0.5, -0.45, 0.22], [0.85, 0.45, 0.88]),
           "passage": ([0.38, -0.2, 0.2], [0.9, 0.2, 1.1])}


def arm(name: str) -> tuple[rbd.RobotModel, rbd.CollisionModel, str]:
    """Model, collision model without pairs that always touch, and URDF."""
    from support.collisions import capsules, with_free_pairs

    text = capsules(name) if name not in FILES else str(robot_file(FILES[name]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rbd.RbdWarning)    # of odd inertias in the descriptions
        model = rbd.load_urdf(text, locked=LOCKED.get(name, {}))
    return model, with_free_pairs(rbd.CollisionModel.from_urdf(text, model)), text


def problems(model: rbd.RobotModel, collisions: rbd.CollisionModel, scene: str, count: int, seed: int = 0,
             tip: str = "") -> list[tuple[np.ndarray, np.ndarray]]:
    """A random start, and a goal where the tip (the last link) is in the scene's region; both clear."""
    rng = np.random.default_rng(seed)
    low, high = np.maximum(model.position_lower, -np.pi), np.minimum(model.position_upper, np.pi)

    def clear(q: np.ndarray, wanted: int) -> list[np.ndarray]:
        found = []
        for x in q:
            if len(found) < wanted and not collisions.collides(x, ENDS):
                found.append(x)
        return found

    starts = clear(rng.uniform(low, high, (POOL, model.nv)), count)
    goals: list[np.ndarray] = []
    while len(goals) < count:
        q = rng.uniform(low, high, (POOL, model.nv))
        if scene in REGIONS:
            place = rbd.forward_kinematics(model, q)[:, model.body_names.index(tip) if tip else -1, :3, 3]
            q = q[((place > REGIONS[scene][0]) & (place < REGIONS[scene][1])).all(axis=1)]
        goals += clear(q, count - len(goals))
    return list(zip(starts, goals, strict=False))


class Checker:
    """Collisions by Pinocchio and coal: the meshes themselves instead of hulls, kinematics of its own."""

    def __init__(self, name: str, collisions: rbd.CollisionModel, urdf: str) -> None:
        if name in FILES:
            folder = str(robot_file(FILES[name]).parents[4])
            full = pin.buildModelFromUrdf(urdf)
            shapes = pin.buildGeomFromUrdf(full, urdf, pin.GeometryType.COLLISION, package_dirs=[folder])
            locked = MIMICS.get(name, {})
            q = pin.neutral(full)
            for joint, value in locked.items():
                q[full.joints[full.getJointId(joint)].idx_q] = value
            self.model, self.shapes = pin.buildReducedModel(full, shapes, [full.getJointId(x) for x in locked], q)
        else:    # capsules, which its parser does not know
            self.model = pin.buildModelFromUrdf(str(rbd.sample_path(name)))
            self.shapes = pin.GeometryModel()
            for piece in collisions.pieces:
                if piece.own:
                    frame = self.model.frames[self.model.getFrameId(piece.shape.link)]
                    self._add(piece.name, frame.parentJoint, frame.placement * pin.SE3(piece.shape.pose),
                              coal.Capsule(*piece.shape.size))
        shapes_of: dict[str, list[str]] = {piece.link: [] for piece in collisions.pieces}    # as pieces, if of capsules
        for shape in self.shapes.geometryObjects if name in FILES else ():
            shapes_of.setdefault(self.model.frames[shape.parentFrame].name, []).append(shape.name)
        for piece in collisions.pieces:
            if not piece.own:
                self._add(piece.name, 0, pin.SE3(piece.shape.pose), coal.Box(*piece.shape.size))
            if not (piece.own and name in FILES):
                shapes_of[piece.link].append(piece.name)
        links = {piece.name: piece.link for piece in collisions.pieces}
        for first, second in {(links[first], links[second]) for first, second in collisions.pairs}:
            for one, other in product(shapes_of[first], shapes_of[second]):
                self.shapes.addCollisionPair(pin.CollisionPair(self.shapes.getGeometryId(one),
                                                               self.shapes.getGeometryId(other)))
        self.data, self.state = self.model.createData(), pin.GeometryData(self.shapes)
        self.manager = pin.BroadPhaseManager_DynamicAABBTreeCollisionManager(self.model, self.shapes, self.state)
        assert self.model.nq == collisions.model.nq
        ids = [self.model.getJointId(joint) for joint in collisions.model.joint_names]
        self.order = np.array([self.model.joints[k].idx_q for k in ids])

    def _add(self, name: str, joint: int, pose: Any, shape: Any) -> None:
        self.shapes.addGeometryObject(pin.GeometryObject(name, joint, pose, shape))

    def collides(self, q: np.ndarray) -> bool:
        theirs = np.empty(len(q))
        theirs[self.order] = q
        return bool(pin.computeCollisions(self.model, self.data, self.manager, theirs, True))

    def touches(self, motion: Any) -> bool:
        """Whether a motion collides at a sample, at 10 kHz."""
        t = np.linspace(0.0, motion.duration, int(np.ceil(RATE * motion.duration)) + 1)
        return any(self.collides(q) for q in motion(t).q)

    def planned(self, start: np.ndarray, goal: np.ndarray, low: np.ndarray, high: np.ndarray,
                collides: Callable[[np.ndarray], Any] | None = None, longest: float = LONGEST) -> bool:
        """Whether RRT-Connect finds a path, with steps of 0.02 rad, in so many seconds. collides: its own by default.
        """
        rng, deadline, collides = np.random.default_rng(0), time.process_time() + longest, collides or self.collides
        trees = [[start], [goal]]

        def walk(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            """The last free configuration on the way."""
            count = max(1, int(np.ceil(np.linalg.norm(b - a) / STEP)))
            last = a
            for k in range(1, count + 1):
                q = a + (b - a) * (k / count)
                if collides(q):
                    return last
                last = q
            return last

        while time.process_time() < deadline:
            target = rng.uniform(low, high)
            for tree in trees:
                near = min(tree, key=lambda q: float(np.sum((q - target) ** 2)))
                reached = walk(near, target)
                if reached is not near:
                    tree.append(reached)
                target = reached
            if np.array_equal(trees[0][-1], trees[1][-1]) or np.allclose(target, trees[0][-1]):
                return True
            trees.reverse()
        return False


def run(quick: bool = False, count: int = 0, arms: Sequence[str] = ()) -> dict[str, Any]:
    """Print the table; returns its figures by arm and scene, and violations: motions that Pinocchio finds to touch."""
    count = count or (3 if quick else 250)
    rows, results, violations = [], {}, 0
    for name in arms or ARMS:
        model, checked, urdf = arm(name)
        own = rbd.sampled_pairs(checked).collisions
        clearance = CLOSER.get(name, CLEARANCE)
        low, high = np.maximum(model.position_lower, -np.pi), np.minimum(model.position_upper, np.pi)
        for scene, obstacles in SCENES.items():
            collisions = own.with_obstacles(obstacles)
            checker = Checker(name, checked.with_obstacles(obstacles), urdf)
            cases = problems(model, collisions, scene, count, tip=TIPS.get(name, ""))
            rbd.optimize_motion(model, *cases[0], None, OBJECTIVE, collisions=collisions, starts=1)    # compiled, warm
            spent, paths, lengths, reasons, iterations = [], [], [], [], []
            solved, theirs, both, closed, touching = 0, 0, 0, 0, 0
            for start, goal in cases:
                begin = time.process_time()
                rbd.plan_path(model, collisions, start, goal, clearance=clearance)
                paths.append(time.process_time() - begin)
                begin = time.process_time()    # of one core: others may use the machine
                motion = rbd.optimize_motion(model, start, goal, None, OBJECTIVE, collisions=collisions,
                                             clearance=clearance, starts=1, time_limit=TIME_LIMIT)
                spent.append(time.process_time() - begin)
                iterations.append(motion.iterations)
                solvable = checker.planned(start, goal, low, high)
                theirs += solvable
                solved += motion.good
                both += motion.good and solvable
                if motion.good:
                    lengths.append(motion.duration)
                    touching += checker.touches(motion)
                else:
                    reasons.append(motion.reason)
                    closed += not checker.planned(start, goal, low, high, partial(collisions.collides,
                                                                                  margin=clearance), AGAIN)
            violations += touching
            middle, most = (float(np.percentile(spent, share)) for share in (50, 95))
            results[f"{name} {scene}"] = {
                "problems": count, "solved": solved, "planner": theirs, "both": both, "closed": closed,
                "touching": touching, "iterations": statistics.median(iterations),
                "median": middle, "p95": most, "most": max(spent),
                "path": statistics.median(paths), "duration": statistics.median(lengths) if lengths else np.nan,
                "seconds": spent, "reasons": reasons}
            rows.append([name, scene, str(len(collisions.pairs)), f"{solved} of {count}", f"{both} of {theirs}",
                         str(closed), str(touching), f"{statistics.median(iterations):.0f}", f"{1e3 * middle:.0f}",
                         f"{1e3 * most:.0f}", f"{1e3 * max(spent):.0f}", f"{1e3 * statistics.median(paths):.1f}",
                         f"{1e3 * float(np.percentile(paths, 95)):.0f}",
                         f"{results[f'{name} {scene}']['duration']:.2f}"])
            print(*rows[-1], *reasons, sep=", ", file=sys.stderr, flush=True)
    table(f"Motions that hit nothing, clearance {1e3 * CLEARANCE:.0f} mm, {1e3 * CLOSER['ur5']:.0f} mm of the ur5; "
          "processor time of one core (ms)",
          ["arm", "scene", "pairs", "solved", "of the planner's", "closed", "touching", "iterations", "median", "95 %",
           "most", "path", "95 %", "duration (s)"], rows)
    return {"problems": count, "violations": violations, "results": results}
