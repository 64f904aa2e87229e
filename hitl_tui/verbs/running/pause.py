"""Pause a thread, whichever process runs it.

If another process runs it, that process is asked to pause at its next node boundary; the log says who
asked. Exit code 4 if it still runs after the wait; the pause request is kept. If that process has died,
the thread is taken over and left paused.

    hitl-tui pause r1 --note "lunch"
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hitl_tui.engine.commands import Pause
from hitl_tui.errors import ThreadBusy, UsageError
from hitl_tui.verbs.conversation import NOTE, AskField, AskReply, At, Do, Talk, Verb
from hitl_tui.view.actions import Action, Situation, when_open

_LONGEST: Final = 86_400.0
_WAIT: Final = AskField(
    "wait",
    "seconds to wait for another process to pause it",
    value="10",
    about="How long to wait for another process to pause it, 10 by default.",
    metavar="SECONDS",
    rare=True,
)


@when_open
def _disabled(now: Situation) -> str:
    if refused := now.refusal(Pause):
        return refused
    runs = now.running or now.elsewhere
    return "" if runs else f"{now.key_hint('run.pause')} pauses a run, and nothing is running"


async def _talk(at: At) -> Talk:
    """Pause at once; what was typed with it is the reason, and how long to wait."""
    given = AskReply("", at.given)
    holder = yield Do(Pause(at.actor, given.text("note"), _seconds(given.text("wait") or _WAIT.value)))
    if holder:
        raise ThreadBusy(
            f"thread {at.driver.thread_id!r} is still run by {holder}, which was asked to pause",
            "it pauses when the node in flight is done; a program of its own that calls the engine "
            "does not listen: end that one",
        )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= _LONGEST:
        raise UsageError(f"wait={text} is not a number of seconds", f"give 0 to {_LONGEST:.0f}")
    return seconds


VERB = Verb(
    Pause,
    _talk,
    Action("run.pause", "p", "Pause", "Stop at the next node boundary", "Run", _disabled, 5, at_once=True),
    after="run.continue",
    letter="p",
    options=(replace(NOTE, rare=True), _WAIT),
)
