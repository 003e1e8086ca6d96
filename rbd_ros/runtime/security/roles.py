"""Roles of a bringup beside the node, each with the rights of its task: moving, stopping or tuning the arm.

A role is an enclave of a program whose node is named `<node>_<role>`; rights are by the names of the node that it
deals with.
"""
from __future__ import annotations

from .rights import LIFE_CYCLE, PARAMETERS, REFERENCES, STOP, SURROUNDINGS, Rights, rights

# What any node does, under its own name; without these a node cannot be made.
PROGRAM = rights(publish=["/rosout", "/parameter_events"], reply=[*PARAMETERS, "~/get_type_description"])


def roles_of(node: str, has: Rights) -> dict[str, Rights]:
    """Roles beside a node with these rights, by name; `~` is that node. Roles without anything to do are left out.

    motion: references, trajectories and requests of dynamics and motions. sensing: external wrenches. stop: emergency
    stop, and nothing else. reset: release it. tuning: parameters and life cycle. watching: what is published.
    """
    own = {name for name in has.publish if name.startswith("~/")} - {"~/transition_event"}
    commands = {"~/commands", "~/effort_commands", "~/joint_trajectory_in"}
    reset = has.reply & {"~/reset", "~/pause", "~/step"}
    asked = has.reply - set(PARAMETERS) - set(LIFE_CYCLE) - reset - {"~/get_type_description", "~/set_payload"}
    found = {
        "motion": rights(publish=has.subscribe & {*REFERENCES, *commands}, request=asked, call=has.execute),
        "sensing": rights(publish=has.subscribe & set(SURROUNDINGS)),
        "stop": rights(publish=has.subscribe & {STOP}),
        "reset": rights(request=reset),
        "tuning": rights(request=[*PARAMETERS, *LIFE_CYCLE, *(has.reply & {"~/set_payload"})]),
        "watching": rights(subscribe=["/diagnostics", "/rosout", *own], request=[
            "~/get_state", "~/get_parameters", "~/list_parameters", "~/describe_parameters"]),
    }
    return {name: role for name, role in found.items() if role != Rights()}


def robot_of(has: Rights, taken: frozenset[str]) -> Rights:
    """The robot's side of a torque node: its driver, controllers and robot_state_publisher, odometry and static
    transforms: all that the node hears and that is no other role's to say.

    taken: topics that carry torque to it, of those that the node publishes.
    """
    states = has.subscribe - {*REFERENCES, *SURROUNDINGS, STOP, "/clock"}
    return rights(publish=states, subscribe=taken, reply=has.request)
