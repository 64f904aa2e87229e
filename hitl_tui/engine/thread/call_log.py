"""The completed model and tool calls of one run of a node, stored one by one as they complete."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hitl_tui.engine.log.outcomes import ModelUse, ToolUse
from hitl_tui.engine.log.records import CALL, Cursor, LedgerEntry
from hitl_tui.engine.state.values import keepable

if TYPE_CHECKING:
    import asyncio

CallState = Literal["done", "started", "dropped"]


class CallRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record of a call in the ledger.

    Args:
        key: identifies the call among all calls of this run of the node.
        node, path: the node and branch that made it; `path` is "" for a plain node.
        invocation, iteration: the run of the node that it belongs to.
        state: "started" and "dropped" are written only for tools with `effects="once"`: a call that was
            started and not completed may have been made, unless it was dropped before it did anything.
        value: a model's reply or a tool's outcome.
        uses, tool: what the call used, for a step whose attempt died before it could count that.
    """

    key: str
    node: str
    invocation: int
    iteration: int
    path: str = ""
    state: CallState = "done"
    value: Any = None
    uses: tuple[ModelUse, ...] = ()
    tool: ToolUse | None = None


def as_data(record: CallRecord) -> Any:
    """Return a record as JSON, exactly as it will be read back."""
    builtins = msgspec.to_builtins(record)
    try:
        return msgspec.json.decode(msgspec.json.encode(builtins))
    except UnicodeEncodeError:  # a model may write lone surrogates, which no store can keep
        return msgspec.json.decode(msgspec.json.encode(_keepable(builtins)))


def _keepable(value: Any) -> Any:
    if isinstance(value, str):
        return keepable(value)
    if isinstance(value, dict):
        return {keepable(key): _keepable(item) for key, item in value.items()}
    return [_keepable(item) for item in value] if isinstance(value, list | tuple) else value


def calls_since(entries: Iterable[LedgerEntry], cursor: Cursor, node: str) -> list[tuple[int, CallRecord]]:
    """Yield the calls of the next run of `node` after a cursor, each with its entry's number."""
    wanted = node, cursor.invocation, cursor.iteration
    records = []
    for entry in entries:
        if entry.kind == CALL and entry.data is not None:  # an export without private values has no data
            record = msgspec.convert(entry.data, CallRecord)
            if (record.node, record.invocation, record.iteration) == wanted:
                records.append((entry.n, record))
    return records


class CallLog:
    """The calls of one run of a node, over all its attempts and branches.  Thread-safe.

    Args:
        known: calls of earlier attempts.
        write: commits one record and blocks until that is done; None without a store.
    """

    def __init__(
        self, known: Iterable[CallRecord] = (), write: Callable[[CallRecord], None] | None = None
    ) -> None:
        self._write = write
        self._settled = threading.Condition()
        self._values: dict[str, Any] = {}
        self._starts: dict[str, int] = {}
        self._being_written = 0
        self._closed = write is None
        for record in known:
            self._take(record)

    def value(self, key: str, default: Any) -> Any:
        """Return the result of a completed call."""
        return self._values.get(key, default)

    def starts(self, key: str) -> int:
        """Return how often a call that may have been made was started."""
        return self._starts.get(key, 0)

    def _take(self, record: CallRecord) -> None:
        if record.state == "done":
            self._values[record.key] = record.value
        elif record.state == "started":
            self._starts[record.key] = self._starts.get(record.key, 0) + 1
        else:
            self._starts.pop(record.key, None)

    async def add(self, record: CallRecord) -> None:
        """Keep a record and commit it, without blocking the caller's event loop.

        Raises:
            StoreUnusable, StaleWriter, ThreadBusy: it could not be committed.
        """
        if not self._begin(record):
            return
        import asyncio  # commands that only show a thread don't load asyncio

        loop = asyncio.get_running_loop()
        # A task that is cancelled now has already made its call: the record is still written.
        writing = loop.run_in_executor(None, self._commit, record)
        writing.add_done_callback(_look_at)
        await asyncio.shield(writing)

    def add_sync(self, record: CallRecord) -> None:
        """Do what `add` does, in a thread that may block."""
        if self._begin(record):
            self._commit(record)

    def _begin(self, record: CallRecord) -> bool:
        """Keep a record; return whether it must be committed."""
        with self._settled:
            self._take(record)
            if self._closed:
                return False
            self._being_written += 1
            return True

    def _commit(self, record: CallRecord) -> None:
        assert self._write is not None
        try:
            self._write(record)
        finally:
            with self._settled:
                self._being_written -= 1
                self._settled.notify_all()

    def open(self) -> None:
        """Let calls be committed again."""
        with self._settled:
            self._closed = self._write is None

    def close(self) -> None:
        """Wait until completed calls are committed; after that nothing is committed."""
        with self._settled:
            self._closed = True
            self._settled.wait_for(lambda: not self._being_written)


def _look_at(writing: asyncio.Future[None]) -> None:
    """Retrieve the error of a write: the waiting task gets it; if that is gone, it is ignored."""
    if not writing.cancelled():
        writing.exception()
