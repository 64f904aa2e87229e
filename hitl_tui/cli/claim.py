"""`claim`, `unclaim`, `hand-over`: who decides a waiting request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hitl_tui.cli.options import note_option, thread_argument
from hitl_tui.cli.output import emit, say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.engine.log.requests import Request

_request_option = click.option("--request", metavar="ID", help="Which request, if there are several.")
_take_over_option = click.option(
    "--take-over", metavar="NAME", default="", help="Take it over from NAME, who claimed it."
)


@click.command()
@thread_argument
@_request_option
@click.option("--for", "span", metavar="TIME", help="How long, as 90s, 15m or 2h; the setting claim_minutes.")
@_take_over_option
@note_option
@on_thread(acts=True)
async def claim(
    opened: OpenThread,
    *,
    thread: str,
    request: str | None,
    span: str | None,
    take_over: str,
    note: str | None,
) -> ExitCode:
    """Claim the request of a thread for a while.

    Until it ends, others can't answer the request. It ends after its time, when you answer, or with
    `unclaim`. Others can take it over from you by name, which the ledger keeps.
    """
    from hitl_tui.engine.commands import Claim

    driver, asked = await _waiting(opened, thread, request)
    minutes = opened.settings.claim_minutes if span is None else _minutes(span)
    actor = opened.settings.reviewer
    await driver.execute(Claim(asked.id, actor, minutes, lasts=True, take_over=take_over, note=note))
    return await _print_claim(opened, driver, asked)


@click.command()
@thread_argument
@_request_option
@on_thread(acts=True)
async def unclaim(opened: OpenThread, *, thread: str, request: str | None) -> ExitCode:
    """Give back a request that you claimed."""
    from hitl_tui.engine.commands import Unclaim

    driver, asked = await _waiting(opened, thread, request)
    given_back = await driver.execute(Unclaim(asked.id, opened.settings.reviewer))
    if not given_back and not opened.as_json:
        say("nobody had claimed it", err=True)
    return await _print_claim(opened, driver, asked)


@click.command("hand-over")
@thread_argument
@click.argument("name")
@_request_option
@_take_over_option
@note_option
@on_thread(acts=True)
async def hand_over(
    opened: OpenThread, *, thread: str, name: str, request: str | None, take_over: str, note: str | None
) -> ExitCode:
    """Hand the request of a thread over to another person.

    NAME sees it as theirs, and others see whose it is; anyone who may answer it still can. The ledger keeps
    who handed it over. Where reviewers are named, NAME must be one of them.
    """
    from hitl_tui.engine.commands import Claim, HandOver

    driver, asked = await _waiting(opened, thread, request)
    actor = opened.settings.reviewer
    if take_over:
        await driver.execute(Claim(asked.id, actor, take_over=take_over, note=note))
    await driver.execute(HandOver(asked.id, asked.step, name.removeprefix("@"), actor, note))
    return await _print_claim(opened, driver, asked)


async def _waiting(opened: OpenThread, thread: str, request_id: str | None) -> tuple[Driver, Request]:
    """Return the thread and the named request."""
    from hitl_tui.view.answers import pick_request
    from hitl_tui.view.status import standing_line

    driver = await opened.reading(thread)
    snapshot = await driver.snapshot()
    where = standing_line(snapshot.progress, snapshot.held_by, snapshot.ledger)
    return driver, pick_request(snapshot.progress.pending, request_id, f"thread {thread!r}: {where}")


async def _print_claim(opened: OpenThread, driver: Driver, asked: Request) -> ExitCode:
    """Print who has claimed the request, owns it or has it open."""
    from hitl_tui.cli.reports import AttendingDocument
    from hitl_tui.view.lines import name, sentence, short_id
    from hitl_tui.view.presence import at_request, attending_words

    now = opened.store.now()
    pending = (await driver.snapshot()).progress.pending
    request = next((request for request in pending if request.id == asked.id), asked)
    there = at_request(opened.store.attending(driver.thread_id, now), request)
    if opened.as_json:
        emit(AttendingDocument(driver.thread_id, request.id, request.step, request.handed, there))
        return ExitCode.DONE
    words = list(attending_words(request, there, opened.settings.reviewer)) or ["no longer claimed"]
    say(*(sentence(f"{short_id(driver.thread_id)}: {name(request.title)}: {line}") for line in words))
    return ExitCode.DONE


def _minutes(span: str) -> float:
    """Return the minutes of "90s", "15m", "2h"; raise `UsageError`."""
    from hitl_tui.engine.log.units import span_of

    try:
        return span_of(span.strip()) / 60e6
    except ValueError as error:
        raise UsageError(f"--for {error}", "give it as 90s, 15m or 2h") from None
