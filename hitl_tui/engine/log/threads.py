"""Data about whole threads: origin, row in a list, lease, presence, deletion.

Times are microseconds since the Unix epoch, UTC.

Specified in docs/spec/threads.md and docs/spec/log.md.
"""

from __future__ import annotations

import unicodedata
from hashlib import sha256
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from hitl_tui.engine.log.jobs import WorkerJob
from hitl_tui.engine.log.records import Status
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.units import Maybe, Time, about
from hitl_tui.errors import AnswerRefused, UnknownThread, UsageError, in_words

LONGEST_ID: Final = 200
"""How many characters the id of a thread may have."""

LEASE_TIME: Final = 30_000_000
"""How long a lease lasts without renewal, in microseconds; a holder elsewhere shows no other sign of life."""

ORIGIN: Final = "origin"
"""Key in the source of a thread that mirrors another engine's subgraph: their checkpoint that runs it."""

WITHIN: Final = "within"
"""Key in a subgraph thread's source: the path to its graph, [node, node inside it, ...]."""

_SHOWN_OF_NODE = 80


def child_id(parent: str, own: str) -> str:
    """Return the id of a thread inside another: `parent/own`, where `own` is `node#n`.

    If that is too long for an id, a hash replaces a part of it.
    """
    whole = f"{parent}/{own}"
    if len(whole) <= LONGEST_ID:
        return whole
    node, _, n = own.rpartition("#")
    end = f"~{sha256(whole.encode(errors='surrogatepass')).hexdigest()[:16]}/{node[:_SHOWN_OF_NODE]}#{n}"
    return parent[: LONGEST_ID - len(end)] + end


def is_unprintable(name: str) -> bool:
    """Whether a name has a control character or a lone surrogate, which no thread id may have."""
    return not name.isprintable() and any(unicodedata.category(char) in ("Cc", "Cs") for char in name)


def check_thread_id(thread_id: Any) -> str:
    """Return a valid thread id: 1 to 200 characters, no control characters or surrogates.

    Raises:
        UsageError: it is not valid.
    """
    if not isinstance(thread_id, str):
        raise UsageError(f"a thread id is text, this one {in_words(thread_id)}", f"use {str(thread_id)!r}")
    if not 1 <= len(thread_id) <= LONGEST_ID:
        raise UsageError(
            f"a thread id has 1 to {LONGEST_ID} characters, this one {len(thread_id)}",
            "use a shorter one" if thread_id else "give it a name, or leave it out for a new one",
        )
    if is_unprintable(thread_id):
        raise UsageError(f"thread id {thread_id!r} holds a control character", "use printable text")
    return thread_id


class Owner(msgspec.Struct, frozen=True):
    """Parent thread and subgraph node of a child thread."""

    thread_id: Annotated[str, about("The thread.", name="thread")]
    node: Annotated[str, about("The node.")]


class ThreadInfo(msgspec.Struct, frozen=True, gc=False):
    """What never changes about a thread: its graph and its origin.

    `source` says how to build the graph again: {"graph": "module:attribute", "options": {...}}.
    `fork_seq` is the last record it shares with its parent.  A fork that was imported from another
    store has no parent, but keeps `fork_step`: another thread ran the steps up to it.  `owner`
    is set for the thread of a subgraph's run; its `source` names the way to its graph as
    "within": [node, ...].  `facts_hash` is over all of it; the thread's chains begin with it.
    """

    thread_id: str
    graph_name: str
    graph_digest: str
    source: dict[str, Any]
    parent: str | None
    fork_step: int
    fork_seq: int
    created_at: Time
    created_by: str | None = None
    owner: Owner | None = None
    facts_hash: bytes = b""

    @property
    def birth(self) -> bytes:
        """The thread's unique id, which differs from that of a deleted thread of the same name.

        b"" for a thread that is not stored.
        """
        return self.facts_hash


class Part(msgspec.Struct, frozen=True):
    """The rows of a thread's log that one thread wrote: those after `after_*`, up to the next part's.

    Args:
        thread_id: the thread that stores them; `name` is the thread name under which they were written.
        facts: the writer's `facts_hash`.
    """

    thread_id: str
    name: str
    after_step: int
    after_seq: int
    after_entry: int
    facts: bytes


class ThreadSummary(msgspec.Struct, frozen=True, gc=False):
    """A row in a list of threads.  `last_writer` is a node's name or a person's.

    `inside` is the number of subgraph threads directly inside it, None if they were not counted.
    `attending` are the people who have its requests open or claimed; `job` is its job for workers.
    """

    info: ThreadInfo
    head: int
    status: Status
    reason: str
    next_node: str | None
    waiting_for: Maybe
    waiting_since: Time | None
    last_writer: Maybe
    updated_at: Time
    held_by: str | None = None
    inside: int | None = None
    attending: tuple[Presence, ...] = ()
    job: WorkerJob | None = None


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A thread that waits for a human, with its requests.

    Args:
        pending: its requests; none if it is paused, or if they can't be read.
        goal: the goal of its run, None if it has none.
        state_hash: of its newest state, to send with an answer; b"" if unknown.
        orphan: it was handed to workers but none has its graph, so nothing runs it after the answer.
        source: the store that has it, as an inbox of several stores names it; "" for a single store.
    """

    thread: ThreadSummary
    pending: tuple[Request, ...] = ()
    goal: Any = None
    state_hash: bytes = b""
    orphan: bool = False
    source: str = ""


class Lease(msgspec.Struct, frozen=True):
    """The right to write a thread: a token, and the process that holds it.

    `boot` and `namespace` say where `pid` is valid: the boot id of the machine and the PID namespace, "" if
    the system has none.  They are needed because host names are not unique and containers share a machine.
    """

    token: str
    user: str
    host: str
    pid: int
    process_started: int
    expires_at: int
    boot: str = ""
    namespace: str = ""


class Presence(msgspec.Struct, frozen=True):
    """A person who has a request's card open, or has claimed the request.

    It is stored beside the lease, outside log and hashes.  It ends at its time, or with its process if that
    can be checked.  Only a claim keeps others from answering, and only while the request is unchanged.

    Args:
        request_hash: that of the request when it was opened or claimed.
        until: when it ends unless renewed; `lease` ends then, too.
        lasts: it lasts until then even if its process ends, such as a claim from the command line.
        lease: its token and process.
    """

    request: Annotated[str, about("The request.")]
    request_hash: bytes
    actor: Annotated[str, about("The person.")]
    account: Annotated[str, about("Their account and host, as ann@box.")]
    since: Annotated[Time, about("Since when.")]
    until: Annotated[Time, about("When it ends unless renewed.")]
    claims: Annotated[bool, about("Whether they have claimed it; otherwise they only view it.")]
    lasts: bool
    lease: Lease

    def is_of(self, other: Presence) -> bool:
        """Whether it is about the same request, in the same version, as the other."""
        return (self.request, self.request_hash) == (other.request, other.request_hash)


def other_thread(thread_id: str) -> UnknownThread:
    """Return the error for using a deleted thread whose name another thread has now."""
    return UnknownThread(
        f"thread {thread_id!r} was deleted, and another thread has its name now: nothing is stored",
        "open the thread again to see the new one",
    )


def claimed_by(standing: Presence, now: int) -> AnswerRefused:
    """Return the error for answering a request that somebody else has claimed."""
    minutes = max(1, round((standing.until - now) / 60e6))
    return AnswerRefused(
        f"{standing.actor} ({standing.account}) has claimed it, for {minutes} min still",
        f"leave it to them, or take it over by name: --take-over {standing.actor}",
    )


class PauseRequest(msgspec.Struct, frozen=True):
    """A request to the process that holds a thread, to pause it; `at` in microseconds.

    Args:
        at_once: also stop the running node, because the requester cancels the thread.
    """

    actor: str | None
    note: str | None
    at: int
    at_once: bool = False


Stamp = tuple[object, ...]
"""Version of a thread when it was read: equal to a later one unless the thread was written since."""


class Fault(msgspec.Struct, frozen=True):
    """An inconsistency in a store, as `verify` reports it.

    Args:
        field: such as "cursor.status", or "record" for a whole row.
        number: of the step, record or decision, None if it has none.
    """

    field: str
    number: int | None
    expected: Any
    actual: Any


class DecisionPlace(NamedTuple):
    """A decision: when it was made, its thread, its number in the thread's ledger, and by whom."""

    at: int
    thread_id: str
    n: int
    actor: str | None


class Deletion(msgspec.Struct, frozen=True):
    """Threads to be deleted from a store, all or none.

    Args:
        versions: by thread, the version of its cursor when it was read.
        why: the rule that chose them, "" if a person named them.
        force: also delete threads that run or wait, or have changed since.
    """

    versions: dict[str, int]
    actor: str | None
    note: str | None
    at: int
    why: str = ""
    force: bool = False


class ThreadSize(msgspec.Struct, frozen=True):
    """Size of a thread's own rows in bytes, without the steps that a fork shares with its parent.

    `channels` maps a channel to the size of its updates and their results.
    """

    thread_id: Annotated[str, about("The thread.", name="thread")]
    steps: Annotated[int, about("The number of its own steps.")]
    channels: Annotated[dict[str, int], about("Bytes of the updates of each channel.")]
    checkpoints: Annotated[int, about("Bytes of its steps without the updates.")]
    snapshots: Annotated[int, about("Bytes of snapshots.")]
    decisions: Annotated[int, about("Bytes of its ledger.")]

    @property
    def bytes(self) -> int:
        """The total size."""
        return sum(self.channels.values()) + self.checkpoints + self.snapshots + self.decisions


class Space(msgspec.Struct, frozen=True):
    """Disk space of a store in bytes; `free` is what `vacuum` could free."""

    used: int
    free: int


def takeover_notice(holder: str) -> str:
    """Return the notice for a person who has taken over a thread from a process that died."""
    return f"taken over from {holder}, which ended without giving the thread back"
