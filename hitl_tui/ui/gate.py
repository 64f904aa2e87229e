"""One gate for every decision: which key or click may decide, and on what screen.

Nothing is decided by text that arrived at once, by a button other than the left one, by a double click, on a
screen that has just changed its size or resumed after a stop, or while the subject of the decision is hidden.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar, cast

from textual import events
from textual.app import App
from textual.errors import NoWidget
from textual.widget import Widget

from hitl_tui.ui.terminal_input import is_burst, is_held_down

READ_SECONDS: Final = 0.5
"""Seconds after a change of the whole screen in which nothing is decided: nobody has read it yet."""
DOUBLE_CLICK_SECONDS: Final = 0.4
"""Seconds for which a click on a choice waits for a second one, as a double click decides nothing."""
TYPED_SECONDS: Final = 0.5
"""Seconds within which a letter after another one belongs to the same word."""
TOGETHER: Final = "letters that arrive all at once are text; press the key by itself"
CHANGED: Final = "the screen has just changed; press the key again"
DOUBLE: Final = "a double click decides nothing; click once"


class InputGate:
    """What the app knows about the current key and about the screen."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._is_text = self._is_held = False
        self._changed_at: float | None = None
        self._is_painted = True

    def now(self) -> float:
        """Return the time in seconds, to measure short intervals."""
        return self._clock()

    def take_key(self, event: events.Event) -> None:
        """Note the key that is handled next."""
        self._is_text, self._is_held = is_burst(event), is_held_down(event)

    def take_click(self) -> None:
        """Note that a click follows, whatever the last key was."""
        self._is_text = self._is_held = False

    def screen_changed(self) -> None:
        """Note that the screen has another size, or was resumed: it has to be read again."""
        self._changed_at, self._is_painted = self._clock(), False

    def painted(self) -> None:
        """Note that the whole screen was painted: the time to read it begins."""
        if not self._is_painted:
            self._changed_at, self._is_painted = self._clock(), True

    @property
    def is_settled(self) -> bool:
        """Whether the screen was painted since its last change, and could be read."""
        return self._changed_at is None or (
            self._is_painted and self._clock() - self._changed_at >= READ_SECONDS
        )

    @property
    def refusal(self) -> str:
        """Return why the current key decides nothing; "" if it may."""
        return TOGETHER if self._is_text else self.click_refusal

    @property
    def run_refusal(self) -> str:
        """Return why the current key runs nothing; "" if it may, as a key that is held down may."""
        return TOGETHER if self._is_text and not self._is_held else ""

    @property
    def click_refusal(self) -> str:
        """Return why a click decides nothing now; "" if it may."""
        return "" if self.is_settled else CHANGED


def gate_of(app: App[Any]) -> InputGate:
    """Return the gate of the app; in another app, one that lets everything through."""
    gate = getattr(app, "gate", None)
    return gate if isinstance(gate, InputGate) else InputGate()


def refuse(app: App[Any]) -> bool:
    """Show why the current key decides nothing; return False if it may."""
    refusal = gate_of(app).refusal
    if refusal:
        say_refused(app, refusal)
    return bool(refusal)


def say_refused(app: App[Any], refusal: str) -> None:
    """Show that and why a key or a click did nothing."""
    app.notify(f"Nothing was decided: {refusal}.", severity="warning", markup=False)


Decision = TypeVar("Decision", bound=Callable[..., None])


def decides(method: Decision) -> Decision:
    """Let a method of a screen or a widget decide only if the gate allows it for the current key.

    Marks everything that changes a thread, the store or a file with one key and without a `Choices`.
    """

    @wraps(method)
    def gated(widget: Widget, *arguments: Any) -> None:
        if not refuse(widget.app):
            method(widget, *arguments)

    return cast("Decision", gated)


def is_other_button(event: events.Event) -> bool:
    """Whether this is a press, a release or a click of a button other than the left one."""
    return isinstance(event, events.MouseDown | events.MouseUp | events.Click) and event.button not in (0, 1)


def rows_on_screen(widget: Widget) -> range:
    """Return which rows of a widget's content are visible, from 0."""
    try:
        visible = widget.screen.find_widget(widget).visible_region
    except NoWidget:
        return range(0)
    content = widget.content_region
    shown = visible.intersection(content)
    if not shown.width or not shown.height:
        return range(0)
    return range(shown.y - content.y, shown.bottom - content.y)


def is_on_screen(widget: Widget) -> bool:
    """Whether all rows of a widget are visible."""
    height = widget.content_region.height
    return bool(height) and len(rows_on_screen(widget)) >= height
