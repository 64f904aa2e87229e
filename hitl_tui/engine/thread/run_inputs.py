"""What is given to a run besides its channels: goal, constraints, and its context.

They are in the ledger, in the entry of the step that they came with, so that resuming, forking and replaying
a thread find them again.

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
"""The kind of the ledger's entries that say what was given."""
MOST_CONTEXT = 16 << 10
"""Bytes of a context as JSON: the cursor, which each commit writes, holds it."""


def checked_context(given: Any, private: Collection[str] = ()) -> Mapping[str, Any]:
    """A context as it is kept: a JSON object that refuses changes.

    Args:
        private: names whose values errors must not quote.

    Raises:
        UsageError: it is no mapping, or is too large.
        ValueRejected: something in it is no JSON; names it.
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
    """Refuse a context other than the one that the invocation was begun with.

    Raises:
        UsageError, ValueRejected: also as `checked_context`.
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
    """What the ledger says of a context.  A salt keeps the hash of an entry from telling a private value."""
    facts: dict[str, Any] = {"context": thaw(context)}
    if private_context:
        import secrets

        facts |= {"private": list(private_context), "salt": secrets.token_hex(16)}
    return facts


def inputs_at_steps(ledger: Iterable[LedgerEntry]) -> dict[int, dict[str, Any]]:
    """What was given, as fields of a cursor, by the step it came with.

    Args:
        ledger: of several threads of a family, as a fork's ledger has it.
    """
    return {
        entry.step: _fields(entry.data)
        for entry in ledger
        if entry.kind == INPUT and isinstance(entry.data, Mapping)  # another one was changed
    }


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: freeze(data[name]) for name in RUN_INPUTS if name in data}
    if "context" in data:
        fields["context"] = freeze(data["context"])
        private = data.get("private", ())
        fields["private_context"] = tuple(private) if isinstance(private, (list, tuple)) else ()
    return fields


def as_of(step: int, given: dict[int, dict[str, Any]], now: Cursor) -> dict[str, Any]:
    """What was given, as fields of a cursor, as it stood at a step of a thread.

    Args:
        given: from `inputs_at_steps`; without any the thread has kept what it has `now` all the time.
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
    """A context with its private values masked."""
    return {name: repr(PRIVATE) if name in private else value for name, value in context.items()}


_FOR_HASHES: Final = frozenset({HOLDS, HASHED})


def shown_entry(entry: LedgerEntry) -> LedgerEntry:
    """Return a decision as streams and views show it, without private values of a context.

    Also without what is kept for hashes alone.
    """
    if isinstance(entry.data, Mapping) and not entry.data.keys().isdisjoint(_FOR_HASHES):
        shown = {name: value for name, value in entry.data.items() if name not in _FOR_HASHES}
        return replace(entry, data=shown)
    is_input = entry.kind == INPUT and isinstance(entry.data, Mapping)
    private = entry.data.get("private") if is_input else None
    if not private:
        return entry
    context = shown_context(entry.data["context"], private)
    return replace(entry, data={**entry.data, "context": context, "salt": repr(PRIVATE)})


def shown_ledger(entries: Iterable[LedgerEntry]) -> Iterator[LedgerEntry]:
    """The decisions of a ledger as streams and views have them; of kinds that are decisions."""
    return (shown_entry(entry) for entry in entries if entry.kind not in NO_DECISIONS)
