"""What a run was given: goal and constraints as they stand and stood, and what began it (SPEC 3, 11, 15)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.channels.channel import RUN_INPUTS
from hitl_tui.engine.channels.values import freeze
from hitl_tui.engine.log.records import Cursor, Effect, LedgerEntry
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.thread.rebuild import state_at

INPUT = "input"
"""The kind of the ledger's entries that say what was given."""


def frozen(cursor: Cursor) -> Cursor:
    """A cursor from a store, with inputs that no node can change."""
    if cursor.goal is None and cursor.constraints is None:
        return cursor
    return replace(cursor, goal=freeze(cursor.goal), constraints=freeze(cursor.constraints))


def given_at_steps(ledger: Iterable[LedgerEntry]) -> dict[int, dict[str, Any]]:
    """What was given, by the step it came with; of several threads of a family, as a fork's ledger has it."""
    return {entry.step: freeze(dict(entry.data)) for entry in ledger if entry.kind == INPUT}


def as_of(step: int, given: dict[int, dict[str, Any]], now: Cursor) -> dict[str, Any]:
    """Goal and constraints as they stood at a step of a thread.

    Args:
        given: from `given_at_steps`; without any the thread has kept what it has `now` all the time.
    """
    if not given:
        return {name: getattr(now, name) for name in RUN_INPUTS}
    found = dict.fromkeys(RUN_INPUTS)
    for at, values in given.items():
        if at <= step:
            found.update(values)
    return found


class FirstInput(msgspec.Struct, frozen=True):
    """The first entry that the input of an invocation put into a channel, followed to a step.

    Attributes:
        given: as it was given.
        place: where it stands in the channel's list; -1 once a bounded channel or an edit has dropped it.
        length: of the list.
        step: up to which it was followed.
    """

    given: Any
    place: int
    length: int
    step: int

    def now(self, value: Any) -> Any:
        """As it stands in the channel's value, an edit included; as it was given where it is gone."""
        held = isinstance(value, (list, tuple)) and 0 <= self.place < len(value)
        return value[self.place] if held else self.given

    def follow(self, store: Store, thread_id: str, channel: str, head: int) -> FirstInput:
        """The same, followed to the thread's head."""
        place, length = self.place, self.length
        for effect in store.effects(thread_id, self.step + 1, head):
            if effect.channel == channel:
                place, length = _moved(place, length, effect)
        return FirstInput(self.given, place, length, head)


def first_input(
    store: Store, thread_id: str, channel: str, head: int, defaults: dict[str, Any]
) -> FirstInput | None:
    """What began the newest invocation that was given something for a channel; None where none was.

    Args:
        head: the thread's last step.
        defaults: values of channels before the first step.
    """
    last = head
    while last >= 0:
        first = _first_step(store, thread_id, last)
        effects = [effect for effect in store.effects(thread_id, first, first) if effect.channel == channel]
        if effects:
            before = state_at(store, thread_id, first - 1, defaults, [channel]) if first else defaults
            length = len(value) if isinstance(value := before.get(channel), (list, tuple)) else 0
            begun = FirstInput(freeze(effects[0].update), length, length, first - 1)
            return begun.follow(store, thread_id, channel, head)
        last = first - 1
    return None


def _first_step(store: Store, thread_id: str, step: int) -> int:
    """The step that began the invocation of a step; their numbers only grow along a thread."""
    point = store.checkpoint(thread_id, step)
    low, high = 0, step
    while point and low < high:
        middle = (low + high) // 2
        other = store.checkpoint(thread_id, middle)
        if other and other.invocation < point.invocation:
            low = middle + 1
        else:
            high = middle
    return high


def _moved(place: int, length: int, effect: Effect) -> tuple[int, int]:
    """Where an entry of a list stands after an update of it, and how long the list is then."""
    name, _, argument = effect.reducer.partition("(")
    if effect.op == "reduce" and name in ("append", "last_n"):
        dropped = max(0, length + 1 - int(argument.rstrip(")"))) if argument else 0
        return (place - dropped if place >= dropped else -1), length + 1 - dropped
    # An edit in its place, or a list that is made anew: an entry counts as the same by its place.
    value = effect.update if effect.result is msgspec.UNSET else effect.result
    length = len(value) if isinstance(value, (list, tuple)) else 0
    return (place if place < length else -1), length
