"""The authors of a thread: the people whose input or edits its requests are about.

Where a request asks for four eyes (`four_eyes=True`), none of them may answer it.

Specified in docs/spec/threads.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from hitl_tui.engine.log.records import Checkpoint, LedgerEntry
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.log.threads import ThreadInfo
from hitl_tui.engine.thread.logged import decisions
from hitl_tui.errors import AnswerRefused

_WRITES: Final = ("input", "human", "fork")
"""Sources of steps that people make."""
_MAKES: Final = ("input", "update_state")
"""The kinds of ledger entries that such a step comes with, besides that of a fork."""
_PAGE: Final = 256


class Authors(NamedTuple):
    """The authors of a thread, with the accounts and the database logins that they wrote from."""

    names: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    logins: frozenset[str] = frozenset()

    def __or__(self, other: Authors) -> Authors:
        return Authors(*(ours | theirs for ours, theirs in zip(self, other, strict=True)))


def is_written(point: Checkpoint) -> bool:
    """Whether a person has made a step by an input or an edit; an answer is neither."""
    return point.source in _WRITES and not point.decision and bool(point.actor)


def authors_of(store: Store | None, info: ThreadInfo) -> Authors:
    """Return the authors of a thread, with those of the threads that contain it."""
    known = Authors()
    above: ThreadInfo | None = info
    while store is not None and above is not None:
        known |= _own_authors(store, above)
        above = store.info(above.owner.thread_id) if above.owner else None
    return known


def _own_authors(store: Store, info: ThreadInfo) -> Authors:
    if store.info(info.thread_id) is not None:
        name, end = info.thread_id, None
    elif info.parent:  # a fork that is being made
        name, end = info.parent, info.fork_step + 1
    else:
        return Authors()
    points = [point for point in _points(store, name, end) if is_written(point)]
    return authors_by(points, decisions(store, name))


def authors_by(points: Iterable[Checkpoint], ledger: Iterable[LedgerEntry]) -> Authors:
    """Return the authors of a thread's steps.

    Args:
        points: the steps that `is_written` by them.
        ledger: the decisions of the thread.
    """
    written = list(points)
    steps = {(point.thread_id, point.step) for point in written}
    wrote = [entry for entry in ledger if _place(entry) in steps]
    return Authors(
        frozenset(point.actor for point in written if point.actor),
        frozenset(entry.account for entry in wrote if entry.account),
        frozenset(entry.login for entry in wrote if entry.login),
    )


def _place(entry: LedgerEntry) -> tuple[str, int]:
    """Return the step that an entry of the ledger has made: a fork's edit is the step after its entry."""
    if entry.kind == "fork":
        return entry.thread_id, (entry.step or 0) + 1
    return entry.thread_id, entry.step if entry.kind in _MAKES and entry.step is not None else -1


def _points(store: Store, thread_id: str, end: int | None) -> Iterator[Checkpoint]:
    while points := store.checkpoints(thread_id, end, _PAGE):
        yield from points
        end = points[-1].step


def check_author(request: Request, actor: str | None, account: str, login: str, authors: Authors) -> None:
    """Refuse an answer by an author to a request that asks for four eyes; raises `AnswerRefused`.

    Args:
        account, login: where the answer comes from.
    """
    if not request.four_eyes:
        return
    if not actor:
        raise AnswerRefused(f"{request.title!r} needs an answer by name (four_eyes)", "give an actor")
    why = ""
    if actor in authors.names or actor in request.authors:
        why = f"{actor} has given or edited what {request.title!r} asks about"
    elif login and login in authors.logins:
        why = f"login {login!r} has given or edited what {request.title!r} asks about"
    elif account in authors.accounts and not request.one_account and not login:
        why = f"the account {account} has given or edited what {request.title!r} asks about"
    if why:
        raise AnswerRefused(why, "somebody else must answer it, from their own account (four_eyes)")
