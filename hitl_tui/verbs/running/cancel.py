"""Cancel a thread; this cannot be undone.

All steps are kept; a fork can continue from any of them.

    hitl-tui cancel r1 --note "no longer needed"
"""

from __future__ import annotations

from hitl_tui.engine.commands import Cancel, CancelAttempt
from hitl_tui.verbs.conversation import NOTE, Ask, AskChoice, At, Do, Talk, Verb
from hitl_tui.view.actions import Action, Situation, when_open


@when_open
def _disabled(now: Situation) -> str:
    over = now.status in ("completed", "cancelled")
    return now.refusal(Cancel) or (f"the run is {now.status} already" if over else "")


async def _talk(at: At) -> Talk:
    """Ask whether to stop the running node or to cancel the thread."""
    node = at.running
    attempt = AskChoice("attempt", "g", f"stop {node}", "you can run it again")
    thread = AskChoice("thread", "e", "cancel the thread", "cannot be undone", final=True)
    reply = yield Ask(
        f"Cancel {node}, or the thread?" if node else "Cancel the thread?",
        ("All steps are kept; you can still view and fork them.",),
        (attempt, thread) if node else (thread,),
        (NOTE,),
    )
    if reply is None:
        return
    if reply.choice == "attempt":
        yield Do(CancelAttempt())
    else:
        yield Do(Cancel(at.actor, reply.text("note"), at.seen))


VERB = Verb(
    Cancel,
    _talk,
    Action("run.cancel", "x", "Cancel", "Stop the running node, or cancel the thread", "Run", _disabled),
    after="run.pause",
    letter="x",
    options=(NOTE,),
)
