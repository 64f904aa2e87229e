"""A tape: a recorded thread, played step by step at its own pace, faster or slower.

It is played from a copy in a store in memory: nothing of it is run, and nothing here affects the recorded
thread. A fork is made of the original thread, and continues live.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from time import time_ns
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from hitl_tui.agents.tempo import Tempo
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.engine.commands import COMMANDS, Command, Fork, verb
from hitl_tui.engine.log.events import (
    KnownOutcome,
    LedgerWritten,
    NodeStarted,
    Progress,
    ProgressChanged,
    RunEnded,
    StepCommitted,
    TextStreamed,
    ToolCalled,
)
from hitl_tui.engine.thread.run_inputs import shown_ledger
from hitl_tui.engine.thread.session import Session
from hitl_tui.stores import MemoryCheckpointer

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Snapshot
    from hitl_tui.engine.log.outcomes import StreamedText
    from hitl_tui.engine.log.records import Checkpoint

_LONGEST_IDLE: Final = 3.0
"""Most seconds at pace 1 in which nothing ran, as while a person thought; longer times are cut."""
_LONGEST_NODE: Final = 60.0
_REST: Final = 0.4
"""Least seconds that a step stays before the next one begins."""
_PIECE: Final = 6
"""Characters that appear at once."""
_TAPE: Final = "this is a tape: f leaves it into a live fork"
_NODES: Final = ("node", "map", "subgraph")
R = TypeVar("R")


class PlayedThread(LocalDriver):
    """One tape; it starts to play when it is first read.

    Args:
        store: the store with the copy.
        tempo: the pace, and whether it is held.
        fork: makes a live fork of the recorded thread.

    Attributes:
        at: the step it has reached.
        now: microseconds since the epoch, for started nodes.
    """

    def __init__(
        self,
        thread_id: str,
        store: MemoryCheckpointer,
        tempo: Tempo,
        fork: Callable[[Fork], Awaitable[str]],
    ) -> None:
        refusals = {verb(kind): _TAPE for kind in COMMANDS if kind is not Fork}
        super().__init__(thread_id, lambda: Session.recorded(store, thread_id), store, refusals=refusals)
        self.at = 0
        self.tempo = tempo
        self._leave = fork
        self.now: Callable[[], int] = lambda: time_ns() // 1000
        self._skipping = False
        self._playing: asyncio.Task[None] | None = None

    @property
    def last(self) -> int:
        """The last step on the tape."""
        cursor = self._store.cursor(self.thread_id)
        return cursor.head if cursor else 0

    async def snapshot(self) -> Snapshot:
        """Return everything a screen needs at the start, as of the step that the tape has reached."""
        whole = await super().snapshot()
        step, last_event = self.at, self._buffer.last  # at once: what comes after this is reported by events
        point = self._point(step)
        shown = replace(whole, last_event=last_event, held_by="")
        if step < self.last and point is not None:
            shown = await self._as_of(point, shown)
        if self._playing is None:
            self._playing = asyncio.create_task(self._play(whole.progress))
        return shown

    async def _as_of(self, point: Checkpoint, whole: Snapshot) -> Snapshot:
        step = point.step
        return replace(
            whole,
            progress=self._progress_at(point, whole.progress),
            values=await self.state_at(step),
            checkpoints=(await self.history(before=step + 1))[::-1],
            updates=(await self.updates(step, step))[step],
            ledger=tuple(entry for entry in whole.ledger if entry.at <= point.at),
            unfinished=None,
        )

    async def execute(self, command: Command[R]) -> R:
        """Carry out a fork of the recorded thread, which continues live; refuse all other commands."""
        if isinstance(command, Fork):
            result: Any = await self._leave(command)
            return result  # type: ignore[no-any-return]
        return await super().execute(command)

    async def played(self) -> None:
        """Wait until it has been played to its end."""
        if self._playing is not None:
            await self._playing

    def skip(self) -> None:
        """Go to the next step without waiting."""
        self._skipping = True

    async def rewind(self) -> None:
        """Go back to the first step, and play from there."""
        await self._stop()
        self.at = 0
        self._buffer.skip()
        point = self._point(0)
        if point is not None:  # watchers see by its number that others are missing
            whole = await super().snapshot()
            self._buffer.add(ProgressChanged(self._progress_at(point, whole.progress)))

    async def close(self) -> str:
        """Stop playing."""
        await self._stop()
        return await super().close()

    async def _stop(self) -> None:
        if self._playing is not None:
            self._playing.cancel()
            with suppress(asyncio.CancelledError):
                await self._playing
            self._playing = None

    async def _wait(self, seconds: float) -> None:
        await self.tempo.wait(seconds, lambda: self._skipping)

    async def _play(self, end: Progress) -> None:
        before = self._point(self.at)
        while before is not None and (point := self._point(before.step + 1)) is not None:
            self._skipping = False
            idle = (point.at - before.at - point.duration) / 1e6
            await self._wait(max(_REST, min(idle, _LONGEST_IDLE)))
            for entry in shown_ledger(self._store.ledger(self.thread_id)):
                if before.at < entry.at <= point.at:
                    self._buffer.add(LedgerWritten(entry))
            if point.source in _NODES:
                self._buffer.add(NodeStarted(point.node, point.step, point.attempt, self.now()))
                await self._stream(point)
            updates = (await self.updates(point.step, point.step))[point.step]
            last = point.step == self.last
            progress = end if last else self._progress_at(point, end)
            self.at = point.step
            self._buffer.add(StepCommitted(point, KnownOutcome(updates, progress)))
            before = point
        self._buffer.add(RunEnded(end))

    async def _stream(self, point: Checkpoint) -> None:
        """Yield the node's output, spread over the time that it took."""
        seconds = min(point.duration / 1e6, _LONGEST_NODE)
        texts = [text for text in point.streamed if text.attempt == point.attempt]
        size = sum(text.size for text in texts)
        for call in point.calls:
            self._buffer.add(
                ToolCalled(
                    point.node, call.agent, call.tool, call.arguments, call.result, call.error,
                    call.duration, call.path,
                )
            )  # fmt: skip
        for text in texts:
            for piece in _pieces(text):
                await self._wait(seconds * len(piece) / size)
                self._buffer.add(TextStreamed(point.node, text.agent, piece, text.path))
        if not size:
            await self._wait(seconds)

    def _point(self, step: int) -> Checkpoint | None:
        return self._store.checkpoint(self.thread_id, step)

    def _progress_at(self, point: Checkpoint, end: Progress) -> Progress:
        totals = self._store.totals(self.thread_id, point.step)
        return Progress(
            status="running",
            reason="",
            head=point.step,
            position=point.position,
            next_node=point.next_node,
            invocation=point.invocation,
            iteration=point.iteration,
            visits=totals.visits,
            tokens_in=totals.tokens_in,
            tokens_out=totals.tokens_out,
            cost=totals.cost,
            cost_known=totals.cost_known,
            active=totals.active,
            limits=end.limits,
            pending=(),
            error=None,
        )


def _pieces(text: StreamedText) -> Iterator[str]:
    """Split a recorded text into pieces of about a word."""
    left_out = f"\n… {text.left_out:,} characters were not kept …\n" if text.left_out else ""
    whole = f"{text.text}{left_out}{text.end}"
    return (whole[start : start + _PIECE] for start in range(0, len(whole), _PIECE))
