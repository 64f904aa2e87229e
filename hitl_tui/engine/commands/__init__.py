"""All commands on a thread: a struct for each verb, and the module that handles it.

A screen, plain text mode, a subcommand, a worker or a browser makes the struct, as an object or as JSON; a
driver or a `GraphRunner` carries it out.
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
    Note,
    NoteExport,
    Pause,
    PrepareGraph,
    ReadAgain,
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
    "HANDLER_MODULES",
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
    "Note",
    "NoteExport",
    "Pause",
    "PrepareGraph",
    "ReadAgain",
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
    | Note
    | NoteExport
    | Pause
    | PrepareGraph
    | ReadAgain
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

HANDLER_MODULES: Final[Mapping[type[Command[Any]], str]] = {
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
    Note: "notes",
    NoteExport: "disclosure",
    ReadAgain: "second_reading",
    Reveal: "disclosure",
    Revoke: "allowing",
    Start: "decisions",
    Unclaim: "claiming",
    UpdateState: "decisions",
}
"""For each command that is one commit, the module with its handler: a function with the name of the verb.

Drivers carry out the other commands.
"""

R = TypeVar("R")
_MOST_BYTES = 1 << 30
"""Most bytes of a value in a command; how long an update may be is checked later, by the graph's channels."""


def execute(session: Session, command: Command[R]) -> R:
    """Carry out a command that is one commit; the session must be held for writing, except for a fork."""
    try:
        result: R = handler_of(type(command))(session, command)
    except Exception as error:  # raised by the function of a gate or of a choice, or by a reducer
        from hitl_tui.engine.thread.private import error_without_private

        if (hidden := error_without_private(error, session.private())) is None:
            raise
        raise hidden from None
    return result


@cache
def handler_of(kind: type[Command[Any]]) -> Callable[[Session, Any], Any]:
    """Return the function that carries out a kind of command of `HANDLER_MODULES`.

    Its module is imported at the first call.
    """
    handler: Callable[[Session, Any], Any] = getattr(
        import_module(f"{__name__}.{HANDLER_MODULES[kind]}"), verb(kind)
    )
    return handler


def encode_command(command: AnyCommand) -> bytes:
    """Encode a command as JSON, as a worker or a browser sends it.

    Raises:
        ValueRejected: JSON can't hold one of its values.
    """
    fields = {
        field.name: normalise(
            _without_structs(getattr(command, field.name)), what=field.name, max_bytes=_MOST_BYTES
        )
        for field in msgspec.structs.fields(command)
        if field.type is not bytes
    }
    return msgspec.json.encode(msgspec.structs.replace(command, **fields))


def _without_structs(value: Any) -> Any:
    """Replace the structs in a command's field, such as comments and breakpoints, by dicts."""
    structs = isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct)
    return msgspec.to_builtins(value) if structs else value


def decode_command(data: bytes | str) -> AnyCommand:
    """Decode a command from JSON.

    Raises:
        UsageError: it is not a command; says what is wrong, and where.
    """
    try:
        command = _decoder().decode(data)
        command.check()
        return command
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UsageError(
            f"this is not a command: {error}",
            f"give a JSON object with one of {', '.join(map(verb, COMMANDS))}",
        ) from error


@cache
def _decoder() -> msgspec.json.Decoder[AnyCommand]:
    return msgspec.json.Decoder(AnyCommand)
