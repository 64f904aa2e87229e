"""Breakpoints as data, and the protocol by which a run checks them; `drivers.breakpoints` implements it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from hitl_tui.declared import Declaration
from hitl_tui.engine.log.outcomes import Frame
from hitl_tui.engine.log.units import about
from hitl_tui.engine.state.state import LiveState

if TYPE_CHECKING:
    from hitl_tui.engine.thread.session import Session

StopKind = Literal["before", "after", "change", "tool", "error"]


class Breakpoint(Declaration, frozen=True, omit_defaults=True):
    """A place at which a run stops, or logs a line and continues.

    Args:
        place: for before and after, a node; for error, a node, "" for any; for change, a channel or a path in
            one; for tool, a tool's name, "" for any. Places inside a node follow a slash: `outer/inner` is a
            node of a subgraph, `group/member` a branch of a parallel, `scan[2]` or `scan[*]` one of a map.
        hit: it applies only at this hit, from 1; 0 for each.
        log: a text with values such as `n={n}`, logged instead of a stop; "" stops.
        off: it does nothing.
    """

    kind: Annotated[StopKind, about("The kind: before or after a node, a change, a tool call, an error.")]
    place: Annotated[str, about("The node, the path of a channel or the tool; empty for any.")] = ""
    condition: Annotated[str, about("A condition; empty for always.")] = ""
    hit: Annotated[int, about("Applies only to this hit, from 1; 0 for every hit.")] = 0
    log: Annotated[str, about("The text to log instead of stopping; empty to stop.")] = ""
    off: Annotated[bool, about("Whether it is switched off.")] = False


class Stops(Protocol):
    """The breakpoints of a run; each method returns why to stop, "" to continue.

    Thread-safe: tools are called from any thread."""

    def before(self, session: Session, node: str, first: bool) -> str:
        """Check before a node; `first` says whether the run starts with it."""

    def after(self, session: Session, node: str, state: LiveState) -> str:
        """Check after a node was committed; `state` is the one before it."""

    def shows_return(self, node: str) -> bool:
        """Whether a breakpoint shows where a node returns."""

    def returned(self, node: str, frames: tuple[Frame, ...]) -> None:
        """Take the frames of a node that returns."""

    def branch(self, session: Session, path: str, item: Any, index: int) -> str:
        """Check before a branch of a map or a parallel."""

    def error(self, session: Session, path: str, error: Exception) -> str:
        """Check after an attempt has failed; `path` is the node or the branch."""

    def tool(self, session: Session, path: str, tool: str, arguments: Mapping[str, Any] | str) -> str:
        """Check before a tool is called, from any thread."""

    def inside(self, node: str) -> Stops | None:
        """Return the breakpoints for the run of a subgraph's thread, None for none."""
