"""A layout of Foxglove ("import from file" in its layout menu), over foxglove_bridge.

Diagnostics are text in ROS, which Foxglove's plots do not support; its diagnostics panel lists them.
"""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .panels import Curve, Panel

DIAGNOSTICS = "DiagnosticStatusPanel!timing"
ROBOT = "3D!robot"


def path(curve: Curve) -> str:
    """The message path of a curve."""
    return f"{curve.topic}.{curve.field}[{curve.index}]"


def layout(tabs: Mapping[str, Sequence[Panel]], node: str) -> str:
    """The file's text."""
    panels: dict[str, Any] = {
        DIAGNOSTICS: {"topicToRender": "/diagnostics", "selectedName": node, "selectedHardwareId": ""},
        ROBOT: {"layers": {"urdf": {"layerId": "foxglove.Urdf", "instanceId": "urdf", "sourceType": "topic",
                                    "topic": "/robot_description", "label": "robot", "visible": True}},
                "followMode": "follow-none", "scene": {}, "transforms": {}, "topics": {}},
    }
    pages = []
    for title, drawn in tabs.items():
        if any(curve.key for panel in drawn for _, curve in panel.curves):
            pages.append({"title": title, "layout": DIAGNOSTICS})
            continue
        names = []
        for panel in drawn:
            names.append(f"Plot!{panel.title.replace(' ', '-')}")
            panels[names[-1]] = _plot(panel)
        pages.append({"title": title, "layout": _split(names, "column")})
    panels["Tab!pages"] = {"activeTabIdx": 0, "tabs": pages}
    whole = {"configById": panels, "globalVariables": {}, "userNodes": {}, "playbackConfig": {"speed": 1.0},
             "layout": {"direction": "row", "first": ROBOT, "second": "Tab!pages", "splitPercentage": 35}}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _plot(panel: Panel) -> dict[str, Any]:
    """Settings of a Plot panel; a path that is a number is a horizontal line."""
    lines = [{"value": path(curve), "label": name, "enabled": True, "timestampMethod": "receiveTime"}
             for name, curve in panel.curves]
    lines += [{"value": f"{limit:.9g}", "label": "limit", "enabled": True, "timestampMethod": "receiveTime",
               "color": "#7f7f7f"} for limit in panel.limits]
    return {"paths": lines, "foxglovePanelTitle": panel.title, "xAxisVal": "timestamp", "isSynced": True,
            "showLegend": True, "legendDisplay": "floating", "showXAxisLabels": True, "showYAxisLabels": True,
            "showPlotValuesInLegend": False, "followingViewWidth": 20}


def _split(names: Sequence[str], direction: str) -> Any:
    """Panels arranged by even bisection."""
    if len(names) == 1:
        return names[0]
    middle, other = (len(names) + 1) // 2, "row" if direction == "column" else "column"
    return {"direction": direction, "first": _split(names[:middle], other), "second": _split(names[middle:], other),
            "splitPercentage": 100 * middle / len(names)}
