"""`answer`, `approve`, `revise`, and `decide` for many: decisions without a screen, with the same guards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from hitl_tui.cli.invocation import same_store
from hitl_tui.cli.opening import find_thread
from hitl_tui.cli.options import complete_thread, note_option, options_as, stream_option, thread_argument
from hitl_tui.cli.output import say
from hitl_tui.cli.thread import OpenThread, on_thread
from hitl_tui.errors import AnswerRefused, ExitCode, StaleWriter, UsageError
from hitl_tui.shell import command_line

if TYPE_CHECKING:
    from hitl_tui.drivers.protocol import Driver, Snapshot
    from hitl_tui.engine.log.requests import Request
    from hitl_tui.view.queue import QueueRow
    from hitl_tui.view.queue_facts import Planned


class _Order(NamedTuple):
    """About which step something is decided, why, and how it is sent."""

    note: str | None
    at_step: int | None
    yes: bool
    take_over: str
    go_on: bool
    comments: tuple[tuple[str, str], ...]


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
    """
    from hitl_tui.cli.inputs import Given

    given = Given(value, fields, json_value)
    return await _decide(
        opened,
        thread,
        request,
        order,
        lambda asked: given.answer(asked, order.note, commented=bool(order.comments)),
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
    """
    from hitl_tui.view.answers import approving_choice
    from hitl_tui.view.card import choice_answer
    from hitl_tui.view.lines import name

    chosen: list[str] = []

    def make(asked: Request) -> Any:
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
    """
    from hitl_tui.view.answers import find_choice
    from hitl_tui.view.card import choice_answer

    def make(asked: Request) -> Any:
        return choice_answer(find_choice(asked, "revise"), order.note, commented=bool(order.comments))

    return await _decide(opened, thread, request, order, make)


async def _decide(
    opened: OpenThread,
    thread: str,
    request_id: str | None,
    order: _Order,
    make: Callable[[Request], Any],
    *,
    done: Callable[[], None] = lambda: None,
) -> ExitCode:
    """Answer the request of a thread, and run the thread if that was wanted.

    A refusal because the thread has moved shows what has changed since.

    Args:
        done: called once the answer is stored; whatever reports a success belongs there.
    """
    from hitl_tui.cli.headless import report, run_on
    from hitl_tui.view.diff_lines import changed_since

    driver = await opened.thread(thread)
    snapshot = await driver.snapshot()
    try:
        await _answer(driver, snapshot, request_id, order, make, actor=opened.settings.reviewer)
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
    driver: Driver,
    snapshot: Snapshot,
    request_id: str | None,
    order: _Order,
    make: Callable[[Request], Any],
    *,
    actor: str,
) -> None:
    from hitl_tui.engine.commands import Answer, Claim
    from hitl_tui.view.answers import pick_request
    from hitl_tui.view.comments import pinned
    from hitl_tui.view.status import standing_line

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
    value = make(request)
    if request.risk == "high" and not order.yes:
        raise UsageError(f"{request.title!r} is a decision of high risk", "confirm it with --yes")
    if order.take_over:
        await driver.execute(Claim(request.id, actor, take_over=order.take_over, note=order.note))
    step = request.step if order.at_step is None else order.at_step
    # This command shows nothing: only a person who names a step has looked at it.
    looked_at = next((point for point in snapshot.checkpoints if point.step == order.at_step), None)
    seen = looked_at.state_hash if looked_at else b""
    comments = pinned(request, snapshot.values, order.comments)
    await driver.execute(Answer(request.id, value, step, actor, order.note, seen, comments))


@click.command()
@click.argument("threads", nargs=-1, metavar="[THREAD]...", shell_complete=complete_thread)
@click.option("--filter", "wanted", metavar="TEXT", help='Requests that match, as "graph:advisor due:today".')
@click.option("--answer", metavar="ID", help='The answer; "approve" is whatever approves.')
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Answer by the rules of a file, instead of --answer.",
)
@note_option
@click.option("--dry-run", is_flag=True, help="Only list what would be decided, and why the rest is left.")
@click.option("--yes", is_flag=True, help="Decide without asking first.")
@on_thread(acts=True, builds=True)
async def decide(
    opened: OpenThread,
    *,
    threads: tuple[str, ...],
    wanted: str | None,
    answer: str | None,
    policy: Path | None,
    note: str | None,
    dry_run: bool,
    yes: bool,
) -> ExitCode:
    """Give many requests the same answer, after you see the list.

    For the THREADs, or for all requests that match --filter. Each decision is a ledger entry of its own,
    about the state in the list. If a thread has changed since, its decision is refused. Some requests are
    left for you, and listed: high risk, other answers, a text or a form, claimed by somebody else, or not
    yours.

    With --policy each gets the answer of the first rule of FILE whose condition is true; the ledger names
    the rule. Without THREADs and --filter that is for all requests.
    """
    from hitl_tui.drivers.policies import read_policy
    from hitl_tui.engine.thread.journal import account
    from hitl_tui.view.batch import Decider, plan, plan_by

    if (answer is None) is (policy is None):
        raise UsageError("give --answer ID or --policy FILE", "they give the answers")
    rules = read_policy(policy) if policy else None
    rows = await _chosen(opened, threads, "" if rules and wanted is None and not threads else wanted)
    settings = opened.settings
    by = Decider(settings.reviewer, account(), settings.signing_key is not None, note)
    current = {row.key: row for row in rows}
    if rules:
        plans = await plan_by(rules, opened.hub, rows, by, opened.hub.now(), current=current)
    else:
        plans = plan(rows, answer or "", by, opened.hub.now(), current)
    return await _carry_out(opened, plans, dry_run=dry_run, yes=yes)


async def _chosen(opened: OpenThread, threads: Sequence[str], wanted: str | None) -> list[QueueRow]:
    """Return the waiting requests of the named threads, or those that match the filter, most urgent first.

    Raises:
        UsageError: neither was named, the filter can't be read, or nothing waits in a thread.
        UnknownThread: there is no such thread.
    """
    from hitl_tui.view.queue import MOST, QueueView, read_filter, rows_of

    if not threads and wanted is None:
        raise UsageError("no requests were named", "name threads, or give --filter TEXT")
    if problems := read_filter(wanted or "").problems:
        raise UsageError(problems[0], 'as in --filter "graph:advisor risk:high due:today words"')
    view, actor = QueueView(wanted or ""), opened.settings.reviewer
    rows = view.shown(rows_of(await opened.hub.waiting(MOST)), opened.hub.now(), actor)
    if not threads:
        return [row for row in rows if row.asks]
    for name in threads:
        find_thread(opened.store, name)
        if wanted is None and all(row.name != name for row in rows):
            show = command_line("show", name, options=same_store())
            raise UsageError(f"nothing waits in thread {name!r}", f"see `{show}`")
    return [row for row in rows if row.name in threads]


async def _carry_out(opened: OpenThread, plans: Sequence[Planned], *, dry_run: bool, yes: bool) -> ExitCode:
    """List what would be decided, ask once, decide, and print each outcome."""
    from hitl_tui.cli.output import emit
    from hitl_tui.cli.reports import DecisionsDocument
    from hitl_tui.view import batch

    decides = any(plan.would for plan in plans)
    if not opened.as_json:
        say(*_plan_lines(plans))
    if decides and not dry_run:
        if not yes and not _confirmed(batch.plan_words(plans)):
            raise UsageError(
                "nothing was decided", "--yes decides what the list says, --dry-run only lists it"
            )
        plans = [
            await batch.decide(opened.hub, plan, opened.settings.reviewer) if plan.would else plan
            for plan in plans
        ]
        if not opened.as_json:
            say(*_result_lines(plans))
    if opened.as_json:
        emit(DecisionsDocument(decisions=tuple(plans), dry_run=dry_run))
    outcomes = {plan.outcome for plan in plans}
    if "refused" in outcomes:
        return ExitCode.CONFLICT
    return ExitCode.WAITING if "left" in outcomes or not plans else ExitCode.DONE


def _confirmed(words: str) -> bool:
    """Ask on a terminal; elsewhere the answer is no."""
    from hitl_tui.cli.opening import may_ask
    from hitl_tui.drivers.node_streams import interruptible, own_input

    if not may_ask():
        return False
    with interruptible():
        try:
            say(f"{words}. Type yes to decide:", err=True)
            return own_input("").strip().lower() == "yes"
        except (EOFError, KeyboardInterrupt, UnicodeDecodeError):
            return False


def _plan_lines(plans: Sequence[Planned]) -> list[str]:
    """Return a line for each request: its answer, or why it gets none."""
    from hitl_tui.cli.output import one_line, table

    if not plans:
        return ["nothing waits that could be decided"]
    rows = [
        (
            one_line(plan.thread, 40),
            one_line(plan.title, 60),
            one_line(plan.label if plan.would else "-", 30),
            one_line(plan.why or "", 120),
        )
        for plan in plans
    ]
    return table([("THREAD", "ASKS", "ANSWER", "OR WHY NOT"), *rows], give=(1, 0), prose=True)


def _result_lines(plans: Sequence[Planned]) -> list[str]:
    """Return the outcome of each request that needs more than its decision, and the totals."""
    from hitl_tui.cli.output import one_line
    from hitl_tui.view.batch import result_words

    listed = [plan for plan in plans if plan.outcome in ("refused", "voted")]
    return [*(one_line(f"{plan.thread}: {plan.outcome}: {plan.why}") for plan in listed), result_words(plans)]
