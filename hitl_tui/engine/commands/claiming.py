"""Presence and claims: who has a request open, claims it for a while, or hands it over.

Who has a request open or has claimed it is stored outside the log. Handing it over, and taking over
somebody's claim, are decisions in the ledger; for these the session must be held for writing.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from hitl_tui.engine.commands.command import Claim, HandOver, Unclaim
from hitl_tui.engine.commands.decisions import decision_entry
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.requests import HandedOn, Request
from hitl_tui.engine.log.threads import Presence, claimed_by
from hitl_tui.engine.nodes.children import relay
from hitl_tui.engine.thread.hashes import question_hash
from hitl_tui.engine.thread.interrupts import check_reviewer, find_request, how_it_ended
from hitl_tui.engine.thread.journal import account
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import AnswerRefused, UsageError

MINUTE = 60_000_000
"""Microseconds."""


def claim(session: Session, command: Claim) -> int:
    """Carry out `Claim`."""
    store = session.store
    if store is None:
        raise UsageError("no one else can answer a thread without a store", "compile(checkpointer=...)")
    if not command.minutes > 0:
        raise UsageError(f"a claim can't last {command.minutes:g} minutes", "give minutes above 0")
    request = find_request(session.cursor, command.request_id, how_it_ended(session, command.request_id))
    check_reviewer(request, command.actor)
    now = session.clock()
    standing = claim_of(session, request)
    if standing and standing.actor not in (command.actor, command.take_over):
        raise claimed_by(standing, now)
    for voter in {vote.actor for _, asked in _threads_asking(session, request) for vote in asked.votes}:
        give_back(session, request, voter)  # changes nothing, unless their process died while they voted
    presence = presence_of(
        session,
        request,
        command.actor,
        int(command.minutes * MINUTE),
        claims=True,
        lasts=command.lasts,
    )
    store.attend(session.thread_id, presence, now, command.take_over)
    if standing and standing.actor != command.actor:
        entry = decision_entry(
            session,
            [],
            "claim_taken",
            request=request,
            actor=command.actor,
            note=command.note,
            data={"from": standing.actor},
        )
        session.commit_cursor(session.cursor, [entry])
        give_back(session, request, standing.actor)
    return presence.until


def unclaim(session: Session, command: Unclaim) -> bool:
    """Carry out `Unclaim`."""
    request = next((other for other in session.cursor.pending if other.id == command.request_id), None)
    standing = claim_of(session, request) if request else None
    if request is None or standing is None or (command.left and standing.lasts):
        return False
    if standing.actor != command.actor:
        if command.left:
            return False
        raise claimed_by(standing, session.clock())
    give_back(session, request, command.actor)
    return True


def hand_over(session: Session, command: HandOver) -> None:
    """Carry out `HandOver`."""
    to = command.to.strip()
    request = find_request(session.cursor, command.request_id, how_it_ended(session, command.request_id))
    if not request.step <= command.step <= session.cursor.head:
        raise AnswerRefused(
            f"{request.title!r} is now about step {request.step}, not {command.step}",
            "look at what changed, then hand it over again",
        )
    check_reviewer(request, to)
    standing = claim_of(session, request)
    if standing and standing.actor != command.actor:
        raise claimed_by(standing, session.clock())
    data = {"to": to, **({"from": request.handed.to} if request.handed else {})}
    seen = command.seen

    def entry(request: Request) -> LedgerEntry:
        return decision_entry(
            session,
            [],
            "handed_over",
            request=request,
            actor=command.actor,
            note=command.note,
            seen=seen,
            data=data,
        )

    if request.thread:
        below = replace(command, step=request.thread_step, seen=b"")
        relay(session, request, lambda child: hand_over(child, below), lambda: entry(request))
    else:
        handed = HandedOn(to, command.actor, command.note, session.clock())
        passed = replace(request, handed=handed)
        pending = tuple(passed if other.id == request.id else other for other in session.cursor.pending)
        session.commit_cursor(replace(session.cursor, pending=pending), [entry(passed)])
    give_back(session, request, command.actor)


def presence_of(
    session: Session, request: Request, actor: str, lasting: int, *, claims: bool = False, lasts: bool = False
) -> Presence:
    """Return that a person has a request open or claimed in this process from now on.

    Args:
        lasting: for how long, in microseconds.
    """
    if session.store is None:
        raise UsageError("no one else can see a thread without a store")
    now = session.clock()
    lease = replace(session.store.new_lease(now), expires_at=now + lasting)
    return Presence(
        request.id, question_hash(request), actor, account(), now, now + lasting, claims, lasts, lease
    )


def claim_of(session: Session, request: Request) -> Presence | None:
    """Return who has claimed a request now, in this thread or in a parent or child that asks it too."""
    store = session.store
    if store is None:
        return None
    now = session.clock()
    for thread_id, asked in _threads_asking(session, request):
        wanted = question_hash(asked)
        voted = {vote.actor for vote in asked.votes}  # a process that died at that point could not release it
        for presence in store.attending(thread_id, now):
            same = (presence.request, presence.request_hash) == (asked.id, wanted)
            if presence.claims and same and presence.actor not in voted:
                return presence
    return None


def give_back(session: Session, request: Request, actor: str | None) -> None:
    """End a person's claims of a request, in every thread that asks it."""
    store = session.store
    if store is None:
        return
    for thread_id, asked in _threads_asking(session, request):
        for presence in store.attending(thread_id, session.clock()):
            if presence.claims and presence.request == asked.id and presence.actor == actor:
                store.leave(thread_id, presence.lease.token)


def _threads_asking(session: Session, request: Request) -> Iterator[tuple[str, Request]]:
    """Return the threads in which a request waits, each with its request.

    These are the session's own thread and, for a request of a subgraph, its parent and child threads."""
    store = session.store
    yield session.thread_id, request
    below = request
    while store and below.thread:
        name = below.thread
        cursor = store.cursor(name)
        waiting = (other for other in cursor.pending if other.id == request.id) if cursor else iter(())
        if (asked := next(waiting, None)) is None:
            break
        yield name, asked
        below = asked
    owner = session.info.owner
    while store and owner:
        cursor, info = store.cursor(owner.thread_id), store.info(owner.thread_id)
        waiting = (other for other in cursor.pending if other.id == request.id) if cursor else iter(())
        if info is None or (asked := next(waiting, None)) is None:
            break
        yield owner.thread_id, asked
        owner = info.owner
