"""Which channels a thread has, as `verify` follows it: its graph may get some and lose some (SPEC 12)."""

from __future__ import annotations

from contextlib import suppress

from hitl_tui.engine.log.store import Store
from hitl_tui.engine.thread.journal import CHANNELS, decode_snapshot
from hitl_tui.engine.verification.tracing import Trace
from hitl_tui.errors import LogCorrupt


class ChannelSets:
    """The steps of a thread from which on there are other channels than before.

    A state's hash is over all channels, defaults too, which are in no record: such a step keeps the whole
    state, and the ledger names it.
    """

    def __init__(self, store: Store, thread_id: str, trace: Trace) -> None:
        self._trace = trace
        # The graph at hand may not be the one that the thread began with.
        self._steps = {0} if trace.channels is not None else set()
        with suppress(LogCorrupt):  # told where the ledger is checked
            self._steps |= {one.step for one in store.ledger(thread_id) if one.kind == CHANNELS}

    def follow(self, step: int, snapshot: bytes | None) -> None:
        """After the records of a step: which channels there are from it on, by its snapshot."""
        if step in self._steps and snapshot is not None:
            with suppress(Exception):  # told where the snapshot is checked
                self._trace.keep(decode_snapshot(snapshot))
