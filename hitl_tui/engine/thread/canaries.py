"""Canaries: forks with a value that is known to be bad, which only ask a person and run nothing.

A lead mixes them in to measure how many bad ones people catch. The ledger's entry of the fork says so.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.errors import UsageError

CANARY: Final = "canary"
"""The key of the wrong answer in a fork's data, and the reason of a canary's status once it is answered."""


def wrong_answer(ledger: Iterable[LedgerEntry], thread_id: str) -> str:
    """Return the answer that is wrong in a canary; "" if a thread is none."""
    for entry in ledger:
        if entry.kind == "fork" and entry.thread_id == thread_id and isinstance(entry.data, Mapping):
            return str(entry.data.get(CANARY) or "")
    return ""


def is_canary(store: Store | None, info: ThreadInfo) -> bool:
    """Whether a thread is a canary."""
    if store is None or info.parent is None:
        return False
    return bool(wrong_answer(decisions(store, info.thread_id), info.thread_id))


def refuse_canary(store: Store | None, info: ThreadInfo) -> None:
    """Refuse to run a canary, or to make another thread from it; raises `UsageError`."""
    if is_canary(store, info):
        raise UsageError(
            f"thread {info.thread_id!r} only asks: it was made to measure reviews, and runs nothing",
            "run the thread that it was forked from",
        )
