"""An anchor: a line with the newest hashes of a thread at one time, to be kept outside the store.

The chains show that a log agrees with itself. Only something from elsewhere shows that it is still the same
log, and not an earlier copy of the store or a log that was written again as a whole.

Specified in docs/spec/log.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Annotated

import msgspec

from hitl_tui.engine.audit.findings import Mismatch
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import Part
from hitl_tui.engine.log.units import about
from hitl_tui.engine.state.canonical import show_hash
from hitl_tui.engine.thread.hashes import chained
from hitl_tui.engine.thread.logged import checked_cursor
from hitl_tui.errors import LogCorrupt, UsageError

_HINT = "give what `hitl-tui anchor` wrote"


class Anchor(msgspec.Struct, frozen=True):
    """The newest hashes of a thread at one time: `str()` is its line, a JSON document.

    `read_anchor` reads one.

    Args:
        step, checkpoint_hash: its newest step, -1 for none, and the hash to which the next one is chained.
        decision, ledger_hash: the number of its newest decision, and the hash to which the next one is
            chained.
        at: when it was made, in microseconds since the Unix epoch.
    """

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("The newest step; -1 for none.")]
    checkpoint_hash: Annotated[str, about("The hash that the next step is chained to.")]
    decision: Annotated[int, about("The number of the newest decision; 0 for none.")]
    ledger_hash: Annotated[str, about("The hash that the next decision is chained to.")]
    at: Annotated[int, about("When the anchor was made, in microseconds since 1970, UTC.")]

    def __str__(self) -> str:
        fields = {"hitl_tui": 1, "kind": "anchor"} | msgspec.structs.asdict(self)
        return msgspec.json.encode(fields).decode()


def anchor(store: Store, thread_id: str, at: int) -> Anchor:
    """Make an anchor of a thread as it is now.

    Raises:
        UnknownThread: there is no such thread.
        LogCorrupt: its newest step or its decisions were changed.
    """
    _, cursor = checked_cursor(store, thread_id)
    link, decided = show_hash(cursor.checkpoint_hash), show_hash(cursor.ledger_hash)
    return Anchor(thread_id, cursor.head, link, cursor.ledger_n, decided, at)


def read_anchor(line: str | bytes) -> Anchor:
    """Read an anchor from its line; raises `UsageError`."""
    try:
        return msgspec.json.decode(line, type=Anchor)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"this is not an anchor line: {error}", _HINT) from None


def anchors_of(store: Store, thread_id: str, anchors: Iterable[Anchor]) -> tuple[Anchor, ...]:
    """Return the anchors about a thread: with its name, or with a name under which its rows were written."""
    parts = store.parts(thread_id)
    return tuple(
        [anchor for anchor in anchors if anchor.thread == thread_id or _is_about_origin(anchor, parts)]
    )


def _is_about_origin(anchor: Anchor, parts: list[Part]) -> bool:
    """Whether an anchor is about the part of a parent or original thread that this thread has taken over."""
    return any(
        part.name == anchor.thread
        and anchor.step <= following.after_step
        and anchor.decision <= following.after_entry
        for part, following in pairwise(parts)
    )


def differences_from_anchors(store: Store, thread_id: str, anchors: Iterable[Anchor]) -> Iterator[Mismatch]:
    """Yield what is different in a thread from its anchors; anchors of other threads are ignored."""
    known = anchors_of(store, thread_id, anchors)
    if not known:
        return
    parts = store.parts(thread_id)
    entries: dict[int, bytes] | None = None
    with suppress(LogCorrupt):  # the check of the ledger reports it; the steps are still compared
        entries = {entry.n: entry.hash for entry in store.ledger(thread_id)}
    for anchor in known:
        with suppress(LogCorrupt):  # the check of the steps reports it; the ledger is still compared
            points = store.checkpoints(thread_id, anchor.step + 1, 1) if anchor.step >= 0 else []
            link = points[0].checkpoint_hash if points and points[0].step == anchor.step else b""
            possible = _possible_hashes(
                link, [part.facts for part in parts if part.after_step == anchor.step]
            )
            if anchor.checkpoint_hash not in possible or (anchor.step >= 0 and not link):
                actual = possible[0] if link else None
                expected = anchor.checkpoint_hash
                yield Mismatch("anchor", None, anchor.step, None, "checkpoint_hash", expected, actual)
        if entries is None:
            continue
        last = entries.get(anchor.decision, b"")
        possible = _possible_hashes(
            last, [part.facts for part in parts if part.after_entry == anchor.decision]
        )
        if anchor.ledger_hash not in possible or (anchor.decision and not last):
            now = possible[0] if last else None
            yield Mismatch(
                "anchor", anchor.decision, anchor.step, None, "ledger_hash", anchor.ledger_hash, now
            )


def _possible_hashes(link: bytes, facts_of_threads: Iterable[bytes]) -> list[str]:
    """Return the hashes that a chain may have after a link.

    These are the link's own, and those with the facts of threads that start there.
    """
    possible = [show_hash(link)]
    for facts in facts_of_threads:
        link = chained(link, facts)
        possible.append(show_hash(link))
    return possible
