"""Start a new thread from a step of another one.

The new thread shares the log up to that step (the newest one without @STEP). Values are set as its
first change. The other thread does not change. --agent gives an agent another model. You see which
nodes would run again, which of them have side effects, and what they used last time.

With --canary the values are known to be bad, and ANSWER is wrong for them: the new thread only asks what
waits at that step, runs nothing, and `stats` counts who caught it.

    hitl-tui fork r1@4 r1-b
    hitl-tui fork r1@4 r1-d draft=@bad.txt --canary approve
    hitl-tui fork r1@4 r1-c draft="Another beginning." --agent writer.model=ollama/llama3.2
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.commands import Fork
from hitl_tui.errors import HitlError
from hitl_tui.verbs.conversation import (
    FORK_DRY_RUN,
    NOTE,
    Ask,
    AskChoice,
    AskField,
    AskReply,
    At,
    Consequences,
    Do,
    Open,
    Show,
    Talk,
    Verb,
)
from hitl_tui.view.actions import Action, can_fork
from hitl_tui.view.answers import read_settings
from hitl_tui.view.edits import check_edit
from hitl_tui.view.family import free_name
from hitl_tui.view.inputs import Inputs
from hitl_tui.view.repeats import fork_lines
from hitl_tui.view.shapes import ForkDocument, RepeatsDocument

_NEW: Final = AskField("new", "name of the new thread", required=True)
_VALUES: Final = AskField(
    "values", "values to set first, as CHANNEL=JSON", metavar="CHANNEL=JSON", many=True, rare=True
)
_AGENT: Final = AskField(
    "agent",
    "settings of agents, as worker.temperature=0",
    about="Another model, instructions or temperature for an agent, as worker.model=ollama/llama3.2.",
    metavar="AGENT.SETTING=VALUE",
    many=True,
    rare=True,
)
_AS_NODE: Final = AskField(
    "as_node",
    "continue as if this node had written it",
    about="Continue as if this node had written it.",
    metavar="NODE",
    rare=True,
)
_CANARY: Final = AskField(
    "canary",
    "measure reviews with it: the answer that is wrong; nothing runs",
    about="Only ask about these known-bad values; ANSWER is wrong for them.",
    metavar="ANSWER",
    rare=True,
)
_CHOICES: Final = (
    AskChoice("go", "g", "fork and go there"),
    AskChoice("stay", "s", "fork and stay here", flag="Stay here."),
)
"""Words after the verb mean going there. A subcommand shows no thread, so it has no option to stay."""


async def _talk(at: At) -> Talk:
    """Ask for the name of the fork, until it is accepted; say what it would run again."""
    driver, snapshot = at.driver, await at.driver.snapshot()
    thread, step = driver.thread_id, snapshot.progress.head if at.step is None else at.step
    proposed = free_name(thread, {relative.thread_id for relative in await driver.family()})

    def command(reply: AskReply) -> Fork:
        values = Inputs(reply.words("values"), option="", files="values" in at.given)
        return Fork(
            step,
            reply.text("new") or proposed,
            values.for_channels(snapshot.graph) or None,
            read_settings(tuple(reply.words("agent"))) or None,
            at.actor,
            reply.text("note"),
            reply.text("as_node"),
            reply.text("canary") or "",
        )

    async def find_out() -> Consequences:
        fork = command(AskReply("", at.given))
        if fork.canary:
            return Consequences(("Nothing runs in it.",), None)
        preview = await driver.preview(fork)
        await _check(driver, fork)
        return Consequences(
            tuple(fork_lines(preview)),
            RepeatsDocument(thread=thread, repeats=preview.repeats, moves=preview.moves or None),
        )

    reply, refused = AskReply("", {"new": proposed}), None
    while True:
        typed = {field: reply.fields.get(field.name, "") for field in _FIELDS}
        fields = [replace(field, value=text, rare=field.rare and not text) for field, text in typed.items()]
        reply = yield Ask(
            "Fork",
            (f"A new thread begins at step {step} of {thread}. No step of {thread} changes.",),
            _CHOICES,
            tuple(fields),
            refused,
            find_out=find_out,
        )
        if reply is None:
            return
        try:
            fork = command(reply)
            withdrawn = await _check(driver, fork)
            new = yield Do(fork)
        except HitlError as error:
            refused = error
        else:
            break
    yield Show(
        f"Forked {thread!r} at step {step} as {new!r}",
        document=ForkDocument(thread=new, parent=thread, step=step),
        more=tuple(withdrawn),
        visible=reply.choice == "go",
        hint=("app.threads", "lists the threads") if reply.choice == "stay" else None,
    )
    if reply.choice == "go":
        yield Open(new)


async def _check(driver: Driver, fork: Fork) -> list[str]:
    """Return lines about the requests that the fork's first change withdraws; raises what it can't be."""
    return await check_edit(driver, fork.changes or {}, fork.step, fork.as_node)


_FIELDS: Final = (_NEW, NOTE, _VALUES, _AGENT, _AS_NODE, _CANARY)
VERB = Verb(
    Fork,
    _talk,
    Action("change.fork", "f", "Fork", "Make a new thread from the shown step", "Change", can_fork, 6),
    after="change.edit",
    letter="f",
    arguments=(_NEW, _VALUES),
    options=(_AGENT, _AS_NODE, _CANARY, NOTE),
    at_step=True,
    dry_run=FORK_DRY_RUN,
)
