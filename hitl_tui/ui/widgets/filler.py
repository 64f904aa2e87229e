"""Fills the free rows of panes: on a high screen, and in the spotlight."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from hitl_tui.engine.log.outcomes import Frame
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.lens import LensPane
from hitl_tui.ui.widgets.lines import Column
from hitl_tui.ui.widgets.shown_value import ShownValue
from hitl_tui.ui.widgets.stream import StreamPane
from hitl_tui.ui.widgets.timeline import TimelinePane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.ui.work import start_work
from hitl_tui.view.lens import step_title
from hitl_tui.view.rows import GrowingText
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, untrusted
from hitl_tui.view.value_source import (
    READ,
    declared_lines,
    other_values,
    read_values,
    version_lines,
)

if TYPE_CHECKING:
    from textual.geometry import Size
    from textual.timer import Timer

_LEAST: Final = 4
"""Number of free rows below which nothing is added."""
_SHARE: Final = 0.55
"""Largest share of its column for the lens, as in run.tcss."""
_CODE: Final = 200
"""Number of rows of code that can be scrolled through."""
_BRIEF_STREAM: Final = 9
"""Rows of a stream pane that leave everything else to the other panes."""
_STANDS: Final = 0.4
"""Seconds after which a step that is shown during a run gets more than its own rows."""


class Panes(NamedTuple):
    """The panes with free rows, and the column of the lens and the stream."""

    channels: ChannelsPane
    value: ValuePane
    right: Column
    lens: LensPane
    stream: StreamPane
    timeline: TimelinePane


class RowsLayout(NamedTuple):
    """What the free rows of the panes depend on, besides the shown step.

    Attributes:
        spotlight: the pane that is shown alone, "" for none.
        high: whether the screen has rows to show more than necessary.
        deciding: whether a card is beside the panes.
        searching: whether a search is.
    """

    spotlight: str
    high: bool
    deciding: bool
    searching: bool
    size: Size


class FillerRows:
    """Fills free rows on a high screen, or of a pane in the spotlight, once a step is shown for a while.

    The versions of the value and the long values of other channels are below it, the changes of earlier
    steps below those of the shown one. The code of the current node is below its output, and that of
    other nodes in the rows that the values leave; without code, contracts; beside a card, the descriptions
    of the channels. In the spotlight, the channels have their values below them, the timeline what its steps
    changed, and the stream the output of earlier steps.

    Args:
        share_rows: gives the stream's rows to the lens if it needs none; returns whether it did.
        refresh: calls `show` again, once a step was shown for a while.
    """

    def __init__(
        self,
        panes: Panes,
        shown_value: ShownValue,
        *,
        share_rows: Callable[[ViewSession], bool],
        refresh: Callable[[], None],
    ) -> None:
        self._channels, self._value, self._right = panes.channels, panes.value, panes.right
        self._lens, self._stream, self._timeline = panes.lens, panes.stream, panes.timeline
        self._shown_value = shown_value
        self._share_rows, self._refresh = share_rows, refresh
        self._wanted: tuple[object, ...] = ()
        self._seen: Checkpoint | None = None
        self._since = 0.0
        self._later: Timer | None = None

    def show(self, session: ViewSession, layout: RowsLayout) -> None:
        """Update the panes for the shown step, once its value is loaded."""
        spotlight = layout.spotlight
        has_room = layout.high or spotlight in ("channels", "timeline", "stream")
        # In the spotlight the audience watches new output, and nothing else.
        stands = has_room and (not session.running or (not spotlight and self._stands(session)))
        if spotlight != "channels" or not stands:
            self._channels.show_below(())
        if spotlight != "timeline" or not stands:
            self._timeline.show_below(())
        if not has_room:
            self._wanted = ()
            self._stream.show_below(())
            return
        channel, mode = self._channels.selected, self._shown_value.mode
        rest = stands and not self._shown_value.loading
        wanted = (
            *(session, session.step_view.checkpoint, session.node_at_hand, channel, mode),
            *(rest, self._shown_value.shows_failure, layout),
        )
        if wanted != self._wanted:
            self._wanted = wanted
            if rest:
                load = partial(self._load, session, channel, layout)
                start_work(self._value, load, group="spare rows", exclusive=True)
            else:
                self._value.show_below(())
                self._stream.show_below(())

    def _stands(self, session: ViewSession) -> bool:
        """Whether the same step has been shown for a while, as during a call of a model."""
        now, point = time.monotonic(), session.step_view.checkpoint
        if point is not self._seen:
            self._seen, self._since = point, now
        stands = now - self._since >= _STANDS
        if not stands and self._later is None:
            self._later = self._value.set_timer(self._since + _STANDS - now, self._show_later)
        return stands

    def _show_later(self) -> None:
        self._later = None
        self._refresh()

    async def _load(self, session: ViewSession, channel: str, layout: RowsLayout) -> None:
        laid_out = asyncio.Event()
        self._value.call_after_refresh(laid_out.set)
        await laid_out.wait()  # until then, the free rows are those of another step
        if layout.spotlight in ("channels", "timeline"):
            await self._in_spotlight(session, channel, layout.spotlight)
            return
        value, stream = self._value, self._stream
        about = await self._about_node(session, stream.scrollable_content_region.width)
        if layout.spotlight == "stream":
            stream.show_below((*await self._written_before(session), *about))
            return
        stream.show_below(about)
        is_silent = self._share_rows(session)
        rows: list[Line] = []
        left = 0 if self._shown_value.shows_failure else value.rows_left
        if channel and left > _LEAST:
            versions = () if layout.deciding else await version_lines(session, channel, left - 2)
            rows += [(), *versions] if versions else []
            width = min(value.scrollable_content_region.width, READ)
            rows += other_values(session.step_view, channel, width, left - len(rows))
            if layout.deciding or not await session.code(session.node_at_hand):
                rows += declared_lines(session.view.graph, width)
            if not layout.deciding:
                room = left - len(rows)
                code = await _other_code(session, width, room, with_current=layout.spotlight == "value")
                rows += code or _contracts(session, room)
        value.show_below(tuple(rows[: max(left, 0)]))
        if not layout.deciding:
            whole = layout.searching or layout.spotlight == "lens"
            await self._show_before(session, whole=whole, is_silent=is_silent)

    async def _show_before(self, session: ViewSession, *, whole: bool, is_silent: bool) -> None:
        """Show the changes of the steps before the shown one, in its free rows.

        Args:
            whole: whether the pane keeps its height.
            is_silent: whether the stream needs no rows.
        """
        high = self._right.size.height
        if whole:
            most = self._lens.outer_size.height
        else:
            most = high - _BRIEF_STREAM if is_silent else int(high * _SHARE)
        room = most - 2 - self._lens.own_rows
        before = await session.changes_before(session.step_view.step, room // 3) if room > _LEAST else ()
        self._lens.show_before(session, _before(before, room))

    async def _about_node(self, session: ViewSession, width: int) -> tuple[Line, ...]:
        """Return code and contract of the current node, what it will read, and what its channels are for."""
        from hitl_tui.view.frames import code_lines
        from hitl_tui.view.taint import contract_of

        frames = await session.code(session.node_at_hand)
        graph, step = session.view.graph, session.step_view
        rows = [*code_lines(frames, width, _CODE), *read_values(step, session.next_reads, width)]
        if (node := graph.node(session.node_at_hand)) is not None:
            done = step.checkpoint if step.checkpoint and step.checkpoint.node == node.name else None
            rows += contract_of(node, done, step.updates)
        if frames:
            rows += declared_lines(graph, width)
        return tuple(rows if not rows or rows[0] else rows[1:])

    async def _written_before(self, session: ViewSession) -> tuple[Line, ...]:
        """Return what the steps before the shown one printed and streamed, and the changes up to it.

        Half of the rows are left to the code of the current node, if that is known.
        """
        stream, step = self._stream, session.step_view.step
        room = stream.rows_left // 2 if await session.code(session.node_at_hand) else stream.rows_left
        rows: list[Line] = []
        for point, text in await session.streams_before(step, max(room // 3, 0)):
            written = GrowingText(stream.scrollable_content_region.width)
            written.append(text.rstrip("\n"))
            block = [step_title(point), *((Span(row),) for row in written.rows), ()]
            if len(rows) + len(block) > room:
                break
            rows += block
        changes = await session.changes_before(step + 1, max(room - len(rows), 0) // 3)
        changed = _before(changes, room - len(rows))
        return (*rows, *changed[1:], *changed[:1])

    async def _in_spotlight(self, session: ViewSession, channel: str, spotlight: str) -> None:
        """Show below the timeline what its steps changed; below the table first what its rows cut off."""
        step, timeline, table = session.step_view, self._timeline, self._channels
        room = timeline.rows_left if spotlight == "timeline" else table.rows_left
        rows: list[Line] = []
        if spotlight == "channels":
            width = min(table.scrollable_content_region.width, READ)
            versions = await version_lines(session, channel, room // 3) if channel and room > _LEAST else ()
            if versions:
                rows = [(), (Span("── ", "dim"), untrusted(channel, "name")), *versions]
            rows += declared_lines(session.view.graph, width)
            rows += other_values(step, "", width, room - len(rows))
        if (left := room - len(rows)) > _LEAST:
            rows += _before(await session.changes_before(step.step + 1, left // 3), left)
        below = tuple(rows[: max(room, 0)])
        if spotlight == "timeline":
            timeline.show_below(below)
        else:
            table.show_below(below)


async def _other_code(session: ViewSession, width: int, room: int, *, with_current: bool) -> tuple[Line, ...]:
    """Return the code of the other nodes, and the file of the graph, as far as there is room.

    Args:
        with_current: whether to begin with the current node, whose code is shown nowhere else.
    """
    from hitl_tui.view.frames import code_lines

    names = [node.name for node in session.view.graph.nodes]
    at = names.index(session.node_at_hand) if session.node_at_hand in names else -1
    if with_current:
        names, at = [*names[at:], *names[: max(at, 0)]], -1
    frames: list[Frame] = []
    for name in (*names[at + 1 :], *names[: max(at, 0)], ""):
        if sum(len(frame.lines) + 2 for frame in frames) >= room:
            break
        frames += await session.code(name)
    return ((), *code_lines(frames, width, room - 1)) if frames and room > _LEAST else ()


def _contracts(session: ViewSession, room: int) -> tuple[Line, ...]:
    """Return what the other nodes may read and write, for as many of them as there is room for."""
    from hitl_tui.view.taint import contracts

    others = [node for node in session.view.graph.nodes if node.name != session.node_at_hand]
    return contracts(others, room)


def _before(changes: Sequence[tuple[Checkpoint, tuple[Line, ...]]], room: int) -> tuple[Line, ...]:
    """Return as many complete steps as there is room for."""
    rows: list[Line] = []
    for point, lines in changes:
        block = [(), step_title(point), *(lines or [(Span("no channel was changed", "dim"),)])]
        if len(rows) + len(block) > room:
            break
        rows += block
    return tuple(rows)
