"""Revoke an allowance: its calls need approval again.

`hitl-tui allow THREAD --list` shows each with its ID.

    hitl-tui revoke r1 a7 --note "too wide"
"""

from __future__ import annotations

from typing import Final

from hitl_tui.engine.commands import Revoke
from hitl_tui.verbs.conversation import NOTE, Ask, AskChoice, AskField, At, Do, Show, Talk, Verb
from hitl_tui.view.actions import Action, thread_open

_ALLOWANCE: Final = AskField("allowance", "its ID", metavar="ID", required=True)


async def _talk(at: At) -> Talk:
    """List what is allowed, so that one can be chosen."""
    # These load how cards are shown, which the first paint does not need.
    from hitl_tui.engine.thread.allowances import allowances
    from hitl_tui.view.allowances import allowance_words

    snapshot = await at.driver.snapshot()
    known, named = allowances(snapshot.ledger, snapshot.thread_id), at.given.get("allowance", "")
    if named:
        known = tuple(each for each in known if each.id == named)
    elif not known:
        yield Show("nothing is allowed in this thread without asking")
        return
    if known:
        reply = yield Ask(
            "Allowed in this thread",
            ("These calls need no approval here. Choose one to revoke it; that is logged.",),
            tuple(
                AskChoice(
                    each.id,
                    str(number) if number < 10 else "",
                    f"revoke {allowance_words(each, at.hub.now())}",
                    final=True,
                )
                for number, each in enumerate(known, 1)
            ),
            (NOTE,),
        )
        if reply is None:
            return
        yield Do(Revoke(reply.choice, at.actor, reply.text("note")))
        yield Show(f"{reply.choice} is revoked: its calls need approval again", "Allowed")
    else:
        yield Do(Revoke(named, at.actor))  # it says which there are


VERB = Verb(
    Revoke,
    _talk,
    Action(
        "change.allowed",
        "+",
        "Allowed",
        "Calls that need no approval in this thread; revoke one",
        "Change",
        thread_open,
    ),
    after="change.agent",
    arguments=(_ALLOWANCE,),
    options=(NOTE,),
    alone="list what is allowed, and ask what to revoke",
)
