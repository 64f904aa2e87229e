"""Trust: whether a graph that a thread's record names may be built, which runs the code that it names.

A store may come from anybody, so what its records name is built only where this user has named that graph on
the command line, or has agreed to it, for this store and from this path.  That is kept in the user's own
data directory, never in a store, with hashes of the files that were run.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.machinery import PathFinder, all_suffixes
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from hitl_tui.engine.state.canonical import channel_hash
from hitl_tui.errors import StoreUnusable, UsageError
from hitl_tui.stores.files.directory import locked, make_directories, read_file, replace_file

log = logging.getLogger(__name__)

_MOST_FILES = 1_000
_MOST_GRAPHS = 500
_SHOWN_FILES = 6
_SHOWN_TEXT = 200
_SUFFIXES = (*all_suffixes(), ".pyc")
_NAMED = "named"
"""How a graph is known that this user named on the command line: it came with no store."""


class NotTrusted(UsageError):
    """A graph of a record that nobody has agreed to; nothing of it was imported."""

    title = "The graph is not trusted"

    def __init__(self, question: Question) -> None:
        super().__init__(
            f"{question.why}; it would run {question.what}, and nothing was run",
            "look at these files and options; where you trust them, say so with --trust",
        )
        self.question = question
        self.details = "\n".join(question.lines)


class Question(msgspec.Struct, frozen=True):
    """What a person is asked before a graph is built.

    Args:
        why: why it is asked, in words.
        what: the graph, quoted.
        lines: what would run: store, graph, directory, options, files, and what changed.
        agree: keeps that the person agrees to just this.
    """

    why: str
    what: str
    lines: tuple[str, ...]
    agree: Callable[[], None]


Ask: TypeAlias = Callable[[Question], Awaitable[bool]]


class _Entry(msgspec.Struct):
    """A graph that this user ran: how it was agreed to, when last, and the hashes of its files."""

    store: str
    graph: str
    how: str
    when: str
    files: dict[str, str]


class _Entries(msgspec.Struct):
    graphs: dict[str, _Entry] = {}


class _Source(msgspec.Struct, frozen=True):
    """What a record would have built; nothing of it is imported to know that."""

    spec: str
    directory: str
    options: Mapping[str, Any]

    @classmethod
    def read(cls, source: Mapping[str, Any]) -> _Source:
        from hitl_tui.loading.graphs import current_directory, named_file, resolve_spec, sample_path

        named, options = source.get("directory"), source.get("options")
        directory = Path(named) if isinstance(named, str) else current_directory()
        spec = resolve_spec(str(source.get("graph")), directory)
        beside = "" if sample_path(spec) or named_file(spec) else str(directory)
        return cls(spec, beside, options if isinstance(options, Mapping) else {})

    @property
    def is_ours(self) -> bool:
        """A sample or a workflow of this package that takes no text: that could be a server or a file."""
        from hitl_tui.loading.code import OURS
        from hitl_tui.loading.graphs import sample_path

        ours = sample_path(self.spec) is not None or self.spec.startswith(f"{OURS}workflows.")
        return ours and not any(isinstance(value, str | list | dict) for value in self.options.values())

    @property
    def main_files(self) -> list[Path]:
        """The file that is named, and those that a TOML file or a langgraph.json names."""
        from hitl_tui.loading.graphs import named_file, sample_path

        if sample_path(self.spec):
            return []
        if (file := named_file(self.spec)) is None:
            return _module_files(self.spec.partition(":")[0], Path(self.directory))
        with contextlib.suppress(UsageError):
            if file.suffix == ".toml":
                from hitl_tui.loading.toml import read_toml

                return [file, *read_toml(file).named_files()]
            if file.suffix == ".json":
                from hitl_tui.loading.langgraph_json import read_langgraph_json

                return read_langgraph_json(file).files()
        return [file]

    @property
    def folders(self) -> list[Path]:
        """Where its imports are looked for first, none where that is nowhere of the user's."""
        from hitl_tui.loading.code import OURS
        from hitl_tui.loading.graphs import named_file, sample_path

        if sample_path(self.spec) or self.spec.startswith(OURS):
            return []
        if (file := named_file(self.spec)) is None:
            return [Path(self.directory)]
        if file.suffix == ".json":
            from hitl_tui.loading.langgraph_json import read_langgraph_json

            with contextlib.suppress(UsageError):
                return read_langgraph_json(file).folders()
        return [file.parent]

    def hashes(self, known: Iterable[str] = ()) -> dict[str, str]:
        """A hash of each file that may come to run: those named, those loaded, all that can be imported.

        Args:
            known: files that were loaded when it ran before.
        """
        from hitl_tui.loading.code import code_files

        files = dict.fromkeys([*self.main_files, *map(Path, known)])
        for folder in self.folders:
            beside = islice(_importable(folder), _MOST_FILES)
            files |= dict.fromkeys([*sorted(code_files(folder)), *beside])
        return {str(file): _hash(file) for file in files}


class Trust:
    """What this user agreed to run from one store, or from one script of a presentation.

    Args:
        file: where that is kept, in the user's own data directory.
        store: the path of what names the graphs; "" for a store in memory, whose threads all began in this
            process.
        given: whatever its records name is agreed to, as the command line says.
        kind: "store" or "script", for the question.
    """

    def __init__(self, file: Path, store: str, *, given: bool = False, kind: str = "store") -> None:
        self._file = file
        self._store = os.path.realpath(store) if store else ""
        self._given = given
        self._kind = kind
        self._agreed: dict[str, _Entry] = {}

    def check(self, source: Mapping[str, Any]) -> None:
        """Refuse a source that this user has not agreed to; nothing of it is imported.

        Raises:
            NotTrusted: holds what to ask.
            UsageError: the source names nothing that is there.
        """
        read = _Source.read(source)
        if not self._store or read.is_ours:
            return
        entry = self._entries().get(_key(self._store, read))
        hashes = read.hashes(entry.files if entry else ())
        if entry is not None and entry.files == hashes:
            return
        if self._given:
            self._keep(read, hashes, entry.how if entry else "--trust")
        elif entry is None or self._why_again(entry, hashes):
            raise NotTrusted(self._question(read, hashes, entry))

    def record(self, source: Mapping[str, Any], how: str = "") -> None:
        """Keep that a graph of this source was built, with all that it has loaded.

        Args:
            how: how the user agreed to it, "" where that is known.
        """
        read = _Source.read(source)
        if not self._store or (read.is_ours and not how):
            return
        hashes = read.hashes()
        known = self._entries().get(_key(self._store, read))
        if known is None or known.files != hashes or how not in ("", known.how):
            self._keep(read, hashes, how or (known.how if known else _NAMED))

    @property
    def files(self) -> tuple[str, ...]:
        """The graph files that this user ran from this store, the newest first."""
        from hitl_tui.loading.graphs import named_file

        graphs = [entry.graph for entry in self._entries().values() if entry.store == self._store]
        return tuple(dict.fromkeys(spec for spec in reversed(graphs) if named_file(spec)))

    def _question(self, read: _Source, hashes: Mapping[str, str], known: _Entry | None) -> Question:
        what = _quoted(read.spec)
        before = known.files if known else None
        new = f"you have not run this graph from this {self._kind} yet"
        why = self._why_again(known, hashes) if known else new
        lines = [f"{self._kind}: {_quoted(self._store)}", f"graph: {what}"]
        lines += [f"directory: {_quoted(read.directory)}"] if read.directory else []
        lines += [
            f"option {_quoted(name)}: {_quoted(value if isinstance(value, str) else _json(value))}"
            for name, value in read.options.items()
        ]
        if before is None:
            lines += _few("file", [str(file) for file in read.main_files])
            main = {str(file) for file in read.main_files}
            lines += _few("beside it", [path for path in hashes if path not in main])
        else:
            for word, paths in (
                ("changed", [path for path in before if path in hashes and before[path] != hashes[path]]),
                ("new", [path for path in hashes if path not in before]),
                ("gone", [path for path in before if path not in hashes]),
            ):
                lines += _few(word, paths)
        how = known.how if known else "asked"
        return Question(why, what, tuple(lines), lambda: self._keep(read, dict(hashes), how))

    def _why_again(self, known: _Entry, now: Mapping[str, str]) -> str:
        """Return why changed files need another yes, "" where they are the user's own to edit."""
        if not all(_is_own(Path(path)) for path in _changed(known.files, now)):
            return "files of this graph changed, and others than you may write them"
        if known.how != _NAMED:
            return f"files of this graph changed, and it came with a {self._kind} that was made elsewhere"
        return ""

    def _entries(self) -> dict[str, _Entry]:
        """What is kept; a file that can't be read is as none: its user is asked again."""
        try:
            kept = msgspec.json.decode(read_file(self._file) or b"{}", type=_Entries).graphs
        except (msgspec.DecodeError, UnicodeDecodeError, StoreUnusable):
            kept = {}
        return kept | self._agreed

    def _keep(self, read: _Source, hashes: dict[str, str], how: str) -> None:
        key = _key(self._store, read)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        self._agreed[key] = _Entry(self._store, read.spec, how, when, hashes)
        try:
            make_directories(self._file.parent)
            with _alone(self._file.with_suffix(".lock")):
                graphs = self._entries()
                graphs[key] = graphs.pop(key)  # the newest stand last
                newest = dict(list(graphs.items())[-_MOST_GRAPHS:])
                data = msgspec.json.format(msgspec.json.encode(_Entries(newest)), indent=1)
                replace_file(self._file, data + b"\n", durable=False)
        except (OSError, StoreUnusable) as error:
            log.warning("what may run is known to this process alone: %s", error)


def _key(store: str, read: _Source) -> str:
    return channel_hash([store, read.spec, read.directory, dict(read.options)]).hex()


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Hold the lock where the system has such locks; the last of two writers wins elsewhere."""
    if os.name != "posix":
        yield
        return
    with locked(lock):
        yield


def _module_files(name: str, directory: Path) -> list[Path]:
    """The files that importing a module by name would run, its packages' first; none of them is imported."""
    files: list[Path] = []
    places: Iterable[str] = [str(directory), *filter(None, sys.path)]
    for part in name.split("."):
        spec = PathFinder.find_spec(part, list(places))
        if spec is None:
            break
        if spec.origin and os.path.isfile(spec.origin):
            files.append(Path(spec.origin))
        places = spec.submodule_search_locations or ()
    return files


def _importable(folder: Path) -> Iterator[Path]:
    """The files of what an `import` finds in a folder: its modules, and all of its regular packages."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.endswith(_SUFFIXES):
            yield Path(entry.path)
        elif entry.name.isidentifier() and entry.name != "__pycache__":
            package = Path(entry.path)
            if any((package / f"__init__{suffix}").is_file() for suffix in _SUFFIXES):
                yield from _importable(package)


def _hash(file: Path) -> str:
    """A hash of what a file holds; of one that can't be read, of nothing."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:32]
    except OSError:
        return ""


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [path for path in {**before, **now} if before.get(path) != now.get(path)]


def _is_own(path: Path) -> bool:
    """Whether nobody but this user, and root, can have written a file or put another in its place."""
    places = {path, Path(os.path.realpath(path))}
    return all(_is_private(part) for place in places for part in (place, *place.parents))


def _is_private(place: Path) -> bool:
    if not hasattr(os, "getuid"):
        return True
    try:
        facts = place.stat()
    except FileNotFoundError:
        return True  # its directory says who may have taken it away
    except OSError:
        return False
    if facts.st_uid not in (os.getuid(), 0):
        return False
    if stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX:
        return True  # as in /tmp: others may add files, each of which is looked at, but replace none
    if facts.st_mode & stat.S_IWOTH:
        return False
    return not facts.st_mode & stat.S_IWGRP or _is_private_group(facts.st_gid)


@cache
def _is_private_group(gid: int) -> bool:
    """Whether a group is its user's alone, as Linux distributions make one for each."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def _few(word: str, paths: list[str]) -> list[str]:
    lines = [f"{word}: {_quoted(path)}" for path in paths[:_SHOWN_FILES]]
    more = len(paths) - _SHOWN_FILES
    return [*lines, f"{word}: {more:,} more"] if more > 0 else lines


def _json(value: object) -> str:
    import json  # a graph that is trusted is opened without

    return json.dumps(value)


def _quoted(text: str) -> str:
    """Somebody's text on one line."""
    text = text if text.isprintable() else _json(text)
    return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]}… ({len(text):,} characters)"
