"""Makes supersteps that run one by one count as one run of LangGraph.

Each superstep is a `stream` of its own, from the newest checkpoint on.  To LangGraph it is a new run, which
would count its steps from the start, lose what no checkpoint keeps, and let subgraphs with a memory of
their own resume a run that is over.  A `Leg` corrects what LangGraph's loop has set up before its first node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from hitl_tui.drivers.langgraph.replaced_functions import FIRST_INPUT, replace_function

RESUMING: Final = "__pregel_resuming"
"""Key of `configurable` that says whether a run resumes an earlier one, which LangGraph infers otherwise."""


class LiveChannels(NamedTuple):
    """Channels of a run in memory after its newest superstep.

    Attributes:
        checkpoint: the id of the checkpoint that they belong to.
        channels: by name.
    """

    checkpoint: str
    channels: Mapping[str, Any]


class Leg:
    """One superstep of a run.

    Args:
        steps_left: supersteps that the run may still take, this one included; None lets LangGraph count.
        continues: the run began before this superstep; otherwise LangGraph's own run begins here, too.
        carried: the channels that the superstep before has left in memory.
    """

    def __init__(
        self, steps_left: int | None = None, *, continues: bool = False, carried: LiveChannels | None = None
    ) -> None:
        self._steps_left = steps_left
        self.continues = continues
        self._carried = carried if continues else None
        self._takes_over = False
        self._loop: Any = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make the run that begins in this context this leg."""
        _set_up_loops_by_leg()
        token = _LEG.set(self)
        try:
            yield
        finally:
            _LEG.reset(token)

    def end(self) -> LiveChannels | None:
        """Return the channels that the next superstep takes over from this finished one."""
        loop, self._loop, self._carried = self._loop, None, None
        return LiveChannels(str(loop.checkpoint["id"]), loop.channels) if loop is not None else None

    def enter(self, loop: Any) -> None:
        """Set up a LangGraph loop before it takes its input; the first one is that of the running graph."""
        if self._loop is None:
            self._loop = loop
            carried = self._carried
            self._takes_over = carried is not None and carried.checkpoint == loop.checkpoint["id"]
            if carried is not None and self._takes_over:
                loop.channels = carried.channels
        elif self.continues and _keeps_one_state(loop) and (self._takes_over or _is_over(loop)):
            configurable = {**loop.config["configurable"], RESUMING: False}
            loop.config = {**loop.config, "configurable": configurable}

    def entered(self, loop: Any) -> None:
        """Set up the running graph's loop after it took its input."""
        if loop is self._loop and self._steps_left is not None:
            loop.stop = loop.step + self._steps_left - 1


_LEG: ContextVar[Leg | None] = ContextVar("the superstep that runs", default=None)


def _set_up_loops_by_leg() -> None:
    """Patch the function by which a LangGraph loop takes its input, so that the context's leg sets it up."""
    replace_function(FIRST_INPUT, _by_leg)


def _by_leg(begin: Any) -> Any:
    def first(loop: Any, **given: Any) -> Any:
        leg = _LEG.get()
        if leg is None:
            return begin(loop, **given)
        leg.enter(loop)
        result = begin(loop, **given)
        leg.entered(loop)
        return result

    return first


def _keeps_one_state(loop: Any) -> bool:
    """Whether the loop is that of a subgraph with `checkpointer=True`: its namespace names no task."""
    place = str(loop.config["configurable"].get("checkpoint_ns") or "").rpartition("|")[2]
    return bool(place) and ":" not in place


def _is_over(loop: Any) -> bool:
    """Whether a subgraph's kept run has ended."""
    from langgraph.pregel._algo import prepare_next_tasks

    tasks = prepare_next_tasks(
        loop.checkpoint,
        loop.checkpoint_pending_writes,
        loop.nodes,
        loop.channels,
        loop.managed,
        loop.config,
        loop.step,
        loop.stop,
        for_execution=False,
    )
    return not tasks
