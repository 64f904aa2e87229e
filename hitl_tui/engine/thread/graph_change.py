"""The graph of a thread: which one the log knows, and how a thread continues with another one.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from hitl_tui.engine.graph.compiled import CompiledGraph
from hitl_tui.engine.graph.guards import names_people, who_may_answer
from hitl_tui.engine.log.records import RAN
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread import journal
from hitl_tui.engine.thread.agent_settings import apply_settings, fresh_agents
from hitl_tui.engine.thread.interrupts import passing_answer
from hitl_tui.engine.thread.logged import decisions, logged_digest
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import GateUnanswered, GraphDiffers, HitlError


def note_graph(session: Session) -> None:
    """Record, before a run, that the graph is not the one in the log, if it has the thread's position.

    Raises:
        GraphDiffers: the graph does not have it; nothing was changed.
    """
    refuse_gone(session)
    was = logged_digest(session.info, session.cursor)
    if session.store and was != session.graph.digest:
        _note(session, was, None)


def refuse_gone(session: Session) -> None:
    """Refuse a graph without the node at the thread's position.

    Raises:
        GraphDiffers: the graph has no such node.
    """
    kind, _, node = session.cursor.position.partition(":")
    if kind in ("node", "route") and node and node not in session.graph.nodes:
        raise GraphDiffers(
            f"thread {session.thread_id!r} is at node {node!r}, "
            f"which the graph {session.graph.name!r} does not have",
            "rename the node back; or continue at another one, with an edit as one of the graph's nodes "
            "(as_node), or in a fork of an earlier step",
        )
    refuse_lost_gates(session.graph, session.thread_id, session.cursor.pending)


def refuse_lost_gates(graph: CompiledGraph, thread_id: str, pending: Iterable[Request]) -> None:
    """Refuse a graph without a gate that waits: only the people that the gate names may answer it.

    Raises:
        GateUnanswered: the graph has no such gate.
    """
    for request in pending:
        terms = request.reviewers, request.quorum, request.logins
        if request.when == "inside" or not names_people(
            *terms, signed=request.signed, four_eyes=request.four_eyes
        ):
            continue
        gates = graph.before if request.when == "before" else graph.after
        if gates.get(request.node) is None:
            who = who_may_answer(*terms, signed=request.signed, four_eyes=request.four_eyes)
            raise GateUnanswered(
                f"thread {thread_id!r} waits for an answer to {request.title!r} "
                f"({request.when} {request.node}), which the graph {graph.name!r} no longer asks",
                f"{who}, with the graph that asks it; or begin again from the entry node",
            )


def change_graph(session: Session, graph: CompiledGraph, *, actor: str | None = None) -> None:
    """Continue with another version of the thread's graph; logged with the digests of both.

    Raises:
        LogCorrupt: the log does not reproduce this graph's state; the thread keeps the graph that it had.
    """
    was = logged_digest(session.info, session.cursor)
    take_graph(session, graph)
    if session.exists:
        _note(session, was, actor)


def take_graph(session: Session, graph: CompiledGraph) -> None:
    """Give an open thread another graph in this process, without storing anything.

    Raises:
        LogCorrupt: the log does not reproduce this graph's state; the thread keeps the graph that it had.
    """
    before, agents = session.graph, session.agents
    session.graph, session.agents = graph, fresh_agents(graph)
    try:
        apply_settings(session.agents, session.cursor.agents)
        session.load_state()
    except HitlError:
        session.graph, session.agents = before, agents
        raise


def _note(session: Session, was: str, actor: str | None) -> None:
    """Record the graph with which a thread continues, with the digests of both."""
    digest, now = session.graph.digest, session.clock()
    entry = journal.graph_entry(session.cursor, was, digest, at=now, actor=actor)
    session.commit_cursor(replace(session.cursor, graph=digest, position=_position(session)), [entry])


def _position(session: Session) -> str:
    """Return where a thread continues on its graph.

    That is at the route of its last node if the graph has a new gate after that node.
    """
    cursor, after = session.cursor, session.graph.after
    if not cursor.position.startswith("node:") or cursor.branches or not any(after.values()):
        return cursor.position
    last = last_node(session)
    is_new = after.get(last) is not None and passing_answer(cursor, last, "after") is None
    return f"route:{last}" if is_new else cursor.position


def last_node(session: Session) -> str:
    """Return the node that ran last, or after which an edit has placed the thread; "" for none."""
    store, cursor = session.store, session.cursor
    step, node = cursor.head, ""
    while store is not None and (point := store.checkpoint(session.thread_id, step)) is not None:
        if point.source in RAN:
            node = point.node
        if node or point.source == "rollback" or point.invocation != cursor.invocation:
            break
        step -= 1
    placed = [
        entry
        for entry in (decisions(store, session.thread_id) if store else ())
        if entry.kind in ("update_state", "fork")
        and isinstance(entry.data, Mapping)
        and entry.data.get("as_node") is not None
        and (entry.step or 0) >= step
    ]
    return str(placed[-1].data["as_node"]) if placed else node
