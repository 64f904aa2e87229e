"""What a runner tells of its threads and its graph: reports, checks and pictures that change nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.log.signing import Signers
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.reports import drawing
from hitl_tui.engine.reports.costs import CostReport, cost_report
from hitl_tui.engine.reports.run_info import RunInfo, run_info
from hitl_tui.engine.subgraphs.children import inner_graph
from hitl_tui.engine.thread.session import Session, now_us
from hitl_tui.engine.verification.anchor import Anchor, anchor
from hitl_tui.engine.verification.findings import VerifyReport
from hitl_tui.engine.verification.replay import ReplayReport, replay
from hitl_tui.engine.verification.verify_tree import verify_tree
from hitl_tui.errors import UsageError


class Reporting:
    """The part of a runner that only looks."""

    graph: CompiledGraph
    store: Store | None
    source: Mapping[str, Any]

    def anchor(self, thread_id: str) -> Anchor:
        """Where a thread stands, to be kept outside the store: `str()` of it is one line (SPEC 10).

        Raises:
            UnknownThread, LogCorrupt: there is nothing to stand on.
        """
        return anchor(self._store(), thread_id, now_us())

    def verify(
        self,
        thread_id: str,
        strict: bool = False,
        *,
        anchor: Anchor | Sequence[Anchor] = (),
        signers: Signers | None = None,
    ) -> VerifyReport:
        """Check the log of a thread, and of those below it, against itself; changes nothing (SPEC 12).

        Args:
            strict: reduce every update again with this graph's reducers.
            anchor: where the thread once stood; it must have stood there, and gone on from there.
            signers: checks who has signed which decisions, as `AllowedSigners`.
        """
        anchors = (anchor,) if isinstance(anchor, Anchor) else anchor
        graph = self._graph_of(thread_id)
        return verify_tree(self._store(), thread_id, graph, strict=strict, anchors=anchors, signers=signers)

    def replay(self, thread_id: str) -> ReplayReport:
        """Run the graph with the recorded results of its nodes served in order; changes nothing (SPEC 12).

        Routes and termination conditions are asked for real; no node and no model is called.

        Raises:
            ReplayMismatch: the graph comes to another node than was recorded; names both.
        """
        report = replay(self._store(), self._graph_of(thread_id), thread_id)
        report.check()
        return report

    def run_info(self, thread_id: str) -> RunInfo:
        """The run's own record (seed 003)."""
        return run_info(
            Session.open(self._graph_of(thread_id), self._store(), thread_id, agents={}, with_state=False)
        )

    def cost_report(self, thread_id: str | None = None) -> CostReport:
        """Calls, tokens and cost by agent, provider and model; also by node and by step.

        Args:
            thread_id: None for all threads of the store together.
        """
        agents = self.graph.agents if thread_id is None else self._graph_of(thread_id).agents
        return cost_report(self._store(), thread_id, agents.values())

    def to_mermaid(self) -> str:
        """The graph as Mermaid text."""
        return drawing.to_mermaid(self.graph.info)

    def to_dot(self) -> str:
        """The graph as Graphviz text."""
        return drawing.to_dot(self.graph.info)

    def _graph_of(self, thread_id: str) -> CompiledGraph:
        """The graph of a thread: this one, or the one inside it that the thread of a subgraph runs."""
        info = self.store.info(thread_id) if self.store else None
        return inner_graph(self.graph, info.source, self.source) if info else self.graph

    def _store(self) -> Store:
        if self.store is None:
            raise UsageError("this runner keeps nothing", "compile(checkpointer=...) to keep threads")
        return self.store
