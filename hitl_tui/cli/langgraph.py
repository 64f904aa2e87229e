"""Stores for threads of LangGraph: the mirror of a graph's checkpointer, or of a file of checkpoints."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from weakref import WeakKeyDictionary, finalize

from hitl_tui.errors import HitlError, UsageError

if TYPE_CHECKING:
    from hitl_tui.config import Settings
    from hitl_tui.drivers.langgraph.hub import LangGraphHub
    from hitl_tui.drivers.langgraph.recorded import Checkpoints
    from hitl_tui.drivers.langgraph.recorded_hub import RecordedThreads
    from hitl_tui.drivers.local import Observe
    from hitl_tui.engine.graph.description import GraphInfo
    from hitl_tui.engine.log.signing import Signer
    from hitl_tui.engine.log.threads import Space, ThreadSize, ThreadSummary
    from hitl_tui.loading.langgraph import LangGraphSource
    from hitl_tui.stores import Checkpointer
    from hitl_tui.stores.deletion import Watch

T = TypeVar("T")
GRAPH_SCHEME: Final = "langgraph:"
"""What stands before a GRAPH whose threads are meant, as a store: `langgraph:app.py`."""
CHECKPOINTS_SCHEME: Final = "langgraph+sqlite:///"
"""What stands before a file of checkpoints that is looked at without its graph."""
SERVER_SCHEMES: Final = ("langgraph+http://", "langgraph+https://")
"""What the URL of a server begins with, behind which "#" and an assistant may stand."""
_FOLDER: Final = "langgraph"
"""Of the user's data directory, where the mirrors are."""
_MOST_WAITING: Final = 1_000
_TELL: Final = 200
"""Threads that are mirrored without a word."""


class OpenedGraph:
    """A graph of LangGraph whose mirror is open.

    Attributes:
        source: the graph.
        info: its picture, for what is typed.
        url: what names its threads as a store; "memory:" where they end with this process.
    """

    def __init__(self, source: LangGraphSource, info: GraphInfo, url: str) -> None:
        self.source = source
        self.info = info
        self.url = url


_OPENED: WeakKeyDictionary[Checkpointer, OpenedGraph] = WeakKeyDictionary()
_FILES: WeakKeyDictionary[Checkpointer, Checkpoints] = WeakKeyDictionary()


def opened_graph(store: Checkpointer) -> OpenedGraph | None:
    """The graph whose mirror a store is, None for any other store."""
    return _OPENED.get(store)


def keeps_langgraph(store: Checkpointer) -> bool:
    """Whether a store is a mirror of threads of LangGraph."""
    return store in _OPENED or store in _FILES


def server_store(server: str, assistant: str | None) -> str:
    """What names the threads of a server's graph as a store."""
    return f"langgraph+{server.rstrip('/')}{'#' + assistant if assistant else ''}"


def names_langgraph(url: str) -> bool:
    """Whether the URL of a store names threads of LangGraph."""
    return url.startswith((GRAPH_SCHEME, CHECKPOINTS_SCHEME, *SERVER_SCHEMES))


Part = Literal["all", "waiting", "none"]
"""Which threads of LangGraph are mirrored before a command looks at them."""


def open_langgraph_store(settings: Settings, part: Part = "all", thread: str | None = None) -> Checkpointer:
    """The mirror of what `langgraph:GRAPH`, `langgraph+sqlite:///FILE` or `langgraph+URL` names.

    Args:
        part: what is brought up to date.
        thread: the only one that is, where there is one of that name.

    Raises:
        UsageError: it names no graph of LangGraph.
        NoSuchStore, StoreUnusable: there is no such file, or it can't be used.
    """
    from hitl_tui.drivers.langgraph.discovery import sync_named, sync_threads
    from hitl_tui.drivers.langgraph.listing import listing_of
    from hitl_tui.drivers.langgraph.mirror import Mirror
    from hitl_tui.drivers.langgraph.pregel import App

    url = settings.store
    if url.startswith(CHECKPOINTS_SCHEME):
        return _mirror_of_file(Path(url.removeprefix(CHECKPOINTS_SCHEME)), settings, part, thread)
    spec = url.removeprefix(GRAPH_SCHEME)
    served = url.startswith(SERVER_SCHEMES)
    store = open_server_store(settings) if served else open_graph_store(spec, settings)
    if store is None:
        raise UsageError(
            f"{spec} is no graph of LangGraph", "its threads are in a store of ours: --store URL"
        )
    opened = _OPENED[store]
    mirror = Mirror(App(opened.source.app), store, opened.source.name, opened.source.source)

    async def sync() -> None:
        if thread is not None and await sync_named(mirror, thread):
            return
        if part == "all":
            await sync_threads(mirror, _tell_progress)
        elif part == "waiting":
            await listing_of(mirror).mirror_waiting(tell=_tell_progress)

    synced = _synced(store, sync)
    _tell_unreadable(opened)
    return synced


def listed(
    store: Checkpointer, query: str, limit: int, within: str | None
) -> tuple[ThreadSummary, ...] | None:
    """Threads of LangGraph whose mirror a store is, as for `Store.threads`; None for any other store."""
    if (recorded := recorded_threads(store)) is not None:
        return _awaited(lambda: recorded.listing.page(query, limit, None, within))
    hub = langgraph_hub(store, None, None)
    if hub is None:
        return None
    threads = _awaited(lambda: hub.threads(query, limit, None, within))
    _tell_unreadable(_OPENED[store])
    return threads


def measured(
    store: Checkpointer, thread: str | None, watch: Watch | None
) -> tuple[list[ThreadSize], Space] | None:
    """What threads of LangGraph take, as for `Hub.sizes`; None where a store is no mirror of such.

    Args:
        thread: the only one that is looked at.
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


def open_graph_store(
    spec: str, settings: Settings, options: Mapping[str, Any] | None = None
) -> Checkpointer | None:
    """The mirror for the threads of a graph of LangGraph; None where `spec` names a graph of ours.

    Args:
        options: refused where it is one of LangGraph.

    Raises:
        UsageError: there is nothing of that name, or another store was named for a graph of LangGraph.
    """
    from hitl_tui.config import data_folder
    from hitl_tui.loading.langgraph import open_sqlite
    from hitl_tui.loading.sources import open_langgraph_graph

    named = settings.store if settings.origins["store"] == "flag" else ""
    file = Path(named.removeprefix(CHECKPOINTS_SCHEME)) if named.startswith(CHECKPOINTS_SCHEME) else None
    source = open_langgraph_graph(
        spec, data_folder(), options, checkpointer=open_sqlite(file.expanduser()) if file else None
    )
    if source is None:
        return None
    if named and not names_langgraph(named):
        source.close()
        raise UsageError(
            f"the threads of {source.name} are kept by its checkpointer, not in {named}",
            f"leave --store out, or name a file of checkpoints: --store {CHECKPOINTS_SCHEME}FILE",
        )
    from hitl_tui.drivers.langgraph.graph import describe

    store = _open_mirror(source.mirror, settings)
    finalize(store, source.close)
    url = f"{GRAPH_SCHEME}{source.source['graph']}" if source.mirror else "memory:"
    _OPENED[store] = OpenedGraph(source, describe(source.app, source.name), url)
    return store


def open_server_store(settings: Settings) -> Checkpointer:
    """The mirror for the threads of a server's graph, as `--store` names it; it isn't brought up to date.

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
        from hitl_tui.drivers.langgraph.server import SERVER, ServerGraph
    except ImportError as error:
        raise UsageError(f"a server of LangGraph needs {error.name}", EXTRA_HINT) from None
    graph = ServerGraph(server, assistant)
    source = LangGraphSource(
        app=graph,
        checkpointer=graph.checkpointer,
        name=graph.graph_id,
        source={SERVER: server, "assistant": graph.graph_id},
        mirror=mirror_file(data_folder() / _FOLDER, f"{server}?{graph.graph_id}"),
        close=lambda: None,
    )
    store = _open_mirror(source.mirror, settings)
    url = server_store(server, graph.graph_id)
    _OPENED[store] = OpenedGraph(source, describe(source.app, source.name), url)
    return store


def waiting_in_mirrors() -> dict[str, int]:
    """How many threads of LangGraph wait for a human, by the stores that name them, as they were seen last.

    Nothing of LangGraph is imported, and no checkpointer is asked.
    """
    from hitl_tui.config import data_folder

    waiting: dict[str, int] = {}
    for file in sorted((data_folder() / _FOLDER).glob("*.threads.db")):
        from hitl_tui.stores.sqlite.store import read_only

        try:
            mirror = read_only(str(file))
        except HitlError:
            continue  # of another version, or damaged: whoever opens it is told
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
    """The threads of the file of checkpoints whose mirror a store is, None for any other store."""
    if (checkpoints := _FILES.get(store)) is None:
        return None
    from hitl_tui.drivers.langgraph.recorded_hub import RecordedThreads

    return RecordedThreads(checkpoints, store)


def _mirror_of_file(path: Path, settings: Settings, part: Part, thread: str | None) -> Checkpointer:
    """What is in a file of checkpoints, in a mirror of its own: its graph isn't there."""
    from hitl_tui.config import data_folder
    from hitl_tui.drivers.langgraph.recorded import Checkpoints
    from hitl_tui.drivers.langgraph.recorded_hub import RecordedThreads
    from hitl_tui.loading.langgraph import mirror_file

    checkpoints = Checkpoints(path)
    try:
        store = _open_mirror(mirror_file(data_folder() / _FOLDER, f"read:{checkpoints.path}"), settings)
    except BaseException:
        checkpoints.close()
        raise
    finalize(store, checkpoints.close)
    _FILES[store] = checkpoints
    recorded = RecordedThreads(checkpoints, store)

    async def sync() -> None:
        if thread is not None and await recorded.sync(thread):
            return
        if part == "all":
            await recorded.sync_all(_tell_progress)
        elif part == "waiting":
            await recorded.listing.mirror_waiting(tell=_tell_progress)

    return _synced(store, sync)


def _open_mirror(file: Path | None, settings: Settings) -> Checkpointer:
    from hitl_tui.stores import open_store
    from hitl_tui.stores.files.directory import make_directories

    if file is None:
        return open_store("memory:", settings.durability)
    make_directories(file.parent)
    return open_store(str(file), settings.durability)


def _tell_progress(done: int, total: int) -> None:
    from hitl_tui.cli.output import say

    if total > _TELL and done % _TELL == 0:
        say(f"reading threads of LangGraph: {done:,} of {total:,}", err=True)


def _tell_unreadable(opened: OpenedGraph) -> None:
    """Name the threads that a server could not tell the state of when they were looked through."""
    from hitl_tui.cli.output import say

    for thread, why in getattr(opened.source.checkpointer, "unreadable", {}).items():
        say(f"hitl-tui: the server can't tell the state of thread {thread}: {why}", err=True)


def _synced(store: Checkpointer, sync: Callable[[], Coroutine[Any, Any, None]]) -> Checkpointer:
    """The store, once its threads are up to date."""
    try:
        _awaited(sync)
    except BaseException:
        store.close()
        raise
    return store


def _awaited(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What is awaited, for a caller that may be on an event loop."""
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
    """The hub of a graph of LangGraph whose mirror is open, None for any other store; see `LocalHub`."""
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
    )


def langgraph_picture(spec: str, options: Mapping[str, Any]) -> GraphInfo | None:
    """A graph of LangGraph as data; None where `spec` names a graph of ours.

    Args:
        options: refused where it is one of LangGraph.
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
