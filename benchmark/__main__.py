"""`python -m benchmark`: speed of the library and of the nodes, as ratios to their peers measured in the same run."""
from __future__ import annotations

import argparse
import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

PARTS = ("functions", "chains", "constrained", "startup", "roundtrip")


def main() -> None:
    """Run the parts named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=f"any of: {', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer states and rounds")
    parser.add_argument("--output", default="output/bench", help="folder of bench.json")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    parts = args.parts or PARTS
    versions = {name: metadata.version(name) for name in ("numpy", "numba", "pin")}
    print(f"Python {platform.python_version()}, {', '.join(f'{k} {v}' for k, v in versions.items())}, "
          f"{os.cpu_count()} processors. Machines drift: the ratios are what counts.")
    found: dict[str, Any] = {"versions": versions}
    if "functions" in parts:
        from . import functions
        found["functions"] = functions.run(args.quick)
    if "chains" in parts:
        from . import chains
        found["chains"] = chains.run()
    if "constrained" in parts:
        from . import constrained
        found["constrained"] = constrained.run(args.quick)
    if "startup" in parts:
        from . import startup
        found["startup"] = startup.run()
    if "roundtrip" in parts:
        from . import roundtrip
        found["roundtrip"] = roundtrip.run(seconds=3.0 if args.quick else 10.0)
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(found, indent=2) + "\n")
    print(f"\nwritten: {folder / 'bench.json'}")


if __name__ == "__main__":
    main()
