"""What a node returns, the outcome of a node's run, and what a run of the graph returns.

Specified in docs/spec/graphs.md.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec

from hitl_tui.declared import AnyText, Declaration
from hitl_tui.engine.log.events import AppliedUpdate
from hitl_tui.engine.log.outcomes import (
    BranchOutcome,
    BranchState,
    Compensation,
    ErrorInfo,
    KeptAnswer,
    KeptArtifact,
    ModelUse,
)
from hitl_tui.engine.log.records import Source, Status
from hitl_tui.engine.log.requests import BREAKPOINT, Request
from hitl_tui.engine.state.changes import Change
from hitl_tui.engine.state.listing import channel_lines, printable
from hitl_tui.engine.state.state import undeclared
from hitl_tui.errors import HitlError, NodeFailed, ValueRejected


class Artifact(Declaration, frozen=True):
    """A file that a node returns besides its updates, such as a report or a picture; kept with the step.

    Attributes:
        name: a file name without a folder: "report.md".
        media_type: for example "text/markdown", "application/json", "image/png".
        content: text or bytes; those of a step take at most 256 KiB together.
    """

    name: str
    media_type: str
    content: str | bytes

    refusal = ValueRejected

    def check(self) -> None:
        """Refuse an invalid file name or media type."""
        if not _ARTIFACT_NAME.fullmatch(self.name):
            raise ValueRejected(
                f"Artifact: the name {self.name!r:.100} is not allowed",
                'name it as a file, without a folder: "report.md"',
            )
        if not _MEDIA_TYPE.fullmatch(self.media_type):
            raise ValueRejected(
                f"Artifact {self.name!r}: its media type is {self.media_type!r:.100}", 'as in "text/plain"'
            )


class NodeResult(Declaration, frozen=True):
    """What a node may return instead of a plain mapping of updates.

    Attributes:
        updates: channel name to update.
        text: a summary for people, kept with the checkpoint.
        status: "completed", or "failed" to fail the attempt with `text` as the reason.
        compensation: (handler, args), how to undo the side effects of this run of the node: the name of a
            registered handler and any JSON.
        usage: model calls that the engine did not see, for the totals.
        artifacts: files kept with the step, such as evidence or documents to hand over.
    """

    updates: Mapping[str, Any] = {}
    text: AnyText | None = None
    status: str = "completed"
    compensation: tuple[str, Any] | None = None
    usage: Sequence[ModelUse] | None = None
    artifacts: Sequence[Artifact] = ()

    refusal = ValueRejected
    examples: ClassVar[Mapping[str, str]] = {
        "updates": "a dict of channel updates, or leave them out",
        "compensation": "a pair (handler, args): a handler's name and any JSON",
        "usage": "a list of ModelUse(agent, provider, model, tokens_in, tokens_out, cost)",
    }


MOST_ARTIFACTS = 256 << 10
"""Bytes of all artifacts of a step."""
_ARTIFACT_NAME = re.compile(r"[\w(][\w.,+() @=-]{0,127}")
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(; ?[\w.+-]+=[\w.+-]+)*", re.ASCII)


def kept_artifacts(artifacts: Sequence[Artifact], path: str = "") -> tuple[KeptArtifact, ...]:
    """Return checked artifacts in the form in which they are kept."""
    return tuple(
        KeptArtifact(given.name, given.media_type, given.content, path=path)
        if isinstance(given.content, str)
        else KeptArtifact(given.name, given.media_type, b64encode(given.content).decode(), True, path)
        for given in artifacts
    )


def checked(result: NodeResult, node: str) -> NodeResult:
    """Check the `NodeResult` that a node returned; the types of its fields were checked when it was made.

    Raises:
        HitlError: the node reports that it failed, or its artifacts together can't be kept.
    """
    if result.status != "completed":
        reason = result.text or "without a reason"
        raise HitlError(f"the node reports status {result.status!r}: {reason}")
    if result.artifacts:
        _check_artifacts(result.artifacts, node)
    return result


def _check_artifacts(artifacts: Sequence[Artifact], node: str) -> None:
    names: set[str] = set()
    size = 0
    for given in artifacts:
        name, content = given.name, given.content
        if name in names:
            raise HitlError(
                f"node {node!r} returned a NodeResult with an artifact {name!r} twice",
                "give each its own name",
            )
        names.add(name)
        size += len(content.encode() if isinstance(content, str) else content)
    if size > MOST_ARTIFACTS:
        raise HitlError(
            f"node {node!r} returned artifacts of {size:,} bytes, and they may take {MOST_ARTIFACTS:,}",
            "store what is large elsewhere, and give an artifact that names it",
        )


class StepResult(msgspec.Struct, frozen=True):
    """One committed step, as `stream` yields it; values of private channels are masked."""

    node: str
    step: int
    iteration: int
    updates: tuple[AppliedUpdate, ...]
    state: Mapping[str, Any]


class RunResult(Mapping[str, Any]):
    """The result of a run: `result["channel"]` is a value, `print(result)` shows them all.

    Attributes:
        status: "completed"; "waiting" for a person; "failed" by an error or a limit (`reason` "limit"); or
            "cancelled" by a person.
        step: the thread's last step.
        pending: the requests that wait for a person.
    """

    def __init__(
        self,
        *,
        thread_id: str,
        status: Status,
        reason: str,
        step: int,
        state: Mapping[str, Any],
        pending: tuple[Request, ...],
        error: ErrorInfo | None,
        output: str = "output",
        private: Collection[str] = (),
    ) -> None:
        self.thread_id = thread_id
        self.status = status
        self.reason = reason
        self.step = step
        self.state = MappingProxyType(dict(state))
        self.pending = pending
        self.error = error
        self._output = output
        self._private = frozenset(private)

    def __getitem__(self, channel: str) -> Any:
        if channel not in self.state:
            raise undeclared(channel, self.state)
        return self.state[channel]

    def __iter__(self) -> Iterator[str]:
        return iter(self.state)

    def __len__(self) -> int:
        return len(self.state)

    def __repr__(self) -> str:
        return f"RunResult({self.thread_id!r}, {self.status}({self.reason}), step {self.step})"

    def __str__(self) -> str:
        """Describe where it stopped, and its channels, a line each.

        Long values are cut, private ones masked.
        """
        reason = f" ({self.reason})" if self.reason else ""
        lines = [f"thread {self.thread_id}: {self.status}{reason} at step {self.step}"]
        for request in self.pending:
            lines += [f"  waits for an answer: {request.title}", *(f"    {note}" for note in request.notes)]
        if self.error:
            lines.append(f"  {self.error.title}: {self.error.message}")
        return "\n".join((*map(printable, lines), *channel_lines(self.state, self._private)))

    def output(self) -> Any:
        """Return the value of the graph's output channel; raises `HitlError` if it has none."""
        if self._output not in self.state:
            raise HitlError(
                f"the graph has no channel {self._output!r}",
                f'add "{self._output}": Channel("") or read another channel of the result',
            )
        return self.state[self._output]


class NodeOutput(msgspec.Struct, frozen=True, gc=False):
    """A node's result and its changes.

    Attributes:
        read: the channels that it read, if that was recorded.
        counted: model calls of this step that the cursor has counted already.
        retries: failed attempts of branches that were followed by another one.
        unused: answers to requests that the node has not made.
    """

    result: NodeResult
    changes: list[Change]
    source: Source = "node"
    branches: tuple[BranchOutcome, ...] = ()
    retries: int = 0
    read: tuple[str, ...] = ()
    compensations: tuple[Compensation, ...] = ()
    artifacts: tuple[KeptArtifact, ...] = ()
    counted: tuple[ModelUse, ...] = ()
    unused: tuple[KeptAnswer, ...] = ()


def unused_answers(answers: Iterable[KeptAnswer], served: Collection[str]) -> tuple[KeptAnswer, ...]:
    """Return the answers that no request of an attempt has used; passing a breakpoint is not an answer.

    Args:
        served: the hashes of the requests whose answers were used.
    """
    return tuple(
        answer
        for answer in answers
        if answer.request_hash not in served and answer.key.partition(":")[0] != BREAKPOINT
    )


class BranchesWait(BaseException):
    """All branches that can continue have ended, and some ask a person.

    Not an Exception, like `InterruptRaised`.

    Args:
        requests: all that wait then, including earlier ones.
        branches: what is kept until there are answers.
        unused: answers about items that are no longer in their places.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        branches: tuple[BranchState, ...],
        unused: Iterable[KeptAnswer] = (),
    ) -> None:
        super().__init__(", ".join(request.title for request in requests))
        self.unused = tuple(unused)
        self.requests = tuple(requests)
        self.branches = branches


class ChildStopped(BaseException):
    """The thread of a subgraph was paused, or a limit stopped it; its parent stops the same way."""

    def __init__(self, status: Status, reason: str, note: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.note = note


class BranchesFailed(NodeFailed):
    """Too many branches have failed. The successful ones are kept, so that resuming runs only the others."""

    branches: tuple[BranchState, ...] = ()
