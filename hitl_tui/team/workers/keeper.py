"""A worker's sign of life, and its look after others: jobs of workers that have died are queued again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from hitl_tui.engine.log.jobs import HandedGraph
from hitl_tui.errors import HitlError
from hitl_tui.stores.base import Checkpointer
from hitl_tui.stores.postgres.jobs import PostgresJobs
from hitl_tui.view.jobs import orphan_words

EVERY: Final = 0.5
"""Seconds between two signs of life."""

_LOOK: Final = 10.0
"""Seconds between looks for threads that nobody could run."""

SILENCE: Final = 3.0
"""Seconds without one after which a worker counts as dead."""

GONE: Final = 1.0
"""The same for one whose connection has ended, as that of a process does with it."""

OUTAGE: Final = 2.0
"""Seconds behind an outage within which everybody says that they live."""


class Keeper:
    """A thread of its own, so that neither a blocked event loop nor a long node lets the worker look dead.

    Args:
        tell: is told in words which threads were queued again, which wait for a graph that no worker has, and
            that the store can't be reached.
    """

    def __init__(
        self,
        store: Checkpointer,
        jobs: PostgresJobs,
        graphs: Sequence[HandedGraph],
        concurrency: int,
        *,
        tell: Callable[[str], object],
    ) -> None:
        self.stopping = False
        self._worker: int | None = None
        self._jobs = jobs
        self._lease = store.new_lease(store.now())
        self._graphs = graphs
        self._concurrency = concurrency
        self._tell = tell
        self._orphans: dict[str, int] = {}
        self._looked = -_LOOK
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hitl-tui keeper", daemon=True)

    def begin(self) -> None:
        """Start the thread that renews the leases."""
        self._thread.start()

    def take(self, worker: int) -> None:
        """Take the number that the worker has from now on, and say who it is: who dies unknown keeps leases.

        Raises:
            StoreUnusable: the store can't be reached.
        """
        self._worker = worker
        self._register(worker)

    def end(self) -> None:
        """Say nothing more."""
        self._end.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        lost, back = False, -OUTAGE
        while not self._end.wait(EVERY):
            try:
                if self._worker is not None:
                    self._register(self._worker)
                if lost:
                    self._tell("the store is there again")
                    lost, back = False, time.monotonic()
                if time.monotonic() - back > OUTAGE:
                    for thread_id, why in self._jobs.reap(silence=SILENCE, gone=GONE, outage=OUTAGE):
                        self._tell(f"{thread_id}: queued again, {why}")
                self._tell_of_orphans()
            except HitlError as error:
                if not lost:
                    self._tell(f"the store can't be reached: {error.message}")
                lost = True

    def _register(self, worker: int) -> None:
        self._jobs.register(worker, self._lease, self._graphs, self._concurrency, stopping=self.stopping)

    def _tell_of_orphans(self) -> None:
        if time.monotonic() - self._looked < _LOOK:
            return
        self._looked = time.monotonic()
        orphans = self._jobs.orphans()
        for graph in orphans:
            if self._orphans.get(graph.digest, 0) < graph.threads:
                self._tell(orphan_words(graph))
        self._orphans = {graph.digest: graph.threads for graph in orphans}
