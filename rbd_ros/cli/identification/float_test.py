"""`rbd float ROBOT RECORDING`: would the arm float under the model's gravity torque alone?"""
from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable

from ...core.identification.float_test import TIME, WINDOW, float_test
from ...core.identification.written.float_page import HEAD, UNITS, float_rows, float_summary, write_float_page
from ...core.text_table import aligned
from ..files.robot import add_robot
from .recorded import add_recorded, gains_of, load_recording, recorded_model

LINE = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `rbd float`."""
    add_robot(parser)
    add_recorded(parser)
    parser.add_argument("--window", type=float, default=WINDOW, metavar="DRIFT",
                        help="largest accepted drift, rad or m (default: %(default).4g, 2°)")
    parser.add_argument("--time", type=float, default=TIME, metavar="SECONDS",
                        help="time for which each joint is free, s (default: %(default)s)")
    parser.add_argument("--body", metavar="LINK", help="link that may carry a load missing in the description "
                        "(default: the last one)")
    parser.add_argument("--report", metavar="REPORT.html", help="a page with table and plot")
    parser.epilog = "The recording: slow motion of every joint both ways, through the poses of interest. Exit code: 0 "\
        "if every joint stays within the window, at the ends of its interval, too; else 1."


def run(namespace: argparse.Namespace) -> int:
    """Predict, print and write; returns 1 if a joint fails."""
    model = recorded_model(namespace)
    result = float_test(model, load_recording(namespace, namespace.recording), gains=gains_of(namespace.gains, model),
                        window=namespace.window, time=namespace.time, body=namespace.body, cutoff=namespace.cutoff,
                        slowest=namespace.slowest)
    print("\n".join([*_wrapped(float_summary(result)), "", *aligned([HEAD, *float_rows(result)], 2),
                     *_wrapped([f"({UNITS})", *(f"note: {finding}" for finding in result.findings)])]))
    if namespace.report:
        write_float_page(result, namespace.report)
        print(f"wrote {namespace.report}")
    return 0 if result.passed else 1


def _wrapped(lines: Iterable[str]) -> list[str]:
    return [part for line in lines for part in textwrap.wrap(line, LINE, subsequent_indent="  ",
                                                             break_on_hyphens=False)]
