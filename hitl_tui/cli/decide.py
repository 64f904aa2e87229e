"""`answer`, `approve`, `revise`: decisions without a screen, with the same guards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.options import (
    building_options,
    note_option,
    options_as,
    reviewer_option,
    store_option,
    thread_argument,
)
from hitl_tui.cli.output import json_option
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import AnswerRefused, ExitCode, StaleWriter, UsageError

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver, Snapshot
    from hitl_tui.engine.log.requests import Request


@dataclass(frozen=True)
class _Sending:
    """How a decision is sent, and what comes after it."""

    yes: bool
    go_on: bool
    store: str | None
    reviewer: str | None
    as_json: bool


@dataclass(frozen=True)
class _Order:
    """What was decided on the command line, and on what."""

    thread: str
    request_id: str | None
    make: Callable[[Request], Any]
    at_step: int | None
    note: str | None
    how: _Sending


def _step_option(*, required: bool = False) -> Callable[..., Any]:
    words = "The step it is about: refused if the thread has moved."
    return click.option("--step", "at_step", type=int, required=required, metavar="N", help=words)


_request_option = click.option("--request", metavar="ID", help="Which request, where several wait.")
_sending_options = options_as(
    "how",
    _Sending,
    click.option("--yes", is_flag=True, help="Confirm a decision of high risk."),
    click.option("--run", "go_on", is_flag=True, help="Run on afterwards, as resume --headless does."),
    building_options,
    store_option,
    reviewer_option,
    json_option,
)


@click.command()
@thread_argument
@click.argument("request")
@click.argument("value", required=False)
@click.option(
    "--set", "fields", multiple=True, metavar="FIELD=VALUE", help="A field of its form; repeatable."
)
@click.option("--value", "json_value", metavar="JSON|@FILE", help="The whole answer as JSON.")
@_step_option(required=True)
@note_option
@_sending_options
def answer(
    *,
    thread: str,
    request: str,
    value: str | None,
    fields: tuple[str, ...],
    json_value: str | None,
    at_step: int,
    note: str | None,
    how: _Sending,
) -> int:
    """Answer a request that waits for a human.

    REQUEST is its id, as `show` tells it. VALUE is one of its allowed answers, with words of your own
    in --note; where it has none, a text, or JSON if its schema asks for something else. An answer with
    fields is given as --set FIELD=VALUE for each of them, any answer as --value JSON or --value @FILE.
    """
    from hitl_tui.cli.inputs import Given

    given = Given(value, fields, json_value)
    order = _Order(thread, request, lambda asked: given.answer(asked, note), at_step, note, how)
    return _decide(order)


@click.command()
@thread_argument
@note_option
@_request_option
@_step_option()
@_sending_options
def approve(
    *,
    thread: str,
    note: str | None,
    request: str | None,
    at_step: int | None,
    how: _Sending,
) -> int:
    """Approve what a thread waits for.

    Answers "approve" where that is allowed, as for an advisor's verdict, else the one answer whose name
    means yes (accept, allow, yes, ok, confirm, continue, proceed, pass, run), and says which. Where none
    does, nothing is answered and the answers there are are listed; `answer` gives any of them.
    """
    order = _Order(thread, request, _approving(thread, note), at_step, note, how)
    return _decide(order)


@click.command()
@thread_argument
@click.option("--note", metavar="TEXT", required=True, help="What should change, in your words.")
@_request_option
@_step_option()
@_sending_options
def revise(
    *,
    thread: str,
    note: str,
    request: str | None,
    at_step: int | None,
    how: _Sending,
) -> int:
    """Send back what a thread waits for, with your words.

    For requests that have the answer "revise", as an advisor's verdict; `answer` gives any other.
    """
    order = _Order(thread, request, _choosing("revise", note), at_step, note, how)
    return _decide(order)


def _choosing(choice: str, words: str | None) -> Callable[[Request], Any]:
    def make(request: Request) -> Any:
        from hitl_tui.view.answers import find_choice
        from hitl_tui.view.card import choice_answer

        return choice_answer(find_choice(request, choice), words)

    return make


def _approving(thread: str, words: str | None) -> Callable[[Request], Any]:
    def make(request: Request) -> Any:
        from hitl_tui.cli.output import say
        from hitl_tui.view.answers import approving_choice
        from hitl_tui.view.card import choice_answer
        from hitl_tui.view.lines import name

        choice = approving_choice(request, thread)
        value = choice_answer(choice, words)
        if choice.id != "approve":
            say(f"{name(request.title)}: answered {name(choice.id)!r}.", err=True)
        return value

    return make


def _decide(order: _Order) -> int:
    """Answer the request of a thread, and run on if that was wanted."""
    how = order.how

    async def work(opened: OpenThread) -> ExitCode:
        from hitl_tui.cli.headless import report, run_on

        driver = await opened.thread(order.thread)
        await _send(driver, order, opened.settings.reviewer)
        progress = (await driver.snapshot()).progress
        if how.go_on and not progress.pending:
            return await run_on(driver, as_json=how.as_json)
        waits = how.go_on or progress.pending or progress.status == "failed"
        return await report(driver, as_json=how.as_json, done=not waits)

    return on_thread(work, store=how.store, reviewer=how.reviewer)


async def _send(driver: Driver, order: _Order, actor: str) -> None:
    """Send the answer; a refusal because the thread has moved shows what has changed since."""
    from hitl_tui.view.diff import changed_since

    snapshot = await driver.snapshot()
    try:
        await _answer(driver, snapshot, order, actor)
    except (AnswerRefused, StaleWriter) as refusal:
        now = (await driver.snapshot()).progress.head
        about = snapshot.progress.head if order.at_step is None else order.at_step
        refusal.details = await changed_since(driver, about, now)
        raise


async def _answer(driver: Driver, snapshot: Snapshot, order: _Order, actor: str) -> None:
    from hitl_tui.engine.commands import Answer
    from hitl_tui.view.answers import pick_request
    from hitl_tui.view.status import standing_line

    pending, head = snapshot.progress.pending, snapshot.progress.head
    if order.request_id is not None and all(waiting.id != order.request_id for waiting in pending):
        # The engine tells an answered request from an unknown one, and writes the refusal down.
        step = head if order.at_step is None else order.at_step
        await driver.execute(Answer(order.request_id, None, step, actor, order.note))
    stands = standing_line(snapshot.progress, snapshot.held_by, snapshot.ledger)
    where = f"thread {snapshot.thread_id!r}: {stands}"
    if not pending and order.at_step is not None and order.at_step < head:
        raise StaleWriter(
            f"thread {snapshot.thread_id!r} is at step {head}, the answer is about step {order.at_step}, "
            "and nothing waits for one any more; nothing was stored",
            where,
        )
    request = pick_request(pending, order.request_id, where)
    value = order.make(request)
    if request.risk == "high" and not order.how.yes:
        raise UsageError(f"{request.title!r} is a decision of high risk", "confirm it with --yes")
    step = request.step if order.at_step is None else order.at_step
    checkpoint = next((point for point in snapshot.checkpoints if point.step == step), None)
    seen = checkpoint.state_hash if checkpoint else b""
    await driver.execute(Answer(request.id, value, step, actor, order.note, seen))
