"""A tape as a presentation: the audience's text and its keys; see `stage.Performance`."""

from __future__ import annotations

from collections.abc import Callable

from hitl_tui.drivers.played import PlayedThread
from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Step
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.loading.stage_file import StopTable
from hitl_tui.view.format import decider
from hitl_tui.view.report import entry_facts
from hitl_tui.view.run_view import RunView
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.stage import Caption

_TOLD = frozenset({"request", "answer", "vote", "timeout", "update_state", "fork", "declassify", "cancel"})
_LINE = 200


class TapeShow:
    """Plays a tape; after the viewer forks it, steps the live fork."""

    def __init__(self, tape: PlayedThread, name: str) -> None:
        self.tempo = tape.tempo
        self.going = False
        self.live = False
        self._tape = tape
        self._name = sanitise_line(name, 60)

    @property
    def title(self) -> str:
        """The title of the tape."""
        return f"tape of {self._name}"

    @property
    def place(self) -> str:
        """The position, as "step 3 of 6"."""
        return f"step {self._tape.at} of {self._tape.last}"

    def caption(self, view: RunView) -> Caption:
        """Who decided what since the newest step of a node; nothing for a live fork."""
        if view.thread_id != self._tape.thread_id:
            return Caption()
        newest = next((entry for entry in reversed(view.ledger) if entry.kind in _TOLD), None)
        head = view.head
        if newest is None or head is None or newest.step < head.step - 1:
            return Caption()
        return Caption(_who(newest), newest.note or "")

    def arrive(self, view: RunView) -> StopTable | None:
        """Return False: a tape has no stops."""
        return None

    async def go_on(self, driver: Driver, last_event: Callable[[], int]) -> None:
        """Go to the next step without waiting; a live fork runs one node."""
        self.going = False
        self.tempo.held = False
        if driver is self._tape:
            self._tape.skip()
            return
        since = last_event()
        await driver.execute(Step())
        await driver.ended(since)

    async def restart(self) -> Driver:
        """Go to the first step."""
        self.tempo.held = False
        await self._tape.rewind()
        return self._tape

    def publish(self, thread: str) -> None:
        """Do nothing: no other terminal follows a tape."""

    def end(self) -> None:
        """Do nothing: no other terminal follows a tape."""


def _who(entry: LedgerEntry) -> str:
    if entry.kind == "request":
        return "It asks a person."
    what = next((fact for fact in entry_facts(entry) if fact.startswith("answer: ")), "")
    words = what.removeprefix("answer: ") or entry.kind.replace("_", " ")
    return sanitise_line(f"{entry.actor or decider(entry) or 'somebody'}: {words}", _LINE)
