"""What a node of several branches or of a whole graph has to do (SPEC 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hitl_tui.errors import GraphInvalid

if TYPE_CHECKING:
    from hitl_tui.engine.graphs.compiled import CompiledGraph, Node

OnError = Literal["collect", "fail"]


@dataclass(frozen=True)
class Quorum:
    """A join that is settled once `n` branches have succeeded."""

    n: int

    def __str__(self) -> str:
        return f"quorum({self.n})"


Join = Literal["all", "first"] | Quorum


def quorum(n: int) -> Quorum:
    """A join for `add_map` and `add_parallel`: the first `n` successes count, the rest is given up.

    Raises:
        GraphInvalid: `n` is no whole number of at least 1.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise GraphInvalid(f"quorum({n!r}): give a whole number of at least 1")
    return Quorum(n)


@dataclass(frozen=True)
class FanOutWork:
    """Branches side by side: the same node for each item, or the members of a parallel.

    Attributes:
        over: of a map: the channel or path with the items.
        members: of a parallel: the nodes, in their order.
        max_concurrent: how many branches run at once; None for all.
        max_items: more items are an error.
    """

    join: Join
    on_error: OnError
    max_concurrent: int | None
    over: str = ""
    max_items: int = 0
    members: tuple[Node, ...] = ()

    @property
    def needed(self) -> int | None:
        """How many successes settle the join; None where all branches are waited for."""
        if self.join == "all":
            return None
        return self.join.n if isinstance(self.join, Quorum) else 1

    @property
    def declared(self) -> dict[str, Any]:
        """The fields of `NodeInfo` that it makes."""
        return {
            "over": self.over,
            "join": str(self.join),
            "max_concurrent": self.max_concurrent,
            "max_items": self.max_items or None,
            "on_error": self.on_error,
            "members": tuple(member.info for member in self.members),
        }


@dataclass(frozen=True)
class SubgraphWork:
    """A graph inside a node; `inputs` are (parent's, child's) channels, `outputs` (child's, parent's)."""

    graph: CompiledGraph
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]


Work = FanOutWork | SubgraphWork


def kind_of(work: Work | None) -> Literal["", "map", "parallel", "subgraph"]:
    """What a node is made of; "" for a plain one."""
    if isinstance(work, SubgraphWork):
        return "subgraph"
    if work is None:
        return ""
    return "map" if work.over else "parallel"
