"""Describes the terms of a request for its card: who may answer, how many must agree, and until when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.thread.interrupts import has_voted
from hitl_tui.view.format import inline, local_time
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, trusted

_NAME = 40
_ANSWER = 60


def not_yours(request: Request, person: str) -> str:
    """Return why a person may not answer a request; "" if its reviewers and votes allow it.

    An empty `person` means nobody in particular, who is never refused.
    """
    if not person:
        return ""
    if request.reviewers and person not in request.reviewers:
        return f"only {_either(request.reviewers)} may answer"
    if request.four_eyes and person in request.authors:
        return "you gave or edited what it asks about, so somebody else must answer"
    return "you have voted, and somebody else must answer, too" if has_voted(request, person) else ""


def term_lines(request: Request, reader: str) -> Iterator[Line]:
    """Yield the terms that a person must know before they answer; nothing if anybody may answer at any time.

    `reader` is the person who reads them.

    Args:
        reader: who reads them.
    """
    refusal = not_yours(request, reader)
    if refusal:
        yield (trusted(f"You can't answer this: {refusal}.", "error"),)
    elif request.reviewers:
        yield (trusted(f"Only {_either(request.reviewers)} may answer.", "dim"),)
    elif request.authors:
        yield (trusted(f"Anyone but {_either(request.authors)} may answer.", "dim"),)
    if request.logins:
        yield (trusted(f"Only the database logins {_either(request.logins)} may answer.", "dim"),)
    if request.quorum > 1:
        votes = f"{request.quorum} people must agree; {len(request.votes)} voted so far."
        yield (trusted(votes, "accent"),)
    if request.deadline is not None:
        yield (trusted(f"Answer by {local_time(request.deadline)}; {then_words(request)}.", "accent"),)


def term_rows(request: Request, reader: str, asker: str, votes: Sequence[Line]) -> Iterator[tuple[str, Line]]:
    """Yield the terms as rows of a label and what it says; "" continues the row above.

    Args:
        reader: who reads them.
        asker: who asks, sanitised.
        votes: the votes so far, a line each.
    """
    since = f", since {local_time(request.asked_at)}" if request.asked_at else ""
    yield "asked by", (trusted(asker), trusted(since, "dim"))
    refusal = not_yours(request, reader)
    named = _listed(request.reviewers) or (
        f"anyone but {_either(request.authors)}" if request.authors else ""
    )
    if refusal:
        who = trusted(f"{named}; " if named else "")
        yield "who may", (who, trusted(f"not you: {refusal}", "error"))
    elif named:
        yield "who may", (trusted(named), trusted(f" (you are {sanitise_line(reader, _NAME)})", "dim"))
    if request.logins:
        yield "logins", (trusted(_listed(request.logins)), trusted(" of the database", "dim"))
    if request.quorum > 1:
        yield "votes", (trusted(f"{len(request.votes)} of {request.quorum} that must agree"),)
        yield from (("", vote) for vote in votes)
    if request.deadline is not None:
        yield "due", (trusted(f"{local_time(request.deadline)}; "), trusted(then_words(request), "accent"))


def then_words(request: Request) -> str:
    """Return what happens to a request at its deadline."""
    answer = request.on_timeout
    if answer is None:
        return "then the thread fails"
    chosen = answer.get("choice") if isinstance(answer, Mapping) else answer
    label = next((choice.label or choice.id for choice in request.choices if choice.id == chosen), "")
    said = sanitise_line(label, _ANSWER) if label else inline(answer, _ANSWER)
    return f"then it is “{said}”"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sanitise_line(name, _NAME) for name in names)


def _either(names: Sequence[str]) -> str:
    """Join names, as in "ann, bob or cy"."""
    *first, last = (sanitise_line(name, _NAME) for name in names)
    return f"{', '.join(first)} or {last}" if first else last
