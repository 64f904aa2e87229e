"""Makes notices for a person: a request waits, a request expires soon, or a decided thread ended.

They use the same facts as lists and cards.  Titles and names in them are untrusted: a terminal gets one line
of bounded length without control characters.
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
TerminalSignal = Literal["bell", "osc9", "osc777", "osc99"]

_NAME: Final = 60
_TITLE: Final = 100
_LONGEST: Final = 200
"""Most characters of a notice on a terminal."""


ENDS: Final = ("completed", "failed", "cancelled")
"""The statuses of a thread that has ended."""


class Notice(msgspec.Struct, frozen=True):
    """An event that a person is notified of.

    `key` is unique for its store and person: each notice is sent once.
    """

    happening: Annotated[
        Happening,
        about(
            "The kind: `waits`, `deadline` (it expires soon) or `ended` (a thread in which you decided).",
            name="notice",
        ),
    ]
    thread: Annotated[str, about("The thread.")]
    graph: Annotated[str, about("Its graph's name.")]
    at: Annotated[Time, about("When it happened.")]
    key: str
    request: Annotated[Maybe, about("The request.")] = ""
    step: Annotated[int | None, about("The step it is about.")] = None
    title: Annotated[Maybe, about("The question.")] = ""
    risk: Annotated[Maybe, about("The risk of the answer.")] = ""
    deadline: Annotated[Time | None, about("The deadline, at which it is answered automatically.")] = None
    outcome: Annotated[Maybe, about("How the thread ended.")] = ""
    source: Annotated[
        Maybe, about("Which source of the inbox has the thread; null for the store of the session.")
    ] = ""


class Person(NamedTuple):
    """A person who is notified.

    Args:
        name: their name as a reviewer.
        roles: their login of the store and its groups, () if the store has no logins.
    """

    name: str
    roles: tuple[str, ...] = ()


def asked(waiting: Iterable[Waiting], person: Person) -> list[Notice]:
    """Return notices of the requests that wait for a person."""
    return [
        _of_request("waits", each.thread, request, _waits_since(request, person))
        for each in waiting
        for request in _for(each, person)
    ]


def expiring(waiting: Iterable[Waiting], person: Person, now: int, before: int) -> list[Notice]:
    """Return notices of a person's requests whose deadline is within `before` microseconds."""
    return [
        _of_request("deadline", each.thread, request, now)
        for each in waiting
        for request in _for(each, person)
        if request.deadline is not None and now < request.deadline <= now + before
    ]


def next_deadline(waiting: Iterable[Waiting], person: Person, now: int, before: int) -> int | None:
    """Return when `expiring` will have more notices, None if no waiting request causes one."""
    moments = [
        request.deadline - before
        for each in waiting
        for request in _for(each, person)
        if request.deadline is not None and request.deadline - before > now
    ]
    return min(moments, default=None)


def ended(
    thread: ThreadSummary, cursor: Cursor, ledger: Sequence[LedgerEntry], person: str, within: int = 0
) -> Notice | None:
    """Return a notice that a thread ended in which a person decided something, else None.

    A fork of a finished thread has done nothing new.

    Args:
        within: microseconds after the person's last decision in which its end is no news to them.
    """
    as_forked = 0 < thread.head <= thread.info.fork_step
    if thread.status not in ENDS or as_forked:
        return None
    decided = [entry.at for entry in ledger if entry.actor == person and entry.kind in DECISIONS]
    if not decided or thread.updated_at - max(decided) < within:
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
    """Whether a screen that showed the thread's state has shown a notice's content; never for a deadline.

    A request that was handed over since then is news again.
    """
    if notice.happening == "waits":
        return any(
            request.id == notice.request
            and notice.at <= max(request.asked_at, request.handed.at if request.handed else 0)
            for request in progress.pending
        )
    return notice.happening == "ended" and notice.step == progress.head and progress.status in ENDS


def _for(waiting: Waiting, person: Person) -> list[Request]:
    """Return the requests that a person may answer and has not voted on."""
    return [
        request
        for request in waiting.pending
        if not request.breakpoint
        and (not request.reviewers or person.name in request.reviewers)
        and person.name not in request.authors
        and (not request.logins or not set(request.logins).isdisjoint(person.roles))
        and not any(_is_by(vote, person, request) for vote in request.votes)
    ]


def _is_by(vote: Vote, person: Person, request: Request) -> bool:
    """Whether a vote is a person's: if logins are known, each login has one vote under any name."""
    return vote.actor == person.name or bool(request.logins and vote.login in person.roles[:1])


def _waits_since(request: Request, person: Person) -> int:
    """Return when a request was made, or last handed over to the person."""
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
    """Return a notice as one harmless sentence, as "press-q3: done, after publish 14:02"."""
    name, title = thread_name(notice.thread, _NAME), sanitise_line(notice.title, _TITLE)
    name = f"{sanitise_line(notice.source, _NAME)} · {name}" if notice.source else name
    if notice.happening == "ended":
        clock = time.strftime("%H:%M", time.localtime(notice.at // 1_000_000))
        return f"{name}: {sanitise_line(notice.outcome, _TITLE)} {clock}"
    risk = "high risk, " if notice.risk == "high" else ""
    if notice.happening == "deadline" and notice.deadline is not None:
        return f"{name}: {risk}{title} (expires in {duration(notice.deadline - now)})"
    return f"{name} waits: {risk}{title}"


def gathered(notices: Iterable[Notice], now: int) -> str:
    """Return at least one notice as one sentence: that of the first thread, and how many threads more."""
    by_thread = {notice.thread: words(notice, now) for notice in notices}
    first, *more = by_thread.values()
    return f"{first}, and {len(more)} more" if more else first


def terminal_bytes(signals: Iterable[TerminalSignal], text: str) -> str:
    """Return the bytes that make a terminal show a text as a notification; the text may contain anything.

    osc9 is for iTerm2, WezTerm, Ghostty and Windows Terminal, osc777 for urxvt and foot, osc99 for kitty.
    """
    plain = sanitise_line(text, _LONGEST)[:_LONGEST]
    # The rest must not end the sequence or start another part of it.
    safe = "".join(char for char in plain if char.isprintable()).replace(";", ",")
    forms: dict[TerminalSignal, str] = {
        "bell": "\a",
        # A digit must not come first: some terminals read a number there as another command.
        "osc9": f"\x1b]9;hitl-tui: {safe}\x1b\\",
        "osc777": f"\x1b]777;notify;hitl-tui;{safe}\x1b\\",
        "osc99": f"\x1b]99;;hitl-tui: {safe}\x1b\\",
    }
    return "".join(forms[signal] for signal in dict.fromkeys(signals))


KEEP_TITLE: Final = "\x1b[22;2t"
"""Makes a terminal remember its window's title."""
GIVE_TITLE_BACK: Final = "\x1b]2;\x1b\\\x1b[23;2t"
"""Restores the window's title; an empty one if the terminal remembers none."""


def title_bytes(waiting: int) -> str:
    """Return the bytes that put the number of waiting requests into the window's title."""
    return f"\x1b]2;{f'({waiting}) ' if waiting else ''}hitl-tui\x1b\\"
