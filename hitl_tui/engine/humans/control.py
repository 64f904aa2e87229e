"""What a runner offers humans to do to its threads (SPEC 8, 11)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from hitl_tui.engine.graphs.compiled import CompiledGraph
from hitl_tui.engine.humans import answering, decisions, disclosure, forking
from hitl_tui.engine.log.signing import Signer
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.thread.agent_settings import Settings
from hitl_tui.engine.thread.session import Session


class ThreadControl(ABC):
    """The part of a runner by which humans decide about its threads; each call is one commit."""

    signer: Signer | None

    @abstractmethod
    def open(self, thread_id: str) -> Session:
        """A thread of the store; raises `UnknownThread`."""

    @abstractmethod
    def _graph_of(self, thread_id: str) -> CompiledGraph:
        """The graph that a thread runs."""

    @abstractmethod
    def _store(self) -> Store:
        """Where threads live; raises `UsageError` where nothing is kept."""

    def update_state(
        self,
        thread_id: str,
        values: Mapping[str, Any],
        *,
        expected_step: int | None = None,
        as_node: str | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> int:
        """Set channel values as a new step, without reducers; returns the step (SPEC 11).

        Args:
            expected_step: the head the edit was made on; another one refuses the edit.
            as_node: go on as if this node had just run.

        Raises:
            StaleWriter, ThreadBusy, UndeclaredChannel, SchemaMismatch, ValueRejected: nothing is stored.
        """
        session = self.open(thread_id)
        with session.writing():
            return decisions.update_state(
                session, values, expected_step=expected_step, as_node=as_node, actor=actor, note=note
            )

    def answer(
        self,
        thread_id: str,
        request_id: str,
        value: Any,
        *,
        step: int,
        actor: str | None = None,
        note: str | None = None,
    ) -> int:
        """Answer a pending request bound to `step`; returns the newest step.

        Raises:
            AnswerRefused: late, unknown, duplicate, stale, unauthorised or not signed; recorded as such.
            SigningFailed: nothing was decided.
        """
        session = self.open(thread_id)
        with session.writing():
            return answering.answer(session, request_id, value, step=step, actor=actor, note=note)

    def fork(
        self,
        thread_id: str,
        step: int,
        new_thread_id: str,
        *,
        changes: Mapping[str, Any] | None = None,
        agents: Settings | None = None,
        actor: str | None = None,
        note: str | None = None,
    ) -> str:
        """Make a new thread from a committed step; returns its id.

        Args:
            changes: channel values to begin with.
            agents: other settings of agents, as {"worker": {"model": "...", "temperature": 0}}.
        """
        store = self._store()
        parent = Session.open(
            self._graph_of(thread_id), store, thread_id, agents={}, with_state=False, signer=self.signer
        )
        child = forking.fork(
            parent, store, step, new_thread_id, changes=changes, agents=agents, actor=actor, note=note
        )
        return child.thread_id

    def declassify(
        self, thread_id: str, channel: str, *, actor: str, reason: str, expected_step: int | None = None
    ) -> int:
        """Clear a channel's taint as a new step that changes no value; returns the step (SPEC 8).

        Args:
            reason: why it may be trusted now; it is kept in the ledger.
            expected_step: the head it was looked at; another one refuses.

        Raises:
            UsageError, StaleWriter, ThreadBusy, UndeclaredChannel: nothing is stored.
        """
        session = self.open(thread_id)
        with session.writing():
            return disclosure.declassify(
                session, channel, actor=actor, reason=reason, expected_step=expected_step
            )

    def reveal(self, thread_id: str, channel: str, *, actor: str, step: int | None = None) -> Any:
        """A channel's value at a step (the newest by default), noted in the ledger (SPEC 8)."""
        session = self.open(thread_id)
        with session.writing():
            return disclosure.reveal(
                session, channel, session.cursor.head if step is None else step, actor=actor
            )

    def cancel(self, thread_id: str, *, actor: str | None = None, note: str | None = None) -> None:
        """End a thread as cancelled(user)."""
        session = self.open(thread_id)
        with session.writing():
            decisions.cancel(session, actor=actor, note=note)

    def extend_limits(
        self, thread_id: str, *, actor: str | None = None, note: str | None = None, **limits: float | None
    ) -> None:
        """Raise limits (names as in `Limits`), so that a thread stopped by one may go on; logged."""
        session = self.open(thread_id)
        with session.writing():
            decisions.extend_limits(session, limits, actor=actor, note=note)
