"""`python -m benchmark`: speed of the library and of the nodes, as ratios to their peers measured in the same run."""
from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

NODES = ["feedforward", "flatness", "elastic"]    # of fuzz and walk
# module of this folder → what its `run` takes, from the arguments of the command line
PARTS: dict[str, Any] = {
    "functions": lambda args: {"quick": args.quick},
    "chains": lambda args: {},
    "constrained": lambda args: {"quick": args.quick},
    "derivatives": lambda args: {"quick": args.quick, "output": Path(args.output)},
    "partials": lambda args: {"quick": args.quick},
    "torch_peers": lambda args: {"quick": args.quick},
    "specialize": lambda args: {"quick": args.quick, "check": args.check},
    "motion": lambda args: {"quick": args.quick},
    "identification": lambda args: {"quick": args.quick},
    "drive_gains": lambda args: {"quick": args.quick},
    "observer": lambda args: {"quick": args.quick},
    "cartesian": lambda args: {"quick": args.quick},
    "effort_findings": lambda args: {"quick": args.quick},
    "inverse_kinematics": lambda args: {"quick": args.quick},
    "collision": lambda args: {"quick": args.quick},
    "collision_planning": lambda args: {"quick": args.quick, "count": args.count, "arms": args.arms},
    "motion_fuzz": lambda args: {"count": 200 if args.quick else 1000, "seed": args.seed},
    "motion_peers": lambda args: {"quick": args.quick},
    "batch": lambda args: {"quick": args.quick},
    "cuda": lambda args: {"quick": args.quick},
    "simulation": lambda args: {"quick": args.quick},
    "startup": lambda args: {},
    "roundtrip": lambda args: {"seconds": 3.0 if args.quick else 10.0},
    "loop_options": lambda args: {"seconds": 3.0 if args.quick else 10.0},
    "rate": lambda args: {"seconds": 5.0 if args.quick else 60.0},
    "soak": lambda args: {"minutes": args.minutes},
    "fuzz": lambda args: {"messages": args.messages, "seed": args.seed, "nodes": args.nodes or [*NODES, "cartesian"]},
    "joint_state_bytes": lambda args: {"messages": args.messages, "seed": args.seed},
    "command_bytes": lambda args: {"messages": args.messages, "seed": args.seed},
    "large": lambda args: {"rounds": 1 if args.quick else 3},
    "simulators": lambda args: {"seconds": 3.0 if args.quick else 10.0},
    "loop": lambda args: {"events": args.events, "seed": args.seed},
    "walk": lambda args: {"steps": args.steps, "seed": args.seed, "nodes": args.nodes or [*NODES, "series"]},
}
ON_REQUEST = ("batch", "cuda", "simulation", "identification", "drive_gains", "observer", "cartesian",
              "effort_findings", "inverse_kinematics", "collision", "collision_planning", "motion_fuzz",
              "motion_peers", "loop_options", "soak", "fuzz", "joint_state_bytes", "torch_peers", "command_bytes",
              "large", "simulators", "walk", "loop")


def main() -> None:
    """Run the parts named on the command line, or all but those on request. Exit code 1 if one found a violation."""
    usual = [name for name in PARTS if name not in ON_REQUEST]
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("parts", nargs="*", default=[],
                        help=f"any of: {', '.join(PARTS)} (default: all but {', '.join(ON_REQUEST)})")
    parser.add_argument("--quick", action="store_true", help="fewer states and rounds")
    parser.add_argument("--check", action="store_true",
                        help="of specialize: results on all robots of example-robot-data instead of times")
    parser.add_argument("--minutes", type=float, default=30.0, help="length of soak (default: %(default)s)")
    parser.add_argument("--messages", type=int, default=100_000, help="of the fuzzes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of fuzzes, walk and loop (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=1_000_000, help="of walk, in all (default: %(default)s)")
    parser.add_argument("--events", type=int, default=100_000, help="of loop, in all (default: %(default)s)")
    parser.add_argument("--nodes", nargs="+", default=[], choices=[*NODES, "cartesian", "series"],
                        help="of fuzz and walk (default: all; cartesian: of fuzz alone, series: of walk)")
    parser.add_argument("--count", type=int, default=0, help="of collision_planning: problems per scene (default: 250)")
    parser.add_argument("--arms", nargs="+", default=[], help="of collision_planning (default: all)")
    parser.add_argument("--output", default="output/bench", help="folder of bench.json")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    versions = {name: metadata.version(name) for name in ("numpy", "numba", "pin")}
    print(f"Python {platform.python_version()}, {', '.join(f'{k} {v}' for k, v in versions.items())}, "
          f"{os.cpu_count()} processors. Machines drift: the ratios are what counts.")
    found: dict[str, Any] = {"versions": versions}
    for name in args.parts or usual:
        found[name] = importlib.import_module(f".{name}", __package__).run(**PARTS[name](args))
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(found, indent=2) + "\n")
    print(f"\nwritten: {folder / 'bench.json'}")
    if any(isinstance(part, dict) and part.get("violations") for part in found.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
