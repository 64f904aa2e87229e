"""`graph`: a graph as text, as data or as a picture for other tools; `graphs`: the known graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import complete_thread, store_option
from hitl_tui.cli.output import emit, json_option, keep_nodes_apart, say, table
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode

if TYPE_CHECKING:
    from hitl_tui.engine.graph.description import GraphInfo
    from hitl_tui.engine.graph.drawing import RunMarks

_FORMATS = ("text", "mermaid", "dot", "svg", "json")


@click.command()
@click.argument("graph", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="The output format.",
)
@click.option(
    "--thread", metavar="ID", help="Mark the route that this thread took.", shell_complete=complete_thread
)
@click.option(
    "--expand",
    is_flag=True,
    help="Also draw what is inside subgraphs and parallels, in SVG, Graphviz and text.",
)
@store_option
@click.option("--model", metavar="NAME", help="The model for graphs that take one.")
@json_option
def graph(
    *,
    graph: str | None,
    form: str,
    thread: str | None,
    expand: bool,
    store: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Print a graph as text, Mermaid, Graphviz, SVG or JSON.

    GRAPH is as for `run`. Nothing is run but the code that builds the graph. Without GRAPH, it is the
    thread's own graph from its log, and nothing is built.

        hitl-tui graph review
        hitl-tui graph --thread r1 --format svg > way.svg
    """
    from hitl_tui.cli.langgraph import langgraph_picture
    from hitl_tui.engine.graph.drawing import to_dot, to_mermaid
    from hitl_tui.errors import UsageError
    from hitl_tui.loading.sources import open_graph
    from hitl_tui.stores import MemoryCheckpointer

    if not graph and not thread:
        raise UsageError(
            "there is no graph to write", "name one, as in `hitl-tui graph review`, or --thread ID"
        )
    keep_nodes_apart()
    info, look = _look(thread, store, own=not graph) if thread else (None, None)
    if graph:
        options = {"model": model} if model else {}
        theirs = langgraph_picture(graph, options)
        info = theirs or open_graph(graph, MemoryCheckpointer(), options).graph.info
    assert info is not None
    if as_json or form == "json":
        from hitl_tui.cli.reports import GraphDocument

        emit(GraphDocument(graph=info))
    elif form == "mermaid":
        say(to_mermaid(info, look).rstrip())
    elif form == "dot":
        say(to_dot(info, look, expand=expand).rstrip())
    elif form == "svg":
        from hitl_tui.view.graph_svg import graph_svg

        say(graph_svg(info, look, expand=expand).rstrip())
    else:
        say(*_text(info, look, expand=expand))


def _look(thread: str, store: str | None, *, own: bool) -> tuple[GraphInfo | None, RunMarks]:
    """Return the thread's `own` graph if wanted, and the thread's results."""
    from contextlib import closing

    from hitl_tui.cli.storage import open_existing
    from hitl_tui.config import load_settings
    from hitl_tui.engine.graph.drawing import marks_in_store
    from hitl_tui.engine.thread.session import Session
    from hitl_tui.errors import UnknownThread

    with closing(open_existing(load_settings({"store": store}))) as opened:
        look = marks_in_store(opened, thread)
        if look is None:
            raise UnknownThread(f"there is no thread {thread!r}", "see `hitl-tui threads`")
        return Session.recorded(opened, thread, with_state=False).graph.info if own else None, look


def _text(info: GraphInfo, look: RunMarks | None, *, expand: bool = False) -> Iterator[str]:
    from hitl_tui.view.sanitise import sanitise
    from hitl_tui.view.spans import plain_text
    from hitl_tui.view.taint import contract_lines

    def word(text: str) -> str:
        return sanitise(text, multiline=False)

    yield f"graph {word(info.name)}"
    yield "edges:"
    for edge in info.edges:
        when = f"  when {word(edge.label)}" if edge.label else ""
        yield f"  {word(edge.source)} -> {word(edge.target)}{when}"
    yield "nodes:"
    for node in info.nodes:
        count = look.visits.get(node.name, 0) if look else 0
        here = ", the thread is here" if look and look.current == node.name else ""
        ran = f"  ran {count} time{'' if count == 1 else 's'}{here}" if look else ""
        yield f"  {word(node.name)}{ran}"
        yield from (f"    {plain_text(line)}" for line in contract_lines(node, None, ()))
        if expand and node.graph is not None:
            within = look.inside.get(node.name) if look else None
            yield from (f"    {line}" for line in _text(node.graph, within, expand=True))
    yield "channels:"
    for channel in info.channels:
        private = ", private" if channel.visibility == "private" else ""
        about = f": {word(channel.description)}" if channel.description else ""
        yield f"  {word(channel.name)} ({word(channel.type)}, {word(channel.reducer)}{private}){about}"
    if info.inputs:
        yield "asks for:"
    for field in info.inputs:
        yield f"  {word(field.name)}: {word(field.label)}"


@click.command()
@click.argument("words", nargs=-1)
@on_thread(alone=True)
async def graphs(opened: OpenThread, *, words: tuple[str, ...]) -> ExitCode:
    """List the graphs from which you can start a thread.

    Graphs of the newest threads of the store, others that were run from it, and samples. With WORDS, those
    whose name or file contains each of them. Nothing is imported.

        hitl-tui graphs
        hitl-tui graphs advisor --json
    """
    from hitl_tui.cli.reports import GraphRow, GraphsDocument
    from hitl_tui.view.sanitise import sanitise_line

    listed = [
        GraphRow(
            each.name, each.origin, str(each.source.get("graph", "")), dict(each.source.get("options") or {})
        )
        for each in await opened.hub.known_graphs()
        if each.matches(" ".join(words))
    ]
    if opened.as_json:
        emit(GraphsDocument(graphs=tuple(listed)))
    else:
        cells = [
            tuple(sanitise_line(cell, 120) for cell in (row.name, row.origin, row.graph)) for row in listed
        ]
        say(*(table([("GRAPH", "KNOWN", "RUN TAKES"), *cells]) if cells else ["no graph matches"]))
    return ExitCode.DONE
