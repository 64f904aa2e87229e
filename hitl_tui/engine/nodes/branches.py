"""The branches of a map or a parallel, and what the cursor keeps of them.

Specified in docs/spec/branches.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hitl_tui.engine.graph.compiled import CompiledGraph, FanOutWork, Node
from hitl_tui.engine.log.outcomes import (
    BranchOutcome,
    BranchState,
    Compensation,
    ErrorInfo,
    Frame,
    KeptAnswer,
    KeptArtifact,
)
from hitl_tui.engine.log.records import Cursor
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.taint import Lineage
from hitl_tui.engine.state.canonical import item_hash, show_hash
from hitl_tui.engine.state.frozen import thaw
from hitl_tui.engine.state.state import LiveState
from hitl_tui.engine.state.workflow_state import StateView
from hitl_tui.errors import HitlError, NodeFailed, in_words

if TYPE_CHECKING:
    from hitl_tui.engine.nodes.activity import Activity

# Characters of a branch's traceback that are kept with a checkpoint.
_DETAILS = 4_000


class Branch:
    """One branch while its step runs."""

    def __init__(self, node: Node, path: str, index: int, item: Any = None) -> None:
        self.node = node
        self.path = path
        self.index = index
        self.item = item
        self.item_mark = ""
        self.attempt = 1
        self.tried = 0
        self.started = 0
        self.answers: tuple[KeptAnswer, ...] = ()
        self.served: list[str] = []
        self.unused: tuple[KeptAnswer, ...] = ()
        self.request: Request | None = None
        self.outcome: BranchOutcome | None = None
        self.updates: tuple[tuple[str, Any, str], ...] = ()
        self.compensation: Compensation | None = None
        self.artifacts: tuple[KeptArtifact, ...] = ()
        self.text = ""
        self.read: tuple[str, ...] = ()
        self.lineage: Lineage | None = None
        self.activity: Activity | None = None
        self.frames: tuple[Frame, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it has failed, with no attempts left."""
        return self.outcome is not None and self.outcome.status == "failed"

    @property
    def succeeded(self) -> bool:
        """Whether it has a result."""
        return self.outcome is not None and self.outcome.status == "ok"

    def recall(self, kept: BranchState, request: Request | None) -> None:
        """Continue from what it had done before the step had to wait."""
        self.answers = kept.answers
        self.compensation, self.artifacts = kept.compensation, kept.artifacts
        self.outcome, self.updates, self.text = kept.outcome, kept.updates, kept.text
        self.read, self.lineage, self.attempt = kept.read, kept.lineage, kept.attempt
        self.request = request

    def state(self, *, keep_failure: bool) -> BranchState:
        """Return what the cursor keeps of it."""
        outcome = self.outcome
        # Only a successful result is kept; everything else is run again.
        if outcome and outcome.status != "ok" and not (keep_failure and outcome.status == "failed"):
            outcome = None
        return BranchState(
            path=self.path,
            item=self.item_mark,
            answers=self.answers,
            outcome=outcome,
            updates=tuple((name, thaw(value), tool) for name, value, tool in self.updates) if outcome else (),
            text=self.text if outcome else "",
            attempt=self.attempt,
            read=self.read if outcome else (),
            lineage=self.lineage if outcome else None,
            compensation=self.compensation if outcome else None,
            artifacts=self.artifacts if outcome else (),
        )

    def ended(self, status: Any, now: int, error: NodeFailed | None = None) -> BranchOutcome:
        """Note how it ended."""
        duration = now - self.started if self.started else 0
        self.frames = error.frames if error else ()
        self.outcome = BranchOutcome(
            self.path,
            self.node.name,
            self.index,
            status,
            kept_error(error, self.node.name) if error else None,
            self.tried,
            duration,
        )
        return self.outcome


def branches_of(graph: CompiledGraph, node: Node, state: LiveState, cursor: Cursor) -> list[Branch]:
    """Return the branches of a map or a parallel, with what the cursor keeps of them.

    Raises:
        HitlError: the channel has no list, or the list has too many items.
    """
    work = node.work
    assert isinstance(work, FanOutWork)
    if work.over:
        items = enumerate(_items(graph, work, state))
        branches = [Branch(node, f"{node.name}[{place}]", place, item) for place, item in items]
    else:
        branches = [
            Branch(member, f"{node.name}/{member.name}", place) for place, member in enumerate(work.members)
        ]
    if cursor.branches:
        mark_items(branches)
        _recall(branches, cursor)
    return branches


def _items(graph: CompiledGraph, work: FanOutWork, state: LiveState) -> list[Any]:
    items = StateView(state.values, graph.channels)[work.over]
    if not isinstance(items, list):
        raise HitlError(
            f"{work.over!r} holds {in_words(items)}, not a list", "a map goes over the items of a list"
        )
    if len(items) > work.max_items:
        raise HitlError(
            f"{work.over!r} has {len(items)} items, more than max_items={work.max_items}",
            "raise max_items of the map, or let the list be shorter",
        )
    return items


def _recall(branches: list[Branch], cursor: Cursor) -> None:
    kept = {state.path: state for state in cursor.branches}
    asked = {request.path: request for request in cursor.pending}
    for branch in branches:
        state = kept.get(branch.path)
        if state is not None and state.item == branch.item_mark:
            branch.recall(state, asked.get(branch.path))


def mark_items(branches: list[Branch]) -> None:
    """Note which items the branches are for, so that other items in their places get new branches."""
    for branch in branches:
        if branch.node.work is not None and not branch.item_mark:
            branch.item_mark = show_hash(item_hash(branch.item))


def kept_error(error: NodeFailed, node: str) -> ErrorInfo:
    """Return a branch's failure as it is kept: only the end of a long traceback, and no frames."""
    return ErrorInfo(
        node, error.attempt, error.title, error.message, error.hint, error.details[-_DETAILS:], error.channel
    )


def with_answer(branches: tuple[BranchState, ...], path: str, answer: KeptAnswer) -> tuple[BranchState, ...]:
    """Return the kept branches with an answer added to the one at `path`."""
    return tuple(
        replace(state, answers=(*state.answers, answer)) if state.path == path else state
        for state in branches
    )


def branches_after_edit(branches: tuple[BranchState, ...]) -> tuple[BranchState, ...]:
    """Return the kept branches after an edit of the state: their answers are kept, their results are not."""
    return tuple(
        replace(
            state, outcome=None, updates=(), text="", read=(), lineage=None, compensation=None, artifacts=()
        )
        for state in branches
    )


def has_runnable_branch(cursor: Cursor) -> bool:
    """Whether a branch can run although others wait for people."""
    asking = {request.path for request in cursor.pending}
    return "" not in asking and any(
        state.outcome is None and state.path not in asking for state in cursor.branches
    )
