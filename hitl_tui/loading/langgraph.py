"""Finds users' LangGraph graphs in a module, builds them, and gives them a checkpointer.

Objects are recognised by the names of their classes, so LangGraph is not imported unless a graph of it is
named.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from hitl_tui.errors import GraphInvalid, UsageError, in_words
from hitl_tui.loading.class_names import keep_class_names, plain_names
from hitl_tui.loading.code import blaming
from hitl_tui.loading.modules import ModuleFolder, folder_of

if TYPE_CHECKING:
    import asyncio
    from types import ModuleType

    from hitl_tui.loading.langgraph_json import LangGraphConfig

T = TypeVar("T")

USUAL_NAMES: Final = ("graph", "app", "agent", "workflow", "runner", "compiled")
"""Names under which a LangGraph graph is searched if GRAPH names only a file."""
USUAL_FACTORIES: Final = ("make_graph", "build_graph", "create_graph", "get_graph", "build", *USUAL_NAMES)

EXTRA_HINT: Final = 'install it: pip install "hitl-tui[langgraph]"'
_BUILT: Final = ("CompiledStateGraph", "StateGraph", "CompiledGraph", "Pregel")
_KINDS: Final = "a compiled graph, a StateGraph, or a function that returns one"
_UNNAMED: Final = ("LangGraph", "")
_THEIRS: Final = ("langgraph.", "langgraph_", "langchain.agents")


def is_langgraph(value: object) -> bool:
    """Whether a value is a LangGraph graph: compiled, or an uncompiled StateGraph."""
    return is_compiled(value) or _is_a(value, "StateGraph")


def is_compiled(value: object) -> bool:
    """Whether a value is a compiled LangGraph graph; entrypoints of the functional API are, too."""
    return _is_a(value, "Pregel")


def is_saver(value: object) -> bool:
    """Whether a value is a LangGraph checkpointer."""
    return _is_a(value, "BaseCheckpointSaver")


def _is_a(value: object, name: str) -> bool:
    return "langgraph" in sys.modules and any(
        kind.__name__ == name and kind.__module__.startswith("langgraph.") for kind in type(value).__mro__
    )


class LangGraphObject(msgspec.Struct, frozen=True):
    """A LangGraph graph, or a function that builds one, as found; not called yet.

    Args:
        label: where it was found, in words.
        name: its attribute, or its id in langgraph.json.
        value: the object.
        config: the langgraph.json that names it.
        folder: the directory of its code, None for an installed module.
    """

    label: str
    name: str
    value: Any
    config: LangGraphConfig | None = None
    folder: ModuleFolder | None = None


class LangGraphSource(msgspec.Struct, frozen=True):
    """A compiled LangGraph graph that can be run, and where it came from.

    Attributes:
        app: the compiled graph (`Pregel`) with its checkpointer.
        checkpointer: a `BaseCheckpointSaver`; the graph's own, or a SQLite file in our data directory.
        name: for people: the graph's name, its id in langgraph.json, its attribute or its file.
        source: how to build it again in another process, for `ThreadInfo.source`.
        mirror: the file for our own store of its threads, the same for all graphs on one checkpointer; None
            if the checkpointer ends with this process.
        close: closes what its factory opened; may be called more than once.
        loop: the running event loop on which async factories built it, None if there were none.
        new_file: the file just made to keep its checkpoints instead of its `InMemorySaver`.
    """

    app: Any
    checkpointer: Any
    name: str
    source: Mapping[str, Any]
    mirror: Path | None
    close: Callable[[], None]
    loop: asyncio.AbstractEventLoop | None = None
    new_file: Path | None = None


def speaks_langgraph(values: Mapping[str, Any]) -> bool:
    """Whether a module uses LangGraph, and not our API."""
    if "langgraph" not in sys.modules:
        return False
    modules = [str(getattr(value, "__module__", "")) for value in values.values()]
    ours = any(type(value).__module__.startswith("hitl_tui.") for value in values.values()) or any(
        module.startswith("hitl_tui.") for module in modules
    )
    theirs = any(is_langgraph(value) for value in values.values()) or any(
        f"{module}.".startswith(_THEIRS) for module in modules
    )
    return theirs and not ours


def find_langgraph(values: Mapping[str, Any], spec: str, module: ModuleType) -> LangGraphObject:
    """Return the only graph among a module's public values: compiled, else uncompiled, else a factory.

    Args:
        module: functions defined in it may be factories.

    Raises:
        UsageError: there is none, or there are several and none has a usual name.
    """
    compiled = _outermost({name: value for name, value in values.items() if is_compiled(value)})
    builders = [getattr(value, "builder", None) for value in values.values() if is_compiled(value)]
    built = [
        name
        for name, value in values.items()
        if is_langgraph(value) and not is_compiled(value) and not any(value is base for base in builders)
    ]
    factories = [
        name
        for name, value in values.items()
        if inspect.isfunction(inspect.unwrap(value) if callable(value) else value)
        and value.__module__ == module.__name__
        and (name in USUAL_FACTORIES or _is_declared(value))
    ]
    for names in (compiled, built, factories):
        usual = [name for name in USUAL_FACTORIES if name in names]
        chosen = usual[:1] or names
        if len(chosen) == 1:
            label = f"{chosen[0]} in {spec}"
            return LangGraphObject(label, chosen[0], values[chosen[0]], folder=folder_of(module))
        if names:
            raise UsageError(
                f"{spec} has several graphs ({', '.join(sorted(names))})",
                f"say which: {spec}:{sorted(names)[0]}",
            )
    raise UsageError(
        f"{spec} has no graph of LangGraph, and no function called {USUAL_FACTORIES[0]}",
        f"say which function builds it: {spec}:NAME",
    )


def is_factory(value: object, values: Mapping[str, Any]) -> bool:
    """Whether a named function builds a LangGraph graph, judged by its module or its signature."""
    return callable(value) and (_is_declared(value) or speaks_langgraph(values))


def _is_declared(value: Any) -> bool:
    """Whether a function is annotated to return a LangGraph graph."""
    declared = getattr(value, "__annotations__", {}).get("return")
    text = declared if isinstance(declared, str) else f"{getattr(declared, '__module__', '')}.{declared}"
    return "langgraph" in text + str(
        getattr(value, "__globals__", {}).get(text.partition("[")[0], "")
    ) and any(name in text for name in _BUILT)


def _outermost(graphs: Mapping[str, Any]) -> list[str]:
    """Return the names of graphs that are inside no other one."""
    inside = [part for graph in graphs.values() for _name, part in graph.get_subgraphs()]
    return [name for name, graph in graphs.items() if not any(graph is part for part in inside)]


def open_langgraph(
    target: LangGraphObject,
    source: Mapping[str, Any],
    data: Path,
    *,
    checkpointer: Any = None,
    keep_memory: bool = False,
) -> LangGraphSource:
    """Build a LangGraph graph, and give it a checkpointer if it has none that survives this process.

    Args:
        checkpointer: replaces the graph's own; None to keep that.  It is read with a strict serializer.
        keep_memory: keep an `InMemorySaver` that it was compiled with.
        source: `ThreadInfo.source` of threads that it starts.
        data: the directory for checkpoints of graphs without a lasting checkpointer, and for our own files.

    Raises:
        UsageError: its factory needs unknown arguments, or the checkpointer can't be opened.
        GraphInvalid: it is no graph, or its code failed (`CodeFailed`).
    """
    opening = _Opening()
    try:
        return _open(target, source, data, opening, checkpointer, keep_memory=keep_memory)
    except BaseException:
        opening.close()
        raise


def _open(
    target: LangGraphObject,
    source: Mapping[str, Any],
    data: Path,
    opening: _Opening,
    given: Any,
    *,
    keep_memory: bool,
) -> LangGraphSource:
    config = target.config
    graph = target.value if is_langgraph(target.value) else opening.call(target.label, target.value)
    if not is_langgraph(graph):
        forgot = "; did it forget its `return`?" if graph is None else ""
        raise GraphInvalid(f"{target.label} is {in_words(graph)}", f"it must be {_KINDS}{forgot}")
    app = graph if is_compiled(graph) else blaming(target.label, graph.compile)
    name = app.name if app.name not in _UNNAMED and config is None else target.name
    if not (app.checkpointer is None or isinstance(app.checkpointer, bool) or is_saver(app.checkpointer)):
        raise GraphInvalid(
            f"{target.label}: Invalid checkpointer: {in_words(app.checkpointer)}",
            "what from_conn_string gives is entered first: with SqliteSaver.from_conn_string(…) as saver",
        )
    saver = given if given is not None else app.checkpointer if is_saver(app.checkpointer) else None
    if given is None and config is not None and config.checkpointer:
        # As on a LangGraph server, the checkpointer of a langgraph.json comes before the graph's own.
        saver = opening.call(*config.load(config.checkpointer, "checkpointer", "path")[:2])
        if not is_saver(saver):
            raise GraphInvalid(
                f"{config.place('checkpointer', 'path')}: {config.checkpointer} is {in_words(saver)}",
                "it must be a BaseCheckpointSaver, or a function or context manager that gives one",
            )
    if given is not None:
        given.serde = _strict(app)
    place = Path(data) / "langgraph"
    new_file: Path | None = None
    in_memory = saver if is_in_memory(saver) and not keep_memory else None
    if saver is None or in_memory is not None:
        file = place / f"{_file_stem(name, [str(source.get(key)) for key in sorted(source)])}.sqlite"
        new_file = file if in_memory is not None and not file.exists() else None
        saver = opening.keep(open_sqlite(file), lambda given: given.conn.close())
    if in_memory is not None:
        saver.serde = in_memory.serde
    if target.folder is not None and getattr(saver, "serde", None) is not None:
        saver.serde = keep_class_names(saver.serde, target.folder)
    update: dict[str, Any] = {"checkpointer": saver}
    if config is not None and app.store is None:
        # A LangGraph server gives every graph a store; here it is kept beside our files.
        update["store"] = opening.keep(_memories(place, config.path), lambda given: given.conn.close())
    identity = checkpointer_identity(saver)
    return LangGraphSource(
        app=app.copy(update),
        checkpointer=saver,
        name=name,
        source=source,
        mirror=None if identity is None else mirror_file(place, identity),
        close=opening.close,
        loop=opening.loop,
        new_file=new_file,
    )


def is_in_memory(saver: object) -> bool:
    """Whether a checkpointer is LangGraph's `InMemorySaver` without a storage of the user's."""
    kind = type(saver)
    known = kind.__name__ == "InMemorySaver" and kind.__module__.startswith("langgraph.")
    return known and getattr(saver, "factory", defaultdict) is defaultdict


def _strict(app: Any) -> Any:
    """Return a serializer for files that anybody may have written: it builds only types of the graph's state.

    LangGraph's own serializer calls any function that a row names (CVE-2026-28277).

    Raises:
        UsageError: the installed LangGraph can't restrict its serializer.
    """
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    try:
        from langgraph._internal._serde import build_serde_allowlist

        known: set[tuple[str, ...]] = set()
        for graph in (app, *(inner for _, inner in app.get_subgraphs(recurse=True))):
            schemas = list(getattr(getattr(graph, "builder", None), "schemas", ()))
            known |= build_serde_allowlist(schemas=schemas, channels=graph.channels)
        return JsonPlusSerializer(allowed_msgpack_modules=plain_names(known))
    except (ImportError, TypeError):
        raise UsageError(
            "this LangGraph calls whatever a file of checkpoints names",
            "install a newer one, or compile the graph with a SqliteSaver on that file",
        ) from None


def _file_stem(name: str, parts: list[str]) -> str:
    """Return a file name that people recognise and that is unique to a graph."""
    tame = "".join(char if char.isascii() and char.isalnum() else "-" for char in name)[:40].strip("-")
    return f"{tame or 'graph'}-{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


def mirror_file(place: Path, identity: str) -> Path:
    """Return the file of our own store for the threads of one checkpointer."""
    return place / f"{_file_stem(Path(identity.partition('?')[0]).stem, [identity])}.threads.db"


def mirror_of_file(place: Path, path: Path, oldest: str) -> tuple[Path, str]:
    """Return the mirror of a checkpoint file without its graph, and a pattern for its older mirrors.

    Args:
        oldest: the id of its oldest checkpoint, which differs if the file was replaced.
    """
    stem = _file_stem(path.stem, [f"read:{path}"])
    edition = hashlib.sha256(oldest.encode()).hexdigest()[:8]
    return place / f"{stem}-{edition}.threads.db", f"{stem}-????????.threads.db"


def open_sqlite(path: Path) -> Any:
    """Open LangGraph's checkpointer on a SQLite file, which is created if missing.

    Raises:
        UsageError: the package for it is missing.
        StoreUnusable: the file can't be opened.
    """
    import sqlite3

    from hitl_tui.errors import StoreUnusable

    try:
        from langgraph.checkpoint.sqlite import SqliteSaver
    except ImportError as error:
        raise UsageError(f"checkpoints of LangGraph in SQLite need {error.name}", EXTRA_HINT) from None
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(path, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise StoreUnusable(f"{path} can't be opened: {error}") from None
    with contextlib.suppress(OSError):
        path.chmod(0o600)
    return SqliteSaver(connection)


def _memories(place: Path, config: Path) -> Any:
    """Return the long-term memory store of the graphs of a langgraph.json."""
    import sqlite3

    try:
        from langgraph.store.sqlite import SqliteStore
    except ImportError as error:
        raise UsageError(f"the store of a langgraph.json needs {error.name}", EXTRA_HINT) from None
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = place / f"{_file_stem(config.parent.name, [str(config)])}.store.sqlite"
    store = SqliteStore(sqlite3.connect(file, check_same_thread=False, isolation_level=None))
    store.setup()
    with contextlib.suppress(OSError):
        file.chmod(0o600)
    return store


def checkpointer_identity(saver: Any) -> str | None:
    """Return a text that identifies where a checkpointer keeps its checkpoints, without any password.

    Returns:
        None if they end with this process.

    Raises:
        UsageError: it can't be used, as its event loop has ended.
    """
    kinds = {kind.__name__ for kind in type(saver).__mro__}
    if "InMemorySaver" in kinds:
        return None
    if kinds & {"SqliteSaver", "AsyncSqliteSaver"}:
        file = _sqlite_file(saver, kinds)
        return f"sqlite:{os.path.realpath(file)}" if file else None
    pool = getattr(saver, "conn", None)
    if pool is not None and any(name.endswith("PostgresSaver") for name in kinds):
        facts = _postgres_facts(pool)
        if facts:
            return "postgresql:" + "/".join(str(facts.get(key, "")) for key in ("host", "port", "dbname"))
    return f"{type(saver).__module__}.{type(saver).__qualname__}"


def _sqlite_file(saver: Any, kinds: Collection[str]) -> str:
    """Return the file of a checkpointer, "" for a database in memory."""
    query = "PRAGMA database_list"
    if "AsyncSqliteSaver" not in kinds:
        rows = saver.conn.execute(query).fetchall()
    else:
        if not saver.loop.is_running():
            raise UsageError(
                "the event loop of its AsyncSqliteSaver has ended",
                "build graph and checkpointer in an async function or context manager, and name that",
            )

        import asyncio

        async def ask() -> Any:
            await saver.setup()
            return await saver.conn.execute_fetchall(query)

        rows = asyncio.run_coroutine_threadsafe(ask(), saver.loop).result()
    return next((str(row[2] or "") for row in rows if row[1] == "main"), "")


def _postgres_facts(pool: Any) -> Mapping[str, Any]:
    """Return host, port and database of a connection or of a pool."""
    if hasattr(pool, "info"):
        facts: Mapping[str, Any] = pool.info.get_parameters()
        return facts
    from psycopg.conninfo import conninfo_to_dict  # type: ignore[import-not-found,unused-ignore]

    return dict(conninfo_to_dict(str(getattr(pool, "conninfo", ""))))


class _Opening:
    """Holds what a factory opens until it is closed, on its own event loop if it is async."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self.loop: asyncio.AbstractEventLoop | None = None

    def close(self) -> None:
        self._stack.close()

    def keep(self, value: T, end: Callable[[T], object]) -> T:
        """Return a value that `close` will close."""
        self._stack.callback(end, value)
        return value

    def call(self, label: str, target: Any) -> Any:
        """Return what an object, a function or a context manager yields; both may be async."""
        value = target
        if inspect.isasyncgenfunction(value):
            value = contextlib.asynccontextmanager(value)
        elif inspect.isgeneratorfunction(value):
            value = contextlib.contextmanager(value)
        if callable(value) and not is_langgraph(value) and not is_saver(value):
            factory, arguments = value, _arguments(label, target)
            value = blaming(label, lambda: factory(*arguments))
        if inspect.isawaitable(value):
            awaitable = value

            async def wait() -> Any:
                return await awaitable

            value = blaming(label, lambda: self._run(wait()))
        if is_langgraph(value) or is_saver(value):
            return value
        if hasattr(value, "__aenter__"):
            return self._enter(label, value)
        if hasattr(value, "__enter__"):
            manager = value
            return blaming(label, lambda: self._stack.enter_context(manager))
        return value

    def _enter(self, label: str, manager: Any) -> Any:
        entered = blaming(label, lambda: self._run(manager.__aenter__()))
        self._stack.callback(lambda: self._run(manager.__aexit__(None, None, None)))
        return entered

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        import asyncio

        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            thread = threading.Thread(
                target=self._run_loop, args=(self.loop,), name="langgraph-factory", daemon=True
            )
            thread.start()
            self._stack.callback(self._end, self.loop, thread)
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    @staticmethod
    def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop until it is stopped, then close it, which ends its executor's threads."""
        try:
            loop.run_forever()
        finally:
            loop.close()

    @staticmethod
    def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)


def _arguments(label: str, factory: Any) -> list[Any]:
    """Return the arguments that a LangGraph server gives a factory: none, a config, a runtime, or both.

    Raises:
        UsageError: it needs something else.
    """
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [part for part in parameters if part.kind in positional and part.default is part.empty]
    keywords = [
        part.name for part in parameters if part.kind is part.KEYWORD_ONLY and part.default is part.empty
    ]
    given: list[Any] = []
    unknown = keywords
    for part in needed:
        declared = part.annotation if isinstance(part.annotation, str) else repr(part.annotation)
        if part.name == "runtime" or "ServerRuntime" in declared:
            given.append(_runtime())
        elif part.name == "config" or "RunnableConfig" in declared or "dict" in declared.lower():
            given.append({"configurable": {}})
        else:
            unknown = [*unknown, part.name]
    if unknown:
        raise UsageError(
            f"{label} needs {', '.join(unknown)}",
            "a function that builds a graph takes nothing, (config), (runtime) or (config, runtime): "
            "give the others defaults",
        )
    return given


def _runtime() -> Any:
    """Return a LangGraph server's runtime for a factory: no user, and a store that ends with the process."""
    from langgraph.store.memory import InMemoryStore

    try:
        from langgraph_sdk.runtime import _ExecutionRuntime
    except ImportError:
        raise UsageError("a factory that takes a runtime needs a newer langgraph-sdk", EXTRA_HINT) from None
    return _ExecutionRuntime(access_context="threads.create_run", store=InMemoryStore())
