"""Hands an answer only to the interrupt that asks what was answered.

LangGraph gives the answers of a task to its interrupts by their order, whatever they ask when the node
runs again. While a run is guarded, an interrupt gets the answer to its own payload; without one it asks.
"""

from __future__ import annotations

import dataclasses
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from langgraph import types
from langgraph.checkpoint.base import BaseCheckpointSaver

from hitl_tui.drivers.langgraph.interrupts import PLACE_AND_HASH, payload_hash
from hitl_tui.drivers.langgraph.replaced_functions import SCRATCHPAD, replace_function
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.state.frozen import thaw

_MOST_UNKNOWN = 64
"""Maximum number of answers of one task that are searched for answers by another program."""


class GivenAnswer(NamedTuple):
    """An answer that a person gave here.

    Args:
        request: the id of its request.
        place: LangGraph's id of the interrupt, which tells the task.
        payload: the hash of what was answered.
        n: the number of the ledger's entry.
    """

    request: str
    place: str
    payload: str
    value: Any
    n: int


class AnswerGuard:
    """Answers of a thread while its tasks run again.

    Attributes:
        served: the requests whose answers were handed to an interrupt.
    """

    def __init__(self, answers: Iterable[GivenAnswer]) -> None:
        answers = self._answers = list(answers)
        self._by_place: dict[str, list[GivenAnswer]] = {}
        for answer in answers:
            self._by_place.setdefault(answer.place, []).append(answer)
        self.served: set[str] = set()

    def of_task(self, places: Iterable[str]) -> list[GivenAnswer]:
        """Return the answers to a task, the oldest first."""
        return [answer for place in places for answer in self._by_place.get(place, ())]

    def unserved(self) -> list[GivenAnswer]:
        """Return the answers that were handed to no interrupt."""
        return [answer for answer in self._answers if answer.request not in self.served]

    def knows(self, place: str) -> bool:
        """Whether an answer to the interrupt at a place was given here."""
        return place in self._by_place


def can_guard(graph: Any) -> bool:
    """Whether runs of a graph can be guarded: those on a server can't, nor those of an unknown LangGraph."""
    if not isinstance(graph.checkpointer, BaseCheckpointSaver):
        return False
    return SCRATCHPAD.owning_object() is not None


_GUARD: ContextVar[AnswerGuard | None] = ContextVar("answers that a run is guarded by", default=None)


@contextmanager
def guarded(guard: AnswerGuard | None) -> Iterator[None]:
    """Make the run that begins in this context hand each answer only to its own interrupt."""
    if guard is None:
        yield
        return
    _count_interrupts_by_guard()
    token = _GUARD.set(guard)
    try:
        yield
    finally:
        _GUARD.reset(token)


def answers_given(ledger: Iterable[LedgerEntry]) -> list[GivenAnswer]:
    """Return the answers in a ledger that may still be used, the oldest first.

    Answers that the graph refused, an edit withdrew, or no interrupt used are left out.
    """
    given: dict[str, GivenAnswer] = {}
    for entry in ledger:
        request = entry.request_id or ""
        data = entry.data if isinstance(entry.data, Mapping) else {}
        place, found, payload = request.rpartition(PLACE_AND_HASH)
        if entry.kind in ("answer", "timeout") and found:
            given.pop(request, None)
            given[request] = GivenAnswer(request, place, payload, data.get("answer"), entry.n)
        elif entry.kind in ("withdrawn", "unused") or (
            entry.kind == "refused" and "answered_step" not in data
        ):
            given.pop(request, None)
    return list(given.values())


class _Counter:
    """Counts the interrupts of one task, as LangGraph's own counter, and puts the fitting answer there.

    Args:
        slots: the answers that LangGraph gives in their order; changed as they are taken.
        places: LangGraph's ids of the task's interrupts by how many answers there were before.
    """

    def __init__(
        self,
        guard: AnswerGuard,
        slots: list[Any],
        places: Callable[[int], str],
        send: Callable[[list[Any]], None],
    ) -> None:
        self._guard = guard
        self._slots = slots
        self._send = send
        own = dict.fromkeys(places(number) for number in range(len(slots) + _MOST_UNKNOWN))
        self._known = guard.of_task(own)
        self._unknown = [value for number, value in enumerate(slots) if not guard.knows(places(number))]
        self._had = len(slots)
        self._number = 0
        self._lock = threading.Lock()

    def __call__(self) -> int:
        """The place of the answer among the slots; the first free one where there is no answer."""
        frame = sys._getframe(1)
        asks = frame.f_code is types.interrupt.__code__
        with self._lock:
            number = self._number
            if not asks:
                self._number += 1
                return number
            found, value = self._answer_to(payload_hash(frame.f_locals["value"]))
            del self._slots[number:]
            if found:
                self._slots.append(value)
                self._number += 1
            elif self._had > number:
                self._send(list(self._slots))
            return number

    def _answer_to(self, payload: str) -> tuple[bool, Any]:
        for answer in self._known:
            if answer.payload == payload:
                self._known.remove(answer)
                self._guard.served.add(answer.request)
                return True, thaw(answer.value)
        return (True, self._unknown.pop(0)) if self._unknown else (False, None)


def _count_interrupts_by_guard() -> None:
    """Replace the function that makes the scratchpad of a LangGraph task, whose counter picks its answers."""
    replace_function(SCRATCHPAD, _guarded_scratchpad)


def _guarded_scratchpad(make: Any) -> Any:
    from langgraph._internal._constants import CONFIG_KEY_SEND, RESUME
    from langgraph.config import get_config

    identity = getattr(types, "_interrupt_id", None)

    def send(slots: list[Any]) -> None:
        get_config()["configurable"][CONFIG_KEY_SEND]([(RESUME, slots)])

    def scratchpad(parent: Any, writes: Any, task: str, place: str, *rest: Any) -> Any:
        pad = make(parent, writes, task, place, *rest)
        guard = _GUARD.get()
        if guard is None:
            return pad

        def places(number: int) -> str:
            if identity is not None:
                return str(identity(place, number))
            return f"{place}.{number}" if number else place

        return dataclasses.replace(pad, interrupt_counter=_Counter(guard, pad.resume, places, send))

    return scratchpad
