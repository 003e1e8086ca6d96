"""`rbd doctor ROBOT --collisions FILE`: which pairs of links need no check, sampled, as an SRDF."""
from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from ..core.errors import RbdError
from ..core.model.robot_model import RobotModel
from ..core.motion.collision.collision_model import CollisionModel
from ..core.motion.collision.sampled import CHECKED, SampledPairs, sampled_pairs

CONFIGURATIONS = 10_000
SHOWN = 8    # pairs


def sample_pairs(path: str | Path, model: RobotModel | None, file: str | os.PathLike[str]) -> SampledPairs:
    """Sample the pairs of a description and write them to a file; raises `RbdError` where that is not possible."""
    if model is None:
        raise RbdError("collisions: the description has errors, and no model")
    sampled = sampled_pairs(CollisionModel.from_urdf(path, model), CONFIGURATIONS)
    sampled.write(file)
    return sampled


def as_text(sampled: SampledPairs, file: str) -> str:
    """The result in some lines: how many pairs by reason, and which stay checked, the most frequent first."""
    counts = Counter(sampled.reasons)
    reasons = ", ".join(f"{counts[reason]} {words}" for reason, words in
                        (("Adjacent", "neighbours"), ("Always", "always touch"), ("Never", "never do"))
                        if counts[reason])
    checked = sorted(((count, pair) for pair, count, reason in
                      zip(sampled.pairs, sampled.counts.tolist(), sampled.reasons, strict=True) if reason == CHECKED),
                     reverse=True)
    lines = [f"collisions: {len(sampled.pairs)} pairs of links in {sampled.configurations} random configurations: "
             f"{reasons or 'none is left out'}; {len(checked)} to be checked"]
    lines += [f"  {first} – {second}: touch in {count}" for count, (first, second) in checked[:SHOWN]]
    if len(checked) > SHOWN:
        lines.append(f"  … {len(checked) - SHOWN} more")
    return "\n".join([*lines, f"written to {file}"])


def as_json(sampled: SampledPairs, file: str) -> dict[str, Any]:
    """The result as data."""
    return {"file": file, "configurations": sampled.configurations,
            "pairs": [{"links": list(pair), "touching": count, "reason": reason or None} for pair, count, reason in
                      zip(sampled.pairs, sampled.counts.tolist(), sampled.reasons, strict=True)]}
