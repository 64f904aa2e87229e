"""Opening what a command is about: its store, the hub over it, the thread and its first input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hitl_tui.cli.options import named_graph, same_store
from hitl_tui.errors import ReducerError, SchemaMismatch, UsageError, ValueRejected

if TYPE_CHECKING:
    from hitl_tui.config import Settings
    from hitl_tui.drivers.hub import LocalHub
    from hitl_tui.drivers.local import Unbuilt
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.engine.log.threads import ThreadInfo
    from hitl_tui.engine.runner import GraphRunner
    from hitl_tui.stores import Checkpointer


@dataclass(frozen=True)
class Target:
    """The thread that a command runs or shows.

    Args:
        thread_id: the thread; it need not exist where there is a runner.
        runner: its graph; None builds the one that the thread's record names.
        inputs: committed as a step before anything else; None commits nothing.
    """

    thread_id: str
    runner: GraphRunner | None = None
    inputs: Mapping[str, Any] | None = None


OpenStore = Callable[["Settings"], "Checkpointer"]
Choose = Callable[["Checkpointer"], Target]


def builder(store: Checkpointer) -> Callable[[ThreadInfo], GraphRunner]:
    """What builds threads' graphs: from their records, or the one that the command line names.

    To be called where click's context is: what builds a graph later may run on another thread.
    """
    from hitl_tui.loading.sources import reopen_graph

    options, graph = same_store(), named_graph()
    return lambda info: reopen_graph(info.thread_id, info.source, store, options=options, graph=graph)


def hub_over(store: Checkpointer, unbuilt: Unbuilt | None = None) -> LocalHub:
    """The hub over an open store, which it closes; graphs are built as `builder` does.

    Args:
        unbuilt: as for `LocalHub`.
    """
    from hitl_tui.drivers.hub import LocalHub

    return LocalHub(store, builder(store), unbuilt)


async def open_target(hub: LocalHub, target: Target, settings: Settings, breaks: Sequence[str]) -> Driver:
    """Open the thread and commit its input, if it has one.

    Args:
        breaks: breakpoints to begin with, as NODE or NODE:CONDITION; what is wrong with them is told
            before anything is committed.

    Raises:
        UsageError: a breakpoint that can't be, or an input that does not fit.
        HitlError: the thread can't be opened.
    """
    if target.runner is None:
        driver = await hub.open(target.thread_id)
    else:
        source = target.runner.source
        driver = await hub.new(target.thread_id, target.runner, source=source, actor=settings.reviewer)
    if breaks:
        from hitl_tui.drivers.breakpoints import read_breakpoints

        read_breakpoints(breaks, (await driver.snapshot()).graph)
    if target.inputs is not None:
        await start(driver, target.inputs, settings)
    return driver


async def start(driver: Driver, inputs: Mapping[str, Any], settings: Settings) -> None:
    """Commit the input; one that does not fit is wrong usage, and nothing was done."""
    try:
        await driver.start(inputs, actor=settings.reviewer)
    except (SchemaMismatch, ValueRejected, ReducerError) as error:
        raise UsageError(f"the input does not fit: {error.message}", error.hint) from None
