"""What the watchers of a thread are told of a thread below it (SPEC 7)."""

from __future__ import annotations

from hitl_tui.engine.log.events import (
    ChildMoved,
    Event,
    ModelCalled,
    NodeFailed,
    NodeRetrying,
    NodeStarted,
    RunEnded,
    RunStarted,
    StepCommitted,
    TextStreamed,
    ToolCalled,
)
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.thread.session import Session, replace


class InsideEvents:
    """The events of a child thread as its parent tells them; values of the child stay with it.

    Attributes:
        uses: the model calls of the child's steps, as far as they were told.
    """

    def __init__(self, session: Session, node: str, child: Session) -> None:
        self.session = session
        self.node = node
        self.child = child
        self.uses: list[ModelUse] = []
        self._running = ""

    def tell(self, event: Event) -> None:
        """The child's sink."""
        node, child = self.node, self.child
        if child.on_below:
            child.on_below(child.thread_id, event)
        if isinstance(event, (TextStreamed, ModelCalled, NodeRetrying)):
            self.session.emit(replace(event, node=node, path=f"{node}/{event.path or event.node}"))
        elif isinstance(event, ToolCalled):
            self.session.emit(replace(event, node=node))
        elif isinstance(event, ChildMoved):
            self.session.emit(replace(event, node=node, path=f"{node}/{event.path}"))
        elif isinstance(event, (NodeStarted, RunStarted, StepCommitted, NodeFailed, RunEnded)):
            self._running = event.node if isinstance(event, NodeStarted) else ""
            if isinstance(event, StepCommitted):
                self.uses.extend(event.checkpoint.uses)
            self.session.emit(ChildMoved(node, node, child.thread_id, self._running, child.progress))
