"""Conditions that end a run as completed(termination), combined with `|` and `&`.

They are checked after each step that has no fixed edge to END, before its route is chosen, so a run that is
over calls no routing function. They look at what the steps of this invocation wrote, not at its input, and
not at what an earlier invocation left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from hitl_tui.declared import declares
from hitl_tui.engine.graph.functions import check_arguments
from hitl_tui.engine.state.reducers import Reducer
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.errors import GraphInvalid, in_words


class WrittenChannels:
    """Which channels the steps of an invocation have written, and which entries of lists are older.

    Args:
        invocation: its number.
        step: the thread's last step that is counted here.
    """

    def __init__(self, invocation: int, step: int) -> None:
        self.invocation = invocation
        self.step = step
        self.given: set[str] = set()
        """The channels that its input wrote."""
        self.older: dict[str, int] = {}
        """For each written channel, the number of entries at the front of its list that are older."""

    def note(self, channel: str, reducer: Reducer | None, before: int, now: int) -> None:
        """Count one update.

        Args:
            reducer: None for a value that a person set.
            before, now: how long the channel's list is before and after it; 0 for other values.
        """
        older = self.older.get(channel, before)
        if reducer and reducer.kind == "element":
            older -= before + 1 - now
        elif reducer and reducer.kind == "replace":
            older = 0
        self.older[channel] = max(min(older, now), 0)

    def written_part(self, channel: str, value: Any) -> Any:
        """Return the written part of a channel's value: entries of a list, or the value; None for nothing."""
        if channel not in self.older:
            return None
        return value[self.older[channel] :] if isinstance(value, list) else value

    def may_depend_on(self, names: Iterable[str], is_default: Callable[[str], bool]) -> bool:
        """Whether a condition on these channels can be met because of this invocation.

        Args:
            is_default: tells whether nothing has ever changed a channel.
        """
        channels = {name.partition(".")[0] for name in names}
        if self.invocation == 1 or any(name in self.older for name in channels):
            return True
        return all(name in self.given or is_default(name) for name in channels)


class RunTotals(msgspec.Struct, frozen=True):
    """What conditions can use besides the state.

    Args:
        turns: node runs of this invocation.
        cost: US dollars spent.
        written: what this invocation wrote.
        read: the channels read of the state since it was cleared.
        is_default: tells whether nothing has ever changed a channel.
    """

    turns: int
    cost: float
    written: WrittenChannels
    read: dict[str, None]
    is_default: Callable[[str], bool]


class Termination:
    """A condition on the state and the run's totals.

    Args:
        met: returns a text that says what has been reached, "" while it is not met.
        reason: the condition as text.
        channels: those that it uses.
        either: made by `|`, so that its text needs brackets within others.
    """

    def __init__(
        self,
        met: Callable[[WorkflowState, RunTotals], str],
        reason: str,
        channels: tuple[str, ...] = (),
        *,
        either: bool = False,
    ) -> None:
        self.met = met
        self.reason = reason
        self.channels = channels
        self.either = either

    def __or__(self, other: Termination) -> Termination:
        if not isinstance(other, Termination):
            return NotImplemented
        return Termination(
            lambda state, totals: self.met(state, totals) or other.met(state, totals),
            f"{self.reason} or {other.reason}",
            self.channels + other.channels,
            either=True,
        )

    def __and__(self, other: Termination) -> Termination:
        if not isinstance(other, Termination):
            return NotImplemented

        def met(state: WorkflowState, totals: RunTotals) -> str:
            reason = self.met(state, totals)
            both = reason and other.met(state, totals)
            return f"{reason} and {both}" if both else ""

        reason = " and ".join(f"({side.reason})" if side.either else side.reason for side in (self, other))
        return Termination(met, reason, self.channels + other.channels)


@declares()
def max_turns(n: int) -> Termination:
    """End after `n` node runs of an invocation; human decisions do not count."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise GraphInvalid(f"max_turns({n!r}): give a whole number of at least 1")
    return _condition(lambda _state, totals: totals.turns >= n, f"{n} turn{'s' if n > 1 else ''}")


@declares()
def cost_limit(usd: float) -> Termination:
    """End once the thread has spent `usd` US dollars; calls with an unknown price count as nothing."""
    if isinstance(usd, bool) or not isinstance(usd, (int, float)) or not usd > 0:
        raise GraphInvalid(f"cost_limit({usd!r}): give an amount above 0")
    return _condition(lambda _state, totals: totals.cost >= usd, f"${usd:g} spent")


@declares()
def text_match(pattern: str, channel: str) -> Termination:
    """End when the regular expression is found in the channel: in its text, or in an entry of its list.

    Only what this invocation's steps wrote counts. The syntax is that of `pattern_search`.
    """
    search = pattern_search(pattern, f"text_match({pattern!r}): ")

    def reached(state: WorkflowState, totals: RunTotals) -> bool:
        new: Any = totals.written.written_part(channel, state[channel])
        texts = new if isinstance(new, list) else [new]
        return any(isinstance(text, str) and search(text) for text in texts)

    return _condition(reached, f"{pattern!r} found in {channel}", (channel,))


def pattern_search(pattern: str, what: str = "") -> Callable[[str], bool]:
    """Return a function that searches a text for a regular expression, in time linear in the text's length.

    No text that a model writes can make the search slow, whatever the pattern: there is neither look-around
    nor back-references.  `\\w` and `\\d` are of ASCII, `\\p{L}` is any letter; `(?i)` ignores case.

    Args:
        what: how an error starts.

        Raises:
            GraphInvalid: it is not such an expression.
    """
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(
            {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions()
        ).is_valid
    except (jsonschema_rs.ValidationError, ValueError, TypeError):
        raise GraphInvalid(
            f"{what}it is not a valid regular expression here",
            "as in '(?i)approved|done'; look-around and back-references are left out",
        ) from None

    def search(text: str) -> bool:
        return validator(text.encode(errors="replace").decode())

    return search


@declares()
def custom_condition(fn: Callable[[WorkflowState], bool], reason: str = "") -> Termination:
    """End when `fn(state)` is true; `reason` says what that means.

    From the second invocation on, it counts only once a step of this invocation has written a channel that it
    reads, unless the input has given all that it reads.
    """
    if not callable(fn):
        raise GraphInvalid(f"custom_condition takes a function, not {in_words(fn)}", "as lambda state: …")
    name = getattr(fn, "__name__", "a condition")
    check_arguments(f"the condition {name}", fn, "state")

    def reached(state: WorkflowState, totals: RunTotals) -> bool:
        totals.read.clear()
        return bool(fn(state)) and totals.written.may_depend_on(totals.read, totals.is_default)

    return _condition(reached, reason or f"{name} is true")


def _condition(
    reached: Callable[[WorkflowState, RunTotals], bool], reason: str, channels: tuple[str, ...] = ()
) -> Termination:
    """Return a condition whose text stays the same once it is met."""
    return Termination(lambda state, totals: reason if reached(state, totals) else "", reason, channels)
