"""`answer`, `approve`, `revise`: decisions without a screen, with the same guards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.options import note_option, options_as, thread_argument
from hitl_tui.cli.output import say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import AnswerRefused, ExitCode, StaleWriter, UsageError

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver, Snapshot
    from hitl_tui.engine.log.requests import Request


@dataclass(frozen=True)
class _Order:
    """About which step something is decided, why, and how it is sent."""

    note: str | None
    at_step: int | None
    yes: bool
    go_on: bool


_request_option = click.option("--request", metavar="ID", help="Which request, where several wait.")


def _order_options(
    note: Callable[..., Any] = note_option, *, step_required: bool = False
) -> Callable[..., Any]:
    step = "The step it is about: refused if the thread has moved."
    return options_as(
        "order",
        _Order,
        note,
        click.option("--step", "at_step", type=int, required=step_required, metavar="N", help=step),
        click.option("--yes", is_flag=True, help="Confirm a decision of high risk."),
        click.option("--run", "go_on", is_flag=True, help="Run on afterwards, as resume --headless does."),
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
    """Answer a request that waits for a human.

    REQUEST is its id, as `show` tells it. VALUE is one of its allowed answers, with words of your own
    in --note; where it has none, a text, or JSON if its schema asks for something else. An answer with
    fields is given as --set FIELD=VALUE for each of them, any answer as --value JSON or --value @FILE.
    """
    from hitl_tui.cli.inputs import Given

    given = Given(value, fields, json_value)
    return await _decide(opened, thread, request, order, lambda asked: given.answer(asked, order.note))


@click.command()
@thread_argument
@_request_option
@_order_options()
@on_thread(acts=True, builds=True)
async def approve(opened: OpenThread, *, thread: str, request: str | None, order: _Order) -> ExitCode:
    """Approve what a thread waits for.

    Answers "approve" where that is allowed, as for an advisor's verdict, else the one answer whose name
    means yes (accept, allow, yes, ok, confirm, continue, proceed, pass, run), and says which. Where none
    does, nothing is answered and the answers there are are listed; `answer` gives any of them.
    """
    from hitl_tui.view.answers import approving_choice
    from hitl_tui.view.card import choice_answer
    from hitl_tui.view.lines import name

    def make(asked: Request) -> Any:
        choice = approving_choice(asked, thread)
        value = choice_answer(choice, order.note)
        if choice.id != "approve":
            say(f"{name(asked.title)}: answered {name(choice.id)!r}.", err=True)
        return value

    return await _decide(opened, thread, request, order, make)


@click.command()
@thread_argument
@_request_option
@_order_options(
    click.option("--note", metavar="TEXT", required=True, help="What should change, in your words.")
)
@on_thread(acts=True, builds=True)
async def revise(opened: OpenThread, *, thread: str, request: str | None, order: _Order) -> ExitCode:
    """Send back what a thread waits for, with your words.

    For requests that have the answer "revise", as an advisor's verdict; `answer` gives any other.
    """
    from hitl_tui.view.answers import find_choice
    from hitl_tui.view.card import choice_answer

    def make(asked: Request) -> Any:
        return choice_answer(find_choice(asked, "revise"), order.note)

    return await _decide(opened, thread, request, order, make)


async def _decide(
    opened: OpenThread, thread: str, request_id: str | None, order: _Order, make: Callable[[Request], Any]
) -> ExitCode:
    """Answer the request of a thread, and run on if that was wanted.

    A refusal because the thread has moved shows what has changed since.
    """
    from hitl_tui.cli.headless import report, run_on
    from hitl_tui.view.diff import changed_since

    driver = await opened.thread(thread)
    snapshot = await driver.snapshot()
    try:
        await _answer(driver, snapshot, request_id, order, make, actor=opened.settings.reviewer)
    except (AnswerRefused, StaleWriter) as refusal:
        now = (await driver.snapshot()).progress.head
        about = snapshot.progress.head if order.at_step is None else order.at_step
        refusal.details = await changed_since(driver, about, now)
        raise
    progress = (await driver.snapshot()).progress
    if order.go_on and not progress.pending:
        return await run_on(driver, as_json=opened.as_json)
    waits = order.go_on or progress.pending or progress.status == "failed"
    return await report(driver, as_json=opened.as_json, done=not waits)


async def _answer(
    driver: Driver,
    snapshot: Snapshot,
    request_id: str | None,
    order: _Order,
    make: Callable[[Request], Any],
    *,
    actor: str,
) -> None:
    from hitl_tui.engine.commands import Answer
    from hitl_tui.view.answers import pick_request
    from hitl_tui.view.status import standing_line

    pending, head = snapshot.progress.pending, snapshot.progress.head
    if request_id is not None and all(waiting.id != request_id for waiting in pending):
        # The engine tells an answered request from an unknown one, and writes the refusal down.
        step = head if order.at_step is None else order.at_step
        await driver.execute(Answer(request_id, None, step, actor, order.note))
    stands = standing_line(snapshot.progress, snapshot.held_by, snapshot.ledger)
    where = f"thread {snapshot.thread_id!r}: {stands}"
    if not pending and order.at_step is not None and order.at_step < head:
        raise StaleWriter(
            f"thread {snapshot.thread_id!r} is at step {head}, the answer is about step {order.at_step}, "
            "and nothing waits for one any more; nothing was stored",
            where,
        )
    request = pick_request(pending, request_id, where)
    value = make(request)
    if request.risk == "high" and not order.yes:
        raise UsageError(f"{request.title!r} is a decision of high risk", "confirm it with --yes")
    step = request.step if order.at_step is None else order.at_step
    checkpoint = next((point for point in snapshot.checkpoints if point.step == step), None)
    seen = checkpoint.state_hash if checkpoint else b""
    await driver.execute(Answer(request.id, value, step, actor, order.note, seen))
