"""What the run screen looks at: the shown value, the places of a text, the shown step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from hitl_tui.engine.log.outcomes import Frame
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.lens import LensPane
from hitl_tui.ui.widgets.stream import StreamPane
from hitl_tui.ui.widgets.tabs import TabsBar
from hitl_tui.ui.widgets.timeline import TimelinePane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.view.format import kind, writer
from hitl_tui.view.rows import GrowingText
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, untrusted
from hitl_tui.view.timeline import Direction, Place, neighbours
from hitl_tui.view.value_source import (
    MODES,
    READ,
    Mode,
    declared_lines,
    lines_text,
    other_values,
    read_values,
    value_text,
    version_lines,
)

if TYPE_CHECKING:
    from textual.geometry import Size
    from textual.timer import Timer

    from hitl_tui.ui.screens.run import RunScreen
    from hitl_tui.ui.widgets.search import Finding, SearchPane

_LEAST: Final = 4
"""Rows below which nothing more is told."""
_SHARE: Final = 0.55
"""The most that the lens may have of its column, as in run.tcss."""
_CODE: Final = 200
"""Rows of code that one may scroll through."""
_BRIEF_STREAM: Final = 9
"""Rows of a stream pane beside which it has all else."""
_STANDS: Final = 0.4
"""Seconds after which a step that is shown while a run goes on is worth more than its own rows."""
_DOCKED: Final = 140
"""Cells from which on the search stands beside the other panes."""


class ShownValue:
    """The value of the selected channel at the shown step, in the way that was chosen for its kind."""

    def __init__(self, screen: RunScreen) -> None:
        self._screen = screen
        self._modes: dict[str, Mode] = {"text": "diff"}
        # What is shown or on its way: session, step, channel and mode.
        self._wanted: tuple[object, ...] = ()
        self.loading = False
        self._back = 0
        self._of = ""
        self._room: Size | None = None
        self.at_failure = False
        """Where a node failed or returned is shown in the place of a value, until somebody asks for one."""

    @property
    def mode(self) -> Mode:
        """How it is shown."""
        return self._modes.get(self._kind, "text")

    def set_mode(self, mode: Mode) -> None:
        """Show values of this kind in another way."""
        self.at_failure = False
        self._modes[self._kind] = mode
        self.show()

    def show_failure(self) -> None:
        """Show where the node has failed, until a value is asked for."""
        self.at_failure = True
        self.show()

    def shows_failure(self, session: ViewSession) -> bool:
        """Whether it shows where a node failed or returned, in the place of a value."""
        return self.at_failure and bool(session.frames[1])

    def compare_with(self, by: int) -> None:
        """Show what became of an older version of the value, or of a newer one."""
        self._modes[self._kind], self.at_failure = "diff", False
        self._back = max(self._back + by, 0)
        self.show_again()

    @property
    def _kind(self) -> str:
        session = self._screen.session
        return kind(session.step_view.values.get(self._channel)) if session else ""

    @property
    def _channel(self) -> str:
        return self._screen.query_one(ChannelsPane).selected

    def show(self) -> None:
        """Bring the pane up to the session; does nothing where that shows it already."""
        if self._is_to_be_loaded():
            self._screen.run_worker(self._load(), group="value", exit_on_error=False)

    async def show_first(self) -> None:
        """Bring the pane up to the session, so that all else can be painted with it."""
        if self._is_to_be_loaded():
            try:
                await self._load()
            except asyncio.CancelledError:
                self.forget()
                raise

    def _is_to_be_loaded(self) -> bool:
        """Note what is wanted; True where it differs from what is shown and nothing loads it yet."""
        session, channel = self._screen.session, self._channel
        if session is None or not channel:
            return False
        seen = session.revealed
        if seen is not None and (seen.channel, seen.step) != (channel, session.step_view.step):
            session.revealed = None
        if channel != self._of:
            self._of, self._back = channel, 0
        wanted = (
            session,
            session.step_view,
            channel,
            self.mode,
            session.frames[1] if self.at_failure else (),
        )
        # As many lines of code are shown as there are rows.
        room = self._screen.query_one(ValuePane).size if self.at_failure else None
        same = self._wanted and all(new is old for new, old in zip(wanted, self._wanted, strict=True))
        if same and room == self._room:
            return False
        self._wanted, self._room = wanted, room
        begins, self.loading = not self.loading, True
        return begins

    def show_again(self) -> None:
        """Show it anew though nothing else has changed, as once it was revealed."""
        self.forget()
        self.show()

    def forget(self) -> None:
        """Whatever is shown is out of date."""
        self._wanted = ()

    async def _load(self) -> None:
        """Fetch what is wanted until that is what is shown: one load at a time, none for nothing."""
        try:
            done: tuple[object, ...] = ()
            while self._wanted is not done and (session := self._screen.session) is not None:
                done = self._wanted
                reveal = self._screen.ways["look.reveal"]
                pane = self._screen.query_one(ValuePane)
                title, frames = session.frames
                if self.at_failure and frames:
                    from hitl_tui.view.frames import frame_lines

                    room = pane.scrollable_content_region
                    text = lines_text(frame_lines(frames, room.width, height=room.height), self.mode)
                    below = f"{self._screen.ways['look.editor']} opens it in your editor"
                    pane.show_text(text, title=sanitise_line(title, 60), below=below)
                    continue
                text = await value_text(session, self._channel, self.mode, reveal, self._back)
                if self._wanted is done:
                    pane.show_text(text)
        finally:
            self.loading = False
        if self._screen.session is not None:
            self._screen.earlier.show(self._screen.session)


class Earlier:
    """What a high screen, or a pane in the spotlight, has rows left for while a step is shown for some time.

    The versions of the value and the long values of other channels stand below it, the changes of earlier
    steps below those of the shown one; the code of the node at hand below what that has written, and that of
    other nodes in the rows that the values leave; without code, contracts; beside a card, what the channels
    are for.  In the spotlight, the channels have their values below them, the timeline what its steps
    changed, and the stream what earlier steps wrote.
    """

    def __init__(self, screen: RunScreen) -> None:
        self._screen = screen
        self._wanted: tuple[object, ...] = ()
        self._seen: Checkpoint | None = None
        self._since = 0.0
        self._later: Timer | None = None

    def show(self, session: ViewSession) -> None:
        """Bring the panes up to the shown step, once its value is there."""
        screen = self._screen
        spotlight = screen.stage.pane
        has_room = screen.has_class("-high") or spotlight in ("channels", "timeline", "stream")
        # In the spotlight what comes is looked at, and alone.
        stands = has_room and (not session.running or (not spotlight and self._stands(session)))
        if spotlight != "channels" or not stands:
            screen.query_one(ChannelsPane).show_below(())
        if spotlight != "timeline" or not stands:
            screen.query_one(TimelinePane).show_below(())
        if not has_room:
            self._wanted = ()
            screen.query_one(StreamPane).show_below(())
            return
        channel, mode = screen.query_one(ChannelsPane).selected, screen.shown_value.mode
        rest = stands and not screen.shown_value.loading
        failed = screen.shown_value.shows_failure(session)
        deciding = screen.has_class("-deciding")
        wanted = (
            *(session, session.step_view.checkpoint, session.node_at_hand, channel, mode, screen.size),
            *(rest, failed, deciding, spotlight, screen.has_class("-searching")),
        )
        if wanted != self._wanted:
            self._wanted = wanted
            if rest:
                screen.run_worker(
                    self._load(session, channel), group="earlier", exclusive=True, exit_on_error=False
                )
            else:
                screen.query_one(ValuePane).show_below(())
                screen.query_one(StreamPane).show_below(())

    def _stands(self, session: ViewSession) -> bool:
        """Whether the same step has been shown for a while, as behind it a model writes."""
        now, point = time.monotonic(), session.step_view.checkpoint
        if point is not self._seen:
            self._seen, self._since = point, now
        stands = now - self._since >= _STANDS
        if not stands and self._later is None:
            self._later = self._screen.set_timer(self._since + _STANDS - now, self._show_later)
        return stands

    def _show_later(self) -> None:
        self._later = None
        if self._screen.session is not None:
            self.show(self._screen.session)

    async def _load(self, session: ViewSession, channel: str) -> None:
        laid_out = asyncio.Event()
        self._screen.call_after_refresh(laid_out.set)
        await laid_out.wait()  # before, the rows that are left are those of another step
        spotlight = self._screen.stage.pane
        if spotlight in ("channels", "timeline"):
            await self._in_spotlight(session, channel, spotlight)
            return
        value, stream = self._screen.query_one(ValuePane), self._screen.query_one(StreamPane)
        deciding = self._screen.has_class("-deciding")
        about = await self._about_node(session, stream.scrollable_content_region.width)
        if spotlight == "stream":
            stream.show_below((*await self._written_before(session), *about))
            return
        stream.show_below(about)
        self._screen.share_rows(session)
        rows: list[Line] = []
        left = 0 if self._screen.shown_value.shows_failure(session) else value.rows_left
        if channel and left > _LEAST:
            versions = () if deciding else await version_lines(session, channel, left - 2)
            rows += [(), *versions] if versions else []
            width = min(value.scrollable_content_region.width, READ)
            rows += other_values(session.step_view, channel, width, left - len(rows))
            if deciding or not await session.code(session.node_at_hand):
                rows += declared_lines(session.view.graph, width)
            if not deciding:
                room = left - len(rows)
                rows += await self._other_code(session, width, room) or _contracts(session, room)
        value.show_below(tuple(rows[: max(left, 0)]))
        if not deciding:
            await self._show_before(session)

    async def _show_before(self, session: ViewSession) -> None:
        """The changes of the steps before the shown one, in the rows that its own leave."""
        lens, column = self._screen.query_one(LensPane), self._screen.query_one("#right")
        high = column.size.height
        if self._screen.search.pane is not None or self._screen.stage.pane == "lens":
            most = lens.outer_size.height
        else:
            most = high - _BRIEF_STREAM if column.has_class("-no-stream") else int(high * _SHARE)
        room = most - 2 - lens.own_rows
        before = await session.changes_before(session.step_view.step, room // 3) if room > _LEAST else ()
        lens.show_before(session, _before(before, room))

    async def _about_node(self, session: ViewSession, width: int) -> tuple[Line, ...]:
        """The code of the node at hand, its contract, what it is about to read, what its channels are for."""
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
        """What the steps before the shown one printed and streamed, and what the steps up to it changed.

        Half of the rows are left to the code of the node at hand, where that is known.
        """
        stream, step = self._screen.query_one(StreamPane), session.step_view.step
        room = stream.rows_left // 2 if await session.code(session.node_at_hand) else stream.rows_left
        rows: list[Line] = []
        for point, text in await session.streams_before(step, max(room // 3, 0)):
            written = GrowingText(stream.scrollable_content_region.width)
            written.append(text.rstrip("\n"))
            told = [_title(point), *((Span(row),) for row in written.rows), ()]
            if len(rows) + len(told) > room:
                break
            rows += told
        changes = await session.changes_before(step + 1, max(room - len(rows), 0) // 3)
        changed = _before(changes, room - len(rows))
        return (*rows, *changed[1:], *changed[:1])

    async def _other_code(self, session: ViewSession, width: int, room: int) -> tuple[Line, ...]:
        """The code of the other nodes, and the file of the graph, as far as there is room."""
        from hitl_tui.view.frames import code_lines

        names = [node.name for node in session.view.graph.nodes]
        at = names.index(session.node_at_hand) if session.node_at_hand in names else -1
        if self._screen.stage.pane == "value":  # the pane with that of the node at hand is hidden
            names, at = [*names[at:], *names[: max(at, 0)]], -1
        frames: list[Frame] = []
        for name in (*names[at + 1 :], *names[: max(at, 0)], ""):
            if sum(len(frame.lines) + 2 for frame in frames) >= room:
                break
            frames += await session.code(name)
        return ((), *code_lines(frames, width, room - 1)) if frames and room > _LEAST else ()

    async def _in_spotlight(self, session: ViewSession, channel: str, spotlight: str) -> None:
        """Below the timeline what its steps changed; below the table first what its rows do not hold."""
        step, screen = session.step_view, self._screen
        timeline, table = screen.query_one(TimelinePane), screen.query_one(ChannelsPane)
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


def _contracts(session: ViewSession, room: int) -> tuple[Line, ...]:
    """What the other nodes may read and write, as many of them as there is room for."""
    from hitl_tui.view.taint import contracts

    others = [node for node in session.view.graph.nodes if node.name != session.node_at_hand]
    return contracts(others, room)


def _title(point: Checkpoint) -> Line:
    return (Span(f"step {point.step}  ", "dim"), untrusted(writer(point), "node"))


def _before(changes: Sequence[tuple[Checkpoint, tuple[Line, ...]]], room: int) -> tuple[Line, ...]:
    """As many steps as there is room for, whole."""
    rows: list[Line] = []
    for point, lines in changes:
        told = [(), _title(point), *(lines or [(Span("no channel was changed", "dim"),)])]
        if len(rows) + len(told) > room:
            break
        rows += told
    return tuple(rows)


class Search:
    """Asking what to look for, and walking from place to place.

    With room the pane of the search stands beside the others, else on a screen of its own.

    Attributes:
        finding: what is looked for, where it stands, and which place is shown; None while none was gone to.
    """

    def __init__(self, screen: RunScreen) -> None:
        self._screen = screen
        self.finding: Finding | None = None
        self.pane: SearchPane | None = None
        self._query = ""
        self._thread = ""  # that was looked through

    @property
    def open(self) -> bool:
        """Whether a search goes on: from the first place gone to until esc or another thread."""
        return self.finding is not None

    @property
    def coming(self) -> bool:
        """Whether the pane is about to take what is typed."""
        return self.pane is not None and not self.pane.is_mounted

    def begin(self, session: ViewSession) -> None:
        """A thread is shown: a search goes on in those that its places are in, and ends in any other."""
        places = self.finding[1] if self.finding else ()
        if session.thread_id not in {self._thread, *(place.thread for place in places)}:
            self.close()

    def close(self) -> None:
        """The search is over; its text is where the next one begins."""
        if self.finding is None and self.pane is None:
            return
        if self.finding is not None:
            self._query, self.finding = self.finding[0], None
            self._screen.query_one(ValuePane).mark("")
        self._undock()
        self._screen.show_all()

    def ask(self) -> None:
        """Ask what to look for, and where to go."""
        from hitl_tui.ui.screens.find import FindScreen
        from hitl_tui.ui.widgets.search import SearchPane

        session = self._screen.session
        if session is None:
            return
        ways = (self._screen.ways["app.next"], self._screen.ways["app.before"])
        query = self.finding[0] if self.finding else self._query
        self._thread = session.thread_id
        if not self._has_room:
            self._undock()
            self._screen.app.push_screen(FindScreen(session, query, ways), self._go_to_found)
        elif self.pane is not None:
            self.pane.ask(session)
        else:
            self.pane = SearchPane(session, query)
            self._screen.read_styles("search")
            self._screen.add_class("-searching")
            self._screen.query_one("#right").mount(self.pane, before=0)
            self._screen.call_after_refresh(self._screen.show_all)

    @property
    def _has_room(self) -> bool:
        taken = any(self._screen.has_class(name) for name in ("-deciding", "-followed", "-spotlight"))
        return self._screen.size.width >= _DOCKED and not taken

    def resize(self) -> None:
        """The pane goes where there is no room for it any more; the search goes on."""
        if self._screen.size.width < _DOCKED:
            self._undock()

    def _undock(self) -> None:
        if self.pane is not None:
            self.pane.remove()
            self.pane = None
            self._screen.remove_class("-searching")
            self._screen.query_one(ChannelsPane).focus()

    def go(self, finding: Finding) -> None:
        """A place was chosen in the pane: show it; keys are the run's again."""
        self._screen.query_one(ChannelsPane).focus()
        self._go_to_found(finding)

    def walk(self, by: int) -> None:
        """Go to the next place where it stands, or to the one before."""
        if self.finding is not None:
            query, places, at = self.finding
            if self.pane is not None and self.pane.looked_for == query:
                places = self.pane.places  # there may be more of them by now
            self._go_to_found((query, places, (at + by) % len(places)))

    def _go_to_found(self, finding: Finding | None) -> None:
        """Show a place: its step, its channel, and the line in it."""
        from hitl_tui.ui.widgets.search import CONDITION

        session = self._screen.session
        if finding is None or session is None:
            return
        query, places, at = self.finding = finding
        place = places[at]
        if self.pane is not None:
            self.pane.point_at(at)
        if (thread_id := place.thread or self._thread) != session.thread_id:
            self._screen.command(self._go_to_thread(thread_id, finding))
            return
        if place.step != session.step_view.step:
            self._screen.travel((session.thread_id, place.step))
        if place.channel:
            pane = self._screen.query_one(ValuePane)
            pane.seek = (place.channel, place.line)
            pane.mark("" if query.strip().startswith(CONDITION) else query)
            self._screen.query_one(ChannelsPane).select(place.channel, picked=True)
            self._screen.shown_value.set_mode("text")
            pane.show_sought()
        self._screen.show_bars()
        self._screen.tell(f"{place.where}, {at + 1} of {len(places)}", f"“{query}”")

    async def _go_to_thread(self, thread_id: str, finding: Finding) -> None:
        """Open the thread that a place is in, and go there."""
        await self._screen.threads.open(thread_id)
        if self._screen.session is not None and self._screen.session.thread_id == thread_id:
            self._go_to_found(finding)


def next_pane(screen: RunScreen) -> None:
    """On a narrow screen the next pane; on a wide one both versions side by side, or words only."""
    if screen.has_class("-narrow"):
        screen.show_tab(screen.query_one(TabsBar).next())
    else:
        screen.query_one(ValuePane).turn()


def next_mode(screen: RunScreen) -> None:
    """Go round the ways to show a value."""
    value = screen.shown_value
    value.set_mode(MODES[(MODES.index(value.mode) + 1) % len(MODES)])


def fold(screen: RunScreen, *, everything: bool) -> None:
    """Fold what the cursor of the value is in, or unfold it; keys move that cursor from then on."""
    pane = screen.query_one(ValuePane)
    if not pane.folds:
        screen.tell("only a value with parts folds, as text or JSON", severity="warning")
        return
    focused = pane.has_focus
    pane.focus()
    if everything:
        pane.fold_all()
    elif focused:
        pane.fold()


def go(screen: RunScreen, direction: Direction) -> None:
    """Show the step next to the shown one."""
    session = screen.session
    head = session.view.head if session else None
    if session is None or head is None:
        return
    place = session.shown or (session.thread_id, head.step)
    oldest = session.view.checkpoints[0].step
    if direction == "left" and place == (session.thread_id, oldest) and oldest > 0:
        screen.command(_older(screen, session, place), group="older")
        return
    screen.travel(neighbours(session.view, session.family, place, direction))


async def _older(screen: RunScreen, session: ViewSession, place: Place) -> None:
    if await session.load_older():
        screen.travel(neighbours(session.view, session.family, place, "left"))


def go_to_change(screen: RunScreen, by: Literal[-1, 1]) -> None:
    """Show the step that changed the selected channel before the shown one, or next.

    Whoever decides stays at the step that is decided about, and sees the version before or after.
    """
    channel = screen.query_one(ChannelsPane).selected
    if screen.review.state:
        screen.shown_value.compare_with(-by)
    elif screen.session is not None and channel:
        screen.command(_go_to_change(screen, screen.session, channel, by), group="change")


async def _go_to_change(screen: RunScreen, session: ViewSession, channel: str, by: Literal[-1, 1]) -> None:
    place = await session.change_beside(channel, by)
    if place is None:
        screen.tell(f"nothing changed it {'before' if by < 0 else 'afterwards'}", channel)
    elif session is screen.session:
        screen.query_one(ChannelsPane).picked = True
        screen.travel(place)


def go_first(screen: RunScreen) -> None:
    """Show the oldest loaded step."""
    session = screen.session
    if session and session.view.checkpoints:
        screen.travel((session.thread_id, session.view.checkpoints[0].step))
