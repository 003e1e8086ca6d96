"""A planned motion as text, as a plot, and as trajectory files."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import yaml
from numpy.typing import NDArray

from ..core.errors import RbdError
from ..core.text_table import aligned
from ..runtime.planning.motion_planner import Plan
from ..runtime.planning.motion_request import PlanningTask
from ..runtime.planning.sampled import Points

Array = NDArray[np.float64]
SECOND = 1_000_000_000


def text(plan: Plan, task: PlanningTask, collisions: str) -> str:
    """Summary: whether the motion is good, figures, usage of each kind of limit, and usage per joint,
    and the line `collisions`.
    """
    motion = plan.motion
    objective = " + ".join(name if weight == 1.0 else f"{weight:g} {name}" for name, weight in task.objective.items())
    headline = "optimal motion" if plan.good else "NO GOOD MOTION FOUND"
    lines = [f"{task.model.name}: {headline}, {motion.duration:.4g} s, least {objective}: {motion.cost:.6g}",
             f"KKT residual {motion.kkt_residual:.1e}, {motion.iterations} iterations, {motion.seconds:.2f} s"
             + (f"; the best of {task.starts} starts" if task.starts > 1 else ""), ""]
    rows = [("limit", "used", "by joint", "at")]
    rows += [(name, _used(name, used.ratio, task.clearance), used.joint, f"{used.time:.3f} s")
             for name, used in motion.usage.items()]
    lines += [*aligned(rows), ""]
    limits = task.limits.checked(task.model)
    t = np.linspace(0.0, motion.duration, 1000)
    start, goal = motion(t[0]).q, motion(t[-1]).q
    v, effort = np.abs(motion(t).v).max(axis=0), np.abs(motion.effort(t)).max(axis=0)
    joints = [("joint", "from", "to", "velocity", "of limit", "effort", "of limit")]
    for j, name in enumerate(task.model.joint_names):
        joints.append((name, f"{start[j]:.3f}", f"{goal[j]:.3f}", f"{v[j]:.3f}",
                       _share(v[j], limits.velocity[j]), f"{effort[j]:.2f}", _share(effort[j], limits.effort[j])))
    lines += aligned(joints)
    lines += ["", *([plan.reason] if plan.reason else []), collisions]
    return "\n".join(lines)


def _used(name: str, ratio: float, clearance: float) -> str:
    if name == "distance":
        return f"{clearance + 1.0 - ratio:.4f} m"
    return f"{100.0 * ratio:.2f} %" if np.isfinite(ratio) else "-"


def _share(value: float, limit: float) -> str:
    return f"{100.0 * value / limit:.1f} %" if np.isfinite(limit) else "no limit"


# ---- files

class Trajectory(Protocol):
    """Names of the joints, and points with as many values."""

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def points(self) -> Points | None: ...


def write_csv(path: Path, plan: Trajectory) -> None:
    """A row per point: time, then positions, velocities, accelerations and efforts of all joints."""
    assert plan.points is not None
    header = ["time", *(f"{kind}_{name}" for kind in ("position", "velocity", "acceleration", "effort")
                        for name in plan.names)]
    rows = np.column_stack([plan.points.time, *plan.points[1:]])
    _write(path, ",".join(header) + "\n" + "\n".join(",".join(f"{x:.12g}" for x in row) for row in rows) + "\n")


def write_yaml(path: Path, plan: Trajectory) -> None:
    """Write a trajectory_msgs/JointTrajectory for `ros2 topic pub`."""
    assert plan.points is not None
    points = []
    for t, *values in zip(*plan.points, strict=True):
        sec, nanosec = divmod(round(float(t) * SECOND), SECOND)
        points.append(dict(zip(("positions", "velocities", "accelerations", "effort"), map(_rounded, values),
                               strict=True)) | {"time_from_start": {"sec": sec, "nanosec": nanosec}})
    _write(path, yaml.safe_dump({"joint_names": list(plan.names), "points": points}, sort_keys=False,
                                default_flow_style=None, width=200))


def _rounded(values: Array) -> list[float]:
    return [float(f"{x:.12g}") for x in values]


def _write(path: Path, content: str) -> None:
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise RbdError(f"cannot write {path}: {error.strerror}") from None


WRITERS = {".yaml": write_yaml, ".csv": write_csv}


# ---- pictures

def plot(path: str, motion: Any, task: PlanningTask) -> None:
    """Positions, velocities, accelerations and efforts over time; to a file, or in a window. Needs matplotlib."""
    figure = _figure(path, (10.0, 7.0))
    draw(figure.subplots(2, 2).ravel(), motion, task)
    figure.legend(task.model.joint_names, loc="outside right upper")
    figure.suptitle(f"{task.model.name}: least {' + '.join(task.objective)}, {motion.duration:.3g} s")
    if path:
        save(figure, path)
    else:
        from matplotlib import pyplot
        pyplot.show()


def _figure(path: str, size: tuple[float, float]) -> Any:
    if path:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        return figure
    from matplotlib import pyplot

    return pyplot.figure(figsize=size, layout="constrained")


def save(figure: Any, path: str | Path) -> None:
    """Save a figure; raises `RbdError` on failure."""
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise RbdError(f"cannot write {path}: {error}") from None


def draw(axes: Any, motion: Any, task: PlanningTask, kinds: tuple[str, ...] = (
        "position", "velocity", "acceleration", "effort")) -> None:
    """One kind per axes, all joints in each; velocities and efforts in per cent of their limits if all joints have one.
    """
    t = np.linspace(0.0, motion.duration, 600)
    states = motion(t)
    values = {"position": states.q, "velocity": states.v, "acceleration": states.a, "effort": motion.effort(t)}
    units = {"position": "rad or m", "velocity": "rad/s or m/s", "acceleration": "rad/s² or m/s²",
             "effort": "N m or N"}
    limits = task.limits.checked(task.model)
    for axis, kind in zip(axes, kinds, strict=True):
        shown, unit = values[kind], units[kind]
        limit = getattr(limits, kind) if kind != "position" else np.array([np.inf])
        if np.isfinite(limit).all():
            shown, unit = 100.0 * shown / limit, "% of limit"
            for bound in (-100.0, 100.0):
                axis.axhline(bound, color="black", linestyle="--", linewidth=1.0)
        axis.plot(t, shown, linewidth=1.5)
        axis.set(xlabel="time (s)", ylabel=f"{kind} ({unit})", xlim=(0.0, motion.duration))
        axis.grid(alpha=0.25)
