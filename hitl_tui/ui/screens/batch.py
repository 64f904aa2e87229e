"""Deciding several requests of the queue: a preview with reasons, one key, and the outcomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from hitl_tui.drivers.policies import Policy
from hitl_tui.drivers.protocol import Hub
from hitl_tui.engine.thread.journal import account
from hitl_tui.errors import HitlError
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.gate import refuse
from hitl_tui.ui.guard import failure_words
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import start_work
from hitl_tui.view.batch import (
    APPROVE,
    Decider,
    answers_of,
    decide,
    plan,
    plan_by,
    plan_words,
    result_words,
)
from hitl_tui.view.cells import cells, cut, thread_name
from hitl_tui.view.queue import MOST, Key, Marks, QueueRow, rows_of
from hitl_tui.view.queue_facts import Outcome, Planned
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, trusted

_AT_ONCE: Final = 4
"""Number of decisions that are sent at the same time."""
_SHOWS_EVERY: Final = 0.2
_NAME: Final = 200
_ANSWER: Final = 40
"""Cells for the answers, before titles are cut."""
_LOOKS: Final[Mapping[Outcome, tuple[str, Role]]] = {
    "would": ("  ", "plain"),
    "left": ("– ", "dim"),
    "decided": ("✔ ", "ok"),
    "voted": ("✔ ", "ok"),
    "refused": ("✗ ", "error"),
}


class BatchScreen(OverlayScreen):
    """Returns once it is closed; decided requests lose their mark, refused ones stay marked.

    Args:
        rows: the requests to decide, each in the state that the person saw.
        marks: the marked requests of the queue.
        signs: whether a key signs the decisions.
        decided: called with each thread that was decided, to continue it.
        policy: the rules that answer, None for one answer to all.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "batch.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("ask.take", "decide"),
        bound("ask.back", "back"),
        bound("batch.answer", "answer"),
        bound("batch.words", "words"),
    ]
    AUTO_FOCUS = "#batch"

    def __init__(
        self,
        hub: Hub,
        rows: Sequence[QueueRow],
        marks: Marks,
        me: str,
        *,
        signs: bool,
        now: Callable[[], int],
        decided: Callable[[str], None],
        policy: Policy | None = None,
    ) -> None:
        super().__init__()
        self._hub = hub
        self._rows = rows
        self._marks = marks
        self._policy = policy
        self._current: Mapping[Key, QueueRow] = {}
        self._by = Decider(me, account(), signs)
        self._now = now
        self._decided = decided
        self._answers = () if policy else answers_of(rows)
        self._answer = APPROVE
        self._plans: tuple[Planned, ...] = ()
        self._results: dict[Key, Planned] = {}
        self._shown = -1
        """How many results are on screen; -1 until the preview is known."""
        self._deciding = self._stops = False

    def compose(self) -> ComposeResult:
        yield LineView("batch", "What would be decided")
        yield SafeInput(id="words", placeholder="your comment, logged with every decision")
        yield KeysBar()

    def on_mount(self) -> None:
        """Read the waiting requests, and show which of them would be decided."""
        start_work(self, self._begin, group="begin")

    async def _begin(self) -> None:
        """Begin with the answer that decides most requests, if "approve" would decide none."""
        self._current = {row.key: row for row in rows_of(await self._hub.waiting(MOST))}
        if self._policy is not None:
            try:
                self._plans = await plan_by(
                    self._policy, self._hub, self._rows, self._by, self._now(), current=self._current
                )
            except HitlError as error:
                self.notify(failure_words(error), severity="error", markup=False)
            self._shown = 0
            self._show()
            return
        self._shown = 0
        self._plan()
        if not any(planned.would for planned in self._plans):
            self._answer = max(self._answers, key=lambda answer: answer[2])[0]
            self._plan()

    def _plan(self) -> None:
        self._plans = plan(self._rows, self._answer, self._by, self._now(), current=self._current)
        self._show()

    def _show(self) -> None:
        view = self.query_one("#batch", LineView)
        if self._shown < 0:
            view.set_titles("What would be decided", "looking…")
            return
        self._shown = len(self._results)
        plans = [self._results.get(planned.key, planned) for planned in self._plans]
        done = bool(self._results) or self._deciding
        by = f"By {sanitise_line(self._policy.name, _NAME)}" if self._policy else f"Answer “{self._answer}”"
        title = result_words(plans) if done else f"{by}: {plan_words(plans)}"
        doing = "stopping after those that are being sent…" if self._stops else "deciding…"
        view.set_titles(title, doing if self._deciding else "")
        view.show(list(_lines(plans, max(view.scrollable_content_region.width, self.size.width - 4))))
        field = self.query_one(Input)
        field.border_title = "your comment"
        field.set_class(not (field.has_focus or field.value) or done, "-empty")
        self._show_keys(plans, done=done)

    def _show_keys(self, plans: Sequence[Planned], *, done: bool) -> None:
        footer, would = self.query_one(KeysBar), sum(planned.would for planned in plans)
        if self.focused is self.query_one(Input):
            entries = [("enter ask.back", "To the list")]
        elif done:
            entries = [("ask.back", "Stop")] if self._deciding else [("ask.take ask.back", "Back")]
        else:
            these = "this one" if would == 1 else f"these {would}"
            entries = [("ask.take", f"Decide {these}")] if would else []
            if len(self._answers) > 1:
                entries.append(("batch.answer", f"Answer “{sanitise_line(self._next_answer, 20)}”"))
            words = [] if self._policy else [("batch.words", "Comment")]
            entries += [*words, ("ask.back", "Back")]
        if footer.entries != entries:
            footer.entries = entries
            footer.refresh()

    @property
    def _next_answer(self) -> str:
        names = [name for name, _, _ in self._answers]
        return names[(names.index(self._answer) + 1) % len(names)]

    def on_resize(self) -> None:
        """Cut the rows for the width."""
        self.call_after_refresh(self._show)

    def on_descendant_focus(self) -> None:
        """Show the keys of the widget with the focus."""
        self._show()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._by = replace(self._by, note=event.value.strip() or None)
        self._plan()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.query_one("#batch").focus()

    def action_words(self) -> None:
        """Move to the comment; rules have their own."""
        if not (self._results or self._deciding or self._policy):
            field = self.query_one(Input)
            field.remove_class("-empty")
            field.focus()

    def action_answer(self) -> None:
        """Choose the next answer that some of the requests allow."""
        if not (self._results or self._deciding or self._policy):
            self._answer = self._next_answer
            self._plan()

    def action_back(self) -> None:
        """Go from the comment to the list, or from there to the queue; while it decides, stop after these."""
        if self.focused is self.query_one(Input):
            self.query_one("#batch").focus()
        elif self._deciding:
            self._stops = True
            self._show()
        else:
            self.dismiss(None)

    def action_decide(self) -> None:
        """Decide as listed; once that is done, go back to the queue."""
        if self._deciding:
            return
        if self._results:
            self.dismiss(None)
        elif any(planned.would for planned in self._plans) and not refuse(self.app):
            self._deciding = True
            self._show()
            start_work(self, self._decide, group="batch", exclusive=True)

    async def _decide(self) -> None:
        """Decide a few threads at the same time; the requests of one thread one after another."""
        places = asyncio.Semaphore(_AT_ONCE)

        async def send(plans: Sequence[Planned]) -> None:
            async with places:
                for planned in () if self._stops else plans:
                    self._take(await decide(self._hub, planned, self._by.actor))

        threads: dict[str, list[Planned]] = {}
        for planned in self._plans:
            if planned.would:
                threads.setdefault(planned.thread, []).append(planned)
        shows = self.set_interval(_SHOWS_EVERY, self._show_news)
        try:
            await asyncio.gather(*map(send, threads.values()))
        finally:
            shows.stop()
            self._deciding = self._stops = False
            self._show()

    def _show_news(self) -> None:
        """Show new results; with a thousand requests, showing each on its own would take longest."""
        if self._shown != len(self._results):
            self._show()

    def _take(self, result: Planned) -> None:
        """Take the result for one request."""
        self._results[result.key] = result
        if result.outcome == "refused":
            self._marks.refused(result.key, result.why)
        else:
            self._marks.forget(result.key)
            self._decided(result.thread)


def _lines(plans: Sequence[Planned], width: int) -> Iterator[Line]:
    """Return the requests to decide with their answers, then the rest with the reasons."""
    name = _widest((thread_name(planned.thread, _NAME) for planned in plans), width // 4)
    what = _widest((_what(planned) for planned in plans), _ANSWER)
    title = _widest((planned.title for planned in plans), max(width - name - what - 8, 16))
    left = False
    for planned in plans:
        if planned.outcome == "left" and not left:
            left = True
            yield ()
            yield (trusted("Left for you", "title"),)
        sign, role = _LOOKS[planned.outcome]
        yield (
            Span(sign, role),
            Span(_fit(thread_name(planned.thread, _NAME), name), "name"),
            Span(_fit(planned.title, title), "dim" if planned.outcome == "left" else "plain"),
            Span(_what(planned), "warning" if planned.outcome == "refused" else role),
        )


def _what(planned: Planned) -> str:
    """Return the answer for a request, or why it gets none."""
    if planned.outcome not in ("would", "decided"):
        return sanitise_line(planned.why, _NAME)
    return sanitise_line(f"{planned.label}, by rule {planned.rule}" if planned.rule else planned.label, _NAME)


def _widest(texts: Iterable[str], most: int) -> int:
    return min(max(map(cells, texts), default=0), most)


def _fit(text: str, width: int) -> str:
    """Return a text in a number of cells, and a gap."""
    shown = cut(text, width)
    return shown + " " * (width - cells(shown) + 2)
