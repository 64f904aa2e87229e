"""Empty frames of the run screen, painted while a thread takes long to open."""

from __future__ import annotations

from pathlib import PurePath
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Key
from textual.widget import Widget

from hitl_tui.ui.screens.modal import BaseScreen
from hitl_tui.ui.sizes import BREAKPOINTS, HEIGHTS


class _Pane(Widget):
    """Frame with a title, in the place of the run screen's pane of that name."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__(id=name, classes="pane")
        self.border_title = title

    def render(self) -> Content:
        """Return nothing yet."""
        return Content("")


class _Bar(Widget):
    """First row, with the app's name, and the last."""

    def __init__(self, name: str, content: Content) -> None:
        super().__init__(id=name)
        self._content = content

    def render(self) -> Content:
        """Return one row."""
        return self._content


class OpeningScreen(BaseScreen[None]):
    """Has the same ids and style sheet as the run screen, so that nothing moves when that comes."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["run.tcss"]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(self, *, quits: bool = True, reviewing: bool = False) -> None:
        """With `quits`, q leaves at once, as it does later; a user may have assigned another action to it.

        With `reviewing` only the panes of a reviewer are there.
        """
        super().__init__(classes="-reviewing" if reviewing else None)
        self.early_keys: list[str] = []
        self._quits = quits

    async def on_key(self, event: Key) -> None:
        """Keep keys for the run screen: nobody should have to wait for it before pressing one."""
        if event.key == "ctrl+c":
            return  # the app uses it to quit
        # The app would look for it among the keys of the run screen, which may be under way by now.
        event.stop()
        if self._quits and event.key == "q":
            await self.run_action("app.ask_to_quit")
        else:
            self.early_keys.append(event.key)

    def compose(self) -> ComposeResult:
        yield _Bar("header", Content.assemble((" hitl-tui ", "bold $primary"), ("  opening…", "$muted")))
        with Horizontal(id="body"):
            yield _Pane("graph", "Graph")
            with Vertical(id="middle"):
                yield _Pane("channels", "Channels")
                yield _Pane("value", "Value")
            with Vertical(id="right"):
                yield _Pane("lens", "What changed")
                yield _Pane("stream", "Stream")
        yield _Pane("timeline", "Timeline")
        yield _Bar("footer", Content(""))
