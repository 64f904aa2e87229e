"""What a person is told without looking: something waits for them, expires soon, or what they decided ended.

Made of the same facts as lists and cards.  Titles and names in them are anybody's: what goes to a terminal is
one line of bounded length without any control character.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from hitl_tui.engine.log.events import Progress
from hitl_tui.engine.log.records import Cursor, LedgerEntry
from hitl_tui.engine.log.requests import Request, Vote
from hitl_tui.engine.log.signing import DECISIONS
from hitl_tui.engine.log.threads import ThreadSummary, Waiting
from hitl_tui.engine.log.units import Maybe, Time, about
from hitl_tui.view.cells import thread_name
from hitl_tui.view.format import duration
from hitl_tui.view.sanitise import sanitise_line

Happening = Literal["waits", "deadline", "ended"]
TerminalWay = Literal["bell", "osc9", "osc777", "osc99"]

_NAME: Final = 60
_TITLE: Final = 100
_LONGEST: Final = 200
"""Characters of a notice on a terminal."""


ENDS: Final = ("completed", "failed", "cancelled")
"""The statuses of a thread that has ended."""


class Notice(msgspec.Struct, frozen=True):
    """Something that a person wants to know of.

    `key` tells it from all others of its store and person: each is told once.
    """

    happening: Annotated[
        Happening,
        about("`waits`, `deadline` (it is near), or `ended` (what you decided in).", name="notice"),
    ]
    thread: Annotated[str, about("The thread.")]
    graph: Annotated[str, about("Its graph's name.")]
    at: Annotated[Time, about("When it happened.")]
    key: str
    request: Annotated[Maybe, about("The request.")] = ""
    step: Annotated[int | None, about("The step it is about.")] = None
    title: Annotated[Maybe, about("The question.")] = ""
    risk: Annotated[Maybe, about("How risky the answer is.")] = ""
    deadline: Annotated[Time | None, about("When it answers itself.")] = None
    outcome: Annotated[Maybe, about("How it ended.")] = ""


class Person(NamedTuple):
    """Somebody who is told.

    Args:
        name: their name as reviewers are named.
        roles: their login of the store and the groups it is in, () where the store has no logins.
    """

    name: str
    roles: tuple[str, ...] = ()


def asked(waiting: Iterable[Waiting], person: Person) -> list[Notice]:
    """What waits for a person."""
    return [
        _of_request("waits", each.thread, request, _waits_since(request, person))
        for each in waiting
        for request in _for(each, person)
    ]


def expiring(waiting: Iterable[Waiting], person: Person, now: int, before: int) -> list[Notice]:
    """What waits for a person and answers itself within `before` microseconds."""
    return [
        _of_request("deadline", each.thread, request, now)
        for each in waiting
        for request in _for(each, person)
        if request.deadline is not None and now < request.deadline <= now + before
    ]


def next_deadline(waiting: Iterable[Waiting], person: Person, now: int, before: int) -> int | None:
    """When `expiring` has more to tell, None where nothing that waits brings that about."""
    moments = [
        request.deadline - before
        for each in waiting
        for request in _for(each, person)
        if request.deadline is not None and request.deadline - before > now
    ]
    return min(moments, default=None)


def ended(thread: ThreadSummary, cursor: Cursor, ledger: Sequence[LedgerEntry], person: str) -> Notice | None:
    """That a thread ended which a person had decided in; None where it has not, or they had not.

    A fork of an end has done nothing that one did not know.
    """
    as_forked = 0 < thread.head <= thread.info.fork_step
    if thread.status not in ENDS or as_forked:
        return None
    if not any(entry.actor == person and entry.kind in DECISIONS for entry in ledger):
        return None
    name = thread.info.thread_id
    return Notice(
        "ended",
        name,
        thread.info.graph_name,
        thread.updated_at,
        f"ended {name} {cursor.invocation} {thread.status}",
        step=thread.head,
        outcome=_outcome(thread),
    )


def was_seen(notice: Notice, progress: Progress) -> bool:
    """Whether a screen that showed how far a thread is has shown what a notice says; a deadline goes on."""
    if notice.happening == "waits":
        return any(request.id == notice.request for request in progress.pending)
    return notice.happening == "ended" and notice.step == progress.head and progress.status in ENDS


def _for(waiting: Waiting, person: Person) -> list[Request]:
    """The requests that a person may answer and has not voted on."""
    return [
        request
        for request in waiting.pending
        if not request.breakpoint
        and (not request.reviewers or person.name in request.reviewers)
        and (not request.logins or not set(request.logins).isdisjoint(person.roles))
        and not any(_is_by(vote, person, request) for vote in request.votes)
    ]


def _is_by(vote: Vote, person: Person, request: Request) -> bool:
    """Whether a vote counts as theirs: where logins are named, one has one vote under whatever name."""
    return vote.actor == person.name or bool(request.logins and vote.login in person.roles[:1])


def _waits_since(request: Request, person: Person) -> int:
    """When it was asked, or was last handed over to the person."""
    handed = request.handed
    return handed.at if handed is not None and handed.to == person.name else request.asked_at


def _of_request(happening: Happening, thread: ThreadSummary, request: Request, at: int) -> Notice:
    name = thread.info.thread_id
    when = request.deadline if happening == "deadline" else at
    return Notice(
        happening,
        name,
        thread.info.graph_name,
        at,
        f"{happening} {name} {request.id} {when}",
        request=request.id,
        step=request.step,
        title=request.title,
        risk=request.risk if request.risk == "high" else "",
        deadline=request.deadline,
    )


def _outcome(thread: ThreadSummary) -> str:
    word = {"completed": "done", "failed": "failed", "cancelled": "cancelled"}[thread.status]
    if thread.status == "completed":
        return f"{word}, after {thread.last_writer}" if thread.last_writer else word
    return f"{word} ({thread.reason})" if thread.reason else word


def words(notice: Notice, now: int) -> str:
    """A notice as one sentence that no terminal misreads, as "press-q3: done, after publish 14:02"."""
    name, title = thread_name(notice.thread, _NAME), sanitise_line(notice.title, _TITLE)
    if notice.happening == "ended":
        clock = time.strftime("%H:%M", time.localtime(notice.at // 1_000_000))
        return f"{name}: {sanitise_line(notice.outcome, _TITLE)} {clock}"
    risk = "high risk, " if notice.risk == "high" else ""
    if notice.happening == "deadline" and notice.deadline is not None:
        return f"{name}: {risk}{title} (expires in {duration(notice.deadline - now)})"
    return f"{name} waits: {risk}{title}"


def terminal_bytes(ways: Iterable[TerminalWay], text: str) -> str:
    """What makes a terminal tell a text in these ways; the text may hold anything.

    osc9 is iTerm2's, and WezTerm's, Ghostty's, Windows Terminal's; osc777 urxvt's and foot's; osc99 kitty's.
    """
    plain = sanitise_line(text, _LONGEST)[:_LONGEST]
    # Of what is left nothing may end the sequence or begin another part of it.
    safe = "".join(char for char in plain if char.isprintable()).replace(";", ",")
    forms: dict[TerminalWay, str] = {
        "bell": "\a",
        # Not first: some take a number there for another order.
        "osc9": f"\x1b]9;hitl-tui: {safe}\x1b\\",
        "osc777": f"\x1b]777;notify;hitl-tui;{safe}\x1b\\",
        "osc99": f"\x1b]99;;hitl-tui: {safe}\x1b\\",
    }
    return "".join(forms[way] for way in dict.fromkeys(ways))


KEEP_TITLE: Final = "\x1b[22;2t"
"""Makes a terminal remember its window's title."""
GIVE_TITLE_BACK: Final = "\x1b]2;\x1b\\\x1b[23;2t"
"""Gives the window its title back; an empty one where the terminal remembers none."""


def title_bytes(waiting: int) -> str:
    """Puts how much waits into the title of the window."""
    return f"\x1b]2;{f'({waiting}) ' if waiting else ''}hitl-tui\x1b\\"
