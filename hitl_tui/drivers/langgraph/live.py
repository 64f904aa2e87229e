"""Reports runs of subgraphs while their superstep runs, in the subgraph's thread and in its parent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from hitl_tui.drivers.langgraph.pregel import checkpoint_of
from hitl_tui.drivers.langgraph.steps import place_of
from hitl_tui.drivers.langgraph.subgraphs import open_subgraphs, thread_name
from hitl_tui.engine.graph.limits import UNLIMITED
from hitl_tui.engine.log.events import (
    ChildMoved,
    Event,
    NodeStarted,
    Progress,
    ProgressChanged,
    RunEnded,
    RunStarted,
    TextStreamed,
)
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.thread.logged import progress_of

if TYPE_CHECKING:
    from hitl_tui.drivers.langgraph.mirror import Mirror
    from hitl_tui.engine.log.store import Store
    from hitl_tui.engine.thread.session import Session

Namespace = tuple[str, ...]
_UNKNOWN: Final = -1


class LiveRun:
    """Tracks one run of a subgraph.

    Args:
        thread: the mirrored thread that has its checkpoints.

    Attributes:
        node: the parent's superstep.
        path: its place in the parent graph.
        head: its newest step, as LangGraph counts.
        checkpoint: that step's checkpoint.
        next_nodes: the name of its next superstep.
        running: the name of the superstep that runs, "" if none does.
    """

    def __init__(self, thread: str) -> None:
        self.thread = thread
        self.node = self.path = ""
        self.head = _UNKNOWN
        self.checkpoint = ""
        self.next_nodes = ""
        self.running = ""

    @property
    def progress(self) -> Progress:
        """Its progress, as far as its events show."""
        position = f"node:{self.next_nodes}" if self.next_nodes else "end"
        cursor = Cursor(self.thread, status="running", head=self.head, position=position)
        return progress_of(cursor, self.next_nodes or None, UNLIMITED)


class LiveRuns:
    """Tracks the runs of subgraphs in one superstep and reports them.

    Args:
        session: the parent's line.
        mirror: the mirror of the parent graph.
        saved: called when a subgraph has saved a checkpoint.
    """

    def __init__(self, session: Session, mirror: Mirror, saved: Callable[[], object]) -> None:
        self._session = session
        self._graph = mirror.app.graph
        self._saved = saved
        self._runs: dict[Namespace, LiveRun | None] = {}

    def on_part(self, ns: Namespace, mode: str, data: Mapping[str, Any], node: str, path: str) -> None:
        """Handle a streamed part about a subgraph's checkpoints or tasks.

        Args:
            node: the parent's superstep.
            path: its place in the parent graph.
        """
        run = self._run(ns)
        if run is None:
            return
        run.node, run.path = node, path
        if mode == "checkpoints":
            run.head = int((data["metadata"] or {}).get("step", _UNKNOWN))
            run.checkpoint = checkpoint_of(data["config"])
            run.next_nodes = place_of(dict.fromkeys(task["name"] for task in data["tasks"]))
            run.running = ""
            self._saved()
        elif "input" in data and not run.running:
            run.running = run.next_nodes or str(data["name"])
            self._report_to_child(run, NodeStarted(run.running, run.head + 1, 1, self._session.clock()))
        else:
            return
        self._report_to_parent(run)

    def write(self, ns: Namespace, agent: str, text: str) -> None:
        """Report text that a node of a subgraph has written.

        Args:
            ns: the namespace of the node's task.
        """
        run = self._run(ns[:-1]) if len(ns) > 1 else None
        if run is not None:
            self._report_to_child(run, TextStreamed(run.running or ns[-1].partition(":")[0], agent, text))

    def report_mirrored(self, store: Store) -> bool:
        """Report new mirrored steps; False if a streamed checkpoint is not stored yet."""
        complete = True
        for run in list(self._runs.values()):
            if run is not None:
                heads = store.checkpoints(run.thread, None, 1) if store.info(run.thread) else ()
                complete = complete and (run.head < 0 or any(head.origin == run.checkpoint for head in heads))
                self._report_to_child(run, ProgressChanged(run.progress))
                self._report_to_parent(run)
        return complete

    def end(self) -> bool:
        """Report the end of the superstep; returns whether any subgraph ran."""
        runs = [run for run in self._runs.values() if run is not None]
        self._runs.clear()
        for run in runs:
            self._report_to_child(run, RunEnded(run.progress))
        return bool(runs)

    def _run(self, ns: Namespace) -> LiveRun | None:
        """Return the run of a namespace, None if its subgraph can't be entered."""
        if ns not in self._runs:
            thread = self._thread(ns)
            run = self._runs[ns] = LiveRun(thread) if thread else None
            if run is not None:
                self._report_to_child(run, RunStarted(run.thread, run.progress))
        return self._runs[ns]

    def _thread(self, ns: Namespace) -> str:
        thread, graph = self._session.thread_id, self._graph
        for scope in ns:
            node, _, task = scope.partition(":")
            graph = open_subgraphs(graph).get(node)
            if graph is None:
                return ""
            thread = thread_name(thread, node, task)
        return thread

    def _report_to_parent(self, run: LiveRun) -> None:
        self._session.emit(ChildMoved(run.node, run.path, run.thread, run.running, run.progress))

    def _report_to_child(self, run: LiveRun, event: Event) -> None:
        if self._session.on_below is not None:
            self._session.on_below(run.thread, event)
