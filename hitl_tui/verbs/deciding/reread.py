"""Give an answered request a second reading.

For requests of a gate with `second_reading`. Without ANSWER, show the question and what it is about, but
not the first answer. Yours only measures how far people agree; nothing runs on it. `hitl-tui stats` lists
what is to be read again.

    hitl-tui reread r1
    hitl-tui reread r1 approve --score tone=4
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.commands import ReadAgain
from hitl_tui.engine.log.requests import Choice, Request
from hitl_tui.engine.log.units import about
from hitl_tui.engine.thread.second_readings import second_readings
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.verbs.attending import REQUEST
from hitl_tui.verbs.conversation import NOTE, Ask, AskChoice, AskField, At, Do, Show, Talk, Verb
from hitl_tui.view.actions import Action, thread_open
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.shapes import Document

_ANSWER: Final = AskField("answer", "the answer, by its id", metavar="ANSWER", rare=True)
_SCORE: Final = AskField(
    "score",
    "scores from 1 to 5, as tone=4",
    about="A score from 1 to 5 for a criterion of the rubric. Repeatable.",
    metavar="NAME=N",
    many=True,
    rare=True,
)
_ROWS: Final = 400
_BLIND: Final = "Somebody has decided this already; you don't see how. Nothing runs on your answer."


class RereadDocument(Document, frozen=True):
    """`reread`: a request for a second reading, without the first answer."""

    thread: Annotated[str, about("The thread.")]
    request: Annotated[str, about("The request.")]
    step: Annotated[int, about("The step it is about.")]
    title: Annotated[str, about("The question.")]
    payload: Annotated[Any, about("The data shown with the question.")]
    subject: Annotated[str | None, about("The channel that the decision is about.")]
    value: Annotated[Any, about("The value of that channel at the step.")]
    choices: Annotated[tuple[Choice, ...], about("The allowed answers.")]
    rubric: Annotated[tuple[str, ...], about("The criteria to score.")]
    answered: Annotated[bool, about("Whether your answer was recorded now.")]


async def _talk(at: At) -> Talk:
    """Show the question without its answer, and ask for another one."""
    from hitl_tui.view.reasons import read_scores

    request = _waiting(at, await at.driver.snapshot())
    value = (await at.driver.state_at(request.step)).get((request.subject or "").partition(".")[0])
    lines, typed = _lines(request, value), at.given.get(_ANSWER.name, "")
    score = _SCORE if not request.rubric else _scored(request)
    refused: HitlError | None = None
    while True:
        if at.leaves and not typed:
            yield Show("\n".join((request.title, *lines)), document=_document(at, request, value))
            return
        reply = None
        if not typed:
            choices = tuple(AskChoice(each.id, each.key, each.label or each.id) for each in request.choices)
            reply = yield Ask(request.title, (_BLIND,), choices, (NOTE, score), refused, beside=tuple(lines))
            if reply is None:
                return
        chosen, note = (reply.choice, reply.text("note")) if reply else (typed, at.given.get("note"))
        given = reply.words("score") if reply else at.given.get("score", "").split()
        try:
            answer = {"choice": chosen, "text": note} if note else chosen
            scores = read_scores(request.rubric, given)
            yield Do(ReadAgain(request.id, answer, at.actor, note or None, at.seen, scores=scores))
        except HitlError as error:
            if typed:
                raise
            refused = error
        else:
            break
    document = _document(at, request, value, answered=True)
    yield Show("Your second reading is recorded", "Reread", document=document)


def _scored(request: Request) -> AskField:
    from msgspec.structs import replace

    criteria = " ".join(f"{sanitise_line(name, 40)}=" for name in request.rubric)
    return replace(_SCORE, label=f"scores from 1 to 5: {criteria}", rare=False)


def _waiting(at: At, snapshot: Snapshot) -> Request:
    """Return the request that the person may read again: the named one, or the oldest.

    Raises:
        UsageError: there is none.
    """
    known = second_readings(snapshot.ledger, snapshot.thread_id)
    for reading in known:
        wanted = at.given.get(REQUEST.name, "") in ("", reading.request.id)
        if wanted and reading.second is None and at.actor not in reading.people:
            return reading.request
    raise UsageError(
        f"nothing in thread {snapshot.thread_id!r} needs a second reading by {at.actor}",
        "`hitl-tui stats` lists what is to be read again",
    )


def _lines(request: Request, value: Any) -> list[str]:
    """Return what the question is about."""
    from hitl_tui.view.lines import content
    from hitl_tui.view.value_lines import value_lines

    payload = [] if request.payload is None else content(value_lines(request.payload, "text"), _ROWS)
    about = [] if request.subject is None or value is None else content(value_lines(value, "text"), _ROWS)
    return [*payload, *about]


def _document(at: At, request: Request, value: Any, *, answered: bool = False) -> RereadDocument:
    return RereadDocument(
        at.driver.thread_id, request.id, request.step, request.title, request.payload, request.subject,
        value, request.choices, request.rubric, answered,
    )  # fmt: skip


VERB = Verb(
    ReadAgain,
    _talk,
    Action(
        "change.reread",
        "X",
        "Reread",
        "Give an answered request a second reading, without seeing the answer",
        "Change",
        thread_open,
    ),
    after="change.note",
    arguments=(_ANSWER,),
    options=(REQUEST, _SCORE, NOTE),
)
