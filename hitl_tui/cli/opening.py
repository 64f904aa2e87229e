"""Opens what a command works on: its thread, the hub over it and the first input."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from hitl_tui.cli.invocation import named_graph, same_store, trusting
from hitl_tui.errors import (
    LogCorrupt,
    ReducerError,
    SchemaMismatch,
    ServerBusy,
    UnknownThread,
    UsageError,
    ValueRejected,
)
from hitl_tui.given_files import real_path

if TYPE_CHECKING:
    from hitl_tui.config import Settings
    from hitl_tui.drivers.hub import LocalHub
    from hitl_tui.drivers.local import Observe, Unbuilt
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.engine.commands import Command
    from hitl_tui.engine.commands.command import DoubleTexting
    from hitl_tui.engine.log.signing import Signer
    from hitl_tui.engine.log.threads import ThreadInfo
    from hitl_tui.engine.runner import GraphRunner
    from hitl_tui.engine.thread.measures import Reason
    from hitl_tui.loading.trust import NotTrusted, Question, Trust
    from hitl_tui.stores import Checkpointer

R = TypeVar("R")


def find_thread(store: Checkpointer, thread: str | None) -> str:
    """Return the named thread, or without a name the one to continue.

    That is the one that waits for a person and changed last, or else the last unfinished one.

    Raises:
        UnknownThread: there is no such thread.
        UsageError: no thread is unfinished.
    """
    if thread is not None:
        from hitl_tui.cli.langgraph import thread_named_on_server

        with suppress(LogCorrupt):
            thread = thread_named_on_server(store, thread)
        try:
            exists = store.info(thread) is not None
        except LogCorrupt:
            exists = True  # the command that reads it reports the damage
        if not exists:
            from hitl_tui.suggest import did_you_mean

            known = [summary.info.thread_id for summary in store.threads(limit=1000)]
            raise UnknownThread(f"there is no thread {thread!r}", did_you_mean(thread, known))
        return thread
    from hitl_tui.engine.log.store import all_threads

    unfinished = None
    for summary in all_threads(store):
        if summary.status == "waiting":
            return summary.info.thread_id
        if unfinished is None and summary.status not in ("completed", "cancelled"):
            unfinished = summary.info.thread_id
    if unfinished is None:
        raise UsageError(
            "no thread is unfinished",
            "`hitl-tui threads` lists all; `hitl-tui demo` or `hitl-tui run GRAPH` starts one",
        )
    return unfinished


def thread_to_open(store: Checkpointer, thread: str | None) -> str:
    """Return the thread as `find_thread`; the hub finds a named thread of LangGraph, and mirrors it."""
    from hitl_tui.cli.langgraph import keeps_langgraph

    return thread if thread is not None and keeps_langgraph(store) else find_thread(store, thread)


class Target:
    """Thread that a command runs or shows.

    Args:
        thread_id: the thread; it need not exist if there is a runner.
        runner: its graph; None builds the one that the thread's record names.
        inputs: committed as a step before anything else; None commits nothing.
        context: context of the invocation that begins.
        begins: for a graph of LangGraph: whether the thread need not exist.
    """

    def __init__(
        self,
        thread_id: str,
        runner: GraphRunner | None = None,
        inputs: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        begins: bool = False,
    ) -> None:
        self.thread_id = thread_id
        self.runner = runner
        self.inputs = inputs
        self.context = context
        self.begins = begins


def owner_of(store: Checkpointer, thread: str) -> str:
    """Return the thread in whose run a thread runs.

    Raises:
        UsageError: no other thread runs it.
    """
    info = store.info(thread)
    if info is None or info.owner is None:
        raise UsageError(f"thread {thread!r} is not a subgraph thread", "step it without --out")
    return info.owner.thread_id


OpenStore = Callable[["Settings"], "Checkpointer"]
Choose = Callable[["Checkpointer"], Target]


def trust_in(store: Checkpointer) -> Trust:
    """Return what this user agreed to run from a store, and whether the command line agrees to all of it."""
    from hitl_tui.config import trust_file
    from hitl_tui.loading.trust import Trust

    return Trust(trust_file(), str(getattr(store, "path", "")), given=trusting())


def open_named(
    spec: str,
    store: Checkpointer,
    options: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    directory: Path | None = None,
) -> GraphRunner:
    """Open the graph that the command line names, which thereby trusts it; arguments as for `open_graph`."""
    from hitl_tui.loading.sources import open_graph

    runner = open_graph(spec, store, options, defaults, directory=directory)
    trust_in(store).record(runner.source, "named")
    return runner


def trust_in_script(script: Path) -> Trust:
    """Return what this user agreed to run from a presentation's script; bundled scripts need no yes.

    A person who names a script may not have read the code that the script names.
    """
    from hitl_tui.config import trust_file
    from hitl_tui.loading.graphs import scripts_folder
    from hitl_tui.loading.trust import Trust

    ours = real_path(script).is_relative_to(real_path(scripts_folder()))
    return Trust(trust_file(), "" if ours else str(script), given=trusting(), kind="script")


def builder(store: Checkpointer, options: str | None = None) -> Callable[[ThreadInfo], GraphRunner]:
    """Return a function that builds threads' graphs: from their records, or the command line's one.

    `options` are those by which a suggested command finds the store, None for those of this command.

    Call it while click's context exists: the graph may be built later, on another thread. It raises
    `NotTrusted` for a record's graph that the user has not agreed to.
    """
    options, graph, trust = same_store() if options is None else options, named_graph(), trust_in(store)

    def build(info: ThreadInfo) -> GraphRunner:
        from hitl_tui.loading.sources import reopen_graph

        return reopen_graph(info.thread_id, info.source, store, options=options, graph=graph, trust=trust)

    return build


def build_now(store: Checkpointer, info: ThreadInfo) -> GraphRunner:
    """Build a thread's graph for a command that opens no driver; ask on a terminal if it is not trusted."""
    from hitl_tui.cli.langgraph import opened_graph
    from hitl_tui.loading.trust import NotTrusted

    if (theirs := opened_graph(store)) is not None:
        raise UsageError(
            f"the operators and nodes of {theirs.source.name} are LangGraph's, which are not run again here",
            "what they gave is in the log: `hitl-tui verify` without --strict checks it",
        )
    build = builder(store)
    try:
        return build(info)
    except NotTrusted as error:
        agree(error)
        return build(info)


def agree(error: NotTrusted) -> None:
    """Ask on the terminal whether a graph may run, and keep the yes.

    Raises:
        NotTrusted: nobody can be asked, or the answer is no.
    """
    if not (may_ask() and agreed(error.question)):
        raise error
    error.question.agree()


def may_ask() -> bool:
    """Whether a person at the terminal can be asked, and has not asked for quiet."""
    context = click.get_current_context(silent=True)
    given = context.params if context else {}
    quiet = given.get("headless") or given.get("as_json")
    return not quiet and sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: Question) -> bool:
    """Ask on the terminal; ctrl+c is a no."""
    from hitl_tui.cli.output import say
    from hitl_tui.drivers.node_streams import interruptible, own_input
    from hitl_tui.view.format import capital

    say(f"{capital(question.why)}. It would run:", err=True)
    say(*(f"  {line}" for line in question.lines), err=True)
    with interruptible():
        try:
            say("Run it? Type yes to confirm:", err=True)
            return own_input("").strip().lower() == "yes"
        except (EOFError, KeyboardInterrupt, UnicodeDecodeError):
            return False


def reasons_in(settings: Settings) -> tuple[Reason, ...]:
    """Return the reasons to pick from; () if no file is named.

    Raises:
        UsageError: the file can't be read.
    """
    if settings.reasons is None:
        return ()
    from hitl_tui.loading.reasons import read_reasons

    return read_reasons(settings.reasons)


def hub_over(
    store: Checkpointer,
    settings: Settings,
    unbuilt: Unbuilt | None = None,
    *,
    asks: bool = True,
    guest: str | None = None,
    read_only: str = "",
    options: str | None = None,
) -> LocalHub:
    """Return the hub over an open store, which it closes; graphs are built as `builder` does.

    Args:
        unbuilt, asks, guest, read_only: as for `LocalHub`.
        options: as for `builder`.
    """
    from hitl_tui.cli.langgraph import langgraph_hub, recorded_threads
    from hitl_tui.drivers.hub import LocalHub
    from hitl_tui.loading.known import KnownGraphs

    signer, observe = signer_of(settings), observer_of(settings)
    if not read_only and (hub := langgraph_hub(store, signer, observe)) is not None:
        return hub
    known = KnownGraphs(store, trust_in(store))
    make: Callable[..., LocalHub] = LocalHub
    if (recorded := recorded_threads(store)) is not None:
        from hitl_tui.drivers.langgraph.recorded_hub import RecordedHub

        make = partial(RecordedHub, recorded)
    return make(
        store,
        builder(store, options),
        unbuilt,
        signer,
        known,
        observe=observe,
        asks=asks,
        guest=guest,
        read_only=read_only,
    )


def observer_of(settings: Settings) -> Observe | None:
    """Return the exporter of the threads' events as spans, if the settings name a collector."""
    if settings.telemetry is None:
        return None
    import atexit

    from hitl_tui.team.telemetry import Collector

    collector = Collector(settings.telemetry)

    def send_the_rest() -> None:
        from hitl_tui.cli.output import say

        if lost := collector.close():
            say(f"{lost} spans could not be sent to {settings.telemetry}.", err=True)

    atexit.register(send_the_rest)
    return collector.observe


def signer_of(settings: Settings) -> Signer | None:
    """Return the signer of decisions, if the settings name a key."""
    if settings.signing_key is None:
        return None
    from hitl_tui.signing import SshSigner

    return SshSigner(settings.signing_key)


async def open_target(
    hub: LocalHub,
    target: Target,
    settings: Settings,
    breaks: Sequence[str],
    *,
    on_screen: bool = False,
    unattended: bool = False,
) -> Driver:
    """Open the thread and commit its input, if it has one.

    Args:
        on_screen: whether a long thread of LangGraph is shown before all of it is mirrored.
        unattended: as for `start`.
        breaks: breakpoints to begin with, as `--break` takes them; what is wrong with them is
            reported before anything is committed.

    Raises:
        UsageError: a breakpoint that can't be, or an input that does not fit.
        HitlError: the thread can't be opened.
    """
    driver: Driver
    if target.begins:
        from hitl_tui.drivers.langgraph.hub import LangGraphHub

        assert isinstance(hub, LangGraphHub)
        at_once = on_screen and target.inputs is None
        name, context = target.thread_id, target.context
        driver = await hub.begin(name, settings.reviewer, context=context, at_once=at_once)
    elif target.runner is None:
        driver = await hub.open(target.thread_id, at_once=on_screen)
    else:
        driver = await hub.new(
            target.thread_id,
            target.runner,
            source=target.runner.source,
            actor=settings.reviewer,
            context=target.context,
        )
    if breaks:
        from hitl_tui.drivers.breakpoints import read_breakpoints

        read_breakpoints(breaks, (await driver.snapshot()).graph)
    if target.inputs is not None:
        await start(driver, target.inputs, settings, target.context, unattended=unattended)
    elif target.context is not None and (await driver.snapshot()).progress.head >= 0:
        raise UsageError(
            f"thread {target.thread_id!r} continues with the context that it started with",
            "leave --context out, or give an --input that begins another invocation",
        )
    return driver


async def execute_in_turn(driver: Driver, command: Command[R], settings: Settings) -> R:
    """Carry out a command; if a server already runs the thread, do as the setting `on_busy` says.

    Raises:
        ServerBusy: the setting says to leave that run alone.
    """
    from hitl_tui.engine.commands import DoubleText

    if settings.on_busy == "reject":
        return await driver.execute(command)
    make_room = DoubleText(cast("DoubleTexting", settings.on_busy), settings.reviewer)
    if settings.on_busy == "enqueue":
        await driver.execute(make_room)  # first: wait also for a run that ends just now
    try:
        return await driver.execute(command)
    except ServerBusy:
        await driver.execute(make_room)
    return await driver.execute(command)


async def stops_at_start(driver: Driver) -> bool:
    """Whether a thread that has just taken its input waits for a person before its first node.

    A graph of LangGraph may be compiled to stop there. Running it would pass a stop that nobody has seen.
    """
    progress = (await driver.snapshot()).progress
    return (progress.status, progress.reason) == ("waiting", "interrupt")


async def start(
    driver: Driver,
    inputs: Mapping[str, Any],
    settings: Settings,
    context: Mapping[str, Any] | None = None,
    *,
    unattended: bool = False,
) -> None:
    """Commit the input; one that does not fit is wrong usage, and nothing is changed.

    Args:
        unattended: whether a run follows at once that nobody watches.
    """
    from hitl_tui.engine.commands import Start

    command = Start(inputs, settings.reviewer, context=context, unattended=unattended)
    try:
        await execute_in_turn(driver, command, settings)
    except (SchemaMismatch, ValueRejected, ReducerError) as error:
        raise UsageError(f"the input does not fit: {error.message}", error.hint) from None
