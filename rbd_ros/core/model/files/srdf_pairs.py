"""Pairs of links in SRDF that are not checked for collisions, as MoveIt reads and writes them.

    <disable_collisions link1="base" link2="shoulder" reason="Adjacent"/>
    <disable_default_collisions link="cover"/>      of this link no pair is checked, but those with
    <enable_collisions link1="cover" link2="hand"/>
"""
from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ...errors import RbdError, shortened, warn
from .xml_tree import parse_xml, read_text

MOST_NAMES = 8    # in a message


def disabled_pairs(path_or_xml: str | os.PathLike[str], links: Collection[str]) -> set[frozenset[str]]:
    """Pairs of links that are not checked. Unknown links are ignored with a warning: SRDF files serve several variants
    of a robot. Raises `RbdError` for what is no SRDF.
    """
    text, source = read_text(path_or_xml, "SRDF")
    tree = parse_xml(text, source)
    if tree.tag != "robot":
        raise RbdError(f"{source}: the root element is <{tree.tag[:60]}>, expected <robot>")
    strangers: dict[str, None] = {}

    def pair(element: Mapping[str, str]) -> frozenset[str]:
        names = [element.get(key, "") for key in ("link1", "link2")]
        strangers.update((name, None) for name in names if name not in links)
        return frozenset(names)

    covered = {element.get("link", "") for element in tree.findall("disable_default_collisions")}
    disabled = {frozenset((name, other)) for name in covered if name in links for other in links if other != name}
    disabled -= {pair(element.attrib) for element in tree.findall("enable_collisions")}
    disabled |= {pair(element.attrib) for element in tree.findall("disable_collisions")}
    strangers.update((name, None) for name in covered if name not in links)
    if strangers:
        names = [f"'{shortened(name, 40)}'" for name in strangers]
        warn(f"{source}: collisions of links that the robot does not have: {', '.join(names[:MOST_NAMES])}"
             + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""))
    return {names for names in disabled if names <= set(links)}


def write_pairs(path: str | os.PathLike[str], robot: str, rows: Iterable[tuple[str, str, str, str]], note: str) -> None:
    """Write an SRDF with pairs that are not checked: rows of two links, the reason and a comment."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<!-- {note} -->", f"<robot name={quoteattr(robot)}>"]
    lines += [f"  <disable_collisions link1={quoteattr(first)} link2={quoteattr(second)} reason={quoteattr(reason)}/>"
              f"    <!-- {comment} -->" for first, second, reason, comment in rows]
    try:
        Path(path).write_text("\n".join([*lines, "</robot>", ""]), encoding="utf-8")
    except (OSError, ValueError) as error:
        raise RbdError(f"cannot write '{shortened(str(path), 200)}': {getattr(error, 'strerror', None) or error}"
                       ) from None
