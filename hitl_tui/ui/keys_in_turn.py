"""Keys one after another: each is handled once everything that the key before caused is done.

Textual hands every key at once to the widget with the focus, though the key before may be about to move
the focus, open a screen or choose an answer. Keys that come in a burst, or while the app is busy, would
then go where nobody meant them to.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from functools import cached_property
from typing import Final, TypeVar

from textual import events
from textual.app import App
from textual.message import Message
from textual.timer import Timer

from hitl_tui.ui.gate import InputGate, is_other_button

Result = TypeVar("Result")

_ROUNDS: Final = 2
"""A key bubbles from the focus to the app, and so does the message that a widget makes of it."""
_LOST: Final = 0.25
"""Seconds after which a key counts as done though its end was not seen: its widget has gone."""
_STUCK: Final = 5.0
"""Seconds after which a field counts as one that never takes what was typed into it."""
_AGAIN: Final = 0.01
"""Seconds until the next check whether keys can be handled."""
_NEVER_HELD: Final = frozenset({"ctrl+c", "ctrl+q"})


class KeyDone(Message):
    """Follows a key from widget to widget; when it arrives, the key was handled there."""

    def __init__(self, number: int, rounds: int) -> None:
        super().__init__()
        self.number = number
        self.rounds = rounds


class KeysInTurn(App[Result]):
    """App that hands on one key (or paste) at a time."""

    _number = 0
    _is_typing = False
    """Whether letters may still be queued for the focus."""
    _doing: Timer | None = None
    _looking: Timer | None = None

    @cached_property
    def gate(self) -> InputGate:
        """Gate for decisions."""
        return InputGate()

    @property
    @abstractmethod
    def takes_keys(self) -> bool:
        """Whether the receiver of the next key is ready."""

    @property
    def _held(self) -> deque[events.Key | events.Paste]:
        held: deque[events.Key | events.Paste] = self.__dict__.setdefault("_keys_held", deque())
        return held

    async def on_event(self, event: events.Event) -> None:
        """Hand a key on, or keep it until its turn has come; buttons other than the left one do nothing."""
        if is_other_button(event):
            return
        if isinstance(event, events.MouseDown):
            self.gate.take_click()
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded or _at_once(event):
            await super().on_event(event)
        elif self._held or self._doing is not None or not self.takes_keys:
            self._held.append(event)
            self._look_again()
        else:
            await self._hand_on(event)

    async def _hand_on(self, event: events.Key | events.Paste) -> None:
        self.gate.take_key(event)
        if isinstance(event, events.Key) and self._types(event):
            self._is_typing = True
            await super().on_event(event)
        elif self._is_typing:
            # A key of the screen acts before its focus has the letters: it would apply half of a text.
            self._is_typing = False
            self._held.appendleft(event)
            self._take_turn(_STUCK)
            self._follow(self._number, 1)
        else:
            self._take_turn(_LOST)
            await super().on_event(event)
            self._follow(self._number, _ROUNDS)

    def _take_turn(self, longest: float) -> None:
        self._number += 1
        self._doing = self.set_timer(longest, self._done)

    def _types(self, event: events.Key) -> bool:
        """Whether a key only adds to a text."""
        focused = self.focused
        typed = event.is_printable and focused is not None
        return typed and focused is not None and focused.check_consume_key(event.key, event.character)

    def _follow(self, number: int, rounds: int) -> None:
        target = self.focused or self.screen
        if not target.post_message(KeyDone(number, rounds)):
            self.call_later(self._done)

    async def on_key_done(self, event: KeyDone) -> None:
        """Note that a key is done: the message that its widget made of it comes after it."""
        if event.number != self._number or self._doing is None:
            return
        if event.rounds > 1:
            self._follow(event.number, event.rounds - 1)
        else:
            await self._done()

    async def _done(self) -> None:
        if self._doing is not None:
            self._doing.stop()
            self._doing = None
        await self._release()

    def _look_again(self) -> None:
        if self._looking is None and self._doing is None:
            self._looking = self.set_timer(_AGAIN, self._look)

    async def _look(self) -> None:
        self._looking = None
        await self._release()

    async def _release(self) -> None:
        """Hand on the kept keys, as far as they can be handled now."""
        while self._held and self._doing is None and self.takes_keys:
            await self._hand_on(self._held.popleft())
        if self._held:
            self._look_again()


def _at_once(event: events.Key | events.Paste) -> bool:
    """Whether it leaves the app, which waits for nothing."""
    return isinstance(event, events.Key) and event.key in _NEVER_HELD
