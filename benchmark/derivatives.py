"""τ, τ̇, τ̈: against one Pinocchio `rnea` and our own inverse dynamics; growth with bodies; the closed form beside it."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import rbd_ros as rbd

from .chains import LENGTHS, chain
from .robots import pairs
from .timing import interleaved, table

# M §6.2: the iiwa's joints follow A cos(ω t) for five seconds (motion of Gaz et al., RA-L 2019)
AMPLITUDE = np.array([-1.2943753211777664, 0.7175341454355011, -0.5691380764966176, 0.5848944158627155,
                      1.6216297151633214, -0.9187855709752027, 0.4217605991935227])
FREQUENCY = np.array([1.7073873117335832, 3.079992797637052, 2.1084514453622774, 3.5903916041026207,
                      1.4183262544423447, 2.285625793808507, 5.927533308659986])
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2")


def run(quick: bool = False, output: Path = Path("output/bench")) -> dict[str, Any]:
    """Print the tables, write the curves of M Fig. 3, 4; returns ratios and exponents of growth."""
    rounds = 25 if quick else 99
    return {"second_order": robots(rounds), "growth": growth(), "iiwa": iiwa(rounds, output)}


def robots(rounds: int) -> dict[str, Any]:
    """Second-order inverse dynamics of an arm and a humanoid."""
    found, rows = {}, []
    for p in pairs(3):
        m, d = p.ours, p.theirs.createData()
        q, v, a = p.q[0].copy(), p.v[0].copy(), p.a[0].copy()
        higher = [x.copy() for x in (p.v[1], p.a[1], p.v[2], p.a[2])]
        jerk, snap = higher[:2]
        x, y, z = p.q_pin[0].copy(), p.v_pin[0].copy(), p.a_pin[0].copy()
        times = interleaved({
            "pin.rnea": lambda: pin.rnea(p.theirs, d, x, y, z),    # noqa: B023
            "inverse_dynamics": lambda: rbd.inverse_dynamics(m, q, v, a),    # noqa: B023
            "to τ̈": lambda: rbd.inverse_dynamics_time_derivatives(m, q, v, a, jerk, snap),    # noqa: B023
            "to τ⁗": lambda: rbd.inverse_dynamics_time_derivatives(m, q, v, a, *higher),    # noqa: B023
            "to a, jerk, snap": lambda: rbd.forward_dynamics_time_derivatives(m, q, v, a, jerk, snap),    # noqa: B023
        }, rounds)
        one = times["pin.rnea"]
        found[p.name] = {name: t / one for name, t in times.items()}
        found[p.name]["to τ̈ / inverse_dynamics"] = times["to τ̈"] / times["inverse_dynamics"]
        rows += [[f"{p.name} {name}", f"{1e6 * t:.2f}", f"{t / one:.2f}"] for name, t in times.items()]
    table("Time derivatives, single calls from Python (µs, medians, interleaved)",
          ["call", "time", "÷ pin.rnea"], rows)
    return found


def growth() -> dict[str, float]:
    """Chains of 10 to 1,000 bodies."""
    rows, all_times = [], {}
    for count in LENGTHS:
        m = chain(count)
        states = np.random.default_rng(count).uniform(-0.3, 0.3, size=(5, count))
        times = interleaved({"τ̈": lambda: rbd.inverse_dynamics_time_derivatives(m, *states),    # noqa: B023
                             "τ": lambda: rbd.inverse_dynamics(m, *states[:3])}, 25)    # noqa: B023
        all_times[count] = times
        rows.append([f"{count} bodies", *(f"{1e6 * t:.1f}" for t in times.values()),
                     f"{1e9 * times['τ̈'] / count:.0f}", f"{times['τ̈'] / times['τ']:.2f}"])
    table("Serial chains (µs per call)", ["chain", "τ, τ̇, τ̈", "τ", "ns/body", "ratio"], rows)
    exponent = {name: float(np.log10(all_times[1000][name] / all_times[100][name])) for name in all_times[1000]}
    print("  growth from 100 to 1,000 bodies: " + ", ".join(f"{name} n^{x:.2f}" for name, x in exponent.items()))
    return exponent


def iiwa(rounds: int, output: Path) -> dict[str, Any]:
    """M §6.2: recursion and closed form along the motion, their agreement and times, and the curves as CSV and SVG."""
    model = rbd.sample("iiwa")
    instants = np.linspace(0.0, 5.0, 501)
    phase = np.multiply.outer(instants, FREQUENCY)
    states = [AMPLITUDE * FREQUENCY**k * np.cos(phase + k * np.pi / 2) for k in range(5)]
    efforts = rbd.inverse_dynamics_time_derivatives(model, *states)
    one = [x[100].copy() for x in states]
    worst = max(float(np.abs(np.array(rbd.closed_form(model, *(x[k] for x in states)).effort) - efforts[k]).max())
                for k in range(0, 501, 25)) / float(np.abs(efforts).max())
    times = interleaved({"recursion": lambda: rbd.inverse_dynamics_time_derivatives(model, *one),
                         "closed form": lambda: rbd.closed_form(model, *one)}, min(rounds, 25))
    table("iiwa, second-order inverse dynamics (M §6.2)", ["way", "µs"],
          [[name, f"{1e6 * t:.1f}"] for name, t in times.items()])
    print(f"  they agree to {worst:.1e}; M reports 1600 µs for the closed form in MATLAB on another machine")
    output.mkdir(parents=True, exist_ok=True)
    curves = {"q": states[0], "tau": efforts[:, 0], "tau_dot": efforts[:, 1], "tau_ddot": efforts[:, 2]}
    header = ",".join(["t", *(f"{name}_{i}" for name in curves for i in range(1, 8))])
    np.savetxt(output / "iiwa.csv", np.column_stack([instants, *curves.values()]), "%.9g", ",", header=header,
               comments="")
    units = {"q": "rad", "tau": "Nm", "tau_dot": "Nm/s", "tau_ddot": "Nm/s²"}
    for name, values in curves.items():
        (output / f"iiwa_{name}.svg").write_text(plot(instants, values, f"{name} ({units[name]}) over t (s)"))
    print(f"  written: {output / 'iiwa.csv'} and iiwa_*.svg: the curves of M Fig. 3, 4")
    return {"closed form / recursion": times["closed form"] / times["recursion"], "difference": worst}


def plot(t: np.ndarray, values: np.ndarray, title: str) -> str:
    """A line per column, as SVG."""
    low, high = float(values.min()), float(values.max())
    x = 70 + 700 * (t - t[0]) / (t[-1] - t[0])
    y = 370 - 320 * (values - low) / (high - low)
    lines = [f'<polyline fill="none" stroke="{COLOURS[i % 7]}" points="'
             + " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y[:, i], strict=True)) + '"/>'
             + f'<text x="780" y="{60 + 20 * i}" fill="{COLOURS[i % 7]}">{i + 1}</text>'
             for i in range(values.shape[1])]
    return "\n".join(['<svg xmlns="http://www.w3.org/2000/svg" width="820" height="400" font-family="sans-serif">',
                      f'<text x="70" y="30">{title}</text>', f'<text x="5" y="55">{high:.4g}</text>',
                      f'<text x="5" y="370">{low:.4g}</text>', f'<text x="70" y="390">{t[0]:g}</text>',
                      f'<text x="760" y="390">{t[-1]:g}</text>', *lines, "</svg>", ""])
