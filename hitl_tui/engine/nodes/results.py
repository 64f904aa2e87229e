"""What a node returns, what its run came to, and what a run of the graph returns (SPEC 5)."""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from hitl_tui.engine.log.events import AppliedUpdate
from hitl_tui.engine.log.outcomes import (
    BranchOutcome,
    BranchState,
    Compensation,
    ErrorInfo,
    KeptArtifact,
    ModelUse,
)
from hitl_tui.engine.log.records import Source, Status
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.state.changes import Change
from hitl_tui.engine.state.listing import channel_lines, printable
from hitl_tui.engine.state.state import undeclared
from hitl_tui.engine.state.values import keepable
from hitl_tui.errors import HitlError, NodeFailed, in_words

_MOST = 1 << 53


class Artifact(msgspec.Struct, frozen=True):
    """What a node gives besides its updates, as a report or a picture: kept with the step, no state.

    Attributes:
        name: as of a file, without a folder: "report.md".
        media_type: as "text/markdown", "application/json", "image/png".
        content: text or bytes; those of a step take at most 256 KiB together.
    """

    name: str
    media_type: str
    content: str | bytes


class NodeResult(msgspec.Struct, frozen=True):
    """The envelope a node may return instead of a plain mapping of updates (seed 001).

    Attributes:
        updates: channel name to update.
        text: a summary for people, kept with the checkpoint.
        status: "completed", or "failed" to fail the attempt with `text` as the reason.
        compensation: (handler, args), how to undo what this run of the node did outside the state: the
            name of a registered handler and any JSON (SPEC 13).
        usage: model calls the engine did not see, for the totals.
        artifacts: evidence and handoff material, as files, kept with the step.
    """

    updates: Mapping[str, Any] = {}
    text: str | None = None
    status: str = "completed"
    compensation: tuple[str, Any] | None = None
    usage: Sequence[ModelUse] | None = None
    artifacts: Sequence[Artifact] = ()


MOST_ARTIFACTS = 256 << 10
"""Bytes of all artifacts of a step."""
_ARTIFACT_NAME = re.compile(r"[\w(][\w.,+() @=-]{0,127}")
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(; ?[\w.+-]+=[\w.+-]+)*", re.ASCII)


def kept_artifacts(artifacts: Sequence[Artifact], path: str = "") -> tuple[KeptArtifact, ...]:
    """Artifacts, which were checked, as they are kept."""
    return tuple(
        KeptArtifact(given.name, given.media_type, given.content, path=path)
        if isinstance(given.content, str)
        else KeptArtifact(given.name, given.media_type, b64encode(given.content).decode(), True, path)
        for given in artifacts
    )


def checked(result: NodeResult, node: str) -> NodeResult:
    """The envelope that a node returned, as it can be written down.

    Raises:
        HitlError: the node reports that it failed, or a field holds something else than it should.
    """
    text = result.text
    if text is not None and not isinstance(text, str):
        raise HitlError(
            f"node {node!r} returned a NodeResult whose text is {in_words(text)}",
            "give text or nothing",
        )
    if result.status != "completed":
        raise HitlError(f"the node reports status {result.status!r}: {text or 'without a reason'}")
    if not isinstance(result.updates, Mapping):
        raise HitlError(
            f"node {node!r} returned a NodeResult whose updates are {in_words(result.updates)}",
            "give a dict of channel updates, or leave them out",
        )
    if result.usage is not None:
        _check_usage(result.usage, node)
    if result.artifacts:
        _check_artifacts(result.artifacts, node)
    if text and (kept := keepable(text)) != text:
        return msgspec.structs.replace(result, text=kept)
    return result


def _check_artifacts(artifacts: Any, node: str) -> None:
    what = f"node {node!r} returned a NodeResult with an artifact"
    if not isinstance(artifacts, Sequence) or not all(isinstance(given, Artifact) for given in artifacts):
        raise HitlError(
            f"node {node!r} returned a NodeResult whose artifacts are {in_words(artifacts)}",
            'give a list of Artifact("report.md", "text/markdown", text)',
        )
    names: set[str] = set()
    size = 0
    for given in artifacts:
        name, kind, content = given.name, given.media_type, given.content
        if not isinstance(name, str) or not _ARTIFACT_NAME.fullmatch(name):
            raise HitlError(f"{what} named {name!r:.100}", 'name it as a file, without a folder: "report.md"')
        if name in names:
            raise HitlError(f"{what} {name!r} twice", "give each its own name")
        if not isinstance(kind, str) or not _MEDIA_TYPE.fullmatch(kind):
            raise HitlError(f"{what} {name!r} of media type {kind!r:.100}", 'as in "text/plain"')
        if not isinstance(content, (str, bytes)) or (
            isinstance(content, str) and keepable(content) != content
        ):
            raise HitlError(f"{what} {name!r} that is {in_words(content)}", "give text or bytes")
        names.add(name)
        size += len(content.encode() if isinstance(content, str) else content)
    if size > MOST_ARTIFACTS:
        raise HitlError(
            f"node {node!r} returned artifacts of {size:,} bytes, and they may take {MOST_ARTIFACTS:,}",
            "store what is large elsewhere, and give an artifact that names it",
        )


def _check_usage(usage: Any, node: str) -> None:
    if not isinstance(usage, Sequence) or not all(isinstance(use, ModelUse) for use in usage):
        raise HitlError(
            f"node {node!r} returned a NodeResult whose usage is {in_words(usage)}",
            "give a list of ModelUse(agent, provider, model, tokens_in, tokens_out, cost)",
        )
    for use in usage:
        names = (use.agent, use.provider, use.model)
        named = all(isinstance(name, str) and keepable(name) == name for name in names)
        counted = all(type(count) is int and 0 <= count < _MOST for count in (use.tokens_in, use.tokens_out))
        priced = use.cost is None or (type(use.cost) in (int, float) and 0 <= use.cost < math.inf)
        if not (named and counted and priced):
            raise HitlError(
                f"node {node!r} returned a NodeResult whose usage holds {use!r:.200}",
                "names are text, tokens whole numbers and the cost US dollars, None where it is unknown; "
                "none of them is below 0",
            )


class StepResult(msgspec.Struct, frozen=True):
    """One committed step, as `stream` yields it; values of private channels are masked (SPEC 8)."""

    node: str
    step: int
    iteration: int
    updates: tuple[AppliedUpdate, ...]
    state: Mapping[str, Any]


class RunResult(Mapping[str, Any]):
    """Where a run stopped: `result["channel"]` is a value, `print(result)` shows them all.

    Attributes:
        status: completed, waiting, failed or cancelled tell apart done, a human, an error or a
            limit (`reason` "limit"), and the end by hand.
        step: the thread's last step.
        pending: the requests that wait for a human.
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
        """Where it stopped, and its channels a line each; long values are cut, private ones masked."""
        reason = f" ({self.reason})" if self.reason else ""
        lines = [f"thread {self.thread_id}: {self.status}{reason} at step {self.step}"]
        lines += [f"  waits for an answer: {request.title}" for request in self.pending]
        if self.error:
            lines.append(f"  {self.error.title}: {self.error.message}")
        return "\n".join((*map(printable, lines), *channel_lines(self.state, self._private)))

    def output(self) -> Any:
        """The value of the graph's output channel; raises `HitlError` where it has none."""
        if self._output not in self.state:
            raise HitlError(
                f"the graph has no channel {self._output!r}",
                f'add "{self._output}": Channel("") or read another channel of the result',
            )
        return self.state[self._output]


class NodeOutput(msgspec.Struct, frozen=True, gc=False):
    """A node's result and its changes.

    Attributes:
        read: what of the state went into it, where that was noted.
        counted: model calls of this step that the cursor has counted already.
        retries: failed attempts of branches that were followed by another one.
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


class BranchesWait(BaseException):
    """All branches that can go on have ended, and some ask a human; not an Exception, as `InterruptRaised`.

    Args:
        requests: all that wait then, those of before among them.
        branches: what is kept until there are answers.
    """

    def __init__(self, requests: Sequence[Request], branches: tuple[BranchState, ...]) -> None:
        super().__init__(", ".join(request.title for request in requests))
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
    """The branches that succeeded are kept, so that resuming the thread runs only the others."""

    branches: tuple[BranchState, ...] = ()
