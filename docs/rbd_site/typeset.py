"""Equations as SVG, drawn while the site is built: no script, no font and no network where it is read."""
from __future__ import annotations

import html
from functools import cache
from typing import Any

from docutils import nodes

try:
    import ziamath
except ImportError:    # where rosdoc2 runs, for instance: Sphinx's own way then
    ziamath = None
AVAILABLE = ziamath is not None
SIZE = 17.0            # px, beside text of 16


@cache
def drawn(tex: str, inline: bool) -> str:
    made = ziamath.Latex(tex, size=SIZE, inline=inline, color="currentColor")
    label = html.escape(" ".join(tex.split()), quote=True)
    down = f"vertical-align: {made.getyofst():.2f}px" if inline else ""
    return str(made.svg()).replace("<svg ", f'<svg role="img" aria-label="{label}" style="{down}" ', 1)


def put(translator: Any, node: Any, inline: bool) -> None:
    try:
        svg = drawn(node.astext().strip(), inline)
    except Exception as error:    # of any kind; the build has to say where
        from sphinx.util import logging

        logging.getLogger(__name__).warning("equation: %s: %s", error, node.astext(), location=node)
        svg = ""
    tag = "span" if inline else "div"
    translator.body.append(f'<{tag} class="math">{svg}</{tag}>')
    raise nodes.SkipNode


def in_text(translator: Any, node: Any) -> None:
    put(translator, node, inline=True)


def displayed(translator: Any, node: Any) -> None:
    put(translator, node, inline=False)


def setup(app: Any) -> None:
    if AVAILABLE:
        app.add_html_math_renderer("drawn", inline_renderers=(in_text, None), block_renderers=(displayed, None))
