"""Delete the threads that a rule does not keep.

By these options or, without any, by [retention] of the configuration; it never happens by itself.
Threads that run or wait are kept, and so are those whose steps a kept fork shares. Without --yes it
shows what would be deleted, and asks.

    hitl-tui prune --older-than 30d --dry-run
    hitl-tui prune --older-than 30d --keep-last 100 --keep-decided --yes
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from hitl_tui.errors import UsageError
from hitl_tui.verbs.conversation import NOTE, Ask, AskChoice, AskField, AskReply, At, Begin, Talk, Verb
from hitl_tui.verbs.deleting import DRY_RUN, FORCE, deletion
from hitl_tui.view.actions import Action

if TYPE_CHECKING:
    from hitl_tui.stores.deletion import Retention

_OLDER: Final = AskField(
    "older_than",
    "unchanged for at least, as 30d; empty: any age",
    about="Only threads unchanged for this long, as 30d or 12h.",
    metavar="TIME",
    begins=True,
)
_LAST: Final = AskField(
    "keep_last",
    "keep the N changed last",
    about="Keep the N most recently changed threads.",
    metavar="N",
)
_DECIDED: Final = AskField(
    "keep_decided",
    "keep threads with decisions of a person: yes or no",
    about="Keep threads in which a person has decided.",
    switch=True,
)
_RULE: Final = (_OLDER, _LAST, _DECIDED)


async def _talk(at: At) -> Talk:
    """Ask for the rule unless it was typed, then delete by it."""
    from hitl_tui.config import load_settings

    if why := at.hub.upkeep_refusal:
        raise UsageError("threads can't be deleted from this store here", why)
    usual = load_settings({}).retention
    if at.leaves or any(field.name in at.given for field in _RULE):
        rule = _rule(AskReply("", at.given), usual)
    else:
        ask = _ask(usual)
        while True:
            reply = yield ask
            if reply is None:
                return
            try:
                rule = _rule(reply, usual)
                break
            except UsageError as error:
                if not any(reply.text(field.name) for field in _RULE):
                    raise
                ask = _ask_again(ask, reply, error)
    yield Begin(deletion(at, rule), part=True)


def _ask(usual: Mapping[str, Any]) -> Ask:
    values = {
        _OLDER.name: str(usual.get(_OLDER.name) or ""),
        _LAST.name: str(usual.get(_LAST.name) or ""),
        _DECIDED.name: "yes" if usual.get(_DECIDED.name) else "no",
    }
    return Ask(
        "Prune",
        (
            "Running and waiting threads are kept, and steps that a fork shares. "
            "Nothing is deleted before you see the list.",
        ),
        (AskChoice("list", "l", "list what would be deleted"),),
        tuple(structs.replace(field, value=values[field.name]) for field in _RULE),
        settled=bool(usual),
    )


def _ask_again(ask: Ask, reply: AskReply, error: UsageError) -> Ask:
    """Return the question with what was typed, and what is wrong with that."""
    fields = tuple(structs.replace(field, value=reply.fields.get(field.name, "")) for field in ask.fields)
    return structs.replace(ask, fields=fields, refused=error)


def _rule(typed: AskReply, usual: Mapping[str, Any]) -> Retention:
    """Return the rule that was typed, the usual one if nothing was.

    Raises:
        UsageError: there is none, or it can't be read.
    """
    from hitl_tui.stores.deletion import read_rule

    given: dict[str, object] = {}
    if age := typed.text(_OLDER.name):
        given[_OLDER.name] = age
    if last := typed.text(_LAST.name):
        if not (last.isascii() and last.isdigit()):
            raise UsageError(f"--keep-last: {last!r} is not a number of threads", "as in 100")
        given[_LAST.name] = int(last)
    if typed.yes(_DECIDED.name):
        given[_DECIDED.name] = True
    return read_rule(given or usual)


VERB = Verb(
    None,
    _talk,
    Action("store.prune", "p", "Prune", "Delete threads by a rule, after you see the list", "Pages"),
    after="store.channels",
    letter="P",
    options=(*_RULE, FORCE, NOTE),
    dry_run=DRY_RUN,
    confirms=True,
    about="store",
)
