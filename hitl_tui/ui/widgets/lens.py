"""What the shown step changed, and why a node failed: reducer by reducer, with what happened later."""

from __future__ import annotations

from collections.abc import Mapping

from textual import on

from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.view.banner import failed_what, failure_lines
from hitl_tui.view.lens import step_title
from hitl_tui.view.notes import note_words
from hitl_tui.view.rows import wrap_line, wrap_spans
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span

_NARROWEST = 12


class LensPane(LineView):
    """Lens on a step, painted again only if its lines differ.

    Args:
        key_hints: by action id, the key to press.
    """

    def __init__(self, key_hints: Mapping[str, str]) -> None:
        super().__init__("lens", "What changed")
        self._key_hints = key_hints
        self._session: ViewSession | None = None
        self._columns = 0
        self.own_rows = 0
        """Number of rows about the shown step alone."""
        self._before: tuple[tuple[str, int], tuple[Line, ...]] = (("", 0), ())

    def show_session(self, session: ViewSession) -> None:
        """Update it for the shown step."""
        self._session = session
        step = session.step_view
        # Room is left for the scroll bar that a long text may bring.
        # While it is hidden it has no width; when it is shown again it mostly has the previous one.
        self._columns = self.scrollable_content_region.width or self._columns
        width = self._columns - (not self.show_vertical_scrollbar)
        failed = failure_lines(session, self._key_hints, width) if not session.is_past else ()
        own = self._lines(session, width)
        # A failure is no part of the newest step.
        title = (step_title(step.checkpoint),) if failed and own and step.checkpoint else ()
        lines = (*failed, *title, *own)
        if not step.updates and not failed:
            nothing = "no channel was changed" if step.checkpoint else "the first step fills this"
            lines = (*lines, (Span(nothing, "dim"),))
        self.own_rows = len(lines)
        if self._before[0] == _place(session):
            lines = (*lines, *self._before[1])
        if lines != tuple(self.lines):
            self.show(lines, home=True)
        failing = session.view.error if failed else None
        changed = f"What step {step.step} changed" if step.checkpoint else "What changed"
        self.set_titles(failed_what(failing) if failing else changed)

    def show_before(self, session: ViewSession, lines: tuple[Line, ...]) -> None:
        """Show below it what the steps before the shown one changed."""
        self._before = _place(session), lines
        self.show_session(session)

    def _lines(self, session: ViewSession, width: int) -> tuple[Line, ...]:
        step, room = session.step_view, max(width, _NARROWEST)
        why = [(Span(row, "dim"),) for row in wrap_line(step.why, room)] if step.why else []
        calls = [row for line in step.calls for row in wrap_spans(line, width)]
        failed = [row for line in step.failed_calls for row in wrap_spans(line, width)]
        then = [(Span(row, "human"),) for said in self._afterwards(session) for row in wrap_line(said, room)]
        return (*why, *calls, *step.lens, *failed, *then)

    def _afterwards(self, session: ViewSession) -> tuple[str, ...]:
        """Return the notes on the shown step, what happened after it, and what it can be compared with."""
        notes = (line for note in session.notes for line in note_words(note).splitlines())
        after = *notes, *session.step_view.agent_changes
        other = session.other_draft
        if other is None:
            return after
        beside = f"{self._key_hints['look.compare']} compares it with {sanitise(other[0])}"
        return (*after, beside)

    @on(LineView.Widened)
    def _wrap_again(self) -> None:
        if self._session is not None:
            self.show_session(self._session)


def _place(session: ViewSession) -> tuple[str, int]:
    """Return the name of the shown step."""
    return session.shown or (session.thread_id, session.step_view.step)
