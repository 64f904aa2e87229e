"""What the run of a node came to, ready to be committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hitl_tui.engine.channels.changes import Change
from hitl_tui.engine.log.outcomes import BranchOutcome, BranchState, Compensation, ModelUse
from hitl_tui.engine.log.records import Source, Status
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.nodes.results import NodeResult
from hitl_tui.errors import NodeFailed


class Made(NamedTuple):
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
