"""A layout of PlotJuggler (3.x, `plotjuggler -l FILE`).

Names of series as by its ROS parser: joint states by joint, other lists by index, diagnostics by status name and key.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as xml

from .panels import Curve, Panel

COLORS = ("#1f77b4", "#d62728", "#1ac938", "#f14cc1")
LIMIT = "#7f7f7f"
STREAM = "ROS2 Topic Subscriber"


def series(curve: Curve, joint_states: str) -> str:
    """Name of the curve in PlotJuggler."""
    if curve.key:
        return f"{curve.topic}/{curve.joint}/{curve.key}"
    if curve.topic == joint_states:
        return f"{curve.topic}/{curve.joint}/{curve.field}"
    return f"{curve.topic}/{curve.field}[{curve.index}]"


def layout(tabs: Mapping[str, Sequence[Panel]], joint_states: str) -> str:
    """The file's text."""
    root = xml.Element("root")
    window = xml.SubElement(root, "tabbed_widget", {"name": "Main Window", "parent": "main_window"})
    snippets = xml.Element("customMathEquations")
    topics = []
    for title, panels in tabs.items():
        tab = xml.SubElement(window, "Tab", tab_name=title, containers="1")
        columns = [panels[: (len(panels) + 1) // 2], panels[(len(panels) + 1) // 2:]]
        sides = _splitter(xml.SubElement(tab, "Container"), "|", sum(map(bool, columns)))
        for column in filter(None, columns):
            below = _splitter(sides, "-", len(column))
            for panel in column:
                topics += [curve.topic for _, curve in panel.curves]
                _plot(below, panel, joint_states, snippets)
    xml.SubElement(window, "currentTabIndex", index="0")
    plugin = xml.SubElement(xml.SubElement(root, "Plugins"), "plugin", ID=STREAM)
    xml.SubElement(plugin, "use_header_stamp", value="false")
    xml.SubElement(plugin, "discard_large_arrays", value="true")
    xml.SubElement(plugin, "max_array_size", value="100")
    xml.SubElement(plugin, "selected_topics", value=";".join(dict.fromkeys(topics)))
    xml.SubElement(root, "previouslyLoaded_Streamer", name=STREAM)
    root.append(snippets)
    xml.indent(root)
    return "<?xml version='1.0' encoding='UTF-8'?>\n" + xml.tostring(root, encoding="unicode") + "\n"


def _splitter(parent: xml.Element, orientation: str, count: int) -> xml.Element:
    return xml.SubElement(parent, "DockSplitter", orientation=orientation, count=str(count),
                          sizes=";".join([f"{1 / count:g}"] * count))


def _plot(parent: xml.Element, panel: Panel, joint_states: str, snippets: xml.Element) -> None:
    area = xml.SubElement(parent, "DockArea", name=panel.title)
    plot = xml.SubElement(area, "plot", style="Lines", mode="TimeSeries", flip_x="false", flip_y="false")
    names = [series(curve, joint_states) for _, curve in panel.curves]
    for name, color in zip(names, COLORS, strict=False):
        xml.SubElement(plot, "curve", name=name, color=color)
    for limit in panel.limits:    # a constant series with the times of the last curve
        side = "upper" if limit > 0 else "lower"
        snippet = xml.SubElement(snippets, "snippet", name=f"limits/{panel.title}/{side}", language="lua")
        xml.SubElement(snippet, "global")
        xml.SubElement(snippet, "function").text = f"return {limit:.9g}"
        xml.SubElement(snippet, "linked_source").text = names[-1]
        xml.SubElement(plot, "curve", name=snippet.attrib["name"], color=LIMIT)
