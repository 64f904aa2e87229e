"""Panes of the run screen: a thread at one of its steps, painted, travelled, and in the spotlight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.timer import Timer
from textual.worker import Worker, WorkerState

from hitl_tui.config import watches_file
from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.log.outcomes import ErrorInfo, Frame
from hitl_tui.errors import HitlError
from hitl_tui.ui.screens.modal import Severity
from hitl_tui.ui.sizes import BREAKPOINTS, HEIGHTS, HIGH_FROM, WIDE_FROM
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.filler import FillerRows, Panes, RowsLayout
from hitl_tui.ui.widgets.footer import FooterBar
from hitl_tui.ui.widgets.graph import GraphPane
from hitl_tui.ui.widgets.header import BannerBar, HeaderBar
from hitl_tui.ui.widgets.lens import LensPane
from hitl_tui.ui.widgets.lines import Column, RoleScreen, Room
from hitl_tui.ui.widgets.shown_value import ShownValue
from hitl_tui.ui.widgets.stream import StreamPane
from hitl_tui.ui.widgets.tabs import TABS, TabsBar
from hitl_tui.ui.widgets.timeline import TimelinePane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.ui.work import Work, start_work
from hitl_tui.view.keymap import Keymap
from hitl_tui.view.keys import written
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.session import Revealed, ViewSession
from hitl_tui.view.spans import Role, plain_text, untrusted
from hitl_tui.view.timeline import Direction, Place, neighbours

if TYPE_CHECKING:
    from hitl_tui.ui.screens.watches import WatchesPane
    from hitl_tui.ui.widgets.review import ReviewPane
    from hitl_tui.ui.widgets.search import Finding, SearchPane

PANES: Final = ("graph", "channels", "value", "lens", "stream", "timeline")
_SOON: Final = 0.05
"""Seconds for which the paint of another step waits for its values."""
_LONG_KINDS: Final = ("list", "object")
_SHORT: Final = 40
"""Number of characters of a value on one line that need no space of their own."""
_BRIEF: Final = 240
"""Number of characters of a stream that fit in a few rows."""
_DOCKED: Final = 140
"""Cells from which the search is beside the other panes."""
_READ_SECONDS: Final = 8
_READ_CHARS: Final = 200


class RunPanes(RoleScreen):
    """Screen that shows a thread in panes; `RunScreen` adds what a person can do to the thread.

    Attributes:
        session: the shown thread.
        card: the review card, None until the first one was opened.
        finding: the search, its matches, and which one is shown; None before the first one is shown.
        search_pane: the search beside the other panes, None if there is none.
        spotlit: the pane in the spotlight, "" for none.
        reviewing: whether graph, reducers and the keys of the debugger are left out.
    """

    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    VERTICAL_BREAKPOINTS = HEIGHTS
    AUTO_FOCUS = "#channels"

    def __init__(self, hub: Hub, actor: str, keymap: Keymap, *, reviewing: bool = False) -> None:
        # Set from the beginning: adding a class later would restyle all panes.
        super().__init__(id="run", classes=f"-tab-{TABS[0][0]}{' -reviewing' if reviewing else ''}")
        self.reviewing = reviewing
        self.hub = hub
        self.actor = actor
        self.keymap = keymap
        self.key_hints: Mapping[str, str] = keymap.key_hints
        self.session: ViewSession | None = None
        self.card: ReviewPane | None = None
        self.search_pane: SearchPane | None = None
        self.finding: Finding | None = None
        self._searched = ("", "")  # the last query, and the thread that was searched
        self.spotlit = ""
        self._shows_keys = False
        self._channels, self._value, self._stream = ChannelsPane(), ValuePane(), StreamPane()
        self._lens, self._timeline = LensPane(self.key_hints), TimelinePane(keymap, actor)
        self._middle, self._right = Column(id="middle"), Column(id="right")
        self.shown_value = ShownValue(self._channels, self._value, self.key_hints, self._fill_rows)
        self._filler = FillerRows(
            Panes(self._channels, self._value, self._right, self._lens, self._stream, self._timeline),
            self.shown_value, share_rows=self.share_rows, refresh=self._fill_rows,
        )  # fmt: skip
        self._channels.shows_reducers = not reviewing
        self._watches_pane: WatchesPane | None = None
        self._watched: tuple[str, tuple[str, ...]] = ("", ())
        self._failure: ErrorInfo | None = None
        self._returned: tuple[str, tuple[Frame, ...]] = ("", ())
        self._unshown: Timer | None = None
        self._is_painted = False

    def compose(self) -> ComposeResult:
        """Yield the panes, which are filled before they are painted, and styled for the screen's size."""
        width, height = self.app.size
        self.update_classes(
            {_breakpoint(width, BREAKPOINTS): True, _breakpoint(height, HEIGHTS): True}, update=False
        )
        yield HeaderBar()
        yield BannerBar()
        yield TabsBar(self.keymap.shown("look.tab"), reviewing=self.reviewing)
        with Room(id="body"):
            yield GraphPane()
            with self._middle:
                yield self._channels
                yield self._value
            with self._right:
                yield self._lens
                yield self._stream
        yield from self.compose_caption()
        yield self._timeline
        yield FooterBar(self.keymap)

    def compose_caption(self) -> ComposeResult:
        """Yield what is between the panes and the timeline."""
        yield from ()

    def read_styles(self, name: str) -> None:
        """Read the style sheets of the screens that will be shown here, unless they were already read."""
        path, sheet = str(Path(__file__).with_name(f"{name}.tcss")), self.app.stylesheet
        if not sheet.has_source(path):
            sheet.read(path)
            sheet.parse()

    @property
    def is_narrow(self) -> bool:
        """Whether the panes are tabs."""
        return self.size.width < WIDE_FROM

    @property
    def is_high(self) -> bool:
        """Whether there are rows to show more than necessary."""
        return self.size.height >= HIGH_FROM

    @property
    def on_top(self) -> bool:
        """Whether no dialog, page or editor is over it."""
        return self.app.screen is self

    @property
    def card_open(self) -> bool:
        """Whether the review card is on screen."""
        return self.card is not None and self.card.is_open

    # Painting.

    def show_all(self) -> None:
        """Update every pane for the session; each paints only differences."""
        session = self.session
        if session is None or not self.display:
            return
        if self._unshown is not None:
            self._unshown.stop()
            self._unshown = None
        with self.app.batch_update():
            self.show_panes(session)
            self.show_bars()
            if self._is_painted:  # the first one is painted with everything else
                self.shown_value.show()
            self.share_rows(session)
            self._fill_rows()

    def show_panes(self, session: ViewSession) -> None:
        """Update the panes for the session."""
        self._show_channels(session)
        self._show_watches(session)
        self._lens.show_session(session)
        lines = () if session.is_past else session.view.logged
        self._stream.show_stream(session.stream, session.view.inside, lines, past=session.is_past)
        self.query_one(TabsBar).show_live(session.view.stream.live and session.view.stream.length > 0)
        self._timeline.set_class(session.is_past, "-past")
        self._timeline.show_view(session.view, session.family, session.shown)
        self.query_one(GraphPane).show_session(session)

    def show_bars(self) -> None:
        """Update header, banner and footer."""
        raise NotImplementedError

    def share_rows(self, session: ViewSession) -> bool:
        """Give the rows of a short value, or of an empty stream, to the pane above it.

        Returns:
            Whether those of the stream were given away.
        """
        row = self._channels.selected_row
        short = row is not None and row.kind not in _LONG_KINDS and len(row.preview) < _SHORT
        self._middle.set_class(short and not session.frames[1], "-short-value")
        brief = session.stream.length < (_BRIEF if self.is_high else 1)
        silent = brief and not session.stream.live and not self._stream.below
        self._right.set_class(silent, "-no-stream")
        return silent

    def _fill_rows(self) -> None:
        """Fill the free rows of the panes."""
        searching = self.search_pane is not None
        layout = RowsLayout(self.spotlit, self.is_high, self.card_open, searching, self.size)
        if self.session is not None:
            self._filler.show(self.session, layout)

    def _show_channels(self, session: ViewSession) -> None:
        pane = self._channels
        step = session.step_view
        fresh = pane.all_rows is not step.rows
        pane.show_step(step, session.is_past)
        if fresh and not pane.picked and not session.is_past:
            pane.select(_first_channel(session))
        error = session.view.error
        if session.view.returned is not self._returned:
            self._returned = session.view.returned
            self.shown_value.at_failure = bool(self._returned[1])
        if error is not self._failure:
            self._failure = error
            self.shown_value.at_failure = error is not None
            if error is not None and error.channel:
                pane.select(error.channel)

    def show_tab(self, name: str) -> None:
        """On a narrow screen, show this pane."""
        for tab, _ in TABS:
            self.set_class(tab == name, f"-tab-{tab}")
        self.query_one(TabsBar).show(name)
        if self.session is not None:
            self.call_after_refresh(self.show_all)

    def switch_view(self) -> None:
        """Show the panes and keys of a developer, or only those of a reviewer."""
        self.reviewing = not self.reviewing
        self._channels.shows_reducers = not self.reviewing
        tabs = self.query_one(TabsBar)
        tabs.reviewing = self.reviewing
        with self.app.batch_update():
            self.set_class(self.reviewing, "-reviewing")
            if tabs.active not in tabs.names:
                self.show_tab(tabs.names[0])
            tabs.refresh()
            self._channels.repaint()
        self.call_after_refresh(self.show_all)

    def next_pane(self) -> None:
        """On a narrow screen show the next pane; on a wide one both versions side by side, or words only."""
        if self.is_narrow:
            self.show_tab(self.query_one(TabsBar).next())
        else:
            self._value.turn()

    def on_resize(self) -> None:
        """Lay out for another size; a search without room for its pane stays open."""
        if self.size.width < _DOCKED:
            self._undock_search()
        self.call_after_refresh(self.show_all)

    @on(TabsBar.Chosen)
    def _tab_chosen(self, event: TabsBar.Chosen) -> None:
        self.show_tab(event.name)

    @on(ValuePane.Resized)
    def _value_resized(self) -> None:
        if self._is_painted:
            self.shown_value.show()

    @on(ValuePane.ModeChosen)
    def _mode_chosen(self, event: ValuePane.ModeChosen) -> None:
        self.shown_value.set_mode(event.mode)

    @on(ChannelsPane.Selected)
    def _channel_selected(self, event: ChannelsPane.Selected) -> None:
        if event.picked:
            self.shown_value.at_failure = False
        self.shown_value.show()
        if self.session is not None:
            self.share_rows(self.session)

    # Time travel.

    def travel(self, place: Place | None) -> None:
        """Show another step in all panes; None for the newest."""
        session = self.session
        if session is None:
            return
        session.move_to(place)
        # Its values mostly arrive before the first paint; else it is painted without them after a moment.
        self._unshown = self._unshown or self.set_timer(_SOON, self.show_all)
        start_work(self, partial(self._load_step, session), group="travel", exclusive=True)

    async def _load_step(self, session: ViewSession) -> None:
        if await session.load_shown() and session is self.session:
            await self.shown_value.show_first()
            self.show_all()

    def travel_beside(self, direction: Direction) -> None:
        """Show the step next to the shown one."""
        session = self.session
        head = session.view.head if session else None
        if session is None or head is None:
            return
        place = session.shown or (session.thread_id, head.step)
        oldest = session.view.checkpoints[0].step
        if direction == "left" and place == (session.thread_id, oldest) and oldest > 0:
            self.command(partial(self._travel_older, session, place), group="older")
            return
        self.travel(neighbours(session.view, session.family, place, direction))

    async def _travel_older(self, session: ViewSession, place: Place) -> None:
        if await session.load_older():
            self.travel(neighbours(session.view, session.family, place, "left"))

    def travel_to_oldest(self) -> None:
        """Show the oldest loaded step."""
        session = self.session
        if session and session.view.checkpoints:
            self.travel((session.thread_id, session.view.checkpoints[0].step))

    def travel_to_change(self, by: Literal[-1, 1]) -> None:
        """Show the step that changed the selected channel before the shown one, or next.

        A person who decides stays at the step of the request, and sees the version before or after.
        """
        channel = self._channels.selected
        if self.card_open:
            self.shown_value.compare_with(-by)
        elif self.session is not None and channel:
            self.command(partial(self._travel_to_change, self.session, channel, by), group="change")

    async def _travel_to_change(self, session: ViewSession, channel: str, by: Literal[-1, 1]) -> None:
        place = await session.change_beside(channel, by)
        if place is None:
            self.show_message(f"nothing changed it {'before' if by < 0 else 'afterwards'}", channel)
        elif session is self.session:
            self._channels.picked = True
            self.travel(place)

    @on(TimelinePane.Chosen)
    def _place_chosen(self, event: TimelinePane.Chosen) -> None:
        self.travel(event.place)

    @on(TimelinePane.Travel)
    def _travel_key(self, event: TimelinePane.Travel) -> None:
        self.travel_beside(event.direction)

    def show_value(self, channel: str, step: int, value: object) -> None:
        """Show the value of a private channel until another channel or step is selected."""
        if self.session is not None:
            self.session.revealed = Revealed(channel, step, value)
            self.shown_value.show_again()

    # The spotlight and the keys, for an audience.

    def switch_spotlight(self) -> None:
        """Show the focused pane large and alone, or all of them again."""
        name = self.focused.id if self.focused is not None and self.focused.id in PANES else "value"
        self.spotlight("" if self.spotlit else name or "value")

    def spotlight(self, pane: str) -> None:
        """Show a pane large and alone; "" shows all of them again."""
        if pane == self.spotlit:
            return
        self.read_styles("stage")
        with self.app.batch_update():
            for name in filter(None, (self.spotlit, pane)):
                shown = self.query_one(f"#{name}")
                shown.set_class(name == pane, "-spot")
                if isinstance(shown.parent, Column):
                    shown.parent.set_class(name == pane, "-with-spot")
                if isinstance(shown, GraphPane | TimelinePane):
                    shown.is_alone = name == pane
            body = self.query_one("#body")
            body.set_class(bool(pane) and body not in self.query_one(f"#{pane}").ancestors, "-without-spot")
            self.set_class(bool(pane), "-spotlight")
            self.spotlit = pane
            if pane:
                self.focus_spotlit(pane)
        self.call_after_refresh(self.show_all)

    def focus_spotlit(self, pane: str) -> None:
        """Move the focus to the pane that has come into the spotlight."""
        self.query_one(f"#{pane}").focus(scroll_visible=False)

    def switch_keys(self) -> None:
        """Show the last pressed key, or hide it."""
        self._shows_keys = not self._shows_keys
        self.query_one(FooterBar).show_key(" " if self._shows_keys else "")

    def show_pressed(self, key: str) -> None:
        """Show a pressed key that types no text."""
        if self._shows_keys:
            self.query_one(FooterBar).show_key(written(key))

    # Watches: nothing is loaded for them while there are none.

    def watches_of(self, session: ViewSession) -> tuple[str, ...]:
        """Return the watched expressions of the thread's graph."""
        graph = session.view.graph.name
        if graph != self._watched[0]:
            file = watches_file()
            texts: tuple[str, ...] = ()
            if file.exists():
                from hitl_tui.view.watches import read_watches

                texts = read_watches(file).get(graph, ())
            self._watched = graph, texts
        return self._watched[1]

    def switch_watch(self, session: ViewSession, text: str) -> None:
        """Watch an expression, or stop watching it."""
        from hitl_tui.view.watches import MOST, keep_watches

        texts = self.watches_of(session)
        others = tuple(other for other in texts if other != text)
        texts = others if text in texts else (*others, text)[-MOST:]
        self._watched = session.view.graph.name, texts
        try:
            keep_watches(watches_file(), session.view.graph.name, texts)
        except OSError as error:
            self.show_message(f"it is not saved: {error}", "Watch", "warning")
        self._show_watches(session)

    def _show_watches(self, session: ViewSession) -> None:
        """Show the watches at the shown step."""
        texts = self.watches_of(session)
        if not texts:
            if self._watches_pane is not None:
                self._watches_pane.remove()
                self._watches_pane = None
        elif self._watches_pane is not None:
            self._watches_pane.show_session(session, texts)
        else:
            from hitl_tui.ui.screens.watches import WatchesPane

            self._watches_pane = WatchesPane()
            self._middle.mount(self._watches_pane, before=self._channels)
            self.call_after_refresh(self.show_all)

    # Search. With enough room its pane is beside the others, else on a screen of its own.

    def ask_search(self) -> None:
        """Ask what to search for, and which match to show."""
        session = self.session
        if session is None:
            return
        query = self.finding[0] if self.finding else self._searched[0]
        self._searched = query, session.thread_id
        card_shown = self.card_open or bool(self.query("#followed"))
        if self.size.width < _DOCKED or card_shown or self.spotlit:
            from hitl_tui.ui.screens.find import FindScreen

            self._undock_search()
            key_hints = (self.key_hints["app.next"], self.key_hints["app.before"])
            self.app.push_screen(FindScreen(session, query, key_hints), self._go_to_found)
        elif self.search_pane is not None:
            self.search_pane.ask(session)
        else:
            from hitl_tui.ui.widgets.search import SearchPane

            self.search_pane = SearchPane(session, query)
            self.read_styles("search")
            self.add_class("-searching")
            self._right.mount(self.search_pane, before=0)
            self.call_after_refresh(self.show_all)

    def keep_search(self, session: ViewSession) -> None:
        """Follow the shown thread: a search stays open in threads with matches, and ends in any other."""
        places = self.finding[1] if self.finding else ()
        if session.thread_id not in {self._searched[1], *(place.thread for place in places)}:
            self.close_search()

    def close_search(self) -> None:
        """Close the search; the next one begins with its text."""
        if self.finding is None and self.search_pane is None:
            return
        if self.finding is not None:
            self._searched = self.finding[0], self._searched[1]
            self.finding = None
            self._value.mark("")
        self._undock_search()
        self.show_all()

    def _undock_search(self) -> None:
        if self.search_pane is not None:
            self.search_pane.remove()
            self.search_pane = None
            self.remove_class("-searching")
            self._channels.focus()

    def on_search_pane_chosen(self, event: SearchPane.Chosen) -> None:
        """Show the match that was chosen in the pane; keys are the run's again."""
        self._channels.focus()
        self._go_to_found(event.finding)

    def on_search_pane_left(self) -> None:
        """Close the search."""
        self.close_search()

    def walk_found(self, by: int) -> None:
        """Show the next match, or the previous one."""
        if self.finding is not None:
            query, places, at = self.finding
            if self.search_pane is not None and self.search_pane.looked_for == query:
                places = self.search_pane.places  # there may be more of them by now
            self._go_to_found((query, places, (at + by) % len(places)))

    def _go_to_found(self, finding: Finding | None) -> None:
        """Show a match: its step, its channel, and the line in it."""
        from hitl_tui.ui.widgets.search import CONDITION

        session = self.session
        if finding is None or session is None:
            return
        query, places, at = self.finding = finding
        place = places[at]
        if self.search_pane is not None:
            self.search_pane.point_at(at)
        if (thread_id := place.thread or self._searched[1]) != session.thread_id:
            self.command(partial(self._go_to_found_in, thread_id, finding))
            return
        if place.step != session.step_view.step:
            self.travel((session.thread_id, place.step))
        if place.channel:
            self._value.seek = (place.channel, place.line)
            self._value.mark("" if query.strip().startswith(CONDITION) else query)
            self._channels.select(place.channel, picked=True)
            self.shown_value.set_mode("text")
            self._value.show_sought()
        self.show_bars()
        self.show_message(f"{place.where}, {at + 1} of {len(places)}", f"“{query}”")

    async def _go_to_found_in(self, thread_id: str, finding: Finding) -> None:
        """Open the thread of a match, and show the match."""
        await self.open_thread(thread_id)
        if self.session is not None and self.session.thread_id == thread_id:
            self._go_to_found(finding)

    async def open_thread(self, thread_id: str) -> None:
        """Show another thread of the hub."""
        raise NotImplementedError

    # Messages.

    def command(self, work: Work, group: str = "command") -> None:
        """Send a command to the driver; show errors instead of raising them."""
        start_work(self, work, group=group)

    def complain(self, error: HitlError) -> None:
        """Show an error whose message says what to do."""
        between = "\n" if "\n" in error.message else " — "
        text = f"{error.message}{between}{error.hint}" if error.hint else error.message
        self.show_message(text, error.title, "error")

    def show_work(self, text: str) -> None:
        """Show the progress of an operation."""
        self.show_message(text)

    def show_message(self, text: str, title: str = "", severity: Severity = "information") -> None:
        """Show a short message in the footer; as a toast if it is longer. Never markup."""
        role: Role = "error" if severity == "error" else "warning" if severity == "warning" else "ok"
        line = (untrusted(f"{title}: " if title else "", role), untrusted(text, "plain"))
        short = (
            "\n" not in text and cell_len(plain_text(line)) <= self.size.width * 2 // 3
        )  # the keys get the remaining room
        if short and self.on_top and self.display:
            self.query_one(FooterBar).say(line)
        else:
            seconds = _READ_SECONDS * (1 + len(text) // _READ_CHARS)
            self.notify(sanitise(text), title=title, severity=severity, markup=False, timeout=seconds)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Show why a command was refused."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and isinstance(error, HitlError):
            self.complain(error)


def _breakpoint(size: int, breakpoints: Sequence[tuple[int, str]]) -> str:
    """Return the class that Textual gives a screen of that size on a resize."""
    return next(name for least, name in reversed(breakpoints) if size >= least)


def _first_channel(session: ViewSession) -> str:
    """Return the first channel to show: a request's subject, else a text of the newest step, else any."""
    if session.request is not None and session.request.subject:
        return session.request.subject
    rows = session.step_view.rows
    written = [row for row in rows if row.mark != " "] or list(rows)
    texts = [row for row in written if row.kind == "text"] or written
    return texts[0].name if texts else ""
