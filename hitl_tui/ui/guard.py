"""Guard around everything that a screen does: an error is shown and logged, and the app stays usable."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import Any, Final, TypeVar

from textual.app import App, ScreenStackError
from textual.dom import DOMNode, NoScreen
from textual.events import Compose, Load, Mount
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen

from hitl_tui.errors import HitlError
from hitl_tui.ui.textual_private import Dispatch, HookedApp, active_widget, wrap_dispatch
from hitl_tui.view.sanitise import sanitise

log = logging.getLogger(__name__)
Result = TypeVar("Result")

_MOST: Final = 25
"""Errors within `_WINDOW` after which the app ends: then each repaint fails, and no screen is usable."""
_WINDOW: Final = 5.0
_READ_SECONDS: Final = 15.0


class Guarded(HookedApp[Result]):
    """App that survives an error of a handler, a timer or a worker.

    Without it, Textual ends the loop of the widget whose handler failed, and the app with it.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        wrap_dispatch(_guarded)
        super().__init__(*args, **options)
        self._error_times: deque[float] = deque(maxlen=_MOST)
        self._shown_errors: set[tuple[str, str]] = set()
        self.caught_errors: list[Exception] = []
        """Unexpected errors so far, newest last; no more than `_MOST`."""

    def survive(self, error: Exception) -> bool:
        """Show and log an unexpected error; return False if the app can't continue and has to end with it."""
        if self.is_ending:
            # Errors of keys and screens that are being removed are harmless.
            log.info("while the app was ending", exc_info=error)
            return True
        now = time.monotonic()
        self._error_times.append(now)
        self.caught_errors = [*self.caught_errors, error][-_MOST:]
        if len(self._error_times) == _MOST and now - self._error_times[0] < _WINDOW:
            return False
        kind = (type(error).__name__, str(error))
        if kind not in self._shown_errors:
            self._shown_errors.add(kind)
            log.error("unexpected error on screen", exc_info=error)
            self._show_error(error)
        return True

    def _show_error(self, error: Exception) -> None:
        from hitl_tui.view.banner import log_file

        text = f"{type(error).__name__}: {error}\nThis is a bug; the details are in {log_file()}. q quits."
        title = "Unexpected error"
        try:
            self.notify(sanitise(text), title=title, severity="error", markup=False, timeout=_READ_SECONDS)
        except Exception:
            log.exception("the error could not be shown")

    def show_error(self, error: HitlError) -> None:
        """Show an error whose message says what to do."""
        self.notify(failure_words(error), title=error.title, severity="error", markup=False)

    def handle_error(self, error: Exception) -> None:
        """Handle a failure of composing, of a timer, of a callback or of a repaint."""
        pump = active_widget()
        if pump is not None and pump is not self and is_gone(pump):
            log.info("while %r was being removed", pump, exc_info=error)
        elif not self.survive(error):
            self.end_with(error)
        elif isinstance(pump, Screen) and not pump.is_mounted:
            self.call_later(_leave_broken, self, pump)


def is_gone(pump: MessagePump) -> bool:
    """Whether a widget or its screen is being removed: an error in it is then harmless."""
    if not isinstance(pump, DOMNode) or isinstance(pump, App):
        return False
    if not pump.display and pump.styles.display != "none":
        return True  # Textual shows nothing of what it removes, and removes its parts one by one
    try:
        return not pump.is_attached or pump.screen not in pump.app.screen_stack
    except (NoScreen, ScreenStackError):
        return True


def failure_words(error: BaseException) -> str:
    """Return what went wrong and how to fix it, sanitised: errors quote stores, files and servers."""
    text = f"{error.message} — {error.hint}" if isinstance(error, HitlError) and error.hint else str(error)
    return sanitise(text)


async def _guarded(dispatch: Dispatch, pump: MessagePump, message: Message) -> None:
    """Let a handler of a `Guarded` app fail without ending the loop of its widget."""
    try:
        await dispatch(pump, message)
    except Exception as error:
        app = pump if isinstance(pump, Guarded) else pump.app
        if not isinstance(app, Guarded):
            raise
        if is_gone(pump):
            log.info("while %r was being removed", pump, exc_info=error)
            return
        if isinstance(message, Load) or not app.survive(error):
            app.end_with(error)
        if isinstance(message, Compose | Mount) and isinstance(pump, Screen):
            app.call_later(_leave_broken, app, pump)


def _leave_broken(app: App[Any], screen: Screen[Any]) -> None:
    """Leave a screen that could not be built; nothing on it would work."""
    if app.screen is screen and len(app.screen_stack) > 1:
        app.pop_screen()
