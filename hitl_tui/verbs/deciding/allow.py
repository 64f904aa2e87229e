"""Allow calls of a tool in a thread without approval.

Without TOOL, the tool of the waiting call. A waiting call that is now allowed is approved when the
thread continues. An allowance is for this thread and its subgraphs. The ledger keeps it, and names it
for each call that it approves.

    hitl-tui allow r1 --call
    hitl-tui allow r1 write_file --arg 'path=docs/*'
    hitl-tui allow r1 write_file --for 2h
    hitl-tui allow r1 --list
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec.structs import replace

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.commands import Allow
from hitl_tui.engine.log.units import about
from hitl_tui.engine.thread.allowances import Allowance, allowances
from hitl_tui.errors import UsageError
from hitl_tui.verbs import verbs
from hitl_tui.verbs.attending import minutes_of
from hitl_tui.verbs.conversation import (
    NOTE,
    Ask,
    AskChoice,
    AskField,
    AskReply,
    At,
    Begin,
    Do,
    Show,
    Talk,
    Verb,
)
from hitl_tui.view.actions import Action, card_open
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.shapes import Document

if TYPE_CHECKING:
    from hitl_tui.engine.thread.approval_formats import ToolAction

_TOOL: Final = AskField("tool", "the tool; that of the waiting call, if none is named", rare=True)
_ARGS: Final = AskField(
    "arg",
    "arguments, as path=docs/*; empty: any",
    about="A pattern for an argument, as path=docs/*; JSON for other values than text. Repeatable.",
    metavar="NAME=PATTERN",
    many=True,
    only_for=("like",),
)
_NOTE: Final = replace(NOTE, only_for=("call", "like"))
_HIGH_RISK: Final = AskField(
    "high_risk", "also for high-risk calls (yes)", about="Also for high-risk calls.", switch=True, rare=True
)
_TAINTED: Final = AskField(
    "tainted",
    "also if the agent has read untrusted data (yes)",
    about="Also if the agent has read untrusted data.",
    switch=True,
    rare=True,
)
_FOR: Final = AskField(
    "for",
    "for how long, as 90s, 15m or 2h; empty: until it is revoked",
    about="How long, as 90s, 15m or 2h; otherwise until it is revoked.",
    metavar="TIME",
    only_for=("call", "like"),
)
_CHOICES: Final = (
    AskChoice(
        "call",
        "c",
        "this call, with these arguments",
        flag="The call that waits, with exactly its arguments.",
    ),
    AskChoice("like", "l", "this tool, where arguments match"),
    AskChoice("list", "w", "show what is allowed", flag="Only list what is allowed."),
)


class AllowancesDocument(Document, frozen=True):
    """`allow`: the calls of tools that need no approval."""

    thread: Annotated[str, about("The thread.")]
    allowances: Annotated[
        tuple[Allowance, ...], about("The allowances, including those of threads that contain it.")
    ]


async def _talk(at: At) -> Talk:
    """Ask which calls of a tool to allow from now on; waiting ones are then approved, too."""
    # It loads how cards are shown, which the first paint does not need.
    from hitl_tui.view.allowances import allowance_words

    snapshot = await at.driver.snapshot()
    if not at.leaves and (at.chosen == "list" or _is_alone(at, snapshot)):
        yield Begin(verbs()["revoke"].load().talk(at))
        return
    now = at.hub.now()
    known = [allowance_words(each, now) for each in allowances(snapshot.ledger, snapshot.thread_id)]
    beside = ("Allowed already:", *known) if known else ()
    ask = Ask("Allow in this thread", _text(at, snapshot), _CHOICES, _fields({}), beside=beside)
    command = None
    while command is None:
        reply = yield ask
        if reply is None:
            return
        if reply.choice == "list":
            break
        try:
            command = _command(at, snapshot, reply)
        except UsageError as error:
            # What the person typed in a dialog is corrected there.
            if at.leaves or at.given or not (reply.text(_ARGS.name) or reply.text(_FOR.name)):
                raise
            ask = replace(ask, refused=error, fields=_fields(reply.fields))
    if command is None and not at.leaves:
        yield Begin(verbs()["revoke"].load().talk(at))
        return
    named = (yield Do(command)) if command is not None else ""
    thread, all_known = snapshot.thread_id, await _known(at)
    shown = [each for each in all_known if not named or (each.id, each.thread) == (named, thread)]
    words = [allowance_words(each, now) for each in shown] or ["nothing is allowed"]
    more = ("a waiting call that it allows is approved when the thread continues",) if named else ()
    yield Show(words[0], "Allowed", document=AllowancesDocument(thread, all_known), more=more)
    for line in words[1:]:
        yield Show(line)


def _is_alone(at: At, snapshot: Snapshot) -> bool:
    """Return whether nothing waits and nothing was said to allow, so that there is only a list."""
    waits = any(not request.breakpoint for request in snapshot.progress.pending)
    return not (waits or at.given or at.chosen)


def _fields(typed: Mapping[str, str]) -> tuple[AskField, ...]:
    fields = (_ARGS, _NOTE, _FOR, _TOOL, _HIGH_RISK, _TAINTED)
    return tuple(
        replace(field, value=typed.get(field.name, ""), rare=field.rare and not typed.get(field.name))
        for field in fields
    )


def _text(at: At, snapshot: Snapshot) -> tuple[str, ...]:
    from hitl_tui.view.allowances import args_words

    tool = at.given.get("tool", "")
    try:
        call = _call(at, snapshot, tool)
    except UsageError as error:
        of = sanitise_line(tool, 80) or error.message
    else:
        of = f"{sanitise_line(call.name, 80)} with {args_words(call.args) or 'no arguments'}"
    return of, "Calls of high risk or with untrusted data only if you say so."


def _call(at: At, snapshot: Snapshot, tool: str | None) -> ToolAction:
    """Return the call that is meant.

    Raises:
        UsageError: no call waits, or several do and none is selected.
    """
    from hitl_tui.view.allowances import as_it_stands, call_asked_about
    from hitl_tui.view.card import actions

    waiting = [each for each in snapshot.progress.pending if at.request in ("", each.id)]
    if at.request and at.call is not None and not tool:
        selected = [call for request in waiting for call in actions(request)][at.call : at.call + 1]
        if selected:
            return as_it_stands(selected[0])
    return call_asked_about(waiting, tool or None)


def _command(at: At, snapshot: Snapshot, reply: AskReply) -> Allow:
    from hitl_tui.view.allowances import exact_args, read_patterns

    like, tool, exact = read_patterns(reply.words(_ARGS.name)), reply.text("tool"), reply.choice == "call"
    if exact and like:
        raise UsageError("this call is allowed with exactly its arguments", "leave out the patterns")
    args: Mapping[str, Any] = exact_args(_call(at, snapshot, tool)) if exact else like
    return Allow(
        _call(at, snapshot, tool).name if exact or tool is None else tool,
        at.actor,
        args,
        exact,
        reply.yes("high_risk"),
        reply.yes("tainted"),
        reply.text("note"),
        at.seen,
        minutes_of(reply.text("for") or ""),
    )


async def _known(at: At) -> tuple[Allowance, ...]:
    """Return the allowances that apply in the thread: its own, and those of the threads that contain it."""
    snapshot = await at.driver.snapshot()
    known = allowances(snapshot.ledger, snapshot.thread_id)
    for owner in reversed(snapshot.owners):
        async with at.hub.borrow(owner.thread_id, look=True) as driver:
            known += allowances((await driver.snapshot()).ledger, owner.thread_id)
    return known


VERB = Verb(
    Allow,
    _talk,
    Action(
        "card.allow",
        "+",
        "Allow",
        "Allow this tool call, or all like it, in this thread",
        "Card",
        card_open,
    ),
    after="card.hand",
    letter="+",
    arguments=(_TOOL,),
    options=(_ARGS, _FOR, _HIGH_RISK, _TAINTED, _NOTE),
    choices=_CHOICES,
    alone="list what is allowed, and ask what else to allow or what to revoke",
)
