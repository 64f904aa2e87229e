"""Trust the current value of an untrusted channel.

This adds a step that changes no value; the ledger keeps your name and your reason. Values that were made
from it before stay untrusted.

    hitl-tui declassify w1 mail --reason "read it, no instructions in it"
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hitl_tui.drivers.protocol import Snapshot
from hitl_tui.engine.commands import Declassify, UpdateState
from hitl_tui.errors import HitlError, StaleWriter, UsageError
from hitl_tui.verbs.conversation import Ask, AskChoice, AskField, At, Do, Show, Talk, Verb
from hitl_tui.view.actions import Action, Situation, not_newest, running_now, thread_open
from hitl_tui.view.answers import find_channel, read_step
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import plain_text
from hitl_tui.view.taint import lineage_lines
from hitl_tui.view.value_lines import value_lines

_CHANNEL: Final = AskField("channel", "channel, by number or name", required=True)
_REASON: Final = AskField(
    "reason", "why it may be trusted (required)", about="Why it may be trusted now.", required=True
)
_EXPECTED_STEP: Final = AskField(
    "expected_step", "only if this is the newest step", about="Refuse if the newest step is not N.",
    metavar="N", rare=True,
)  # fmt: skip
_SHOWN: Final = 240
"""Characters of the value that fit into a dialog."""


def _disabled(now: Situation) -> str:
    if not now.tainted:
        return thread_open(now) or "the selected channel is not tainted"
    if now.past:
        return not_newest(now)
    return now.refusal(Declassify) or now.refusal(UpdateState) or running_now(now)


async def _talk(at: At) -> Talk:
    """Ask why a channel may be trusted, and again if the thread has moved on meanwhile."""
    named = at.given.get("channel") or at.selected
    if not named:
        which = f"Untrusted channels: {', '.join(_tainted(await at.driver.snapshot()))}"
        reply = yield Ask("Declassify", (which,), (AskChoice("choose", "c", "this channel"),), (_CHANNEL,))
        if reply is None:
            return
        named = reply.fields.get("channel", "")
    reason, refused = "", None
    while True:
        snapshot = await at.driver.snapshot()
        channel = _channel(snapshot, named)
        reply = yield await _question(at, snapshot, channel, reason, refused)
        if reply is None:
            return
        reason, expected = reply.fields["reason"].strip(), reply.text("expected_step")
        head = snapshot.progress.head if expected is None else read_step(expected, "expected_step")
        seen = at.seen and snapshot.checkpoints[-1].state_hash
        try:
            step = yield Do(Declassify(channel, at.actor, reason, head, seen))
        except StaleWriter as error:
            refused = error
        else:
            break
    yield Show(
        f"{channel} is trusted from step {step} on; what was made from it before stays untrusted", "Trusted"
    )


def _tainted(snapshot: Snapshot) -> list[str]:
    """Return the untrusted channels.

    Raises:
        UsageError: there is none.
    """
    tainted = [taint.channel for taint in snapshot.checkpoints[-1].tainted] if snapshot.checkpoints else []
    if not tainted:
        raise UsageError("no channel is tainted")
    return tainted


def _channel(snapshot: Snapshot, named: str) -> str:
    """Return the untrusted channel of a name or number."""
    channel, tainted = find_channel(list(snapshot.values), named), _tainted(snapshot)
    if channel not in tainted:
        raise UsageError(f"channel {channel!r} is not tainted", f"tainted channels: {', '.join(tainted)}")
    return channel


async def _question(at: At, snapshot: Snapshot, channel: str, reason: str, refused: HitlError | None) -> Ask:
    """Return the question, with what the channel holds and where that came from.

    Args:
        reason: as typed before.
    """
    came = await at.driver.lineage(channel, snapshot.progress.head)
    lines = value_lines(snapshot.values[channel], "text")
    words = " ".join(" ".join(lines[:40]).split())
    return Ask(
        "Declassify",
        (
            f"{channel} is now: {sanitise_line(words, _SHOWN)}",
            "",
            *(plain_text(line) for line in lineage_lines(came)[-6:]),
            "",
            "One new step marks it as trusted. No value changes.",
        ),
        (AskChoice("declassify", "d", "trust it from now on"),),
        (replace(_REASON, value=reason), _EXPECTED_STEP),
        refused,
        beside=tuple(lines) if len(words) > _SHOWN else (),
    )


VERB = Verb(
    Declassify,
    _talk,
    Action(
        "change.declassify",
        "Y",
        "Declassify",
        "Say why the selected tainted channel may be trusted",
        "Change",
        _disabled,
    ),
    after="look.reveal",
    letter="Y",
    arguments=(_CHANNEL,),
    options=(_REASON, _EXPECTED_STEP),
)
