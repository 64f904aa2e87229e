"""Show a private value; that you looked is logged.

Everywhere else it is `[private]`, also in `--json`.

    hitl-tui reveal r1 patient
    hitl-tui reveal r1@2 patient --note "for the audit"
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec.structs import replace

from hitl_tui.engine.commands import Reveal
from hitl_tui.engine.log.units import about
from hitl_tui.errors import UsageError
from hitl_tui.verbs.conversation import NOTE, Ask, AskChoice, AskField, At, Do, ShowValue, Talk, Verb
from hitl_tui.view.actions import Action, Situation, has_steps, running_now, thread_open
from hitl_tui.view.answers import find_channel
from hitl_tui.view.shapes import Document

_CHANNEL: Final = AskField("channel", "channel, by number or name", required=True)
_NOTE: Final = replace(NOTE, rare=True)


class RevealDocument(Document, frozen=True):
    """`reveal`: the value of a private channel."""

    thread: Annotated[str, about("The thread.")]
    step: Annotated[int, about("The step.")]
    channel: Annotated[str, about("The channel.")]
    value: Annotated[Any, about("Its value.")]


def _disabled(now: Situation) -> str:
    if now.recorded:
        return "the screen is recorded; private values stay hidden"
    if not now.private:
        return thread_open(now) or "the selected channel is not private; its value is shown"
    return has_steps(now) or now.refusal(Reveal) or running_now(now)


async def _talk(at: At) -> Talk:
    """Ask before a private value is shown."""
    snapshot = await at.driver.snapshot()
    private = [declared.name for declared in snapshot.graph.channels if declared.visibility == "private"]
    if not private:
        raise UsageError("no channel is private", "every value is shown")
    named = at.given.get("channel") or at.selected
    if not named:
        which = f"Private channels: {', '.join(private)}"
        reply = yield Ask("Reveal", (which,), (AskChoice("choose", "c", "this channel"),), (_CHANNEL,))
        if reply is None:
            return
        named = reply.fields.get("channel", "")
    channel = find_channel(list(snapshot.values), named)
    if channel not in private:
        raise UsageError(f"channel {channel!r} is not private", f"private channels: {', '.join(private)}")
    step = snapshot.progress.head if at.step is None else at.step
    reply = yield Ask(
        "Reveal",
        (
            f"{channel} is private. Its value is shown until you select another channel or step.",
            "That you looked is logged.",
        ),
        (AskChoice("reveal", "r", "show it", final=True),),
        (_NOTE,),
    )
    if reply is None:
        return
    value = yield Do(Reveal(channel, at.actor, step, reply.text("note")))
    document = RevealDocument(thread=at.driver.thread_id, step=step, channel=channel, value=value)
    yield ShowValue(channel, step, value, document)


VERB = Verb(
    Reveal,
    _talk,
    Action(
        "look.reveal", "o", "Reveal", "Show the selected private value; that you looked is logged", "Look",
        _disabled,
    ),
    after="look.channels",
    letter="r",
    arguments=(_CHANNEL,),
    options=(_NOTE,),
    at_step=True,
)  # fmt: skip
