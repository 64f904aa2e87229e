"""Subgraphs of LangGraph graphs: where their checkpoints are, and how a run stops inside them.

A run's `interrupt_before` and `interrupt_after` affect only the root graph; a subgraph stops where it was
compiled to.  Those settings are replaced, once, by an object that also asks the run in the current context;
other runs of the same graph are not stopped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Final

from hitl_tui.engine.log.threads import child_id

if TYPE_CHECKING:
    from hitl_tui.drivers.langgraph.pregel import OnPart, Part

START_NODE: Final = "__start__"
_SEPARATOR: Final = "|"
_SHOWN: Final = 8
"""Digits of a task's id in the name of its subgraph's thread."""
OWN_STORE: Final = "its subgraph was compiled with a checkpointer of its own"
NO_STORE: Final = "its subgraph was compiled with checkpointer=False: it keeps nothing to look at"
ONE_STORE: Final = "its subgraph was compiled with checkpointer=True: it keeps one state for all visits"

NO_STEPS: Final = "a server stops behind the supersteps of the whole graph alone"


def scopes(ns: str) -> tuple[str, ...]:
    """Return the tasks around a namespace, the outermost first."""
    return tuple(ns.split(_SEPARATOR)) if ns else ()


def namespace(ns: str, node: str, task: str) -> str:
    """Return the namespace of the checkpoints of a task's subgraph.

    Args:
        ns: the namespace of the task.
    """
    return _SEPARATOR.join((*scopes(ns), f"{node}:{task}"))


def thread_name(line: str, node: str, task: str) -> str:
    """Return the name of the thread of a task's subgraph."""
    return child_id(line, f"{node}#{task.replace('-', '')[:_SHOWN]}")


def why_closed(graph: Any) -> str:
    """Return why a subgraph can't be entered, "" if it can."""
    checkpointer = getattr(graph, "checkpointer", None)
    if checkpointer is None:
        return ""
    if isinstance(checkpointer, bool):
        return ONE_STORE if checkpointer else NO_STORE
    return OWN_STORE


def open_subgraphs(graph: Any) -> dict[str, Any]:
    """Return the subgraphs of a graph that can be entered, by node."""
    return {node: inner for node, inner in graph.get_subgraphs() if not why_closed(inner)}


def within(scope: tuple[str, ...], on_part: OnPart) -> OnPart:
    """Return a handler that passes on only a subgraph's parts, as if it were the whole graph."""

    def forward(part: Part) -> None:
        ns, mode, data = part
        if ns[: len(scope)] != scope:
            return
        if mode == "messages":
            message, about = data
            place = str(about.get("langgraph_checkpoint_ns") or "").split(_SEPARATOR)[len(scope) :]
            data = message, {**about, "langgraph_checkpoint_ns": _SEPARATOR.join(place)}
        on_part((ns[len(scope) :], mode, data))

    return forward


class InnerStops:
    """The stops of one run in subgraphs; applies to code that runs in the context that entered it.

    Args:
        ns: the subgraph that is stepped through, one superstep at a time; others beside it wait. "" for none.
        into: stop in its subgraphs before their first node.

    Attributes:
        all: stop before the next node, in whatever subgraph.
    """

    def __init__(self, ns: str, into: bool) -> None:
        self._ns = ns
        self._into = into
        self.all = False
        self._token: Token[InnerStops | None] | None = None

    def __enter__(self) -> None:
        self._token = _STOPS.set(self)

    def __exit__(self, *_raised: object) -> None:
        assert self._token is not None
        _STOPS.reset(self._token)

    def stops_at(self, ns: str, when: str) -> bool:
        """Whether a subgraph stops "before" or "after" one of its nodes.

        Args:
            ns: the namespace of the subgraph.
        """
        if ns == self._ns:
            return when == "after" or self.all
        return when == "before" and (self.all or (self._into and self._is_inside(ns)))

    def is_beside(self, ns: str) -> bool:
        """Whether a subgraph must not move, as it is neither inside nor around the one stepped through."""
        around = self._ns.startswith(f"{ns}{_SEPARATOR}")
        return ns != self._ns and not around and not self._is_inside(ns)

    def _is_inside(self, ns: str) -> bool:
        return not self._ns or ns.startswith(f"{self._ns}{_SEPARATOR}")


_STOPS: ContextVar[InnerStops | None] = ContextVar("stops inside subgraphs", default=None)


class _StopNodes(Collection[str]):
    """Replaces a subgraph's `interrupt_before_nodes` or `interrupt_after_nodes`."""

    def __init__(self, own: Any, when: str) -> None:
        self._own = own
        self._when = when

    def __bool__(self) -> bool:
        """Asked before each superstep.

        Raises:
            GraphInterrupt: LangGraph raises it too after a true answer, but not if the subgraph has stopped
                there before.
        """
        stops = _STOPS.get()
        if stops is not None and self._when == "before" and stops.is_beside(_current_namespace()):
            from langgraph.errors import GraphInterrupt

            raise GraphInterrupt
        return bool(self._own) or stops is not None

    def __len__(self) -> int:
        return len(self._own)

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __eq__(self, other: object) -> bool:
        return bool(self._own == other)

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, node: object) -> bool:
        if node == START_NODE:
            return False
        stops = _STOPS.get()
        return node in self._own or (stops is not None and stops.stops_at(_current_namespace(), self._when))


def _current_namespace() -> str:
    """Return the namespace of the subgraph that asks, which is that of its task."""
    from langgraph.config import get_config

    configurable: Mapping[str, Any] = get_config().get("configurable", {})
    return str(configurable.get("checkpoint_ns", ""))


def stop_inside(graph: Any) -> None:
    """Make a graph's subgraphs stop where the current run wants to."""
    for inner in open_subgraphs(graph).values():
        if not isinstance(inner.interrupt_before_nodes, _StopNodes):
            inner.interrupt_before_nodes = _StopNodes(inner.interrupt_before_nodes, "before")
            inner.interrupt_after_nodes = _StopNodes(inner.interrupt_after_nodes, "after")
        stop_inside(inner)
