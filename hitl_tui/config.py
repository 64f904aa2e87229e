"""Settings: flags over environment over the file config.toml over defaults.

Every problem is reported at once, each with its place and the key it is about.
"""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

import msgspec

from hitl_tui.errors import UsageError, in_words
from hitl_tui.given_files import home_directory
from hitl_tui.suggest import did_you_mean

if TYPE_CHECKING:
    from hitl_tui.engine.log.store import Durability
    from hitl_tui.loading.toml import TomlFile

ENV_PREFIX = "HITL_TUI_"
NOTIFY_URLS = "HITL_TUI_NOTIFY_URLS"
"""Holds the URLs of services for notices, with blanks between them, in place of those of the file."""
FILE_VARIABLE = "HITL_TUI_CONFIG"
"""Names another configuration file."""
SERVER_HEADERS = "HITL_TUI_SERVER_HEADERS"
"""Headers for a server of LangGraph, as a JSON object; no setting, so that they are never stored."""
REVIEWER: Final = "reviewer"
DEVELOPER: Final = "developer"
ROLES: Final = (REVIEWER, DEVELOPER)
"""What a person is here to do (see `Settings.role`)."""
_ASCII: Final = "ascii"
_KEYS: Final = "keys"
_INBOX: Final = "inbox"
_TRUTHS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


class InboxSource(msgspec.Struct, frozen=True):
    """A store whose requests the queue shows, too: a table `[[inbox]]`.

    Args:
        name: what the queue calls it, "" for a name made from its URL.
        store: its URL, "" if it is a server.
        server: the address of a LangGraph server, "" if it is a store.
        assistant: which of the server's graphs, "" for the only one.
        place: where the table is, as `file:line`.
    """

    name: str = ""
    store: str = ""
    server: str = ""
    assistant: str = ""
    place: str = ""


class Settings(msgspec.Struct, frozen=True):
    """What a session goes by.

    Args:
        store: URL of the store.
        durability: which commits survive a power cut: "decisions", "steps" or "none".
        reviewer: the name under which decisions are recorded.
        signing_key: file of the key that signs decisions, None for no signatures.
        claim_minutes: how long a claim lasts.
        look_seconds: how long a card must be open before others see that somebody looks at it.
        on_busy: what to do if a server already runs the thread (`DoubleText`); "reject" does nothing.
        reasons: file of the reasons that people can pick for their decisions, None for none.
        role: "developer": everything is shown; "reviewer": no graph, reducers or debugger until asked for.
        after_decision: "close": the card closes after the decision; "stay": the result is shown in its place.
        theme: name of the theme, "" for the default.
        model: litellm name for graphs that take a model, None for their default.
        api_base: address of the model's server, None for the provider's.
        telemetry: address of the collector that gets OpenTelemetry spans, None for none.
        ascii: whether the screen uses only ASCII, None to follow the locale.
        keys: keys by action, as written in the file; `hitl_tui.verbs.keymap` checks them.
        retention: what `prune` without options keeps, by keys of the table; empty for no rule.
        langgraph: `context` and `configurable` of new threads of LangGraph graphs.
        inbox: other stores whose requests the queue shows.
        notify: how to notify the person of requests, by keys of the table; its URLs are secrets.
        key_places: where each of these keys is set, as `file:line`.
        origins: where each setting came from: "flag", an environment variable, `file:line` or "default".
    """

    store: str
    durability: Durability
    reviewer: str
    signing_key: str | None
    claim_minutes: float
    look_seconds: float
    on_busy: str
    role: str
    after_decision: str
    reasons: str | None
    theme: str
    model: str | None
    api_base: str | None
    telemetry: str | None
    ascii: bool | None
    keys: Mapping[str, Any]
    retention: Mapping[str, Any]
    langgraph: Mapping[str, Mapping[str, Any]]
    inbox: tuple[InboxSource, ...]
    notify: Mapping[str, Any]
    key_places: Mapping[str, str]
    origins: Mapping[str, str]


_ON_LINUX: Final = {
    "config": ("XDG_CONFIG_HOME", ".config"),
    "data": ("XDG_DATA_HOME", ".local/share"),
    "state": ("XDG_STATE_HOME", ".local/state"),
    "log": ("XDG_STATE_HOME", ".local/state"),
}


def user_folder(kind: Literal["config", "data", "state", "log"]) -> Path:
    """Our folder of that kind, where platformdirs has it; a user without a home directory has one, too.

    On Linux it is not asked: to import it takes a twentieth of the time of `hitl-tui show`.
    """
    if sys.platform != "linux":
        import platformdirs

        dirs = platformdirs.PlatformDirs("hitl-tui", appauthor=False)
        return cast("Path", getattr(dirs, f"user_{kind}_path"))
    variable, usual = _ON_LINUX[kind]
    named = os.environ.get(variable, "")
    folder = (Path(named) if os.path.isabs(named) else home_directory() / usual) / "hitl-tui"
    return folder / "log" if kind == "log" else folder


def config_path() -> Path:
    """The configuration file in use, whether it exists or not."""
    named = os.environ.get(FILE_VARIABLE)
    return Path(named) if named else user_folder("config") / "config.toml"


def user_themes() -> Path:
    """The directory of the user's own themes: beside the configuration file."""
    return config_path().parent / "themes"


def default_store() -> str:
    """URL of the store in the user's data directory."""
    path = data_folder() / "threads.db"
    return f"sqlite:///{path}"


def data_folder() -> Path:
    """The user's data directory."""
    return user_folder("data")


def trust_file() -> Path:
    """Where it is kept which graphs the user agreed to run."""
    return data_folder() / "trust.json"


def queue_file() -> Path:
    """Where the filter and the order of the queue are kept from one look to the next."""
    return data_folder() / "queue.json"


def looked_file() -> Path:
    """Where it is kept which version of a text the user has last seen."""
    return data_folder() / "looked.json"


def queue_looks_file() -> Path:
    """Where it is kept when each person last looked at the queue."""
    return data_folder() / "queue-looked.json"


def watches_file() -> Path:
    """Where the watches of each graph are kept."""
    return data_folder() / "watches.json"


def shows_folder() -> Path:
    """Where shows that run tell other terminals of the user where they are."""
    return data_folder() / "shows"


def breakpoints_folder() -> Path:
    """Where the breakpoints of each graph are kept."""
    return data_folder() / "breakpoints"


def unsent_folder() -> Path:
    """Where answers are kept until they are sent."""
    return data_folder() / "unsent"


def sent_notices_file() -> Path:
    """Return the path of the file that lists the notices that the user has already seen."""
    return data_folder() / "notices.db"


def load_settings(flags: Mapping[str, str | None] | None = None) -> Settings:
    """Gather the settings; `flags` holds those given on the command line, None for not given.

    Raises:
        UsageError: lists every problem found, with file, line and key.
    """
    given = [_from_file(), _from_environment(), _from_flags(flags or {})]
    problems = [problem for layer in given for problem in layer.problems]
    if problems:
        raise UsageError("\n".join(problems), "docs/configuration.md lists the settings")
    values: dict[str, Any] = {name: default() for name, (default, _) in _SETTINGS.items()}
    values |= {"ascii": None, "keys": {}, **{name: {} for name in _TABLES}, _INBOX: ()}
    origins = dict.fromkeys(values, "default")
    key_places: dict[str, str] = {}
    for layer in given:
        values |= layer.values
        origins |= layer.origins
        key_places |= layer.key_places
    values |= {name: float(values[name]) for name in _NUMBERS}
    return Settings(**values, key_places=key_places, origins=origins)


def keep_setting(name: str, value: str) -> None:
    """Write a setting of one word at the top of the configuration file, which does not have it yet.

    Raises:
        OSError: it can't be written; the file is as it was.
    """
    file = Path(os.path.realpath(config_path()))
    file.parent.mkdir(parents=True, exist_ok=True)
    text = file.read_bytes() if file.exists() else b""
    temporary = file.with_name(f".{file.name}.tmp")
    try:
        temporary.write_bytes(f'{name} = "{value}"\n'.encode() + text)
        if text:
            temporary.chmod(file.stat().st_mode)
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


class _Layer(msgspec.Struct):
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    key_places: dict[str, str] = {}
    problems: list[str] = []

    def add(self, name: str, value: object, origin: str) -> None:
        if name == _ASCII:
            self._take(name, value, origin, "" if isinstance(value, bool) else "must be true or false")
        else:
            self._take(name, value, origin, _SETTINGS[name][1](value))

    def add_keys(self, value: object, file: TomlFile) -> None:
        """The table of keys: `run.step = "n"` and `"run.step" = "n"` are the same action."""
        if not isinstance(value, dict):
            self._take(_KEYS, value, file.place(_KEYS), 'must be a table, as in [keys] and "run.step" = "n"')
            return
        wishes = {".".join(path): (wish, file.place(_KEYS, *path)) for path, wish in _leaves(value)}
        self._take(_KEYS, {name: wish for name, (wish, _) in wishes.items()}, file.place(_KEYS), "")
        self.key_places = {name: place for name, (_, place) in wishes.items()}

    def add_table(self, name: str, value: object, file: TomlFile) -> None:
        """A table of related settings; errors name the key."""
        checks = _TABLES[name]
        if not isinstance(value, dict):
            self._take(name, value, file.place(name), f"must be a table, as in [{name}]")
            return
        for key, given in value.items():
            problem = checks[key](given) if key in checks else f"unknown key: {did_you_mean(key, checks)}"
            if problem:
                self._take(f"{name}.{key}", given, file.place(name, key), problem)
        self._take(name, value, file.place(name), "")

    def add_inbox(self, value: object, file: TomlFile) -> None:
        """The tables of the inbox; each names a store or a server."""
        if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
            self._take(_INBOX, value, file.place(_INBOX), "must be tables, as in [[inbox]]")
            return
        sources: list[InboxSource] = []
        for at, table in enumerate(value):
            place = file.place(_INBOX, at)
            checks = {
                key: _INBOX_KEYS[key](given)
                if key in _INBOX_KEYS
                else f"unknown key: {did_you_mean(key, _INBOX_KEYS)}"
                for key, given in table.items()
            }
            for key, problem in checks.items():
                if problem:
                    self._take(f"{_INBOX}.{key}", None, file.place(_INBOX, at, key), problem)
            if ("store" in table) == ("server" in table):
                self._take(_INBOX, None, place, "a table must name a store or a server, one of the two")
            elif "assistant" in table and "server" not in table:
                self._take(f"{_INBOX}.assistant", None, place, "only a server has assistants")
            elif table.get("name") in [source.name for source in sources if source.name]:
                self._take(f"{_INBOX}.name", None, place, f"two tables have the name {table['name']!r}")
            elif not any(checks.values()):
                sources.append(InboxSource(**table, place=place))
        self._take(_INBOX, tuple(sources), file.place(_INBOX, 0), "")

    def _take(self, name: str, value: object, origin: str, problem: str) -> None:
        if problem:
            self.problems.append(f"{origin}: {name}: {problem}")
        else:
            self.values[name] = value
            self.origins[name] = origin


def _leaves(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _from_file() -> _Layer:
    layer = _Layer()
    path = config_path()
    if not os.path.exists(path):
        if FILE_VARIABLE in os.environ:
            layer.problems.append(f"{FILE_VARIABLE}: there is no file {path}")
        return layer
    from hitl_tui.loading.toml import read_toml

    file = read_toml(path)
    for key, value in file.values.items():
        if key == _KEYS:
            layer.add_keys(value, file)
        elif key == _INBOX:
            layer.add_inbox(value, file)
        elif key in _TABLES:
            layer.add_table(key, value, file)
        elif key in _SETTINGS or key == _ASCII:
            layer.add(key, value, file.place(key))
        else:
            known = (*_SETTINGS, _ASCII, _KEYS, _INBOX, *_TABLES)
            layer.problems.append(f"{file.place(key)}: unknown key {key!r}: {did_you_mean(key, known)}")
    return layer


_OTHERS = (FILE_VARIABLE, NOTIFY_URLS, SERVER_HEADERS)


def _from_environment() -> _Layer:
    layer = _Layer()
    known = {ENV_PREFIX + name.upper(): name for name in (*_SETTINGS, _ASCII)}
    for variable, value in sorted(os.environ.items()):
        if variable in known and value:
            name = known[variable]
            layer.add(name, _TRUTHS.get(value.lower(), value) if name == _ASCII else value, variable)
        elif variable.startswith(ENV_PREFIX) and variable not in (*known, *_OTHERS):
            hint = did_you_mean(variable, (*known, *_OTHERS))
            layer.problems.append(f"{variable}: there is no such variable; {hint}")
    return layer


def _from_flags(flags: Mapping[str, str | None]) -> _Layer:
    layer = _Layer()
    for name, value in flags.items():
        if value is not None:
            layer.add(name, value, "flag")
    return layer


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "reviewer"


def _one_line(value: object) -> str:
    if not isinstance(value, str):
        return f"must be text, not {in_words(value)}"
    if not value.strip():
        return "must not be empty"
    if len(value) > 1000 or not value.isprintable():
        return "must be one line of at most 1,000 printable characters"
    return ""


def _address(value: object) -> str:
    if problem := _one_line(value):
        return problem
    address = str(value)
    if not address.startswith(("http://", "https://")):
        return "must begin with http:// or https://"
    # It is stored with each thread.
    return "must not hold a password; keys come from the environment" if "@" in address else ""


def _key_file(value: object) -> str:
    return _path_of(value, "a key, as ~/.ssh/id_ed25519")


def _whole_path(value: object) -> str:
    return _path_of(value, "a file, as ~/reasons.txt")


def _path_of(value: object, what: str) -> str:
    if problem := _one_line(value):
        return problem
    # A name from the current directory would be another file elsewhere.
    fixed = str(value).startswith("~") or Path(str(value)).is_absolute()
    return "" if fixed else f"must be the whole path of {what}"


def _above_zero(value: object) -> str:
    try:
        number = float(str(value))
    except ValueError:
        return "must be a number"
    return "" if 0 < number < 1e6 else "must be above 0, and below a million"


def _durability(value: object) -> str:
    from hitl_tui.engine.log.store import Durability

    known = get_args(Durability)
    return "" if value in known else f"must be one of {', '.join(known)}"


def _span(value: object) -> str:
    from hitl_tui.engine.log.units import span_of

    try:
        span_of(value if isinstance(value, str) else repr(value))
    except ValueError as error:
        return str(error)
    return ""


def _number(value: object) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return "" if whole else "must be a whole number from 0"


def _truth(value: object) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def _terminal_ways(value: object) -> str:
    known = ("bell", "osc9", "osc777", "osc99")
    right = isinstance(value, list) and all(way in known for way in value)
    return "" if right else f"must be a list of {', '.join(known)}; [] for none"


def _command(value: object) -> str:
    parts = value if isinstance(value, list) else [value]
    right = bool(parts) and all(isinstance(part, str) and "\0" not in part for part in parts)
    return "" if right and parts[0] else "must be a list of a program and its arguments"


def _urls(value: object) -> str:
    right = isinstance(value, list) and all(isinstance(url, str) and url.isprintable() for url in value)
    return "" if right else "must be a list of URLs"


def _values(value: object) -> str:
    """A table of values that a thread can keep."""
    from hitl_tui.engine.thread.run_inputs import checked_context
    from hitl_tui.errors import HitlError

    if not isinstance(value, dict):
        return "must be a table of values by name"
    try:
        checked_context(value)
    except HitlError as error:
        return str(error)
    return ""


def _after_decision(value: object) -> str:
    return "" if value in ("close", "stay") else 'must be "close" or "stay"'


def _role(value: object) -> str:
    known = " or ".join(map(repr, ROLES))
    return "" if value in ROLES else f"must be {known}, not {value!r}"


def _on_busy(value: object) -> str:
    from hitl_tui.engine.commands.command import DoubleTexting

    known = ("reject", *get_args(DoubleTexting))
    return "" if value in known else f"must be one of {', '.join(known)}"


def _nothing() -> None:
    return None


_NUMBERS: Final = ("claim_minutes", "look_seconds")
_SETTINGS: dict[str, tuple[Callable[[], str | None], Callable[[object], str]]] = {
    "store": (default_store, _one_line),
    "durability": (lambda: "decisions", _durability),
    "reviewer": (_os_user, _one_line),
    "signing_key": (_nothing, _key_file),
    "claim_minutes": (lambda: "15", _above_zero),
    "look_seconds": (lambda: "3", _above_zero),
    "on_busy": (lambda: "reject", _on_busy),
    "role": (lambda: DEVELOPER, _role),
    "after_decision": (lambda: "close", _after_decision),
    "reasons": (_nothing, _whole_path),
    "theme": (str, _one_line),
    "model": (_nothing, _one_line),
    "api_base": (_nothing, _address),
    "telemetry": (_nothing, _address),
}

_TABLES: dict[str, dict[str, Callable[[object], str]]] = {
    "retention": {"older_than": _span, "keep_last": _number, "keep_decided": _truth},
    "notify": {
        "terminal": _terminal_ways,
        "title": _truth,
        "before": _span,
        "command": _command,
        "shell": _truth,
        "urls": _urls,
    },
    "langgraph": {"context": _values, "configurable": _values},
}

_INBOX_KEYS: dict[str, Callable[[object], str]] = {
    "name": _one_line,
    "store": _one_line,
    "server": _address,
    "assistant": _one_line,
}
