"""Reads the input of a terminal or a page before Textual's parser does.

Textual's parser reports what follows an escape character as keys, also inside a bracketed paste, so that
pasted text could press keys.  This parser takes each paste out first, marks letters that came together
with others, and drops mouse buttons that nothing here listens to.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from types import ModuleType
from typing import Final

from textual import events
from textual.message import Message

from hitl_tui.drivers.node_streams import in_browser
from hitl_tui.ui.textual_private import FlushingParser

PASTE_START: Final = "\x1b[200~"
PASTE_END: Final = "\x1b[201~"
_CONTROLS: Final = re.compile("[\x00\x1b\x80-\x9f]")
"""Characters that a pasted text may not contain: ESC, the C1 control characters and NUL."""
_ESCAPE_SECONDS: Final = 0.1
"""Seconds after which ESC, or ESC with "[", without a following character is a key of its own."""
_RELEASED_SECONDS: Final = 1.0
"""Seconds for which an ESC that was handed on as a key may still turn out to begin a paste."""
_LOST_SECONDS: Final = 1.0
"""Seconds of silence after which the key to leave the app ends a paste whose end was lost."""
_WAYS_OUT: Final = frozenset({"\x03", "\x11", "\x1b[99;5u", "\x1b[113;5u"})
"""What ctrl+c and ctrl+q send."""
_TOGETHER_SECONDS: Final = 0.01
"""Seconds between two letters within which nobody can type them: a slow line sends a text like this."""
_MOUSE: Final = re.compile(r"\x1b\[<(\d+);")
_BUTTON: Final = 0b1100_0011
_LEFT: Final = 0
_MOTION: Final = 0b10_0000
_WHEEL: Final = 0b0100_0000
_EXTRA_BUTTONS: Final = 0b1000_0000


class BurstKey(events.Key):
    """Letter that arrived together with other letters: text, not a key that somebody pressed."""

    def __init__(self, key: str, character: str | None, *, held_down: bool = False) -> None:
        super().__init__(key, character)
        self.held_down = held_down
        """Whether only repetitions of the same letter arrived together, as from a key that is held down."""


BurstKey.handler_name = events.Key.handler_name


def is_burst(event: events.Event) -> bool:
    """Whether a key is part of a text that arrived at once, as an unbracketed paste does."""
    return isinstance(event, BurstKey)


def is_held_down(event: events.Event) -> bool:
    """Whether a key arrived together only with repetitions of itself."""
    return isinstance(event, BurstKey) and event.held_down


class InputParser(FlushingParser):
    """Textual's parser after a reader of pastes."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._held = ""
        """Beginning of a possible start of a paste; inside a paste, of its end."""
        self._held_until = 0.0
        self._released = ""
        """Beginning of a possible start of a paste that was handed on as keys, as nothing followed it."""
        self._released_until = 0.0
        self._pasted: list[str] | None = None
        self._last_read = 0.0
        self._last_letter = 0.0
        self._last_key = ""

    def feed(self, data: str) -> Iterable[Message]:
        """Return what was read: a message for each key, each click and each whole paste."""
        messages: list[Message] = []
        if not data:
            held, self._held, self._pasted = self._held, "", None
            messages += super().feed(held) if held else ()
            messages += super().feed("")
            return messages
        now = time.monotonic()
        silence, self._last_read = now - self._last_read, now
        if self._pasted is not None and data in _WAYS_OUT and silence > _LOST_SECONDS:
            self._end_paste(messages)
            self._held = ""
        data, self._held = self._held + data, ""
        while data:
            data = (
                self._read_paste(data, messages) if self._pasted is not None else self._read(data, messages)
            )
        return self._marked(messages)

    def tick(self) -> Iterable[Message]:
        """Return the keys that are complete because nothing followed them."""
        messages: list[Message] = []
        now = time.monotonic()
        if self._pasted is None and self._held and now >= self._held_until and self._is_key(now):
            held, self._held = self._held, ""
            self._released, self._released_until = self._released + held, now + _RELEASED_SECONDS
            messages += super().feed(held)
            messages += self.flush()
        messages += super().tick()
        return messages

    def _is_key(self, now: float) -> bool:
        """Whether the kept characters may be a key: three characters of a paste's start are not, and wait."""
        if self._released and now >= self._released_until:
            self._released = ""
            return True
        return len(self._released + self._held) < 3

    def parse_mouse_code(self, code: str) -> Message | None:
        """Return the mouse event of a sequence; None for a button other than the left one."""
        match = _MOUSE.match(code)
        if match is not None:
            buttons = int(match[1])
            pressed = not buttons & (_MOTION | _WHEEL) and buttons & _BUTTON != _LEFT
            if pressed or buttons & _EXTRA_BUTTONS:
                return None
        return super().parse_mouse_code(code)

    def _read(self, data: str, messages: list[Message]) -> str:
        """Hand on the text before the next paste; return the text after its start."""
        released = self._released if time.monotonic() < self._released_until else ""
        if released and (released + data).startswith(PASTE_START):
            self._released, self._pasted = "", []
            return data[len(PASTE_START) - len(released) :]
        before, start, rest = data.partition(PASTE_START)
        if start:
            messages += super().feed(before) if before else ()
            messages += self.flush()
            self._released, self._pasted = "", []
            return rest
        if released and PASTE_START.startswith(released + data):
            kept = len(data)
        else:
            self._released = ""
            kept = _beginning_at_end(data, PASTE_START)
        before, self._held = data[: len(data) - kept], data[len(data) - kept :]
        self._held_until = time.monotonic() + _ESCAPE_SECONDS
        messages += super().feed(before) if before else ()
        return ""

    def _read_paste(self, data: str, messages: list[Message]) -> str:
        """Collect text up to the end of the paste; return the text after it."""
        assert self._pasted is not None
        text, end, rest = data.partition(PASTE_END)
        if not end:
            kept = _beginning_at_end(data, PASTE_END)
            text, self._held = data[: len(data) - kept], data[len(data) - kept :]
        self._pasted.append(text)
        if end:
            self._end_paste(messages)
        return rest

    def _end_paste(self, messages: list[Message]) -> None:
        """Hand on the text of a paste."""
        messages.append(events.Paste(clean_paste("".join(self._pasted or ()))))
        self._pasted = None

    def _marked(self, messages: list[Message]) -> list[Message]:
        """Mark letters that came with other letters, with a paste, or right after one."""
        texts = [message for message in messages if isinstance(message, events.Paste) or _is_letter(message)]
        if not texts:
            return messages
        now = time.monotonic()
        soon, self._last_letter = now - self._last_letter < _TOGETHER_SECONDS, now
        names = [message.key if isinstance(message, events.Key) else "" for message in texts]
        keys = {*names, self._last_key} if soon else {*names}
        self._last_key = names[-1]
        if len(texts) == 1 and not soon:
            return messages
        held_down = len(keys) == 1 and "" not in keys
        return [
            BurstKey(message.key, message.character, held_down=held_down)
            if isinstance(message, events.Key) and _is_letter(message)
            else message
            for message in messages
        ]


def _is_letter(message: Message) -> bool:
    """Whether a key belongs to a text: a character, enter, tab or backspace."""
    return isinstance(message, events.Key) and bool(message.character) and message.key != "escape"


def _beginning_at_end(data: str, mark: str) -> int:
    """Return how many characters at the end of `data` are the beginning of `mark`."""
    return next(
        (size for size in range(min(len(mark) - 1, len(data)), 0, -1) if data.endswith(mark[:size])), 0
    )


def clean_paste(text: str) -> str:
    """Return a pasted text without what could control a terminal; the rest keeps its order."""
    return _CONTROLS.sub("", text)


def read_input_first() -> None:
    """Let Textual's driver read with this parser."""
    module: ModuleType
    if in_browser():
        from textual.drivers import web_driver as module
    elif sys.platform == "win32":
        from textual.drivers import win32 as module
    else:
        from textual.drivers import linux_driver as module
    vars(module)["XTermParser"] = InputParser
