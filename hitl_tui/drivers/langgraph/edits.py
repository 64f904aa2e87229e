"""Tries edits of a LangGraph thread on copies, and makes the arguments for `update_state`."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from langgraph.errors import InvalidUpdateError

from hitl_tui.drivers.langgraph.pregel import OUTPUT, Goto, Saved, given_to, going_to, saved_of
from hitl_tui.drivers.langgraph.scratch import ScratchSaver
from hitl_tui.drivers.langgraph.steps import branch_path, in_order
from hitl_tui.engine.log.events import AsNode
from hitl_tui.engine.log.records import START
from hitl_tui.errors import UsageError

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel
    from langgraph.types import Send, StateSnapshot

ENTRY: Final = "__start__"
"""LangGraph's name of the node that takes the input."""
_REPLACES: Final = ("LastValue", "LastValueAfterFinish", "AnyValue", "EphemeralValue", "UntrackedValue")
"""Channels that hold what was written last."""
_REDUCES: Final = ("BinaryOperatorAggregate", "DeltaChannel")
"""Channels with an operator, which `Overwrite` goes around."""
_LIBRARIES: Final = frozenset({"site-packages", "dist-packages"})
_STANDARD: Final = Path(sysconfig.get_path("stdlib"))


class ChosenRoute(NamedTuple):
    """Route that a node has chosen by a `Command`: nodes and `Send`s, which edges do not repeat."""

    node: str
    goto: tuple[Goto, ...]


def chosen_route(
    app: Pregel[Any, Any, Any, Any], ran: Sequence[str], saved: Saved, sends: Sequence[Send]
) -> ChosenRoute | None:
    """Return the route that the last node may have chosen by a `Command`, or None if only edges decide.

    A node with a conditional edge has none: that edge is evaluated again for the edited state.

    Args:
        sends: what made tasks of the checkpoint.
    """
    builder = getattr(app, "builder", None)
    if builder is None or len(ran) != 1 or builder.branches.get(ran[0]):
        return None
    goto: tuple[Goto, ...] = (*(task.name for task in saved.tasks if not task.pushed), *sends)
    return ChosenRoute(ran[0], goto) if goto else None


def route_on_server(ran: Sequence[str], saved: Saved) -> ChosenRoute | None:
    """What comes after the node that ran last: a server does not say if edges or a `Command` led there."""
    from langgraph.types import Send

    goto = tuple(Send(task.name, None) if task.pushed else task.name for task in saved.tasks)
    return ChosenRoute(ran[0], goto) if len(ran) == 1 and goto else None


class Tried(NamedTuple):
    """Result of an edit on a copy.

    Args:
        before, after: LangGraph's values of the state; `after` is empty if the edit can't be made.
        next_nodes: the nodes that would run next, () for none.
        problem: why the edit can't be made, "" if it can.
        ambiguous: whether the node that it is made as has to be named.
        update: the values for `update_state`.
        problems: by channel, what is wrong with its value.
        lost: the channels that did not get the given value.
        kept: the route that the edit keeps, None if it follows the node's edges.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    next_nodes: tuple[str, ...]
    problem: str = ""
    ambiguous: bool = False
    update: Mapping[str, Any] = {}
    problems: Mapping[str, str] = {}
    lost: Sequence[str] = ()
    kept: ChosenRoute | None = None


class LocalTrial:
    """Context manager that tries edits of one checkpoint on copies in this process.

    Args:
        root: the graph that runs.
        app: it, or the subgraph whose channels are edited.
        config: names the checkpoint, with the namespace of its subgraph where it is inside one.
    """

    most_nodes: Final = 40
    """The largest number of nodes for which the effect of an edit is previewed."""

    def __init__(
        self, root: Pregel[Any, Any, Any, Any], app: Pregel[Any, Any, Any, Any], config: RunnableConfig
    ) -> None:
        self._root = root
        self._app = app
        self._config = config

    async def __aenter__(self) -> LocalTrial:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        pass

    async def make(
        self, values: Mapping[str, Any], as_node: str | None = None, route: ChosenRoute | None = None
    ) -> Tried:
        """Try an edit.

        Args:
            values: by channel, theirs.
            as_node: ours; None lets LangGraph infer it.
            route: what the node that ran last has chosen; the edit keeps it.
        """
        update, problems = update_of(self._app, values)
        tried = await try_update(self._root, self._config, update, as_node, inner=self._app)
        if route and as_node in (None, route.node) and not tried.problem:
            gone = tuple(goto for goto in route.goto if goto not in tried.next_nodes)
            kept = ChosenRoute(route.node, gone)
            if gone:
                also = await try_update(
                    self._root, self._config, update, route.node, inner=self._app, goto=gone
                )
                tried = tried if also.problem else also._replace(kept=kept)
        lost = [] if tried.problem else lost_by(tried, update)
        return tried._replace(update=update, problems=problems, lost=lost)


def replacing(app: Pregel[Any, Any, Any, Any], name: str, value: Any) -> Any:
    """Return the update that sets a channel to exactly a value.

    Raises:
        UsageError: there is no such channel, or it can't be set; says why.
    """
    kind = _kind(app, name)
    if value is None and isinstance(app.stream_channels_asis, str):
        raise UsageError(f"{name!r} can't be set to null: LangGraph treats that as no edit", "give a value")
    if kind in _REPLACES:
        return value
    if kind not in _REDUCES:
        raise UsageError(f"channel {name!r} is a {kind}: it can't be set to a value", "edit another one")
    try:
        from langgraph.types import Overwrite
    except ImportError:
        raise UsageError(
            f"this LangGraph can't set {name!r} past its reducer",
            "install a newer one",
        ) from None
    return Overwrite(value)


def _kind(app: Pregel[Any, Any, Any, Any], name: str) -> str:
    """Return the class of a state channel, by name."""
    known = editable(app)
    if name not in known:
        raise UsageError(
            f"the state of {app.name} has no channel {name!r}", f"channels: {', '.join(known) or 'none'}"
        )
    whole = app.stream_channels_asis
    return type(app.channels[whole if isinstance(whole, str) else name]).__name__


def editable(app: Pregel[Any, Any, Any, Any]) -> tuple[str, ...]:
    """Return the channels of the state, without LangGraph's internal and managed ones."""
    names = app.stream_channels_asis
    if isinstance(names, str):
        return (OUTPUT,)
    return tuple(name for name in names if name in app.channels and not name.startswith("__"))


def update_of(
    app: Pregel[Any, Any, Any, Any], values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """What `update_state` is given for an edit, and what is wrong with channels of it, in words.

    Args:
        values: by channel, theirs.
    """
    update: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, value in values.items():
        try:
            update[name] = replacing(app, name, value)
        except UsageError as error:
            problems[name] = str(error)
    return update, problems


def candidates(app: Pregel[Any, Any, Any, Any], first: Iterable[str] = ()) -> tuple[str, ...]:
    """The nodes that an edit can be made as: those that ran last first, START at the end.

    Args:
        first: the nodes that ran last.
    """
    nodes = [name for name, node in app.nodes.items() if name != ENTRY and node.flat_writers]
    ran = [name for name in dict.fromkeys(first) if name in nodes]
    return (*ran, *(name for name in nodes if name not in ran), *([START] if ENTRY in app.nodes else []))


def their_node(as_node: str | None) -> str | None:
    """Return LangGraph's name of a node."""
    return ENTRY if as_node == START else as_node


async def try_update(
    app: Pregel[Any, Any, Any, Any],
    config: RunnableConfig,
    update: Mapping[str, Any],
    as_node: str | None = None,
    *,
    inner: Pregel[Any, Any, Any, Any] | None = None,
    goto: Sequence[Goto] = (),
) -> Tried:
    """Do an edit on a copy of a checkpoint: operators, writers and routes get copies, nothing is stored.

    Args:
        config: names the checkpoint, with the namespace of its subgraph where it is inside one.
        as_node: ours; None lets LangGraph infer it.
        inner: that subgraph.
        goto: what comes next besides the nodes that `as_node` leads to.
    """
    trial = app.copy({"checkpointer": ScratchSaver(_saver(app))})
    before: Mapping[str, Any] = {}
    edited_graph = inner or app
    single = isinstance(edited_graph.stream_channels_asis, str)
    try:
        before = _values(await trial.aget_state(config), single)
        edited = await trial.aupdate_state(
            config, going_to(given_to(edited_graph, update), goto), as_node=their_node(as_node)
        )
        state = await trial.aget_state(edited)
    except Exception as error:  # an operator or a route of the graph's own may raise anything
        return Tried(before, {}, (), *_why(error))
    return Tried(before, _values(state, single), next_of(state))


async def as_nodes(
    trial: Any, values: Mapping[str, Any], nodes: Iterable[str], route: ChosenRoute | None = None
) -> tuple[AsNode, ...]:
    """Return where an edit leads as each of some nodes.

    Args:
        trial: a `LocalTrial`, or a server's.
        route: what the node that ran last has chosen.
    """
    previews = []
    for node in nodes:
        tried = await trial.make(values, node, route)
        problem = f"{node} does not write {', '.join(tried.lost)}" if tried.lost else tried.problem
        previews.append(AsNode(node, tried.next_nodes, problem))
    return tuple(previews)


def lost_by(tried: Tried, update: Mapping[str, Any]) -> list[str]:
    """Return the channels that did not get the given value: a node silently drops those it does not write."""
    lost = []
    for name, given in update.items():
        value = given.value if type(given).__name__ == "Overwrite" else given
        arrived = name in tried.after and _same(tried.after[name], value)
        unchanged = name in tried.before and _same(tried.after.get(name), tried.before[name])
        if not arrived and (unchanged or name not in tried.after):
            lost.append(name)
    return lost


def _same(left: Any, right: Any) -> bool:
    """Whether two LangGraph values are equal by their own comparison."""
    try:
        return left is right or bool(left == right)
    except Exception:  # arrays and the like compare element by element
        return repr(left) == repr(right)


def next_of(state: StateSnapshot) -> tuple[str, ...]:
    """Return unique names of the next tasks; () at the end."""
    saved = saved_of(state)
    tasks = in_order(saved.tasks) if saved else []
    paths = [branch_path(tasks, place) if task.pushed else "" for place, task in enumerate(tasks)]
    return tuple(path or task.name for path, task in zip(paths, tasks, strict=True))


def _values(state: StateSnapshot, single: bool) -> Mapping[str, Any]:
    saved = saved_of(state, single=single)
    return saved.values if saved else {}


def _saver(app: Pregel[Any, Any, Any, Any]) -> Any:
    saver = app.checkpointer
    if saver is None or isinstance(saver, bool):
        raise UsageError("the graph has no checkpointer", "a thread without one can't be edited")
    return saver


def _why(error: Exception) -> tuple[str, bool]:
    """Return why an edit can't be made, and whether it only lacks the node that it is made as."""
    ambiguous = isinstance(error, InvalidUpdateError) and "mbiguous" in str(error)
    if ambiguous:
        return "several nodes ran last: say which one it is made as", True
    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return f"{words}{_where(error)}", False


def _where(error: Exception) -> str:
    """Describe the place in the graph's own code that raised; "" if LangGraph itself did."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        known = _STANDARD in path.parents or _LIBRARIES & set(path.parts) or path == Path(__file__)
        if not known:
            return f" (in {frame.name}, {path.name}:{frame.lineno})"
    return ""
