"""Inputs of a run besides its channels: goal, constraints, and context.

They are in the ledger entry of the step that they came with, so that resuming, forking and replaying a thread
find them again.

Specified in docs/spec/channels.md and docs/spec/graphs.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.outcomes import HASHED, HOLDS
from hitl_tui.engine.log.records import NO_DECISIONS, Cursor, LedgerEntry
from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.state.channel import RUN_INPUTS
from hitl_tui.engine.state.frozen import freeze, thaw
from hitl_tui.engine.state.values import normalise
from hitl_tui.errors import UsageError, in_words

INPUT = "input"
"""The kind of the ledger entries with these inputs."""
MOST_CONTEXT = 16 << 10
"""Most bytes of a context as JSON: it is in the cursor, which each commit writes."""


def checked_context(given: Any, private: Collection[str] = ()) -> Mapping[str, Any]:
    """Return a context as it is kept: a read-only JSON object.

    Args:
        private: names whose values errors must not quote.

    Raises:
        UsageError: it is not a mapping, or is too large.
        ValueRejected: something in it is not JSON; names it.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f"the context is {in_words(given)}", 'give a dict, as context={"tenant": "acme"}')
    values = {}
    for name, value in given.items():
        if not isinstance(name, str) or not name:
            raise UsageError(f"the context has a name that is {in_words(name)}", "name its values by text")
        values[name] = normalise(
            value, what=f"the context's {name!r}", max_bytes=MOST_CONTEXT, private=name in private
        )
    if (size := len(canonical(values))) > MOST_CONTEXT:
        raise UsageError(
            f"the context takes {size:,} bytes of JSON, and may take {MOST_CONTEXT:,}",
            "give what is large as an input, or name where it is",
        )
    context: Mapping[str, Any] = freeze(values)
    return context


def check_same_context(cursor: Cursor, given: Any) -> None:
    """Refuse a context that differs from the one with which the invocation was started.

    Raises:
        UsageError, ValueRejected: also those of `checked_context`.
    """
    context = checked_context(given, cursor.private_context)
    if canonical(context) == canonical(cursor.context):
        return
    names = sorted(
        name
        for name in {*context, *cursor.context}
        if name not in context
        or name not in cursor.context
        or canonical(context[name]) != canonical(cursor.context[name])
    )
    raise UsageError(
        f"thread {cursor.thread_id!r} continues with the context that its invocation started with; "
        f"another one was given ({', '.join(names)})",
        'leave context= out, or begin another invocation, as with resume="entry"',
    )


def context_facts(context: Mapping[str, Any], private_context: tuple[str, ...]) -> dict[str, Any]:
    """Return what the ledger keeps of a context.

    It has a salt, so that private values can't be guessed by the hash of the entry.
    """
    facts: dict[str, Any] = {"context": thaw(context)}
    if private_context:
        import secrets

        facts |= {"private": list(private_context), "salt": secrets.token_hex(16)}
    return facts


def inputs_at_steps(ledger: Iterable[LedgerEntry]) -> dict[int, dict[str, Any]]:
    """Return the inputs, as fields of a cursor, by the step that they came with.

    Args:
        ledger: can contain entries of several threads, as a fork's ledger does.
    """
    return {
        entry.step: _fields(entry.data)
        for entry in ledger
        if entry.kind == INPUT and isinstance(entry.data, Mapping)  # an entry with other fields was changed
    }


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: freeze(data[name]) for name in RUN_INPUTS if name in data}
    if "context" in data:
        fields["context"] = freeze(data["context"])
        private = data.get("private", ())
        fields["private_context"] = tuple(private) if isinstance(private, (list, tuple)) else ()
    return fields


def inputs_at(step: int, given: dict[int, dict[str, Any]], now: Cursor) -> dict[str, Any]:
    """Return the inputs, as fields of a cursor, that were in force at a step of a thread.

    Args:
        given: from `inputs_at_steps`; if it is empty, the thread has always had the inputs that it has `now`.
    """
    names = (*RUN_INPUTS, "context", "private_context")
    if not given:
        return {name: getattr(now, name) for name in names}
    inputs = {name: getattr(Cursor(""), name) for name in names}
    for at, values in given.items():
        if at <= step:
            inputs.update(values)
    return inputs


def shown_context(context: Mapping[str, Any], private: Collection[str]) -> dict[str, Any]:
    """Return a context with its private values masked."""
    return {name: repr(PRIVATE) if name in private else value for name, value in context.items()}


_FOR_HASHES: Final = frozenset({HOLDS, HASHED})
_CANARY: Final = "canary"
"""Nobody who decides must see that a fork is a canary."""
_RATE: Final = "second_reading"


def shown_entry(entry: LedgerEntry) -> LedgerEntry:
    """Return a decision as streams and views show it, without private values of a context.

    It also leaves out what is kept only for hashes, except the labels of a request's choices, by their ids,
    and the whole question where it may be read again.
    """
    if isinstance(entry.data, Mapping) and not entry.data.keys().isdisjoint({*_FOR_HASHES, _CANARY}):
        hidden = {HOLDS, _CANARY} if _RATE in entry.data else {*_FOR_HASHES, _CANARY}
        shown = {name: value for name, value in entry.data.items() if name not in hidden}
        if labels := _labels(entry.data.get(HASHED)):
            shown["labels"] = labels
        return replace(entry, data=shown)
    is_input = entry.kind == INPUT and isinstance(entry.data, Mapping)
    private = entry.data.get("private") if is_input else None
    if not private:
        return entry
    context = shown_context(entry.data["context"], private)
    return replace(entry, data={**entry.data, "context": context, "salt": repr(PRIVATE)})


def _labels(hashed: Any) -> dict[str, str]:
    choices = hashed.get("choices", ()) if isinstance(hashed, Mapping) else ()
    return {choice["id"]: choice["label"] for choice in choices}


def shown_ledger(entries: Iterable[LedgerEntry]) -> Iterator[LedgerEntry]:
    """Return the decisions of a ledger as streams and views show them, without entries of other kinds."""
    return (shown_entry(entry) for entry in entries if entry.kind not in NO_DECISIONS)
