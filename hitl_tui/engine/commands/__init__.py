"""What somebody may want of a thread: a struct for each verb, and the table of what carries it out.

A screen, the lines, a subcommand, a worker or a browser makes the struct, as an object or as JSON; a driver
or a `GraphRunner` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeAlias, TypeVar, get_args

import msgspec

from hitl_tui.engine.commands.command import (
    Allow,
    Answer,
    Cancel,
    CancelAttempt,
    Claim,
    ClearTurns,
    Command,
    ConfigureAgents,
    Declassify,
    DoubleText,
    ExtendLimits,
    Fork,
    HandOver,
    LookAt,
    NoteExport,
    Pause,
    PrepareGraph,
    ReloadGraph,
    Rerun,
    Reveal,
    Revoke,
    Rollback,
    Run,
    Start,
    Step,
    Unclaim,
    UpdateState,
    WriteTest,
    verb,
)
from hitl_tui.engine.state.values import normalise
from hitl_tui.engine.thread.session import Session
from hitl_tui.errors import UsageError

__all__ = [
    "COMMANDS",
    "FAMILIES",
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
    "handler_of",
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

FAMILIES: Final[Mapping[type[Command[Any]], str]] = {
    Allow: "allowing",
    Answer: "answering",
    Cancel: "decisions",
    Claim: "claiming",
    ClearTurns: "agents",
    ConfigureAgents: "agents",
    Declassify: "disclosure",
    ExtendLimits: "decisions",
    Fork: "forking",
    HandOver: "claiming",
    NoteExport: "disclosure",
    Reveal: "disclosure",
    Revoke: "allowing",
    Start: "decisions",
    Unclaim: "claiming",
    UpdateState: "decisions",
}
"""The commands that are one commit, and the module whose function of the verb's name carries each out.

The others are for who drives the thread.
"""

R = TypeVar("R")
_LONGEST = 1 << 30
"""Bytes of a value in a command: how long an update may be is for the graph to say."""


def execute(session: Session, command: Command[R]) -> R:
    """Carry out a command that is one commit, on a session that is held for writing (but for a fork)."""
    try:
        result: R = handler_of(type(command))(session, command)
    except Exception as error:  # of a gate's function, of a choice's, of a reducer's
        from hitl_tui.engine.thread.private import concealed

        if (hidden := concealed(error, session.private())) is None:
            raise
        raise hidden from None
    return result


@cache
def handler_of(kind: type[Command[Any]]) -> Callable[[Session, Any], Any]:
    """The function that carries out a kind of command of `FAMILIES`, loaded when it is first wanted."""
    handler: Callable[[Session, Any], Any] = getattr(
        import_module(f"{__name__}.{FAMILIES[kind]}"), verb(kind)
    )
    return handler


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
        command = _decoder().decode(data)
        command.check()
        return command
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UsageError(
            f"this is no command: {error}", f"give a JSON object with one of {', '.join(map(verb, COMMANDS))}"
        ) from error


@cache
def _decoder() -> msgspec.json.Decoder[AnyCommand]:
    return msgspec.json.Decoder(AnyCommand)
