"""What is known of a thread as a whole: its origin, its row in a list, who may write it.

Times are microseconds since the Unix epoch, UTC.

Specified in docs/spec/threads.md and docs/spec/log.md.
"""

from __future__ import annotations

import unicodedata
from hashlib import sha256
from typing import Annotated, Any, Final

import msgspec

from hitl_tui.engine.log.jobs import WorkerJob
from hitl_tui.engine.log.records import Status
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.units import Maybe, Time, about
from hitl_tui.errors import AnswerRefused, UnknownThread, UsageError, in_words

LONGEST_ID: Final = 200
"""How many characters the id of a thread may have."""

LEASE_TIME: Final = 30_000_000
"""How long a lease lasts without being renewed, in microseconds; elsewhere nothing else tells of a holder."""

ORIGIN: Final = "origin"
"""The key in the source of a thread of another engine's subgraph: the checkpoint of theirs that runs it."""

WITHIN: Final = "within"
"""The key in a thread's source that names the path to its graph: [node, node inside it, ...]."""

_SHOWN_OF_NODE = 80


def child_id(parent: str, own: str) -> str:
    """The id of a thread inside another: `parent/own`, where `own` is `node#n`.

    Where that is too long for an id, a hash stands for what is left out of it.
    """
    whole = f"{parent}/{own}"
    if len(whole) <= LONGEST_ID:
        return whole
    node, _, n = own.rpartition("#")
    end = f"~{sha256(whole.encode(errors='surrogatepass')).hexdigest()[:16]}/{node[:_SHOWN_OF_NODE]}#{n}"
    return parent[: LONGEST_ID - len(end)] + end


def is_unprintable(name: str) -> bool:
    """Whether a name holds what no thread's may: a control character, or half of a pair of surrogates."""
    return not name.isprintable() and any(unicodedata.category(char) in ("Cc", "Cs") for char in name)


def check_thread_id(thread_id: Any) -> str:
    """The id, if it can name a thread: 1 to 200 characters, no control characters or surrogates.

    Raises:
        UsageError: it can't.
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
    """The thread and the subgraph node that a child thread runs for."""

    thread_id: Annotated[str, about("The thread.", name="thread")]
    node: Annotated[str, about("The node.")]


class ThreadInfo(msgspec.Struct, frozen=True, gc=False):
    """What never changes about a thread: its graph and where it was forked from.

    `source` says how to build the graph again: {"graph": "module:attribute", "options": {...}}.
    `fork_seq` is the last record it shares with its parent.  A fork that was carried here from another
    store has no parent, but keeps `fork_step`: the steps up to it are still another thread's doing.  `owner`
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
        """What tells this thread from all others, those that had its name before it was made among them.

        A thread that is kept nowhere has none: b"".
        """
        return self.facts_hash


class Part(msgspec.Struct, frozen=True):
    """The rows of a thread's log that one thread wrote: those behind `after_*`, up to the next part's.

    Args:
        thread_id: the thread that has them; `name` is the one that they were written under.
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

    `inside` is how many threads of subgraphs' runs are directly below it, None where nobody asked.
    `attending` are the people who look at what waits in it, or have claimed it; `job` what workers are to do
    with it.
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
    """A thread that waits for a human, with what it asks.

    Args:
        pending: its requests; none where it is paused, or where they can't be read.
        goal: what its run is for, None where nothing says so.
        state_hash: of its newest state, to go with an answer; b"" where that is not known.
        orphan: it is the workers', and nobody who works has its graph: once answered it would stand.
    """

    thread: ThreadSummary
    pending: tuple[Request, ...] = ()
    goal: Any = None
    state_hash: bytes = b""
    orphan: bool = False


class Lease(msgspec.Struct, frozen=True):
    """Who may write a thread: a token, and the process behind it.

    `boot` and `namespace` say where `pid` names that process: the id of the boot of its machine and its PID
    namespace, "" where the system does not tell.  Host names are not unique, and containers share a machine.
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
    """Somebody at a question of a thread: they have its card open, or have claimed it.

    It stands beside the lease, in no log and in no hash, and it ends by itself: at its time, or with its
    process, where that can be asked.  Only a claim keeps others from answering, and only while the question
    stays as it was.

    Args:
        request_hash: that of the question as it was then.
        until: when it ends, unless it is renewed; the end of `lease`, too.
        lasts: it lasts its time, whatever becomes of its process, as a claim from the command line.
        lease: its token, and the process behind it.
    """

    request: Annotated[str, about("The request.")]
    request_hash: bytes
    actor: Annotated[str, about("Who.")]
    account: Annotated[str, about("Their account and host, as ann@box.")]
    since: Annotated[Time, about("Since when.")]
    until: Annotated[Time, about("When it ends, unless it is renewed.")]
    claims: Annotated[bool, about("Whether they have claimed it; else they look.")]
    lasts: bool
    lease: Lease

    def is_of(self, other: Presence) -> bool:
        """Whether it is at the same question, as it is for the other."""
        return (self.request, self.request_hash) == (other.request, other.request_hash)


def other_thread(thread_id: str) -> UnknownThread:
    """The error for work on a thread that was deleted and whose name another thread has now."""
    return UnknownThread(
        f"thread {thread_id!r} was deleted, and another thread has its name now: nothing is stored",
        "open the thread again to see the new one",
    )


def claimed_by(standing: Presence, now: int) -> AnswerRefused:
    """The refusal of what somebody else has claimed, in words."""
    minutes = max(1, round((standing.until - now) / 60e6))
    return AnswerRefused(
        f"{standing.actor} ({standing.account}) has claimed it, for {minutes} min still",
        f"leave it to them, or take it over by name: --take-over {standing.actor}",
    )


class PauseRequest(msgspec.Struct, frozen=True):
    """What somebody asks of the process that holds a thread: to pause it; `at` in microseconds.

    Args:
        at_once: give up the node in flight, too: who asks cancels the thread then.
    """

    actor: str | None
    note: str | None
    at: int
    at_once: bool = False


Stamp = tuple[object, ...]
"""When a thread was looked at: equal to a later one as long as nobody, here or elsewhere, has written it."""


class Fault(msgspec.Struct, frozen=True):
    """Something stored that does not follow from what it should be read from, as `verify` tells it.

    Args:
        field: what of the store, as "cursor.status" or "record" for a whole row.
        number: of the step, the record or the decision, None where it has none.
    """

    field: str
    number: int | None
    expected: Any
    actual: Any


class Deletion(msgspec.Struct, frozen=True):
    """Threads to be taken out of a store, all of them or none.

    Args:
        versions: the threads, each with the version of its cursor that was looked at.
        why: the rule that chose them, "" where a person named them.
        force: also what runs or waits, and what has moved since.
    """

    versions: dict[str, int]
    actor: str | None
    note: str | None
    at: int
    why: str = ""
    force: bool = False


class ThreadSize(msgspec.Struct, frozen=True):
    """What a thread's own rows fill, in bytes of their contents; a fork's shared steps are its parent's.

    `channels` are the updates and their results, by channel.
    """

    thread_id: Annotated[str, about("The thread.", name="thread")]
    steps: Annotated[int, about("Steps of its own.")]
    channels: Annotated[dict[str, int], about("Bytes of the updates of each channel.")]
    checkpoints: Annotated[int, about("Bytes of its steps beside the updates.")]
    snapshots: Annotated[int, about("Bytes of cached states.")]
    decisions: Annotated[int, about("Bytes of its ledger.")]

    @property
    def bytes(self) -> int:
        """All of it."""
        return sum(self.channels.values()) + self.checkpoints + self.snapshots + self.decisions


class Space(msgspec.Struct, frozen=True):
    """What a store takes on the disk, in bytes; `free` is what `vacuum` could give back."""

    used: int
    free: int


def takeover_notice(holder: str) -> str:
    """What to tell somebody who has taken a thread over from a process that died."""
    return f"taken over from {holder}, which ended without giving the thread back"
