"""`graph`: a graph as text, as data or as a picture for other tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.output import emit, json_option, say

if TYPE_CHECKING:
    from hitl_tui.engine.description import GraphInfo

_FORMATS = ("text", "mermaid", "dot", "json")


@click.command()
@click.argument("graph")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="How to write it.",
)
@click.option("--model", metavar="NAME", help="For graphs that are built with a model.")
@json_option
def graph(graph: str, form: str, model: str | None, as_json: bool) -> None:
    """Write a graph as text, Mermaid, Graphviz or JSON.

    GRAPH is what `run` takes. Nothing is run, but code of the graph's file that builds it is.
    """
    from hitl_tui.engine.drawing import to_dot, to_mermaid
    from hitl_tui.loading.sources import open_graph
    from hitl_tui.stores import MemoryCheckpointer

    info = open_graph(graph, MemoryCheckpointer(), {"model": model} if model else {}).graph.info
    if as_json or form == "json":
        from hitl_tui.cli.shapes import graph as shape

        emit(shape(info))
    elif form == "mermaid":
        say(to_mermaid(info).rstrip())
    elif form == "dot":
        say(to_dot(info).rstrip())
    else:
        say(*_text(info))


def _text(info: GraphInfo) -> Iterator[str]:
    from hitl_tui.view.sanitise import sanitise
    from hitl_tui.view.spans import plain_text
    from hitl_tui.view.taint import contract_lines

    def one(text: str) -> str:
        return sanitise(text, multiline=False)

    yield f"graph {one(info.name)}"
    yield "edges:"
    for edge in info.edges:
        when = f"  when {one(edge.label)}" if edge.label else ""
        yield f"  {one(edge.source)} -> {one(edge.target)}{when}"
    yield "nodes:"
    for node in info.nodes:
        yield f"  {one(node.name)}"
        yield from (f"    {plain_text(line)}" for line in contract_lines(node, None, ()))
    yield "channels:"
    for channel in info.channels:
        private = ", private" if channel.visibility == "private" else ""
        about = f": {one(channel.description)}" if channel.description else ""
        yield f"  {one(channel.name)} ({one(channel.type)}, {one(channel.reducer)}{private}){about}"
    if info.inputs:
        yield "asks for:"
    for field in info.inputs:
        yield f"  {one(field.name)}: {one(field.label)}"
