"""Keeps a worker registered as alive, and queues jobs of dead workers again."""

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
"""Seconds between two heartbeats."""

_LOOK: Final = 10.0
"""Seconds between looks for threads whose graph no worker has."""

SILENCE: Final = 3.0
"""Seconds without a heartbeat after which a worker counts as dead."""

GONE: Final = 1.0
"""The same for a worker whose connection has closed, as it does when its process ends."""

OUTAGE: Final = 2.0
"""Seconds after an outage in which every worker can send a heartbeat before any counts as dead."""


class Keeper:
    """Sends heartbeats from its own thread, so that a blocked event loop or a long node looks alive.

    Args:
        report: called with a line for each thread that was queued again, for threads whose graph no worker
            has, and when the store can't be reached.
    """

    def __init__(
        self,
        store: Checkpointer,
        jobs: PostgresJobs,
        graphs: Sequence[HandedGraph],
        concurrency: int,
        *,
        report: Callable[[str], object],
    ) -> None:
        self.stopping = False
        self._worker: int | None = None
        self._jobs = jobs
        self._lease = store.new_lease(store.now())
        self._graphs = graphs
        self._concurrency = concurrency
        self._report = report
        self._orphans: dict[str, int] = {}
        self._looked = -_LOOK
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hitl-tui keeper", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def register(self, worker: int) -> None:
        """Register the worker under its number, before it takes a job: an unknown worker's leases stay.

        Raises:
            StoreUnusable: the store can't be reached.
        """
        self._worker = worker
        self._beat(worker)

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        is_lost, reachable_since = False, -OUTAGE
        while not self._stopped.wait(EVERY):
            try:
                if self._worker is not None:
                    self._beat(self._worker)
                if is_lost:
                    self._report("the store can be reached again")
                    is_lost, reachable_since = False, time.monotonic()
                if time.monotonic() - reachable_since > OUTAGE:
                    for thread_id, why in self._jobs.reap(silence=SILENCE, gone=GONE, outage=OUTAGE):
                        self._report(f"{thread_id}: queued again, {why}")
                self._report_orphans()
            except HitlError as error:
                if not is_lost:
                    self._report(f"the store can't be reached: {error.message}")
                is_lost = True

    def _beat(self, worker: int) -> None:
        self._jobs.register(worker, self._lease, self._graphs, self._concurrency, stopping=self.stopping)

    def _report_orphans(self) -> None:
        if time.monotonic() - self._looked < _LOOK:
            return
        self._looked = time.monotonic()
        orphans = self._jobs.orphans()
        for graph in orphans:
            if self._orphans.get(graph.digest, 0) < graph.threads:
                self._report(orphan_words(graph))
        self._orphans = {graph.digest: graph.threads for graph in orphans}
