"""A graph made of a thread's log alone, for looking at a thread whose own graph is not there any more."""

from __future__ import annotations

from hitl_tui.drivers.protocol import Capabilities
from hitl_tui.engine.channels import BoundChannel, Channel
from hitl_tui.engine.compiled import CompiledGraph
from hitl_tui.engine.rebuild import state_at
from hitl_tui.engine.records import Limits, ThreadInfo
from hitl_tui.engine.store import Store


def recorded_graph(store: Store, info: ThreadInfo) -> CompiledGraph:
    """The channels that a thread's log has, without nodes, reducers or schemas; nothing can be run with it.

    A channel is private where a record of it says so.
    """
    cursor = store.cursor(info.thread_id)
    head = cursor.head if cursor else -1
    names = state_at(store, info.thread_id, head) if head >= 0 else {}
    private = {
        record.channel for record in store.records(info.thread_id, 0, head) if record.visibility == "private"
    }
    channels = {
        name: BoundChannel(
            name, Channel(None, reducer="overwrite", visibility="private" if name in private else "public")
        )
        for name in names
    }
    return CompiledGraph(
        name=info.graph_name,
        channels=channels,
        nodes={},
        edges={},
        routes={},
        entry="",
        before={},
        after={},
        termination=None,
        limits=Limits(),
        agents={},
        inputs=(),
        output="",
    )


def only_reading(why: str) -> Capabilities:
    """What can be done with a recorded graph."""
    return Capabilities(
        can_run=False,
        can_edit=False,
        can_edit_past=False,
        can_fork=False,
        can_answer=False,
        can_cancel=False,
        can_roll_back=False,
        can_check=False,
        streams_tokens=False,
        why_not=why,
    )
