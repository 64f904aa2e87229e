"""What a store refuses, in the words that all stores share (SPEC 10)."""

from __future__ import annotations

from hitl_tui.engine.log.records import Commit
from hitl_tui.engine.log.store import UNPRINTABLE
from hitl_tui.engine.log.threads import LONGEST_ID, Lease
from hitl_tui.errors import HitlError, StaleWriter, ThreadBusy, UnknownThread, UsageError, in_words
from hitl_tui.stores.liveness import describe, is_dead, is_given_back, process_of


def check_thread_id(thread_id: str) -> str:
    """The id, if it can name a thread: 1 to 200 characters, no control characters or surrogates.

    Raises:
        UsageError: it can't.
    """
    if not isinstance(thread_id, str):
        raise UsageError(f"a thread id is text, this one {in_words(thread_id)}", f"use {str(thread_id)!r}")
    if not 1 <= len(thread_id) <= LONGEST_ID:
        raise UsageError(
            f"a thread id has 1 to {LONGEST_ID} characters, this one {len(thread_id)}", "use a shorter one"
        )
    if UNPRINTABLE.search(thread_id):
        raise UsageError(f"thread id {thread_id!r} holds a control character", "use printable text")
    return thread_id


def refuse_takeover(thread_id: str, holder: Lease | None, lease: Lease, now: int) -> Lease | None:
    """The dead holder that `lease` takes over from, if any; raises `ThreadBusy` for a living one."""
    if holder is None or holder.token == lease.token or is_given_back(holder):
        return None
    if not is_dead(holder, now):
        ours = process_of(holder) == process_of(lease)
        who = "another run in this process" if ours else describe(holder)
        raise ThreadBusy(
            f"thread {thread_id!r} is held by {who}",
            "wait until it is done, or watch it meanwhile",
        )
    return holder


def refused(thread_id: str, commit: Commit, version: int, holder: Lease | None) -> HitlError | None:
    """Why a commit may not be written, or None when it may.

    Args:
        version: the version the thread is at.
        holder: who holds the thread now.
    """
    if version != commit.expected_version:
        return StaleWriter(
            f"thread {thread_id!r} is at version {version}, not {commit.expected_version}: nothing is stored",
            "look at what changed and try again",
        )
    return None if holder and holder.token == commit.lease_token else not_held(thread_id, holder)


def not_held(thread_id: str, holder: Lease | None) -> ThreadBusy:
    """The error of a writer whose lease is gone."""
    who = f"is now held by {describe(holder)}" if holder else "is held by nobody: its lease was given back"
    return ThreadBusy(
        f"thread {thread_id!r} {who}: nothing is stored", "take the thread again and look at it"
    )


def taken(thread_id: str) -> ThreadBusy:
    """The error for a new thread whose name is in use."""
    return ThreadBusy(f"there is a thread {thread_id!r} already", "choose another name")


def unknown(thread_id: str) -> UnknownThread:
    """The error for a thread that the store does not hold."""
    return UnknownThread(f"there is no thread {thread_id!r}", "list the threads to see what there is")
