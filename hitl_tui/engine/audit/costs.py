"""What a thread has used, by agent, node and step; and the record of its run.

Specified in docs/spec/graphs.md.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, overload

import msgspec

from hitl_tui.engine.graph.compensation import RollbackEntry
from hitl_tui.engine.log.outcomes import ModelUse
from hitl_tui.engine.log.records import Checkpoint, Limits, Status
from hitl_tui.engine.log.store import Store, all_threads
from hitl_tui.engine.log.units import Duration, Inline, about
from hitl_tui.engine.run.rollback import rollback_entries
from hitl_tui.engine.thread.run_inputs import shown_context
from hitl_tui.engine.thread.session import Session

_ALL = 1 << 31


class CostLine(msgspec.Struct, frozen=True):
    """What one agent used of one model; `cost` is in US dollars, None if a price is unknown."""

    agent: Annotated[str, about("The agent.")]
    provider: Annotated[str, about("The provider.")]
    model: Annotated[str, about("The model.")]
    calls: Annotated[int, about("Model calls.")]
    tokens_in: Annotated[int, about("Tokens sent.")]
    tokens_out: Annotated[int, about("Tokens written.")]
    cost: Annotated[float | None, about("US dollars; null where a price is unknown.")]


class ModelUseTotal(msgspec.Struct, frozen=True):
    """A sum of model calls; `cost` is in US dollars, a lower bound if `cost_known` is False."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    cost_known: bool = True

    def plus(self, use: ModelUse) -> ModelUseTotal:
        """Return the sum with one more call."""
        return ModelUseTotal(
            self.calls + 1,
            self.tokens_in + use.tokens_in,
            self.tokens_out + use.tokens_out,
            self.cost + (use.cost or 0.0),
            self.cost_known and use.cost is not None,
        )


class StepCost(msgspec.Struct, frozen=True):
    """What one step of a node used, including its failed attempts."""

    step: Annotated[int, about("The step.")]
    node: Annotated[str, about("The node.")]
    spent: Inline[ModelUseTotal]
    duration: Annotated[Duration, about("The duration.")] = 0


class NodeCost(msgspec.Struct, frozen=True):
    """What all runs of one node used; a node without models has 0 calls."""

    node: Annotated[str, about("The node.")]
    runs: Annotated[int, about("The number of runs.")]
    spent: Inline[ModelUseTotal]
    duration: Annotated[Duration, about("The duration of all runs.")] = 0


class CostReport(Sequence[CostLine]):
    """A table by agent, provider and model, in order of first use; `str` of it is readable.

    Agents that were never called come last, with 0 calls of their model.

    Attributes:
        steps: every step of a node, oldest first.
        lost: what attempts used that belong to no step yet, such as failed or stopped ones; it is included in
            the lines and in the total.
    """

    def __init__(
        self, checkpoints: Iterable[Checkpoint], lost: Sequence[ModelUse] = (), agents: Iterable[Any] = ()
    ) -> None:
        steps = [point for point in checkpoints if point.node]
        self.steps = tuple(
            StepCost(point.step, point.node, spent_by(point.uses), point.duration) for point in steps
        )
        self.lost = spent_by(lost)
        uses = [*(use for point in steps for use in point.uses), *lost]
        self.total = spent_by(uses)
        lines = _by_agent(uses)
        self._lines = (*lines, *_uncalled(agents, {line.agent for line in lines}))

    def by_node(self) -> tuple[NodeCost, ...]:
        """Return the cost of each node, in the order of their first run."""
        nodes: dict[str, NodeCost] = {}
        for step in self.steps:
            known = nodes.get(step.node, NodeCost(step.node, 0, ModelUseTotal()))
            spent = _sum(known.spent, step.spent)
            nodes[step.node] = NodeCost(step.node, known.runs + 1, spent, known.duration + step.duration)
        return tuple(nodes.values())

    @overload
    def __getitem__(self, index: int) -> CostLine: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[CostLine]: ...

    def __getitem__(self, index: int | slice) -> CostLine | Sequence[CostLine]:
        return self._lines[index]

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[CostLine]:
        return iter(self._lines)

    def __repr__(self) -> str:
        return f"CostReport({self._lines!r})"

    def __str__(self) -> str:
        rows = [("agent", "provider", "model", "calls", "input", "output", "cost")]
        for line in self._lines:
            cost = "unknown" if line.cost is None else f"${line.cost:.6f}"
            counts = (str(line.calls), str(line.tokens_in), str(line.tokens_out))
            rows.append((line.agent, line.provider, line.model, *counts, cost))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )


def cost_report(store: Store, thread_id: str | None = None, agents: Iterable[Any] = ()) -> CostReport:
    """Return what a thread's model calls have used, including those of failed attempts.

    Without a thread, it covers all threads of the store: forks with only their own steps, subgraphs as part
    of their parents.

    Args:
        agents: the graph's agents, which get a line even if they were never called.
    """
    threads = _top(store) if thread_id is None else [(thread_id, -1)]
    points: list[Checkpoint] = []
    lost: list[ModelUse] = []
    for name, shared in threads:
        cursor = store.cursor(name)
        lost += cursor.open_uses if cursor else ()
        steps = reversed(store.checkpoints(name, None, _ALL))
        points += (point for point in steps if point.step > shared)
    return CostReport(points, lost, agents)


def _top(store: Store) -> Iterator[tuple[str, int]]:
    """Yield the threads that are not child threads, and up to which step they share those of a parent."""
    for row in all_threads(store, within=""):
        # A fork that was imported without its parent owns all of its steps.
        yield row.info.thread_id, row.info.fork_step if row.info.parent else -1


def spent_by(uses: Iterable[ModelUse]) -> ModelUseTotal:
    """Return the sum of model calls."""
    total = ModelUseTotal()
    for use in uses:
        total = total.plus(use)
    return total


def _by_agent(uses: Iterable[ModelUse]) -> tuple[CostLine, ...]:
    sums: dict[tuple[str, str, str], ModelUseTotal] = {}
    for use in uses:
        key = (use.agent, use.provider, use.model)
        sums[key] = sums.get(key, ModelUseTotal()).plus(use)
    return tuple(
        CostLine(*key, sum_.calls, sum_.tokens_in, sum_.tokens_out, sum_.cost if sum_.cost_known else None)
        for key, sum_ in sums.items()
    )


def _uncalled(agents: Iterable[Any], called: Container[str]) -> Iterator[CostLine]:
    """Yield lines for agents that were never called; an agent without a name and a model calls none."""
    for agent in agents:
        name, model = getattr(agent, "name", None), getattr(agent, "model", None)
        if isinstance(name, str) and name not in called and model is not None:
            provider, _, bare = str(model).rpartition("/")
            yield CostLine(name, provider, bare, 0, 0, 0, 0.0)


def _sum(first: ModelUseTotal, other: ModelUseTotal) -> ModelUseTotal:
    return ModelUseTotal(
        first.calls + other.calls,
        first.tokens_in + other.tokens_in,
        first.tokens_out + other.tokens_out,
        first.cost + other.cost,
        first.cost_known and other.cost_known,
    )


class RunInfo(msgspec.Struct, frozen=True):
    """The record of a thread's run.

    Durations are in microseconds, times in microseconds since the epoch, cost in US dollars (a lower bound if
    `cost_known` is False). `rollback` is what can be undone, the last entry first. Private values in
    `context` are masked.
    """

    thread_id: str
    graph_name: str
    graph_digest: str
    invocation: int
    goal: Any
    constraints: Any
    status: Status
    reason: str
    iteration_count: int
    limits: Limits
    active: int
    retry_count: int
    visited_nodes: tuple[str, ...]
    tokens_in: int
    tokens_out: int
    cost: float
    cost_known: bool
    created_at: int
    updated_at: int
    rollback: tuple[RollbackEntry, ...] = ()
    context: Mapping[str, Any] = {}


def run_info(session: Session) -> RunInfo:
    """Return the record of a thread's run."""
    cursor, info = session.cursor, session.info
    return RunInfo(
        thread_id=info.thread_id,
        graph_name=info.graph_name,
        graph_digest=info.graph_digest,
        invocation=cursor.invocation,
        goal=cursor.goal,
        constraints=cursor.constraints,
        status=cursor.status,
        reason=cursor.reason,
        iteration_count=cursor.iteration,
        limits=cursor.limits,
        active=cursor.active,
        retry_count=cursor.retries,
        visited_nodes=tuple(cursor.visits),
        tokens_in=cursor.tokens_in,
        tokens_out=cursor.tokens_out,
        cost=cursor.cost,
        cost_known=cursor.cost_known,
        created_at=info.created_at,
        updated_at=cursor.updated_at,
        rollback=rollback_entries(session.store, cursor),
        context=shown_context(cursor.context, cursor.private_context),
    )
