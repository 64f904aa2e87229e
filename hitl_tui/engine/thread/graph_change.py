"""The graph that a thread runs on: which one the log knows, and going on with another (SPEC 9, 11)."""

from __future__ import annotations

from msgspec.structs import replace

from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.agent_settings import apply, fresh_agents
from hitl_tui.engine.thread.logged import logged_digest
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import GraphDiffers, HitlError


def note_graph(session: Session) -> None:
    """Before a run: write down that the graph is another than the log knows, if it has the thread's place.

    Raises:
        GraphDiffers: it does not; nothing was changed.
    """
    refuse_gone(session)
    was = logged_digest(session.info, session.cursor)
    if session.store and was != session.graph.digest:
        _note(session, was, None)


def refuse_gone(session: Session) -> None:
    """A thread stands at a node; a graph without that node can't take it on.

    Raises:
        GraphDiffers: the graph has no such node.
    """
    kind, _, node = session.cursor.position.partition(":")
    if kind in ("node", "route") and node and node not in session.graph.nodes:
        raise GraphDiffers(
            f"thread {session.thread_id!r} stands at node {node!r}, "
            f"which the graph {session.graph.name!r} does not have",
            "give the node back its name; or go on at another one, with an edit as one of the graph's nodes "
            "(as_node), or in a fork of an earlier step",
        )


def change_graph(session: Session, graph: CompiledGraph, *, actor: str | None = None) -> None:
    """Go on with another version of the thread's graph; logged with the digests of both.

    Raises:
        LogCorrupt: the log does not make this graph's state; the thread keeps the graph it had.
    """
    was = logged_digest(session.info, session.cursor)
    take_graph(session, graph)
    if session.exists:
        _note(session, was, actor)


def take_graph(session: Session, graph: CompiledGraph) -> None:
    """Give an open thread another graph, in this process alone; nothing is written.

    Raises:
        LogCorrupt: the log does not make this graph's state; the thread keeps the graph it had.
    """
    before, agents = session.graph, session.agents
    session.graph, session.agents = graph, fresh_agents(graph)
    try:
        apply(session.agents, session.cursor.agents)
        session.load_state()
    except HitlError:
        session.graph, session.agents = before, agents
        raise


def _note(session: Session, was: str, actor: str | None) -> None:
    """Write down the graph that a thread goes on with, with the digests of both."""
    digest, now = session.graph.digest, session.clock()
    entry = journal.graph_entry(session.cursor, was, digest, at=now, actor=actor)
    session.commit_cursor(replace(session.cursor, graph=digest), [entry])
