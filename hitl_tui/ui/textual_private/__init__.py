"""Every private name of Textual that is used here, each with the reason: Textual has no public one for it.

Classes turn what Textual calls privately into methods with names of their own; all other modules inherit
from these or call the functions. A test looks for private names of Textual elsewhere. What only a page in a
browser or the palette needs is in modules of its own, since it is loaded late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, TypeVar

from rich.console import RenderableType
from textual._context import active_message_pump
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.driver import Driver
from textual.geometry import Size
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen, ScreenResultType
from textual.strip import Strip
from textual.widget import Widget

Result = TypeVar("Result")
Dispatch = Callable[[MessagePump, Message], Awaitable[None]]


class HookedApp(App[Result]):
    """App with hooks for errors, paints and notifications, and that can end at once."""

    @property
    def is_ending(self) -> bool:
        """Whether `exit` was called. Textual says so only to itself."""
        return self._exit

    @property
    def terminal_driver(self) -> Driver | None:
        """Driver of the terminal, to write to it between two frames; None before there is one."""
        return self._driver

    @property
    def fatal_error(self) -> Exception | None:
        """Error that ended the app, which Textual would print as a traceback."""
        return self._exception

    @fatal_error.setter
    def fatal_error(self, error: Exception) -> None:
        self._exception = error

    @property
    def event_loop(self) -> asyncio.AbstractEventLoop | None:
        """Loop that the app runs on, for other threads; None before it runs."""
        return self._loop

    def as_active_app(self) -> AbstractContextManager[None]:
        """Make this the active app in a coroutine that another thread has started on its loop."""
        return self._context()

    def note_suspension(self) -> None:
        """Tell Textual that the program is about to be stopped, as its own action does on some platforms."""
        self._suspend_signal()

    def close_at_once(self) -> None:
        """End the app without a traceback on the screen; Textual's own methods print one."""
        self._close_messages_no_wait()

    def end_with(self, error: Exception) -> None:
        """End with an unexpected error, as Textual does by itself."""
        super()._handle_exception(error)

    def handle_error(self, error: Exception) -> None:
        """Handle a failure of composing, of a timer, of a callback or of a repaint: end the app."""
        self.end_with(error)

    def on_painted(self, screen: Screen[Any]) -> None:
        """React to a painted frame; Textual sends no message about it."""

    def _handle_exception(self, error: Exception) -> None:
        self.handle_error(error)

    def _fatal_error(self) -> None:
        self.close_at_once()

    def _refresh_notifications(self) -> None:
        # If none was ever shown, an empty rack would have everything laid out again.
        if self._notifications or self.query("Toast"):
            super()._refresh_notifications()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, renderable)
        self.on_painted(screen)


class SteadyScreen(Screen[ScreenResultType]):
    """Screen that is laid out for the terminal's size alone, and can be laid out without a paint."""

    @property
    def is_laid_out(self) -> bool:
        """Whether it has a size yet."""
        return bool(self._size)

    def lay_out(self) -> None:
        """Lay out all widgets now; Textual does it with the next frame."""
        self._refresh_layout(self.app.size)

    def _screen_resized(self, size: Size) -> None:
        # Textual reports the current size three times while it starts, and each layout reports the size to
        # the screen: if it obeyed an old one, two on their way would call each other forever.
        if self.app.size != self._size:
            super()._screen_resized(self.app.size)


def force_layout(screen: Screen[Any]) -> None:
    """Lay out all widgets of a screen now; Textual does it with the next frame."""
    screen._refresh_layout()


def forget_arrangements(widgets: Iterable[Widget]) -> None:
    """Drop the layout caches; Textual does so once it is idle, which is after a paint."""
    for widget in widgets:
        widget._clear_arrangement_cache()


def painted_strips(screen: Screen[Any]) -> list[Strip]:
    """Return the rows of a screen as they are painted, for a recording."""
    return screen._compositor.render_strips()


def active_widget() -> MessagePump | None:
    """Return the widget whose message is handled now, None outside of one."""
    return active_message_pump.get(None)


def wrap_dispatch(around: Callable[[Dispatch, MessagePump, Message], Awaitable[None]]) -> None:
    """Let a function handle each message of each widget.

    This replaces a private method of Textual: there is no public place through which every message of every
    widget passes. A second call does nothing.

    Args:
        around: called with the method it replaces, the widget and the message.
    """
    dispatch: Dispatch = MessagePump._dispatch_message
    if hasattr(dispatch, "__wrapped__"):
        return

    @wraps(dispatch)
    async def wrapped(pump: MessagePump, message: Message) -> None:
        await around(dispatch, pump, message)

    setattr(MessagePump, "_dispatch_message", wrapped)  # noqa: B010  (mypy refuses to assign a method)


class FlushingParser(XTermParser):
    """Textual's parser of terminal input, which a reader in front of it can flush."""

    def flush(self) -> Iterable[Message]:
        """Return the kept part of a sequence that ends here."""
        if self._timeout_time is not None:
            self._timeout_time = 0.0
        return super().tick()


def stoppable(driver: type[Driver]) -> type[Driver]:
    """Return a driver of a terminal that can be stopped and continued at any moment.

    It stops and continues from the app's loop: a signal may come while the queue of its writer is locked.
    Textual answers SIGCONT as if it had always stopped by itself. After a stop that nobody can catch, or none
    at all, two threads would read the keys, one of them forever.
    """

    class Stoppable(driver):  # type: ignore[valid-type,misc]  # whichever this platform has
        attrs_before: Any
        exit_event: Any
        _must_signal_resume: bool

        @property
        def app(self) -> Any:
            return self._app

        def call_soon(self, callback: Callable[..., object]) -> None:
            self._loop.call_soon_threadsafe(callback)

        def terminal_size(self) -> tuple[int, int]:
            """Return its columns and rows; Textual asks streams that are not the terminal here."""
            size: tuple[int, int] = super()._get_terminal_size()
            return size

        def _get_terminal_size(self) -> tuple[int, int]:
            return self.terminal_size()

        def _sigtstp_application(self, *_: object) -> None:
            if self._auto_restart:
                self._loop.call_soon_threadsafe(super()._sigtstp_application)
            else:  # the program that has the terminal is stopped with us; nothing else is done for it
                super()._sigtstp_application()

        def _sigcont_application(self, *_: object) -> None:
            if self._auto_restart:
                self._loop.call_soon_threadsafe(self._continue)

        def _continue(self) -> None:
            if self._must_signal_resume:
                super()._sigcont_application()
            elif self._key_thread is not None and self._key_thread.is_alive():
                # What was typed since stays in the terminal for the new reader: Textual drops it where it
                # ends its reader itself, and a terminal back in line mode would change it.
                self.exit_event.set()
                self._key_thread.join()
                modes, self.attrs_before = self.attrs_before, None
                self.suspend_application_mode()
                self.exit_event.clear()
                self._must_signal_resume = True
                super()._sigcont_application()
                self.attrs_before = modes

    return Stoppable
