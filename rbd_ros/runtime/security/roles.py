"""Roles of a bringup beside the node, each with the rights of its task: moving, stopping or tuning the arm.

A role is an enclave for a program whose node is named `<node>_<role>`; its rights use the names of the served node.
"""
from __future__ import annotations

from .rights import GOALS, LIFE_CYCLE, OBSTACLES, PARAMETERS, REFERENCES, STOP, SURROUNDINGS, Rights, rights

# Rights of any node under its own name; without them a node cannot be created.
PROGRAM = rights(publish=["/rosout", "/parameter_events"], reply=[*PARAMETERS, "~/get_type_description"])


def roles_of(node: str, has: Rights) -> dict[str, Rights]:
    """Roles beside a node with these rights, by name; `~` is that node. Roles without rights are omitted.

    motion: references, trajectories, goals and requests of dynamics and motions. sensing: external wrenches, obstacles.
    stop: emergency stop only. reset: its release. tuning: parameters and life cycle. watching: all published topics.
    """
    published = {name for name in has.publish if name.startswith("~/")} - {"~/transition_event"}
    commands = {"~/commands", "~/effort_commands", "~/joint_trajectory_in"}
    reset = has.reply & {"~/reset", "~/pause", "~/step"}
    requests = has.reply - set(PARAMETERS) - set(LIFE_CYCLE) - reset - {"~/get_type_description", "~/set_payload"}
    roles = {
        "motion": rights(publish=has.subscribe & {*REFERENCES, *GOALS, *commands}, request=requests, call=has.execute),
        "sensing": rights(publish=has.subscribe & {*SURROUNDINGS, OBSTACLES}),
        "stop": rights(publish=has.subscribe & {STOP}),
        "reset": rights(request=reset),
        "tuning": rights(request=[*PARAMETERS, *LIFE_CYCLE, *(has.reply & {"~/set_payload"})]),
        "watching": rights(subscribe=["/diagnostics", "/rosout", *published], request=[
            "~/get_state", "~/get_parameters", "~/list_parameters", "~/describe_parameters"]),
    }
    return {name: role for name, role in roles.items() if role != Rights()}


def robot_of(has: Rights, taken: frozenset[str]) -> Rights:
    """Role of the robot: driver, controllers, robot_state_publisher, odometry and static transforms, i.e. publishers of
    all topics that the node subscribes to and that belong to no other role.

    taken: published topics of the node that carry torque to the robot.
    """
    states = has.subscribe - {*REFERENCES, *GOALS, *SURROUNDINGS, OBSTACLES, STOP, "/clock"}
    return rights(publish=states, subscribe=taken, reply=has.request)
