"""What turns this folder into a site, beside Sphinx and MyST: reference pages made from the code itself."""
from __future__ import annotations

from typing import Any

from . import api, commands, diagrams, nodes, repository, typeset


def setup(app: Any) -> dict[str, Any]:
    for part in (api, commands, diagrams, nodes, repository, typeset):
        part.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
