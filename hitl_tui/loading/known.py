"""Known graphs from which a thread can be started: those of threads, trusted ones, samples.

Listing imports none of them; building one asks for trust as for the graph of a thread (see `trust`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hitl_tui.engine.log.store import Store, all_threads
from hitl_tui.engine.log.threads import WITHIN
from hitl_tui.engine.state.canonical import channel_hash
from hitl_tui.loading.trust import Trust

if TYPE_CHECKING:
    from hitl_tui.engine.runner import GraphRunner

_THREADS: Final = 1_000
"""Number of newest threads whose graphs are listed."""


class KnownGraph(msgspec.Struct, frozen=True):
    """A graph from which a thread can be started.

    Args:
        name: for people: the name of the graph or of a sample, or the file.
        origin: why it is listed, in words.
        source: how to build it, as `ThreadInfo.source`.
    """

    name: str
    origin: str
    source: Mapping[str, Any]

    def matches(self, query: str) -> bool:
        """Whether its name or file contains each word of the query, ignoring case."""
        text = f"{self.name} {self.source.get('graph')}".lower()
        return all(word in text for word in query.lower().split())


class KnownGraphs:
    """The known graphs of a store and its user."""

    def __init__(self, store: Store, trust: Trust) -> None:
        self._store = store
        self._trust = trust

    def list(self) -> tuple[KnownGraph, ...]:
        """List the graphs of the newest threads, then others run from this store, then the samples."""
        from hitl_tui.loading.graphs import sample_names

        known: dict[bytes, KnownGraph] = {}

        def add(name: str, origin: str, source: Mapping[str, Any]) -> None:
            known.setdefault(channel_hash(dict(source)), KnownGraph(name, origin, source))

        for row in islice(all_threads(self._store, within=""), _THREADS):
            source = row.info.source
            if isinstance(source.get("graph"), str) and not source.get(WITHIN):
                add(row.info.graph_name, f"as thread {row.info.thread_id}", source)
        specs = {str(graph.source["graph"]) for graph in known.values()}
        for spec in self._trust.files:
            if spec not in specs:
                add(spec, "run from this store before", {"graph": spec, "options": {}})
        for name in sample_names():
            if name not in specs:
                add(name, "a sample", {"graph": name, "options": {}})
        return tuple(known.values())

    def build(self, source: Mapping[str, Any]) -> GraphRunner:
        """Return a runner of a known graph; raises what `reopen_graph` raises."""
        from hitl_tui.loading.sources import reopen_graph

        return reopen_graph("a new thread", source, self._store, trust=self._trust)
