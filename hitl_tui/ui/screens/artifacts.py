"""Results of nodes besides their updates: a list, the text of the selected artifact, and saving it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from hitl_tui.engine.log.outcomes import KeptArtifact
from hitl_tui.engine.log.records import Checkpoint
from hitl_tui.new_files import file_name
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.gate import decides
from hitl_tui.ui.new_files import write_file
from hitl_tui.ui.screens.modal import Host
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.sizes import BREAKPOINTS
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.view.format import count
from hitl_tui.view.rows import wrapped
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import Line, Span, untrusted

_MOST_CHARS: Final = 100_000
"""Characters of a text that are shown."""
_KEYS = (
    ("artifacts.save", "Save here"), ("list.up list.down", "Select"), ("list.page_down", "Scroll"),
    ("page.close", "Back"),
)  # fmt: skip


class ArtifactsScreen(OverlayScreen):
    """Artifacts of the loaded steps of a thread, newest first; it begins with those of the shown step.

    Args:
        points: the steps, oldest first.
        step: the shown one.
        keys: the keys that opened it and close it again.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["artifacts.tcss"]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("page.close", "close"),
        bound("artifacts.save", "save"),
        bound("list.up", "select(-1)"),
        bound("list.down", "select(1)"),
        bound("list.page_up", "scroll_text(-1)"),
        bound("list.page_down", "scroll_text(1)"),
    ]
    AUTO_FOCUS = ""

    def __init__(self, host: Host, points: Sequence[Checkpoint], step: int, keys: Sequence[str] = ()) -> None:
        super().__init__(keys)
        self._host = host
        self._artifacts = [
            (point.step, artifact) for point in reversed(points) for artifact in point.artifacts
        ]
        older = (row for row, (number, _) in enumerate(self._artifacts) if number <= step)
        self._at = next(older, 0)

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield LineView("artifacts", "Artifacts")
        yield LineView("artifact", "")
        yield KeysBar(_KEYS)

    def on_mount(self) -> None:
        """Show the list."""
        names = self.query_one("#artifacts", LineView)
        names.heeds_keys = True
        for view in self.query(LineView):
            view.can_focus = False
        names.show([_row(*row) for row in self._artifacts] or [(Span("no step has any", "dim"),)])
        names.styles.height = min(max(len(self._artifacts), 1), max(self.size.height // 3, 3)) + 2
        self.call_after_refresh(self.action_select, 0)

    @on(LineView.RowChosen, "#artifacts")
    def _row_chosen(self, event: LineView.RowChosen) -> None:
        self.action_select(event.row - self._at)

    def action_select(self, by: int) -> None:
        """Select another artifact."""
        if self._artifacts:
            self._at = min(max(self._at + by, 0), len(self._artifacts) - 1)
            self._show_selected(home=True)

    @on(LineView.Widened, "#artifact")
    def _wrap_again(self) -> None:
        if self._artifacts:
            self._show_selected(home=False)

    def _show_selected(self, *, home: bool) -> None:
        names, pane = self.query_one("#artifacts", LineView), self.query_one("#artifact", LineView)
        names.cursor_row = self._at
        names.reveal(self._at)
        names.repaint()
        artifact = self._artifacts[self._at][1]
        pane.set_titles(artifact.name, artifact.media_type)
        pane.show(_text(artifact, max(pane.scrollable_content_region.width, 20)), home=home)

    def action_scroll_text(self, by: int) -> None:
        """Scroll the shown artifact by pages."""
        self.query_one("#artifact", LineView).turn_pages(by)

    @decides
    def action_save(self) -> None:
        """Write the selected artifact to a new file in the current directory."""
        if not self._artifacts:
            return
        artifact = self._artifacts[self._at][1]
        try:
            content = artifact.content
        except ValueError:
            self._host.show_message(
                "it was changed after it was stored; a check of the thread says more", artifact.name, "error"
            )
            return
        name = file_name(artifact.name, "artifact")
        write_file(self._host, name, content, artifact.media_type, artifact.name)


def _row(step: int, artifact: KeptArtifact) -> Line:
    return (
        Span(f"step {step:<6} ", "dim"),
        untrusted(artifact.name, "name", 60),
        Span("  "),
        untrusted(artifact.media_type, "dim", 40),
        Span(f"  {_size(artifact)}", "dim"),
        untrusted(f"  {artifact.path}" if artifact.path else "", "dim", 60),
    )


def _size(artifact: KeptArtifact) -> str:
    if not artifact.binary:
        return count(len(artifact.body), "character")
    return count(len(artifact.body.rstrip("=")) * 3 // 4, "byte")


def _text(artifact: KeptArtifact, width: int) -> list[Line]:
    if artifact.binary:
        return [(Span("bytes: save it, to open it with another program", "dim"),)]
    text = sanitise(artifact.body[:_MOST_CHARS])
    rows = [row for line in text.split("\n") for row in wrapped(line, width, "value") or [()]]
    left = len(artifact.body) - _MOST_CHARS
    return [*rows, (Span(f"… {left:,} more characters", "dim"),)] if left > 0 else rows
