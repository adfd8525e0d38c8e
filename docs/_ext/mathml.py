"""Formulae as MathML, which browsers draw themselves: no script, and nothing from the network."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def _convert(node: nodes.Node, as_block: bool) -> str:
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        LOGGER.warning("the formula %r cannot be drawn: %s", node.astext(), error, location=node)
        return escape(node.astext())


def draw_inline(writer: Any, node: nodes.Node) -> None:
    """Write a formula inside a sentence."""
    writer.body.append(_convert(node, as_block=False))
    raise nodes.SkipNode


def draw_block(writer: Any, node: nodes.Node) -> None:
    """Write a formula on lines of its own; it scrolls sideways where the page is too narrow."""
    writer.body.append(f'<div class="formula">{_convert(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer and choose it."""
    app.add_html_math_renderer("mathml", (draw_inline, None), (draw_block, None))
    app.config.html_math_renderer = "mathml"
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
