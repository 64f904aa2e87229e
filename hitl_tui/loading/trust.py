"""Code trust: whether a graph that a thread's record names may be built, which runs its code.

A store may come from anybody. So a graph in its records is built only if this user has named that graph on
the command line, or has agreed to it, for this store and from this path. That is kept in the user's own data
directory, never in a store, with hashes of the files that were run.
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
"""How a graph is known that this user named on the command line: it did not come from a store."""


class NotTrusted(UsageError):
    """A graph of a record to which the user has not agreed; nothing of it was imported."""

    title = "The graph is not trusted"

    def __init__(self, question: Question) -> None:
        super().__init__(
            f"{question.why}; it would run {question.what}, and nothing was run",
            "look at these files and options; where you trust them, say so with --trust",
        )
        self.question = question
        self.details = "\n".join(question.lines)


class Question(msgspec.Struct, frozen=True):
    """The question to a person before a graph is built.

    Args:
        why: the reason for asking.
        what: the graph, quoted.
        lines: what would run: store, graph, directory, options, files, and what changed.
        agree: records that the person agrees to exactly this.
    """

    why: str
    what: str
    lines: tuple[str, ...]
    agree: Callable[[], None]


Ask: TypeAlias = Callable[[Question], Awaitable[bool]]


class _Entry(msgspec.Struct):
    """A graph that this user ran: how they agreed to it, when last, and the hashes of its files."""

    store: str
    graph: str
    how: str
    when: str
    files: dict[str, str]


class _Entries(msgspec.Struct):
    graphs: dict[str, _Entry] = {}


class _Source(msgspec.Struct, frozen=True):
    """The source of a graph in a record, read without importing anything."""

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
        """Whether it is a sample or a workflow of this package without text options.

        A text could name a server or a file.
        """
        from hitl_tui.loading.code import OURS
        from hitl_tui.loading.graphs import sample_path

        ours = sample_path(self.spec) is not None or self.spec.startswith(f"{OURS}workflows.")
        return ours and not any(isinstance(value, str | list | dict) for value in self.options.values())

    @property
    def main_files(self) -> list[Path]:
        """Return the named file, and those that a TOML file or a langgraph.json names."""
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
        """Return the user's directories in which its imports are searched first."""
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
        """Return a hash of each file that may run: named files, loaded ones, and all that can be imported.

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
    """What this user agreed to run from one store, or from one presentation script.

    Args:
        file: where that is kept, in the user's own data directory.
        store: the path of the store or script; "" for a store in memory, whose threads all started in this
            process.
        given: the user agrees to all that its records name, by an option on the command line.
        kind: "store" or "script", for the question.
    """

    def __init__(self, file: Path, store: str, *, given: bool = False, kind: str = "store") -> None:
        self._file = file
        self._store = os.path.realpath(store) if store else ""
        self._given = given
        self._kind = kind
        self._agreed: dict[str, _Entry] = {}

    def check(self, source: Mapping[str, Any]) -> None:
        """Refuse a source to which this user has not agreed; nothing of it is imported.

        Raises:
            NotTrusted: has the question to ask.
            UsageError: the source names nothing that exists.
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
        """Record that a graph of this source was built, with all that it has loaded.

        Args:
            how: how the user agreed to it, "" if that is recorded already.
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
        """Return the graph files that this user ran from this store, the newest first."""
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
        """Return why changed files need a new agreement, "" if only the user can have changed them."""
        if not all(_is_own(Path(path)) for path in _changed(known.files, now)):
            return "files of this graph changed, and others than you may write them"
        if known.how != _NAMED:
            return f"files of this graph changed, and it came with a {self._kind} that was made elsewhere"
        return ""

    def _entries(self) -> dict[str, _Entry]:
        """Return what is kept; if the file can't be read, nothing is, and the user is asked again."""
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
            with _locked(self._file.with_suffix(".lock")):
                graphs = self._entries()
                graphs[key] = graphs.pop(key)  # the newest are last
                newest = dict(list(graphs.items())[-_MOST_GRAPHS:])
                data = msgspec.json.format(msgspec.json.encode(_Entries(newest)), indent=1)
                replace_file(self._file, data + b"\n", durable=False)
        except (OSError, StoreUnusable) as error:
            log.warning("what may run is known to this process alone: %s", error)


def _key(store: str, read: _Source) -> str:
    return channel_hash([store, read.spec, read.directory, dict(read.options)]).hex()


@contextlib.contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Hold the lock if the system has such locks; otherwise the last of two writers wins."""
    if os.name != "posix":
        yield
        return
    with locked(lock):
        yield


def _module_files(name: str, directory: Path) -> list[Path]:
    """Return the files that importing a module by name would run, its packages' first; imports none."""
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
    """Return the files that imports can find in a folder: its modules, and all of its regular packages."""
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
    """Return a hash of a file's content; if it can't be read, of nothing."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()[:32]
    except OSError:
        return ""


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [path for path in {**before, **now} if before.get(path) != now.get(path)]


def _is_own(path: Path) -> bool:
    """Whether only this user and root can have written or replaced a file."""
    places = {path, Path(os.path.realpath(path))}
    return all(_is_private(part) for place in places for part in (place, *place.parents))


def _is_private(place: Path) -> bool:
    if not hasattr(os, "getuid"):
        return True
    try:
        facts = place.stat()
    except FileNotFoundError:
        return True  # the permissions of its directory say who may have removed it
    except OSError:
        return False
    if facts.st_uid not in (os.getuid(), 0):
        return False
    if stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX:
        return True  # as in /tmp: others may add files, each of which is checked, but not replace any
    if facts.st_mode & stat.S_IWOTH:
        return False
    return not facts.st_mode & stat.S_IWGRP or _is_private_group(facts.st_gid)


@cache
def _is_private_group(gid: int) -> bool:
    """Whether a group has only its user, as Linux distributions make one for each user."""
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
    import json  # opening a trusted graph does not need this module

    return json.dumps(value)


def _quoted(text: str) -> str:
    """Return an untrusted text on one line, quoted."""
    text = text if text.isprintable() else _json(text)
    return text if len(text) <= _SHOWN_TEXT else f"{text[:_SHOWN_TEXT]}… ({len(text):,} characters)"
