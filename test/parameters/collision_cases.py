"""What the parameters `collisions.*` of the effort annotator do, in its logic without ROS."""
from __future__ import annotations

import pytest
from parameters.case import Case, Values, split
from parameters.planner_cases import FINGER, SRDF
from support.arm import NAMES, shaped_arm_urdf
from support.obstacle_messages import cloud, marker, markers

from rbd_ros.runtime.control.effort_annotator import ANNOTATOR_TABLE, Annotation, AnnotatorSettings, EffortAnnotator
from rbd_ros.runtime.inputs.trajectory_points import Point
from rbd_ros.runtime.parameters import validate
from rbd_ros.runtime.planning.robot_collisions import considered
from rbd_ros.runtime.robot import load_model

FOLDED = [0.0, 3.0, 0.0]    # the finger is 23 mm from the upper link, which is along x
BALL = "obstacles:\n- {name: ball, shape: sphere, radius: 0.05, frame: [0.2, %s, 0.0]}\n"
CLEAR = ", passes: True"
PAIRS = SRDF.replace("</robot>", "".join(f'<disable_collisions link1="lower" link2="{name}" reason="Adjacent"/>'
                                         for name in ("upper", "finger")) + "</robot>")


def said(values: Values) -> str:
    """What is said of a trajectory of one point; a marker in frame "world" is inside the upper link, a
    point of a cloud 0.23 m beside it."""
    pytest.importorskip("coal")
    urdf = shaped_arm_urdf().replace("</robot>", FINGER)
    model, _ = load_model(validate(ANNOTATOR_TABLE, values), urdf)
    first, later = split(ANNOTATOR_TABLE, values)
    settings = AnnotatorSettings.from_values(first, model)
    made = EffortAnnotator(model, settings, considered(settings, urdf, model).collisions)
    if later is not None:
        made.apply(AnnotatorSettings.from_values(later, model))
    made.surroundings.take_markers(markers(marker(2, (0.2, 0.0, 0.0), ns="lamp", frame="world")))
    made.surroundings.take_cloud(cloud([(0.02, 0.26, 0.02)]))
    found = made.annotate([*NAMES, "wrist"], [Point(1.0, FOLDED)])
    return f"{made.hit.words}, passes: {isinstance(found, Annotation)}"


def annotator_cases() -> dict[str, Case]:
    near = {"collisions.clearance": 0.03}
    touching = "'upper' and 'ball' overlap by 0.03 m at 1 s, passes: "
    return {
        "collisions.use": Case("never", said, CLEAR, near),
        "collisions.srdf": Case(PAIRS, said, CLEAR, near),
        "collisions.obstacles": Case(BALL % 0.05, said, touching + "True"),
        "collisions.frame": Case("world", said, "'upper' and 'lamp/0' overlap by 0.08 m at 1 s, passes: True"),
        "collisions.voxel_size": Case(0.5, said, "'upper' and 'cloud' overlap by 0.03 m at 1 s, passes: True"),
        "collisions.clearance": Case(0.03, said, "'upper' and 'ball' are 0.02 m apart, nearer than the clearance of "
                                     "0.03 m at 1 s, passes: True", {"collisions.obstacles": BALL % 0.1}),
        "collisions.reject": Case(True, said, touching + "False", {"collisions.obstacles": BALL % 0.05}),
    }
