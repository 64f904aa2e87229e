"""What somebody may want of a thread: a struct and a handler for each verb, and the table of both.

A screen, the lines, a subcommand, a worker or a browser makes the struct, as an object or as JSON; a driver
or a `GraphRunner` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar, get_args

import msgspec

from hitl_tui.engine.commands.agents import ClearTurns, ConfigureAgents, clear_turns, configure_agents
from hitl_tui.engine.commands.allowing import Allow, Revoke, allow, revoke
from hitl_tui.engine.commands.answering import Answer, answer
from hitl_tui.engine.commands.claiming import (
    Claim,
    HandOver,
    LookAt,
    Unclaim,
    claim,
    hand_over,
    unclaim,
)
from hitl_tui.engine.commands.command import Command, verb
from hitl_tui.engine.commands.decisions import (
    Cancel,
    ExtendLimits,
    Start,
    UpdateState,
    cancel,
    extend_limits,
    start,
    update_state,
)
from hitl_tui.engine.commands.disclosure import (
    Declassify,
    NoteExport,
    Reveal,
    declassify,
    note_export,
    reveal,
)
from hitl_tui.engine.commands.forking import Fork, fork
from hitl_tui.engine.commands.running import (
    CancelAttempt,
    DoubleText,
    Pause,
    PrepareGraph,
    ReloadGraph,
    Rerun,
    Rollback,
    Run,
    Step,
    WriteTest,
)
from hitl_tui.engine.state.values import normalise
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import UsageError

__all__ = [
    "COMMANDS",
    "HANDLERS",
    "Allow",
    "Answer",
    "AnyCommand",
    "Cancel",
    "CancelAttempt",
    "Claim",
    "ClearTurns",
    "Command",
    "ConfigureAgents",
    "Declassify",
    "DoubleText",
    "ExtendLimits",
    "Fork",
    "HandOver",
    "LookAt",
    "NoteExport",
    "Pause",
    "PrepareGraph",
    "ReloadGraph",
    "Rerun",
    "Reveal",
    "Revoke",
    "Rollback",
    "Run",
    "Start",
    "Step",
    "Unclaim",
    "UpdateState",
    "WriteTest",
    "decode_command",
    "encode_command",
    "execute",
    "verb",
]

AnyCommand: TypeAlias = (
    Allow
    | Answer
    | Cancel
    | CancelAttempt
    | Claim
    | ClearTurns
    | ConfigureAgents
    | Declassify
    | DoubleText
    | ExtendLimits
    | Fork
    | HandOver
    | LookAt
    | NoteExport
    | Pause
    | PrepareGraph
    | ReloadGraph
    | Rerun
    | Reveal
    | Revoke
    | Rollback
    | Run
    | Start
    | Step
    | Unclaim
    | UpdateState
    | WriteTest
)
COMMANDS: Final[tuple[type[Command[Any]], ...]] = get_args(AnyCommand)

HANDLERS: Final[Mapping[type[Command[Any]], Callable[[Session, Any], Any]]] = {
    Allow: allow,
    Answer: answer,
    Cancel: cancel,
    Claim: claim,
    ClearTurns: clear_turns,
    ConfigureAgents: configure_agents,
    Declassify: declassify,
    ExtendLimits: extend_limits,
    Fork: fork,
    HandOver: hand_over,
    NoteExport: note_export,
    Reveal: reveal,
    Revoke: revoke,
    Start: start,
    Unclaim: unclaim,
    UpdateState: update_state,
}
"""What carries out the commands that are one commit; the others are for who drives the thread."""

R = TypeVar("R")
_LONGEST = 1 << 30
"""Bytes of a value in a command: how long an update may be is for the graph to say."""


def execute(session: Session, command: Command[R]) -> R:
    """Carry out a command that is one commit, on a session that is held for writing (but for a fork)."""
    result: R = HANDLERS[type(command)](session, command)
    return result


def encode_command(command: AnyCommand) -> bytes:
    """A command as JSON, as a worker or a browser sends it.

    Raises:
        ValueRejected: a value in it is none of JSON.
    """
    fields = {
        field.name: normalise(_plain(getattr(command, field.name)), field.name, max_bytes=_LONGEST)
        for field in msgspec.structs.fields(command)
        if field.type is not bytes
    }
    return msgspec.json.encode(msgspec.structs.replace(command, **fields))


def _plain(value: Any) -> Any:
    """Structs that a command holds, as comments and breakpoints, in the place of each its fields."""
    structs = isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct)
    return msgspec.to_builtins(value) if structs else value


def decode_command(data: bytes | str) -> AnyCommand:
    """A command from JSON.

    Raises:
        UsageError: it is no command; says what is wrong, and where.
    """
    try:
        return _decoder().decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UsageError(
            f"this is no command: {error}", f"give a JSON object with one of {', '.join(map(verb, COMMANDS))}"
        ) from error


@cache
def _decoder() -> msgspec.json.Decoder[AnyCommand]:
    return msgspec.json.Decoder(AnyCommand)
