"""Every error a user can meet: one base with a title, a message and a hint, and the exit codes.

A message says what was wrong and where; a hint says how to fix it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final


class ExitCode(IntEnum):
    """What a subcommand's exit code means."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    WAITING = 3
    CONFLICT = 4


class HitlError(Exception):
    """Base of all errors that are shown to a user instead of a traceback.

    Args:
        message: what was wrong and where (channel, node, file, key, line).
        hint: how to fix it; empty if there is nothing to say.
        channel: the channel whose value must be fixed before the run continues; a screen edits it.

    `details` is the traceback of a user's code, for the log file and the command line.
    """

    title = "Something went wrong"
    exit_code = ExitCode.FAILED
    details = ""

    def __init__(self, message: str, hint: str = "", *, channel: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.channel = channel

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(HitlError):
    """A wrong option, argument or input of a command."""

    title = "Wrong usage"
    exit_code = ExitCode.USAGE


class NoSuchStore(UsageError):
    """There is no store where one was looked for."""

    title = "No such store"


class ValueRejected(HitlError):
    """A value outside JSON, too deep or too large."""

    title = "Value rejected"


class UndeclaredChannel(HitlError):
    """An update or a read names a channel that the graph does not declare."""

    title = "Unknown channel"


class ReadDenied(HitlError):
    """A node read a channel outside its `reads`."""

    title = "Read denied"


class WriteDenied(HitlError):
    """A node wrote a channel outside its `writes`."""

    title = "Write denied"


class SchemaMismatch(HitlError):
    """A value does not fit its channel's schema."""

    title = "Value does not fit the schema"


class ReducerError(HitlError):
    """A reducer can't take an update."""

    title = "Reducer refused the update"


class GraphInvalid(HitlError):
    """A graph that can't be built."""

    title = "The graph can't be built"
    exit_code = ExitCode.USAGE


class GraphDiffers(GraphInvalid):
    """A graph that can't continue a thread, because it lacks the node at the position of the thread."""

    title = "The graph does not fit the thread"


class NodeFailed(HitlError):
    """A node raised, timed out or broke its contract; names node, attempt and cause.

    Args:
        node: name of the node.
        attempt: number of the last attempt, from 1.
        details: the node's traceback, for the log file.
        frames: of it the user's own, as an `ErrorInfo` keeps them.
    """

    title = "A node failed"

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        node: str = "",
        attempt: int = 1,
        details: str = "",
        channel: str = "",
        frames: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(message, hint, channel=channel)
        self.node = node
        self.attempt = attempt
        self.details = details
        self.frames = frames


class UnknownThread(HitlError):
    """A thread or step that the store does not hold."""

    title = "No such thread"
    exit_code = ExitCode.USAGE


class StaleWriter(HitlError):
    """The thread moved since the writer looked at it; nothing was stored."""

    title = "The thread has moved"
    exit_code = ExitCode.CONFLICT


class ThreadBusy(HitlError):
    """Another process or run holds the thread."""

    title = "The thread is busy"
    exit_code = ExitCode.CONFLICT


class ServerBusy(ThreadBusy):
    """A server runs the thread for somebody else; `DoubleText` makes room."""

    title = "The thread is busy"


class ServerRefused(HitlError):
    """A server answers a request with an error of HTTP `status`, or with what can't be read (0)."""

    title = "Refused"

    def __init__(self, message: str, hint: str, status: int) -> None:
        super().__init__(message, hint)
        self.status = status


class ServerLost(HitlError):
    """A server can't be reached, or the connection to it was lost."""

    title = "The server can't be reached"


class AnswerRefused(HitlError):
    """A late, unknown, duplicate, stale or unauthorised answer."""

    title = "Answer refused"
    exit_code = ExitCode.CONFLICT


class GateUnanswered(HitlError):
    """A command would take a thread past a gate or a question that has no answer."""

    title = "A question is not answered"
    exit_code = ExitCode.CONFLICT


class SigningFailed(HitlError):
    """A decision that could not be signed; nothing was decided."""

    title = "The decision could not be signed"


class LogCorrupt(HitlError):
    """The log does not agree with itself or is not ours."""

    title = "The log is damaged"


class ReplayMismatch(HitlError):
    """A replay came to another node than the log has.

    Args:
        step: where; recorded, replayed: the two nodes, or END.
    """

    title = "The graph goes another way"

    def __init__(
        self, message: str, hint: str = "", *, step: int = 0, recorded: str = "", replayed: str = ""
    ) -> None:
        super().__init__(message, hint)
        self.step = step
        self.recorded = recorded
        self.replayed = replayed


class StoreUnusable(HitlError):
    """A store that is not ours, newer than us, locked, read-only or full."""

    title = "The store can't be used"


class NotAllowed(StoreUnusable):
    """The database does not let this login do that, whatever it tries again."""

    title = "The database does not allow it"


STORE_FAILURES = (StoreUnusable, LogCorrupt, StaleWriter)
"""What a store raises that fails, is damaged, or was written by somebody else: nobody's node is to blame."""


class LimitReached(HitlError):
    """A limit stopped the run and the caller asked for an exception."""

    title = "A limit was reached"


class ModelFailed(HitlError):
    """A model call failed; names the provider, the model, the reason and a fix."""

    title = "The model call failed"


class ReplyIncomplete(ModelFailed):
    """A model's reply stopped before its end, so nothing may rest on it.

    Args:
        reason: "length": it reached its limit of tokens; "content_filter": the provider withheld the rest, or
            the model refused.
        text: the reply as far as it came.
    """

    title = "The model's reply is incomplete"

    def __init__(self, message: str, hint: str, *, reason: str, text: str) -> None:
        super().__init__(message, hint)
        self.reason = reason
        self.text = text


def in_words(value: Any) -> str:
    """What a value is, never which one, for a message: "text", "a list", "null", "an Agent"."""
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "true or false"),
        (str, "text"),
        (int, "a whole number"),
        (float, "a number"),
        (list, "a list"),
        (dict, "a dict"),
        (type(None), "null"),
    )
    name = type(value).__name__
    article = "an" if name[0] in "aeiouAEIOU" else "a"
    return next((words for kind, words in kinds if isinstance(value, kind)), f"{article} {name}")


def described(error: BaseException) -> str:
    """Return the type and the text of an error; the text of a user's own class may itself raise."""
    try:
        text = str(error)
    except Exception as broken:
        text = f"(its text can't be read: {type(broken).__name__})"
    return f"{type(error).__name__}: {text}"


_MOST_CAUSES: Final = 5


def described_with_causes(error: BaseException) -> str:
    """Return an error as `described` does, with the errors of a group and those that led to it."""
    text = described(error)
    if isinstance(error, BaseExceptionGroup):
        leaves = [described(leaf) for leaf in _leaves(error)]
        more = [f"{len(leaves) - _MOST_CAUSES} more"] if len(leaves) > _MOST_CAUSES else []
        text += f": {'; '.join([*leaves[:_MOST_CAUSES], *more])}"
    seen = {id(error)}
    while cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        if id(cause) in seen or len(seen) > _MOST_CAUSES:
            break
        seen.add(id(cause))
        text += f"; {'caused by' if error.__cause__ is cause else 'while handling'} {described(cause)}"
        error = cause
    return text


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


class CallOutcomeUnknown(HitlError):
    """A person ended a node because nobody knows whether a tool call of it was made."""

    title = "It is not known whether a call was made"
