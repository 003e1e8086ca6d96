"""Messages of obstacles without ROS: what has the fields of visualization_msgs and moveit_msgs."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def point(x=0.0, y=0.0, z=0.0):
    return SimpleNamespace(x=x, y=y, z=z)


def pose(xyz=(0.0, 0.0, 0.0), quaternion=(0.0, 0.0, 0.0, 1.0)):
    return SimpleNamespace(position=point(*xyz), orientation=SimpleNamespace(**dict(zip("xyzw", quaternion,
                                                                                      strict=True))))


def header(frame="base"):
    return SimpleNamespace(frame_id=frame)


def marker(kind=1, xyz=(0.0, 0.0, 0.0), scale=(0.1, 0.1, 0.1), *, ns="camera", number=0, action=0, frame="base",
           quaternion=(0.0, 0.0, 0.0, 1.0), points=()):
    return SimpleNamespace(header=header(frame), ns=ns, id=number, type=kind, action=action,
                           pose=pose(xyz, quaternion), scale=point(*scale), points=[point(*p) for p in points])


def markers(*each):
    return SimpleNamespace(markers=list(each))


def primitive(kind, *dimensions, polygon=()):
    return SimpleNamespace(type=kind, dimensions=list(dimensions), polygon=SimpleNamespace(
        points=[point(*p) for p in polygon]))


def thing(name, *shapes, xyz=(0.0, 0.0, 0.0), operation=0, frame="base", places=None, meshes=(), planes=()):
    """A moveit_msgs/CollisionObject with these primitives, meshes (points) and planes (coefficients)."""
    places = [pose() for _ in shapes] if places is None else places
    return SimpleNamespace(
        header=header(frame), id=name, pose=pose(xyz), operation=bytes([operation]), primitives=list(shapes),
        primitive_poses=places, meshes=[SimpleNamespace(vertices=[point(*p) for p in each]) for each in meshes],
        mesh_poses=[pose() for _ in meshes], planes=[SimpleNamespace(coef=each) for each in planes],
        plane_poses=[pose() for _ in planes])


def attached(link, item, touching=()):
    return SimpleNamespace(link_name=link, object=item, touch_links=list(touching))


def scene(*things: Any, held=(), diff=True, state_diff=True, allowed=(), octomap=(), joints=()):
    """A moveit_msgs/PlanningScene. allowed: names and rows."""
    names, rows = allowed or ((), ())
    return SimpleNamespace(
        is_diff=diff, world=SimpleNamespace(collision_objects=list(things), octomap=SimpleNamespace(
            octomap=SimpleNamespace(data=octomap))),
        robot_state=SimpleNamespace(attached_collision_objects=list(held), is_diff=state_diff,
                                    joint_state=SimpleNamespace(name=list(joints))),
        allowed_collision_matrix=SimpleNamespace(entry_names=list(names), entry_values=[
            SimpleNamespace(enabled=list(row)) for row in rows]))
