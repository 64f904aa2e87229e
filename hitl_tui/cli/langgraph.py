"""Stores for threads of LangGraph: the mirror of a graph's checkpointer, or of a file of checkpoints."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from weakref import WeakKeyDictionary, finalize, ref

from hitl_tui.cli.invocation import named_graph, streaming
from hitl_tui.cli.output import say
from hitl_tui.errors import HitlError, NoSuchStore, UsageError
from hitl_tui.given_files import expanded, real_path
from hitl_tui.shell import command_line

if TYPE_CHECKING:
    from hitl_tui.config import Settings
    from hitl_tui.drivers.langgraph.hub import LangGraphHub
    from hitl_tui.drivers.langgraph.recorded import Checkpoints
    from hitl_tui.drivers.langgraph.recorded_hub import RecordedThreads
    from hitl_tui.drivers.local import Observe
    from hitl_tui.engine.audit.findings import Mismatch, VerifyReport
    from hitl_tui.engine.graph.description import GraphInfo
    from hitl_tui.engine.log.signing import Signer
    from hitl_tui.engine.log.threads import Space, ThreadSize, ThreadSummary, Waiting
    from hitl_tui.loading.langgraph import LangGraphSource
    from hitl_tui.stores import Checkpointer
    from hitl_tui.stores.deletion import Watch

T = TypeVar("T")
GRAPH_SCHEME: Final = "langgraph:"
"""Prefix that makes a GRAPH a store of its threads: `langgraph:app.py`."""
CHECKPOINTS_SCHEME: Final = "langgraph+sqlite:///"
"""Prefix of a file of checkpoints to open without its graph."""
SERVER_SCHEMES: Final = ("langgraph+http://", "langgraph+https://")
"""Prefix of a LangGraph server's URL, which may be followed by "#" and an assistant."""
_FOLDER: Final = "langgraph"
"""Directory of the mirrors, in the user's data directory."""
_MOST_WAITING: Final = 1_000
_PROGRESS_EVERY: Final = 200
"""Number of threads that are mirrored without a message."""


class OpenedGraph:
    """Graph of LangGraph whose mirror is open.

    Attributes:
        source: the graph.
        info: its structure, for parsing input.
        url: names its threads as a store; "memory:" if they end with this process.
        defaults: `context` and `configurable` that new threads begin with.
    """

    def __init__(
        self, source: LangGraphSource, info: GraphInfo, url: str, defaults: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self.source = source
        self.info = info
        self.url = url
        self.defaults = defaults


_OPENED: WeakKeyDictionary[Checkpointer, OpenedGraph] = WeakKeyDictionary()
_FILES: WeakKeyDictionary[Checkpointer, Checkpoints] = WeakKeyDictionary()


def opened_graph(store: Checkpointer) -> OpenedGraph | None:
    """Return the graph whose mirror a store is, None for any other store."""
    return _OPENED.get(store)


def thread_named_on_server(store: Checkpointer, name: str) -> str:
    """Return the UUID for a name on a LangGraph server; in any other store the name itself."""
    opened = _OPENED.get(store)
    if opened is None or "server" not in opened.source.source or opened.source.app.runs_through:
        return name
    from hitl_tui.drivers.langgraph.server_names import server_thread

    return name if store.info(name) is not None else server_thread(name)


def keeps_langgraph(store: Checkpointer) -> bool:
    """Whether a store is a mirror of threads of LangGraph."""
    return store in _OPENED or store in _FILES


def server_store(server: str, assistant: str | None) -> str:
    """Return the URL that names the threads of a server's graph as a store."""
    return f"langgraph+{server.rstrip('/')}{'#' + assistant if assistant else ''}"


def names_langgraph(url: str) -> bool:
    """Whether the URL of a store names threads of LangGraph."""
    return url.startswith((GRAPH_SCHEME, CHECKPOINTS_SCHEME, *SERVER_SCHEMES))


def run_command(url: str) -> str:
    """Return the command that starts a thread in a store of LangGraph threads; "" for any other store."""
    if url.startswith(SERVER_SCHEMES):
        server, _, assistant = url.removeprefix("langgraph+").partition("#")
        named = f" --assistant {shlex.quote(assistant)}" if assistant else ""
        return f"hitl-tui run --server {shlex.quote(server)}{named}"
    if url.startswith(GRAPH_SCHEME):
        return command_line("run", url.removeprefix(GRAPH_SCHEME))
    if not url.startswith(CHECKPOINTS_SCHEME):
        return ""
    file, graph = _file_and_graph(url)
    store = shlex.quote(CHECKPOINTS_SCHEME + file)
    return f"hitl-tui run {shlex.quote(graph) if graph else 'GRAPH'} --store {store}"


Part = Literal["all", "waiting", "none"]
"""Which threads of LangGraph are mirrored before a command reads them."""


def open_langgraph_store(settings: Settings, part: Part = "all", thread: str | None = None) -> Checkpointer:
    """Open the mirror of what `langgraph:GRAPH`, `langgraph+sqlite:///FILE` or `langgraph+URL` names.

    Args:
        part: which threads to bring up to date.
        thread: the only thread to bring up to date, if there is one of that name.

    Raises:
        UsageError: it names no graph of LangGraph.
        NoSuchStore, StoreUnusable: there is no such file, or it can't be used.
    """
    from hitl_tui.drivers.langgraph.discovery import sync_named, sync_threads
    from hitl_tui.drivers.langgraph.listing import listing_of
    from hitl_tui.drivers.langgraph.mirror import Mirror
    from hitl_tui.drivers.langgraph.pregel import App

    url = settings.store
    file, spec = "", url.removeprefix(GRAPH_SCHEME)
    if url.startswith(CHECKPOINTS_SCHEME):
        file, graph = _file_and_graph(url)
        spec = named_graph() or graph
        if not spec:
            return _mirror_of_file(Path(file), settings, part, thread)
        if not os.path.isfile(expanded(Path(file))):
            raise NoSuchStore(f"there is no file {file}", "name a file that a SqliteSaver wrote")
    served = url.startswith(SERVER_SCHEMES)
    store = open_server_store(settings) if served else open_graph_store(spec, settings)
    if store is None:
        raise UsageError(
            f"{spec} is not a LangGraph graph", "its threads are in a store of ours: --store URL"
        )
    opened = _OPENED[store]
    mirror = Mirror(App(opened.source.app), store, opened.source.name, opened.source.source)

    async def sync() -> None:
        try:
            if thread is not None and await sync_named(mirror, mirror.thread_of_name(thread)):
                return
            if part == "all":
                await sync_threads(mirror, _print_progress)
            elif part == "waiting":
                await listing_of(mirror).mirror_waiting(on_progress=_print_progress)
        finally:
            mirror.app.close()

    synced = _synced(store, sync)
    _print_unreadable(opened)
    return synced


def listed(
    store: Checkpointer, query: str, limit: int, within: str | None
) -> tuple[ThreadSummary, ...] | None:
    """Return the threads of LangGraph whose mirror a store is, as `Store.threads`; None for another store."""
    if (recorded := recorded_threads(store)) is not None:
        return _awaited(lambda: recorded.listing.page(query, limit, None, within))
    hub = langgraph_hub(store, None, None)
    if hub is None:
        return None
    try:
        threads = _awaited(lambda: hub.threads(query, limit, None, within))
    finally:
        hub.mirror.app.close()
    _print_unreadable(_OPENED[store])
    return threads


def still_waiting(store: Checkpointer, rows: Sequence[Waiting]) -> tuple[Waiting, ...]:
    """Return the waiting requests, without those of LangGraph threads that their checkpointer has deleted."""
    if (recorded := recorded_threads(store)) is not None:
        return _awaited(lambda: recorded.listing.still_there(rows, ()))
    hub = langgraph_hub(store, None, None)
    if hub is None:
        return tuple(rows)
    from hitl_tui.drivers.langgraph.listing import listing_of

    try:
        return _awaited(lambda: listing_of(hub.mirror).still_there(rows, ()))
    finally:
        hub.mirror.app.close()


def compared_with_checkpoints(store: Checkpointer, thread: str, verified: VerifyReport) -> VerifyReport:
    """Add to a verification the differences between a thread of LangGraph and its checkpoints.

    If they can't be compared, a note says so. A thread of any other store is returned unchanged.
    """
    from msgspec.structs import replace

    async def compare() -> tuple[Mismatch, ...]:
        if (recorded := recorded_threads(store)) is not None:
            return await recorded.compare(thread)
        hub = langgraph_hub(store, None, None)
        assert hub is not None
        try:
            return await hub.compare(thread)
        finally:
            hub.mirror.app.close()

    if not keeps_langgraph(store):
        return verified
    try:
        found = _awaited(compare)
    except Exception as error:  # somebody else's checkpointer may raise anything
        why = f"not compared with LangGraph's checkpoints: {error}"
        return replace(verified, notes=(*verified.notes, why))
    note = "compared with LangGraph's checkpoints"
    return replace(verified, mismatches=(*verified.mismatches, *found), notes=(*verified.notes, note))


def measured(
    store: Checkpointer, thread: str | None, watch: Watch | None
) -> tuple[list[ThreadSize], Space] | None:
    """Return the sizes of threads of LangGraph, as `Hub.sizes`; None if a store is no mirror of such.

    Args:
        thread: the only one to measure.
    """
    if not keeps_langgraph(store):
        return None
    from hitl_tui.drivers.langgraph.discovery import thread_named
    from hitl_tui.drivers.langgraph.sizes import sizes_of, space_of

    saver = _FILES[store].saver if store in _FILES else _OPENED[store].source.app.checkpointer
    names = None if thread is None else [thread_named(store, thread)]

    async def measure() -> tuple[list[ThreadSize], Space]:
        return await sizes_of(saver, store, names, watch), await space_of(saver)

    return _awaited(measure)


def _file_and_graph(url: str) -> tuple[str, str]:
    """Return the file of checkpoints of a URL, and the graph after its "#", "" for none."""
    whole = url.removeprefix(CHECKPOINTS_SCHEME)
    file, _, graph = whole.rpartition("#")
    return (file, graph) if file and not os.path.exists(expanded(Path(whole))) else (whole, "")


def open_graph_store(
    spec: str,
    settings: Settings,
    options: Mapping[str, Any] | None = None,
    *,
    keep_memory: bool = False,
) -> Checkpointer | None:
    """Open the mirror for the threads of a graph of LangGraph; None if `spec` names a graph of ours.

    Args:
        options: refused for a graph of LangGraph.
        keep_memory: whether the graph keeps an `InMemorySaver` that it was compiled with.

    Raises:
        UsageError: there is nothing of that name, or another store was named for a graph of LangGraph.
    """
    from hitl_tui.config import data_folder
    from hitl_tui.loading.langgraph import open_sqlite
    from hitl_tui.loading.sources import open_langgraph_graph

    named = settings.store if settings.origins["store"] == "flag" else ""
    file = _file_and_graph(named)[0] if named.startswith(CHECKPOINTS_SCHEME) else ""
    saver = open_sqlite(expanded(Path(file))) if file else None
    source = open_langgraph_graph(spec, data_folder(), options, checkpointer=saver, keep_memory=keep_memory)
    if source is None:
        return None
    if named and not names_langgraph(named):
        source.close()
        raise UsageError(
            f"the threads of {source.name} are kept by its checkpointer, not in {named}",
            f"leave --store out, or name a file of checkpoints: --store {CHECKPOINTS_SCHEME}FILE",
        )
    from hitl_tui.drivers.langgraph.graph import describe

    if keep_memory and source.mirror is not None:
        source.close()
        raise UsageError(f"{source.name} does not keep its threads in memory", "leave --keep-memory out")
    _renew_mirror(source)
    store = _open_mirror(source.mirror, settings)
    _close_with(store, source.close)
    if saver is not None:
        _close_with(store, saver.conn.close)
    if source.new_file is not None:
        say(f"hitl-tui: {_kept_in_file(source.name, source.new_file)}", err=True)
    graph = source.source["graph"]
    url = f"{GRAPH_SCHEME}{graph}" if source.mirror else "memory:"
    if file:
        url = f"{CHECKPOINTS_SCHEME}{real_path(expanded(Path(file)))}#{graph}"
    _OPENED[store] = OpenedGraph(source, describe(source.app, source.name), url, settings.langgraph)
    return store


def _renew_mirror(source: LangGraphSource) -> None:
    """Start a new mirror if the file of checkpoints was replaced; the old mirror is kept."""
    from hitl_tui.drivers.langgraph.replaced_files import rename_mirror, was_file_replaced
    from hitl_tui.loading.langgraph import checkpointer_identity
    from hitl_tui.stores.sqlite.store import read_only

    kind, _, file = (checkpointer_identity(source.checkpointer) or "").partition(":")
    mirror = source.mirror
    if kind != "sqlite" or mirror is None or not mirror.exists():
        return
    try:
        known = read_only(str(mirror))
    except HitlError:
        return  # opening it reports this
    try:
        was_replaced = was_file_replaced(known, Path(file))
    finally:
        known.close()
    if was_replaced and (renamed := rename_mirror(mirror)) is not None:
        say(
            f"hitl-tui: {file} holds none of the threads that were seen in it; "
            f"what was decided in those is in {renamed}",
            err=True,
        )


def _kept_in_file(name: str, file: Path) -> str:
    return (
        f"{name} keeps its threads in memory; here they are kept in {file}, "
        "so that you can answer later (run it with --keep-memory to keep them in memory)"
    )


def open_server_store(settings: Settings) -> Checkpointer:
    """Open the mirror for the threads of a server's graph, as `--store` names it, without updating it.

    Raises:
        UsageError: the server has no such assistant, or langgraph isn't installed.
        HitlError: it can't be reached, or refuses.
    """
    from hitl_tui.config import data_folder
    from hitl_tui.loading.langgraph import EXTRA_HINT, LangGraphSource, mirror_file

    server, _, assistant = settings.store.removeprefix("langgraph+").partition("#")
    if "@" in server.partition("://")[2].partition("/")[0]:
        raise UsageError("a server's URL holds no password here", "give headers in HITL_TUI_SERVER_HEADERS")
    try:
        from hitl_tui.drivers.langgraph.graph import describe
        from hitl_tui.drivers.langgraph.server import ServerGraph
        from hitl_tui.drivers.langgraph.server_names import SERVER
    except ImportError as error:
        raise UsageError(f"a server of LangGraph needs {error.name}", EXTRA_HINT) from None
    graph = ServerGraph(server, assistant)
    source = LangGraphSource(
        app=graph,
        checkpointer=graph.checkpointer,
        name=graph.graph_id,
        source={SERVER: server, "assistant": graph.graph_id},
        mirror=mirror_file(data_folder() / _FOLDER, f"{server}?{graph.graph_id}"),
        close=graph.close,
    )
    store = _open_mirror(source.mirror, settings)
    _close_with(store, source.close)
    url = server_store(server, graph.graph_id)
    _OPENED[store] = OpenedGraph(source, describe(source.app, source.name), url, settings.langgraph)
    return store


def waiting_in_mirrors() -> dict[str, int]:
    """Return how many threads of LangGraph wait for a person, by store, as of the last update.

    It imports nothing of LangGraph, and asks no checkpointer.
    """
    from hitl_tui.config import data_folder

    waiting: dict[str, int] = {}
    for file in sorted((data_folder() / _FOLDER).glob("*.threads.db")):
        from hitl_tui.stores.sqlite.store import read_only

        try:
            mirror = read_only(str(file))
        except HitlError:
            continue  # of another version, or damaged: opening it reports this
        try:
            rows = [row for row in mirror.waiting(_MOST_WAITING) if row.pending]
        finally:
            mirror.close()
        source = rows[0].thread.info.source if rows else {}
        if "graph" in source:
            waiting[f"{GRAPH_SCHEME}{source['graph']}"] = len(rows)
        elif "server" in source:
            waiting[server_store(str(source["server"]), str(source["assistant"]))] = len(rows)
    return waiting


def recorded_threads(store: Checkpointer) -> RecordedThreads | None:
    """Return the threads of the file of checkpoints whose mirror a store is, None for any other store."""
    if (checkpoints := _FILES.get(store)) is None:
        return None
    from hitl_tui.drivers.langgraph.recorded_hub import RecordedThreads

    return RecordedThreads(checkpoints, store)


def _mirror_of_file(path: Path, settings: Settings, part: Part, thread: str | None) -> Checkpointer:
    """Open the mirror of a file of checkpoints, without its graph."""
    from hitl_tui.config import data_folder
    from hitl_tui.drivers.langgraph.recorded import Checkpoints
    from hitl_tui.drivers.langgraph.recorded_hub import RecordedThreads
    from hitl_tui.drivers.langgraph.replaced_files import delete_other_mirrors
    from hitl_tui.loading.langgraph import mirror_of_file

    checkpoints = Checkpoints(path)
    try:
        place = data_folder() / _FOLDER
        file, former = mirror_of_file(place, Path(checkpoints.path), checkpoints.oldest)
        store = _open_mirror(file, settings)
        delete_other_mirrors(file, former)
    except BaseException:
        checkpoints.close()
        raise
    _close_with(store, checkpoints.close)
    _FILES[store] = checkpoints
    recorded = RecordedThreads(checkpoints, store)

    async def sync() -> None:
        if thread is not None and await recorded.sync(thread):
            return
        if part == "all":
            await recorded.sync_all(_print_progress)
        elif part == "waiting":
            await recorded.listing.mirror_waiting(on_progress=_print_progress)

    return _synced(store, sync)


def _close_with(store: Checkpointer, end: Callable[[], None]) -> None:
    """Close a store's resources with it, at the latest when nobody refers to the store any more."""
    close_rest, reference = finalize(store, end), ref(store)
    before = vars(store).get("close")

    def close() -> None:
        if before is not None:
            before()
        elif (still := reference()) is not None:
            type(still).close(still)
        close_rest()

    setattr(store, "close", close)  # noqa: B010


def _open_mirror(file: Path | None, settings: Settings) -> Checkpointer:
    from hitl_tui.stores import open_store
    from hitl_tui.stores.files.directory import make_directories

    if file is None:
        return open_store("memory:", settings.durability)
    make_directories(file.parent)
    return open_store(str(file), settings.durability)


def _print_progress(done: int, total: int) -> None:
    if total > _PROGRESS_EVERY and done % _PROGRESS_EVERY == 0:
        say(f"reading threads of LangGraph: {done:,} of {total:,}", err=True)


def _print_unreadable(opened: OpenedGraph) -> None:
    """Print the threads whose state a server could not report."""
    for thread, why in getattr(opened.source.checkpointer, "unreadable", {}).items():
        say(f"hitl-tui: the server can't tell the state of thread {thread}: {why}", err=True)


def _synced(store: Checkpointer, sync: Callable[[], Coroutine[Any, Any, None]]) -> Checkpointer:
    """Return the store, once its threads are up to date."""
    try:
        _awaited(sync)
    except BaseException:
        store.close()
        raise
    return store


def _awaited(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Wait for a coroutine, also if the caller may be on an event loop."""
    import asyncio

    outcome: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work()))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="langgraph-threads", daemon=True)
    thread.start()
    thread.join()
    if raised:
        raise raised[0] from None
    return outcome[0]


def langgraph_hub(store: Checkpointer, signer: Signer | None, observe: Observe | None) -> LangGraphHub | None:
    """Return the hub of a LangGraph graph whose mirror is open, None for any other store; see `LocalHub`."""
    opened = _OPENED.get(store)
    if opened is None:
        return None
    from hitl_tui.drivers.langgraph.hub import LangGraphHub

    source = opened.source
    return LangGraphHub(
        source.app,
        store,
        name=source.name,
        source=source.source,
        signer=signer,
        observe=observe,
        streams=streaming(),
        ends_with_process=source.mirror is None,
        defaults=opened.defaults,
    )


def langgraph_picture(spec: str, options: Mapping[str, Any]) -> GraphInfo | None:
    """Return a graph of LangGraph as data; None if `spec` names a graph of ours.

    Args:
        options: refused for a graph of LangGraph.
    """
    from hitl_tui.config import data_folder
    from hitl_tui.loading.sources import open_langgraph_graph

    source = open_langgraph_graph(spec, data_folder(), options)
    if source is None:
        return None
    from hitl_tui.drivers.langgraph.graph import describe

    try:
        return describe(source.app, source.name)
    finally:
        source.close()
