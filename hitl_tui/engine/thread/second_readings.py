"""The sample of answered requests that another person reads again, from the ledger of a thread.

The sample depends on the id of a request alone, which is made from the request's hash and its place. So
anybody can tell later which requests were in it.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from hitl_tui.engine.log.outcomes import HASHED
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.binding import request_in
from hitl_tui.errors import HitlError

READ_AGAIN: Final = "read_again"
"""The kind of the ledger's entry for a second reading."""
RATE: Final = "second_reading"
"""The key, in the data of a request, of the share that is read again."""
_DIGITS: Final = 12


class SecondReading(msgspec.Struct, frozen=True):
    """An answered request of the sample.

    Args:
        first: the ledger's entry with the answer.
        second: that of the second reading, None for none so far.
        people: who gave the first answer; several for a quorum.
        accounts: the accounts that they answered from.
    """

    request: Request
    first: LedgerEntry
    second: LedgerEntry | None
    people: frozenset[str]
    accounts: frozenset[str]


def is_in_sample(request_id: str, rate: float) -> bool:
    """Whether a request is read again, at a share from 0 to 1 of all of them."""
    try:
        return int(request_id[:_DIGITS], 16) < rate * 16**_DIGITS
    except ValueError:
        return False


def second_readings(ledger: Iterable[LedgerEntry], thread_id: str) -> tuple[SecondReading, ...]:
    """Return the answered requests of a thread's own sample, oldest first.

    Requests of a subgraph are in the sample of the subgraph's thread.
    """
    asked: dict[str, LedgerEntry] = {}
    voted: dict[str, list[LedgerEntry]] = {}
    found: dict[str, SecondReading] = {}
    for entry in ledger:
        key = entry.request_id or ""
        if entry.kind == "request" and _is_sampled(entry):
            asked[key] = entry
        elif entry.thread_id != thread_id or key not in asked:
            continue
        elif entry.kind == "vote":
            voted.setdefault(key, []).append(entry)
        elif entry.kind == "answer" and entry.made_by == "person":
            given = [*voted.get(key, []), entry]
            request = _request(asked[key])
            if request is not None:
                found[key] = SecondReading(
                    request, entry, None,
                    frozenset(each.actor for each in given if each.actor),
                    frozenset(each.account for each in given),
                )  # fmt: skip
        elif entry.kind == READ_AGAIN and key in found:
            found[key] = msgspec.structs.replace(found[key], second=entry)
    return tuple(found.values())


def _is_sampled(entry: LedgerEntry) -> bool:
    data: Mapping[str, Any] = entry.data if isinstance(entry.data, Mapping) else {}
    rate = data.get(RATE)
    if not isinstance(rate, (int, float)) or HASHED not in data:
        return False
    return is_in_sample(entry.request_id or "", rate)


def _request(entry: LedgerEntry) -> Request | None:
    """Return the request of a ledger entry; None if the entry was changed."""
    try:
        request = request_in(entry.note, entry.data)
    except (msgspec.ValidationError, HitlError):
        return None
    return msgspec.structs.replace(request, id=entry.request_id or "", step=entry.step)
