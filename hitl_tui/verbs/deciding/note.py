"""Leave a note on a step of a thread.

Without @STEP it is on the newest one. `show`, `log`, the timeline and exports show it; it changes nothing.

    hitl-tui note r1 "ask legal before it goes out"
    hitl-tui note r1@2 "this is where the price went wrong"
"""

from __future__ import annotations

from typing import Final

from hitl_tui.engine.commands import Note
from hitl_tui.errors import HitlError
from hitl_tui.verbs.conversation import Ask, AskChoice, AskField, At, Do, Talk, Verb
from hitl_tui.view.actions import Action, Situation, has_steps, running_now

_TEXT: Final = AskField("text", "what to note", required=True, rest=True)


def _disabled(now: Situation) -> str:
    return has_steps(now) or now.refusal(Note) or running_now(now)


async def _talk(at: At) -> Talk:
    """Ask for the text, until it is accepted."""
    where = "the newest step" if at.step is None else f"step {at.step}"
    refused: HitlError | None = None
    while True:
        reply = yield Ask(
            f"Leave a note on {where}",
            ("Everybody who can see the thread can read it. It stays in the log.",),
            (AskChoice("note", "n", "leave the note"),),
            (_TEXT,),
            refused,
        )
        if reply is None:
            return
        try:
            yield Do(Note(reply.text("text") or "", at.step, at.actor))
        except HitlError as error:
            refused = error
        else:
            return


VERB = Verb(
    Note,
    _talk,
    Action("change.note", ";", "Note", "Leave a note on the shown step", "Change", _disabled),
    after="change.rollback",
    letter=";",
    arguments=(_TEXT,),
    at_step=True,
)
