"""`answer`, `approve` and `revise`: decisions without a screen, with the same guards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hitl_tui.cli.options import note_option, options_as, stream_option, thread_argument
from hitl_tui.cli.output import say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import AnswerRefused, ExitCode, StaleWriter, UsageError

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Snapshot
    from hitl_tui.engine.log.requests import Request
    from hitl_tui.verbs.conversation import At


class _Order(NamedTuple):
    """About which step something is decided, why, and how it is sent."""

    note: str | None
    at_step: int | None
    yes: bool
    take_over: str
    go_on: bool
    comments: tuple[tuple[str, str], ...]
    reasons: tuple[str, ...]
    scores: tuple[str, ...]


_request_option = click.option("--request", metavar="ID", help="Which request, if there are several.")


def _order_options(
    note: Callable[..., Any] = note_option, *, step_required: bool = False
) -> Callable[..., Any]:
    step = "The step it is about: refused if the thread has moved."
    comment = (
        "A comment on a passage of what is decided about; the asker gets it with its passage. Repeatable."
    )
    return options_as(
        "order",
        _Order,
        note,
        click.option("--step", "at_step", type=int, required=step_required, metavar="N", help=step),
        click.option("--comment", "comments", nargs=2, multiple=True, metavar="PASSAGE TEXT", help=comment),
        click.option(
            "--reason",
            "reasons",
            multiple=True,
            metavar="ID",
            help="A reason of your file of reasons, by its id or number; counted. Repeatable.",
        ),
        click.option(
            "--score",
            "scores",
            multiple=True,
            metavar="NAME=N",
            help="A score from 1 to 5 for a criterion of the rubric. Repeatable.",
        ),
        click.option("--yes", is_flag=True, help="Confirm a high-risk decision."),
        click.option(
            "--take-over", metavar="NAME", default="", help="Take it over from NAME, who claimed it."
        ),
        click.option("--run", "go_on", is_flag=True, help="Continue afterwards, as resume --headless does."),
    )


@click.command()
@thread_argument
@click.argument("request")
@click.argument("value", required=False)
@click.option(
    "--set", "fields", multiple=True, metavar="FIELD=VALUE", help="A field of its form; repeatable."
)
@click.option("--value", "json_value", metavar="JSON|@FILE", help="The whole answer as JSON.")
@_order_options(step_required=True)
@stream_option
@on_thread(acts=True, builds=True)
async def answer(
    opened: OpenThread,
    *,
    thread: str,
    request: str,
    value: str | None,
    fields: tuple[str, ...],
    json_value: str | None,
    order: _Order,
) -> ExitCode:
    """Answer any request of a thread.

    REQUEST is its id, as `show` prints it. VALUE is one of its allowed answers, with a comment in --note;
    without allowed answers, a text, or JSON if its schema requires it. Give a form with --set FIELD=VALUE
    for each field, or any answer with --value JSON or --value @file.

        hitl-tui answer r1 0553166a3c95 revise --note "shorter" --step 2
        hitl-tui answer o1 461011164b27 --set item=tea --set amount=2 --step 0
        hitl-tui answer o1 461011164b27 --value @order.json --step 0
    """
    from hitl_tui.cli.inputs import Given

    given = Given(value, fields, json_value)
    return await _decide(
        opened,
        thread,
        request,
        order,
        lambda asked, order: given.answer(asked, order.note, commented=bool(order.comments)),
    )


@click.command()
@thread_argument
@_request_option
@_order_options()
@on_thread(acts=True, builds=True)
async def approve(opened: OpenThread, *, thread: str, request: str | None, order: _Order) -> ExitCode:
    """Approve the request of a thread.

    Gives the answer "approve" if it is allowed, as for an advisor's verdict. Otherwise it gives the one
    answer whose name means yes (accept, allow, yes, ok, confirm, continue, proceed, pass, run), and says
    which. If there is none, it answers nothing and lists the allowed answers; `answer` gives any of them.

        hitl-tui approve r1 --note "reads well" --run
    """
    from hitl_tui.view.answers import approving_choice
    from hitl_tui.view.card import choice_answer
    from hitl_tui.view.lines import name

    chosen: list[str] = []

    def make(asked: Request, order: _Order) -> Any:
        choice = approving_choice(asked, thread)
        if choice.id != "approve":
            chosen.append(f"{name(asked.title)}: answered {name(choice.id)!r}.")
        return choice_answer(choice, order.note, commented=bool(order.comments))

    return await _decide(opened, thread, request, order, make, done=lambda: say(*chosen, err=True))


@click.command()
@thread_argument
@_request_option
@_order_options(click.option("--note", metavar="TEXT", help="What should change; or give comments."))
@on_thread(acts=True, builds=True)
async def revise(opened: OpenThread, *, thread: str, request: str | None, order: _Order) -> ExitCode:
    """Send a request back with your comment.

    For requests that have the answer "revise", such as an advisor's verdict; `answer` gives any other.

        hitl-tui revise r1 --note "shorter" --run
        hitl-tui revise r1 --reason too-long --score tone=4
    """
    from hitl_tui.view.answers import find_choice
    from hitl_tui.view.card import choice_answer

    def make(asked: Request, order: _Order) -> Any:
        return choice_answer(find_choice(asked, "revise"), order.note, commented=bool(order.comments))

    return await _decide(opened, thread, request, order, make)


async def _decide(
    opened: OpenThread,
    thread: str,
    request_id: str | None,
    order: _Order,
    make: Callable[[Request, _Order], Any],
    *,
    done: Callable[[], None] = lambda: None,
) -> ExitCode:
    """Answer the request of a thread, and run the thread if that was wanted.

    A refusal because the thread has moved shows what has changed since.

    Args:
        done: called once the answer is stored; whatever reports a success belongs there.
    """
    from hitl_tui.cli.headless import report, run_on
    from hitl_tui.cli.opening import reasons_in
    from hitl_tui.verbs.conversation import At
    from hitl_tui.view.diff_lines import changed_since
    from hitl_tui.view.reasons import pick_reasons, reason_words

    picked = pick_reasons(reasons_in(opened.settings), order.reasons) if order.reasons else ()
    if picked:
        words = reason_words(picked, order.note or "")
        order = order._replace(note=words, reasons=tuple(reason.id for reason in picked))

    driver = await opened.thread(thread)
    snapshot = await driver.snapshot()
    given = {"take_over": order.take_over, "note": order.note or ""}
    try:
        at = At(driver, opened.hub, opened.settings.reviewer, given=given)
        await _answer(at, snapshot, request_id, order, make)
    except (AnswerRefused, StaleWriter) as refusal:
        now = (await driver.snapshot()).progress.head
        about = snapshot.progress.head if order.at_step is None else order.at_step
        refusal.details = await changed_since(driver, about, now)
        raise
    done()
    snapshot = await driver.snapshot()
    progress = snapshot.progress
    if order.go_on and not progress.pending and not snapshot.handed:
        return await run_on(driver, opened.settings, as_json=opened.as_json)
    waits = order.go_on or progress.pending or progress.status == "failed"
    return await report(driver, as_json=opened.as_json, done=not waits)


async def _answer(
    at: At,
    snapshot: Snapshot,
    request_id: str | None,
    order: _Order,
    make: Callable[[Request, _Order], Any],
) -> None:
    from hitl_tui.engine.commands import Answer
    from hitl_tui.verbs.deciding.claim import claimed
    from hitl_tui.view.answers import pick_request
    from hitl_tui.view.comments import pinned
    from hitl_tui.view.reasons import read_scores
    from hitl_tui.view.status import standing_line

    driver, actor = at.driver, at.actor
    pending, head = snapshot.progress.pending, snapshot.progress.head
    if request_id is not None and all(waiting.id != request_id for waiting in pending):
        # The engine distinguishes an answered request from an unknown one, and records the refusal.
        step = head if order.at_step is None else order.at_step
        await driver.execute(Answer(request_id, None, step, actor, order.note))
    stands = standing_line(snapshot.progress, snapshot.held_by, snapshot.ledger)
    where = f"thread {snapshot.thread_id!r}: {stands}"
    if not pending and order.at_step is not None and order.at_step < head:
        raise StaleWriter(
            f"thread {snapshot.thread_id!r} is at step {head}, the answer is about step {order.at_step}, "
            "and no request waits; nothing was stored",
            where,
        )
    request = pick_request(pending, request_id, where)
    value = make(request, order)
    if request.risk == "high" and not order.yes:
        raise UsageError(f"{request.title!r} is a decision of high risk", "confirm it with --yes")
    if order.take_over:
        await driver.execute(claimed(at, request))
    step = request.step if order.at_step is None else order.at_step
    # This command shows nothing: only a person who names a step has looked at it.
    looked_at = next((point for point in snapshot.checkpoints if point.step == order.at_step), None)
    seen = looked_at.state_hash if looked_at else b""
    comments = pinned(request, snapshot.values, order.comments)
    scores = read_scores(request.rubric, order.scores)
    await driver.execute(
        Answer(
            request.id, value, step, actor, order.note, seen, comments, reasons=order.reasons, scores=scores
        )
    )
