"""A presentation from a script: its current stop, the audience's caption, and the speaker's notes.

It knows no screen.  The code that runs the thread calls `arrive` whenever the thread rests, and continues it
until `arrive` reports a stop.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol

import msgspec

from hitl_tui.agents.tempo import TEMPO, Tempo
from hitl_tui.drivers.expressions import Expression, ExpressionInvalid, ExpressionUndefined, check_expression
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Step
from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.thread.session import now_us
from hitl_tui.given_files import real_path
from hitl_tui.loading.stage_file import Script, StopTable
from hitl_tui.loading.toml import KeyPath
from hitl_tui.view.rows import wrap_line
from hitl_tui.view.run_view import RunView
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.show_state import ShowFile, ShowState, own_process_started
from hitl_tui.view.spans import Line, Span, untrusted

_OVER: Final = ("completed", "cancelled", "failed")
_REST: Final = 0.8
"""Seconds between two steps at pace 1: time to read what the first has changed."""


class Caption(msgspec.Struct, frozen=True):
    """What the audience reads below the panes.

    A bold line and dim ones, raw; and the pane to highlight while a node runs.
    """

    title: str = ""
    text: str = ""
    spotlight: str = ""

    def rows(self, width: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return both as rows of so many cells, sanitised."""
        return tuple(_rows(self.title, width)), tuple(_rows(self.text, width))


def _rows(text: str, width: int) -> Iterator[str]:
    for line in sanitise(text.strip()).splitlines():
        yield from wrap_line(line, width)


class Performance(Protocol):
    """A presentation: a script that is played on a live thread, or a tape.

    Attributes:
        tempo: how fast it plays.
        going: whether it is moving to the next stop.
        live: whether it runs a thread; a tape plays by itself.
        title, place: its title, and its position, as "stop 3 of 6".
    """

    tempo: Tempo
    going: bool
    live: bool

    @property
    def title(self) -> str: ...
    @property
    def place(self) -> str: ...

    def caption(self, view: RunView) -> Caption:
        """The text that the audience reads now."""

    def arrive(self, view: RunView) -> StopTable | None:
        """Return whether an idle thread has reached a stop, and show that stop."""

    async def go_on(self, driver: Driver, last_event: Callable[[], int]) -> None:
        """Run or play one step.

        `last_event` is the number of the newest event received from the thread.

        Args:
            last_event: the number of the newest event that was seen of the thread.
        """

    async def restart(self) -> Driver | None:
        """Restart: return the driver of a new thread, None if the same one is rewound."""

    def publish(self, thread: str) -> None:
        """Publish the position for other terminals."""

    def end(self) -> None:
        """End the presentation."""


class ScriptShow:
    """Plays a script; see `Performance`.

    Args:
        new_thread: makes a new thread with the script's input, and opens it.
        others: where the position is published for other terminals; None if nobody follows.
        store: the URL of the store, for terminals that follow.

    Attributes:
        stop: the index of the shown stop; -1 before the first.
    """

    def __init__(
        self,
        script: Script,
        new_thread: Callable[[], Awaitable[Driver]],
        others: ShowFile | None = None,
        store: str = "",
    ) -> None:
        self.script = script
        self.file = script.file
        self.tempo = TEMPO
        self.stop = -1
        self.going = False
        self.live = True
        self._new_thread = new_thread
        self._others = others
        self._store = store
        self._began = now_us()
        self._published: ShowState | None = None
        self._conditions = {stop.when: Expression(stop.when) for stop in self.file.stops if stop.when}
        self.tempo.pace = self.file.show.pace

    @property
    def title(self) -> str:
        """The title of the presentation."""
        return self.script.title

    async def restart(self) -> Driver:
        """Start a new thread."""
        driver = await self._new_thread()
        self.stop, self.going, self._began = -1, False, now_us()
        self.tempo.pace, self.tempo.held = self.file.show.pace, False
        return driver

    async def go_on(self, driver: Driver, last_event: Callable[[], int]) -> None:
        """Run one node, after time to read the previous one."""
        await self.tempo.wait(_REST)
        since = last_event()
        await driver.execute(Step())
        await driver.ended(since)

    def publish(self, thread: str) -> None:
        """Publish the position for other terminals."""
        if self._others is None:
            return
        tempo, path = self.tempo, str(real_path(self.script.path))
        state = ShowState(
            path, os.getpid(), own_process_started(), self._store, thread,
            self.stop, self.going, tempo.held, tempo.pace, self._began,
        )  # fmt: skip
        if state != self._published:
            self._published = state
            self._others.write(state)

    def end(self) -> None:
        """End the presentation and remove its state."""
        if self._others is not None:
            self._others.end()

    @property
    def shown(self) -> StopTable | None:
        """The shown stop."""
        return self.file.stops[self.stop] if self.stop >= 0 else None

    @property
    def place(self) -> str:
        """The position, as "stop 3 of 6"."""
        count = len(self.file.stops)
        return f"stop {self.stop + 1} of {count}" if count else ""

    def arrive(self, view: RunView) -> StopTable | None:
        """Return whether the idle thread has reached a later stop, and show that stop.

        A run that the script did not foresee may skip stops.
        """
        for number in range(self.stop + 1, len(self.file.stops)):
            if self._is_at(self.file.stops[number], view):
                self.stop, self.going = number, False
                return self.file.stops[number]
        return None

    def _is_at(self, stop: StopTable, view: RunView) -> bool:
        progress, head = view.progress, view.head
        if head is None:
            return False
        ran, runs = progress.visits.get(stop.after), progress.visits.get(stop.before, 0) + 1
        if stop.after and (head.node != stop.after or stop.visit not in (None, ran)):
            return False
        if stop.before and (progress.next_node != stop.before or stop.visit not in (None, runs)):
            return False
        asks = any(not request.breakpoint for request in progress.pending)
        moments = {
            "start": not progress.visits and head.step == 0,
            "question": asks,
            "end": progress.status in _OVER,
        }
        if stop.at is not None and not moments[stop.at]:
            return False
        return not stop.when or self._holds(stop.when, view.values)

    def _holds(self, condition: str, values: Mapping[str, Any]) -> bool:
        public = {name: value for name, value in values.items() if value is not PRIVATE}
        with suppress(ExpressionUndefined):
            return self._conditions[condition].holds(public)
        return False

    def caption(self, view: RunView) -> Caption:
        """The text that the audience reads now."""
        if (node := view.running_node) is not None and self.going:
            visit = view.progress.visits.get(node, 0) + 1
            for caption in self.file.captions:
                if caption.node == node and caption.visit in (None, visit):
                    return Caption(caption.title, caption.text, caption.spotlight or "")
            return Caption()
        if self.shown is None:
            return Caption(self.script.title)
        return Caption(self.shown.title, self.shown.text) if not self.going else Caption()


def check_script(script: Script, graph: GraphInfo) -> None:
    """Check that the graph has everything that a script names.

    Raises:
        ScriptInvalid: lists everything that is missing, each with file, line and key.
    """
    problems, file = script.problems, script.file
    nodes = {node.name for node in graph.nodes}
    channels = {channel.name for channel in graph.channels}
    named: list[tuple[KeyPath, str]] = []
    for number, stop in enumerate(file.stops):
        where = ("stops", number)
        named += [((*where, key), getattr(stop, key)) for key in ("after", "before")]
        if stop.channel and stop.channel not in channels:
            problems.unknown((*where, "channel"), "channel", stop.channel, channels)
        if stop.when:
            try:
                check_expression(stop.when, graph.channels)
            except ExpressionInvalid as error:
                problems.add((*where, "when"), error.message, error.hint)
    named += [(("captions", number, "node"), caption.node) for number, caption in enumerate(file.captions)]
    for path, node in named:
        if node and node not in nodes:
            problems.unknown(path, "node", node, nodes)
    known = channels | {field.name for field in graph.inputs}
    for name in file.inputs:
        if name not in known:
            problems.unknown(("inputs", name), "input", name, known)
    problems.check()


def notes_lines(script: Script, state: ShowState, width: int) -> tuple[Line, ...]:
    """Return what the speaker reads: the notes of the shown stop, what to answer, and what comes next.

    The notes of the whole presentation come before those of its first stop.
    """
    stops = script.file.stops
    shown = stops[state.stop] if 0 <= state.stop < len(stops) else None
    title = script.title if shown is None else shown.title or "(no title)"
    lines: list[Line] = [(untrusted(title, "title"),), ()]
    if state.stop <= 0:
        lines += _plain(script.file.show.notes, width)
    if shown is not None:
        own = _plain(shown.notes, width)
        lines += [(), *own] if own and lines[2:] else own
        if shown.answer:
            words = f" — “{shown.words}”" if shown.words else ""
            lines += [(), (Span("suggested  ", "dim"), untrusted(f"{shown.answer}{words}", "human"))]
    following = stops[state.stop + 1] if state.stop + 1 < len(stops) else None
    if following is not None:
        lines += [(), (Span("next  ", "dim"), untrusted(following.title or _place_words(following), "plain"))]
    else:
        lines += [(), (Span("this is the last stop", "dim"),)]
    return tuple(lines)


def standing_words(script: Script, state: ShowState) -> str:
    """Return the position of a presentation on one line."""
    words = [script.title, f"stop {state.stop + 1} of {len(script.file.stops)}", state.thread]
    words += [f"pace {state.pace:g}×"] if state.pace != 1 else []
    words += ["held"] if state.held else ["waiting for the run"] if state.going else []
    return " · ".join(words)


def _plain(text: str, width: int) -> list[Line]:
    return [(Span(row),) for row in _rows(text, width)]


def _place_words(stop: StopTable) -> str:
    named = ("after", "before", "at", "when")
    return ", ".join(f"{name} {getattr(stop, name)}" for name in named if getattr(stop, name))
