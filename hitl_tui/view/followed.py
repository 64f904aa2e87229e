"""Shows the results of a person's decisions, and how to undo one later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec

from hitl_tui.drivers.decided import Decided, decisions_of, subjects_of
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.log.units import Maybe, Time, about
from hitl_tui.engine.thread.approval_formats import decided_word
from hitl_tui.shell import command_line
from hitl_tui.view.cells import thread_name
from hitl_tui.view.format import decider, inline, local_time
from hitl_tui.view.rows import wrap_line
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.engine.log.events import Progress

_NAME: Final = 60
_TITLE: Final = 100
_NAMED: Final = 8
"""Nodes that are named in a line."""
_CHANGING: Final = frozenset(("answer", "vote", "update_state"))
"""Decisions that a fork before them makes again."""
_VERBS: Final = {"approve": "approved", "revise": "sent back", "reject": "rejected"}
"""What a person did, by the usual answers."""
_DONE: Final = {
    "handed_over": "handed over",
    "claim_taken": "took over the claim",
    "allowed": "allowed further calls",
    "allowance_revoked": "revoked an allowance",
    "declassify": "cleared a taint",
    "reveal": "revealed a private value",
    "export": "exported the thread",
    "extend": "raised the limits",
    "cancel": "cancelled the thread",
    "fork": "forked",
    "agent": "changed an agent",
    "rollback": "rolled back",
}
"""What a person did, by other kinds of decisions."""
_OVER: Final = ("completed", "cancelled", "failed")


class TakeBack(msgspec.Struct, frozen=True):
    """A way to undo a decision later."""

    way: Annotated[Literal["fork", "edit", "rollback"], about("The kind: `fork`, `edit` or `rollback`.")]
    command: Annotated[str, about("The command to run.")]
    runs: Annotated[
        tuple[str, ...], about("The nodes that would run again, in order; for a rollback, the handlers.")
    ]


class FoundText(msgspec.Struct, frozen=True):
    """The text of a decision that has a searched word."""

    text: Annotated[
        str,
        about("Which text: `question`, `payload`, `reason`, `answer`, or a channel that was decided about."),
    ]
    before: Annotated[str, about("The text before the match.")]
    match: Annotated[str, about("The matching text, as written.")]
    after: Annotated[str, about("The text after the match.")]


class DecisionOutcome(msgspec.Struct, frozen=True):
    """A decision, and what happened until the thread's next question."""

    thread: Annotated[str, about("The thread.")]
    n: Annotated[int, about("The entry's number in the thread's ledger.")]
    kind: Annotated[str, about("The kind: `answer`, `vote`, `update_state`...", name="decision")]
    step: Annotated[int, about("The step it was about.")]
    at: Annotated[Time, about("When.")]
    note: Annotated[str | None, about("The reason given.")]
    title: Annotated[Maybe, about("The question.")]
    answer: Annotated[Maybe, about("The answer, in short.")]
    ran: Annotated[tuple[str, ...], about("The nodes that ran then.")]
    status: Annotated[Maybe, about("The thread's status; null if it has asked another question since.")]
    reason: Annotated[Maybe, about("The reason for that status.")]
    question: Annotated[Maybe, about("The next question after it.")]
    take_back: Annotated[tuple[TakeBack, ...], about("The ways to undo it.")]
    actor: Annotated[str | None, about("Who decided; null for a program.")] = None
    by: Annotated[Maybe, about("Who decided, in words: a person, or a policy.")] = ""
    subjects: Annotated[
        tuple[str, ...], about("The channels whose values were decided about.", name="about")
    ] = ()
    found: Annotated[FoundText | None, about("Where the first searched word is.")] = None

    @property
    def before(self) -> int:
        """The step from which it can be made again."""
        return step_before(self)


def step_before(decision: DecisionOutcome | LedgerEntry) -> int:
    """Return the step from which a decision can be made again: that of an edit is the one that it created."""
    return max(decision.step - (decision.kind == "update_state"), 0)


def followed(decided: Decided, options: str = "") -> DecisionOutcome:
    """Return what happened after a decision.

    Args:
        options: for commands that undo it to find the store, such as " --store FILE".
    """
    entry, ledger, points = decided.entry, decided.ledger, decided.points
    request = next(
        (
            other
            for other in ledger
            if other.kind == "request" and entry.request_id and other.request_id == entry.request_id
        ),
        None,
    )
    asked = next((other for other in ledger if other.kind == "request" and other.n > entry.n), None)
    last = asked.step if asked else points[-1].step if points else entry.step
    ran = [point.node for point in points if entry.step < point.step <= last and point.node]
    given = entry.data.get("answer") if isinstance(entry.data, Mapping) else None
    return DecisionOutcome(
        decided.thread,
        entry.n,
        entry.kind,
        entry.step,
        entry.at,
        entry.note,
        (request.note or "") if request is not None else "",
        "" if given is None else decided_word(given) or inline(given, _NAME),
        tuple(ran),
        "" if asked else decided.status,
        "" if asked else decided.reason,
        (asked.note or "") if asked else "",
        tuple(_ways_to_undo(decided, options)),
        entry.actor,
        decider(entry),
        subjects_of(entry, request),
        FoundText(*decided.found) if decided.found[0] else None,
    )


async def followed_in(
    driver: Driver, progress: Progress, ledger: Sequence[LedgerEntry], person: str, most: int
) -> list[DecisionOutcome]:
    """Return what happened after a person's decisions in a thread, newest first.

    Args:
        most: the maximum number of decisions.
    """
    decisions = decisions_of(ledger, person)[:most]
    if not decisions:
        return []
    first = min(entry.step for entry in decisions)
    points = (await driver.history(limit=progress.head + 1 - first))[::-1]
    thread, status, reason = driver.thread_id, progress.status, progress.reason
    return [
        followed(
            Decided(
                thread, status, reason, entry, ledger, [point for point in points if point.step >= entry.step]
            )
        )
        for entry in decisions
    ]


def _ways_to_undo(decided: Decided, options: str) -> Iterable[TakeBack]:
    entry, thread = decided.entry, decided.thread
    if entry.kind not in _CHANGING:
        return
    later = [point for point in decided.points if point.step > entry.step]
    again = tuple(dict.fromkeys(point.node for point in later if point.node))
    before = step_before(entry)
    yield TakeBack(
        "fork", command_line("fork", f"{thread}@{before}", f"{thread}-again", options=options), again
    )
    if decided.status not in ("running", *_OVER):
        yield TakeBack("edit", command_line("update-state", thread, "CHANNEL=VALUE", options=options), ())
    handlers = tuple(step.handler for point in reversed(later) for step in reversed(point.compensations))
    if handlers and decided.reason != "rolled_back":
        yield TakeBack("rollback", command_line("rollback", thread, options=options), handlers)


def followed_lines(decision: DecisionOutcome, me: str | None = None) -> list[str]:
    """Describe a decision, what happened after it and how to undo it; sanitised.

    Args:
        me: who reads it; None for the person who decided.
    """
    name = thread_name(decision.thread, _NAME)
    by_me = me is None or decision.actor == me
    who = "you" if by_me else sanitise_line(decision.actor or decision.by or "a program", _NAME)
    lines = [f"{name}, step {decision.step}: {who} {done_words(decision)}"]
    if decision.note:
        lines.append(f"  because: {sanitise_line(decision.note, _TITLE)}")
    none = "nothing ran" if decision.status in _OVER else "nothing ran yet"
    lines.append(f"  then: {_names(decision.ran) or none}; {_outcome(decision)}")
    return [*lines, *(line for way in decision.take_back for line in _way_lines(way))]


def dated_lines(decision: DecisionOutcome, me: str | None = None) -> list[str]:
    """Return what `followed_lines` does, with the time of the decision in front."""
    title, *rest = followed_lines(decision, me)
    return [f"{local_time(decision.at)}  {title}", *rest]


def outcome_lines(decisions: Iterable[DecisionOutcome], width: int) -> list[Line]:
    """Return decisions as rows of so many cells, with a hanging indent."""

    def rows(line: str, role: Role) -> Iterator[Line]:
        indent = " " * (len(line) - len(line.lstrip()))
        for row in wrap_line(line.lstrip(), width - len(indent)):
            yield (Span(f"{indent}{row}", role),)

    lines: list[Line] = []
    for decision in decisions:
        title, *rest = dated_lines(decision)
        lines += [*rows(title, "name"), *(row for line in rest for row in rows(line, "plain")), ()]
    return lines


def done_words(decision: DecisionOutcome) -> str:
    """Return what the person did: "approved “Is it good?”", "answered “Which one?”: the red one"."""
    title = f" “{sanitise_line(decision.title, _TITLE)}”" if decision.title else ""
    if decision.kind == "update_state":
        return f"edited {_names(decision.subjects) or 'values'}"
    if decision.kind not in ("answer", "vote"):
        kind = _DONE.get(decision.kind, decision.kind.replace("_", " "))
        return f"{sanitise_line(kind, _NAME)}{title and ':'}{title}"
    answer = sanitise_line(decision.answer, _NAME)
    if decision.kind == "vote":
        return f"voted on{title or ' a request'}: {answer}"
    if title and answer in _VERBS:
        return f"{_VERBS[answer]}{title}"
    return f"answered{title}: {answer}"


def then_words(decision: DecisionOutcome) -> str:
    """Return what came of a decision: "done after publish", "asked “Is it good?”"."""
    after = f" after {_names(decision.ran)}" if decision.ran else ""
    if decision.question:
        return f"asked “{sanitise_line(decision.question, _TITLE)}”{after}"
    status, reason = decision.status, sanitise_line(decision.reason, _NAME)
    if not status:
        return f"asked again{after}"
    if status == "completed":
        return f"done{after}" + ("" if reason in ("", "end") else f" ({reason})")
    if status == "waiting":
        return f"{reason.replace('_', ' ') or 'waits'}{after}"
    return f"{status}{after}" + (f" ({reason})" if reason and reason != "user" else "")


def _outcome(decision: DecisionOutcome) -> str:
    if decision.question:
        return f"asked: “{sanitise_line(decision.question, _TITLE)}”"
    reason = f" ({sanitise_line(decision.reason, _NAME)})" if decision.reason else ""
    return f"{decision.status or 'asked again'}{reason}"


def run_again(way: TakeBack) -> str:
    """Return what a fork before a decision would run again."""
    return f"{_names(way.runs)} would run again" if way.runs else "nothing has run since"


def _way_lines(way: TakeBack) -> list[str]:
    runs = _names(way.runs)
    said = {
        "fork": f"fork before it; {run_again(way)}",
        "edit": "edit values from here on; no node runs again",
        "rollback": f"roll back side effects with {runs}",
    }[way.way]
    return [f"  undo: {said}", f"    {sanitise_line(way.command, 300)}"]


def _names(nodes: Sequence[str]) -> str:
    shown = [sanitise_line(node, _NAME) for node in nodes[:_NAMED]]
    rest = len(nodes) - _NAMED
    return ", ".join([*shown, f"{rest:,} more"] if rest > 0 else shown)
