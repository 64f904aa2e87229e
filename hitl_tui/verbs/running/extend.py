"""Raise limits, so that a stopped thread can continue.

LIMIT is max_iterations, max_tokens, max_cost_usd or max_seconds; "none" removes one. With
on_unknown_price=warn, calls of unknown price count as nothing.

    hitl-tui extend r1 max_iterations=50
    hitl-tui extend r1 max_cost_usd=none
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from hitl_tui.engine.commands import ExtendLimits
from hitl_tui.engine.log.records import Limits
from hitl_tui.errors import HitlError
from hitl_tui.verbs.conversation import NOTE, Ask, AskChoice, AskField, At, Do, Talk, Verb
from hitl_tui.view.actions import Action, Situation, when_open
from hitl_tui.view.answers import read_limit

_NOTE: Final = replace(NOTE, rare=True)
_LABELS: Final = {
    "max_iterations": "nodes to run in total",
    "max_tokens": "tokens in total",
    "max_cost_usd": "US dollars in total",
    "max_seconds": "seconds of work in total",
    "on_unknown_price": "a call of unknown price: warn, or stop",
}


@when_open
def _disabled(now: Situation) -> str:
    return now.refusal(ExtendLimits) if now.limited else "no limit has stopped the run"


def _proposed(limits: Limits) -> dict[str, str]:
    """Return twice each number; nothing for what has no limit, and for prices that matter to no limit."""
    proposed = {}
    for name in _LABELS:
        limit = getattr(limits, name)
        if isinstance(limit, (int, float)):
            proposed[name] = f"{limit * 2:g}" if limit < 500_000 else str(limit * 2)
        elif name == "on_unknown_price" and limits.max_cost_usd is not None:
            proposed[name] = limit
    return proposed


def _fields(proposed: Mapping[str, str]) -> list[AskField]:
    return [
        AskField(name, label, proposed.get(name, ""), pair=True, rare=name not in proposed)
        for name, label in _LABELS.items()
    ]


async def _talk(at: At) -> Talk:
    """Ask for higher limits, until they are accepted."""
    limits = (await at.driver.snapshot()).progress.limits
    proposed = _proposed(limits)
    refused: HitlError | None = None
    while True:
        reply = yield Ask(
            "Raise the limits",
            ("A limit has stopped the run. The new limits are logged.",),
            (AskChoice("raise", "m", "raise the limits"),),
            (*_fields(proposed), _NOTE),
            refused,
        )
        if reply is None:
            return
        typed = {name: text for name in _LABELS if (text := reply.text(name))}
        try:
            raised = dict(read_limit(f"{name}={text}") for name, text in typed.items())
            if raised:
                yield Do(ExtendLimits(raised, at.actor, reply.text("note"), at.seen))
        except HitlError as error:
            refused, proposed = error, typed
        else:
            return


VERB = Verb(
    ExtendLimits,
    _talk,
    Action(
        "change.extend",
        "m",
        "Raise limit",
        "Raise the limit that stopped the run, then continue",
        "Change",
        _disabled,
        3,
        offered=True,
    ),
    after="change.agent",
    letter="m",
    pairs="LIMIT=NUMBER",
    options=(*_fields({}), _NOTE),
)
