"""`python -m benchmark.service_load`: many client processes ask one `dynamics_server` at once, and check every answer.

Every request carries a random state of its own, so that an answer that belongs to another request shows. Prints one
line of JSON: requests, lost (no answer within 10 s), crossed (an answer that is not that of the request), rate and
latency. Exits with 1 unless all answers came and were right.
"""
from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np

import rbd_ros as rbd

from .service_client import ROBOT, client


def run(seconds: float, clients: int) -> dict[str, Any]:
    """Start the server and the clients, let them run at the same time, and add up what they found."""
    server = subprocess.Popen([sys.executable, "-m", "rbd_ros.nodes.dynamics_server", "--ros-args", "-p",
                               f"robot_description_file:={rbd.sample_path(ROBOT)}"], stdin=subprocess.DEVNULL)
    context = multiprocessing.get_context("forkserver")    # a process each, but libraries are imported only once
    context.set_forkserver_preload(["benchmark.service_client"])
    ends, processes = [], []
    for seed in range(1, clients + 1):
        end, other = context.Pipe()
        processes.append(context.Process(target=client, args=(seed, seconds, other), daemon=True))
        processes[-1].start()
        other.close()    # so that `recv` ends if the client does
        ends.append(end)
    try:
        for end in ends:
            end.recv()
        begin = time.monotonic()
        for end in ends:
            end.send("go")
        found = [end.recv() for end in ends]
        elapsed = time.monotonic() - begin
        for process in processes:
            process.join(10.0)
        server.send_signal(signal.SIGINT)
        codes = [*(process.exitcode for process in processes), server.wait(timeout=20.0)]
    except EOFError:
        raise SystemExit("a client ended too early") from None
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
                process.join()
        if server.poll() is None:
            server.kill()
            server.wait()
    latencies = np.concatenate([one["latencies"] for one in found])
    p50, p99 = (float(x) for x in np.percentile(latencies, (50, 99)) * 1e3)
    return {"clients": clients, "seconds": round(elapsed, 1), "requests": len(latencies),
            **{key: sum(one[key] for one in found) for key in ("lost", "crossed", "refused")},
            "least_per_client": min(len(one["latencies"]) for one in found),
            "per_second": round(len(latencies) / seconds), "p50_ms": round(p50, 2), "p99_ms": round(p99, 2),
            "max_ms": round(1e3 * float(latencies.max()), 2), "exit_codes": sorted(set(codes))}


def main() -> None:
    """Server and clients."""
    parser = argparse.ArgumentParser(prog="python -m benchmark.service_load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: %(default)g)")
    parser.add_argument("--clients", type=int, default=8, help="how many processes (default: %(default)s)")
    args = parser.parse_args()
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    os.environ.setdefault("ROS_DOMAIN_ID", "98")
    found = run(args.seconds, args.clients)
    print(json.dumps(found))
    sys.exit(bool(found["lost"] or found["crossed"] or found["refused"] or any(found["exit_codes"])))


if __name__ == "__main__":
    main()
