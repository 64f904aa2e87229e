"""Settings: flags over environment over the file config.toml over defaults.

Every problem is reported at once, each with its place and the key it is about.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from hitl_tui.errors import UsageError
from hitl_tui.suggest import did_you_mean

ENV_PREFIX = "HITL_TUI_"
FILE_VARIABLE = "HITL_TUI_CONFIG"
"""Names another configuration file."""


class Settings(msgspec.Struct, frozen=True):
    """What a session goes by.

    Args:
        store: URL of the store.
        reviewer: the name under which decisions are recorded.
        theme: name of the theme, "" for the app's own choice.
        model: litellm name for graphs that take a model, None for their own default.
        api_base: address of the model's server, None for the provider's.
        origins: where each value came from: "flag", an environment variable, `file:line` or "default".
    """

    store: str
    reviewer: str
    theme: str
    model: str | None
    api_base: str | None
    origins: Mapping[str, str]


def config_path() -> Path:
    """The configuration file in use, whether it exists or not."""
    named = os.environ.get(FILE_VARIABLE)
    return (
        Path(named) if named else platformdirs.user_config_path("hitl-tui", appauthor=False) / "config.toml"
    )


def default_store() -> str:
    """URL of the store in the user's data directory."""
    path = platformdirs.user_data_path("hitl-tui", appauthor=False) / "threads.db"
    return f"sqlite:///{path}"


def load_settings(flags: Mapping[str, str | None] | None = None) -> Settings:
    """Gather the settings; `flags` holds those given on the command line, None for not given.

    Raises:
        UsageError: lists every problem found, with file, line and key.
    """
    given = [_from_file(), _from_environment(), _from_flags(flags or {})]
    problems = [problem for layer in given for problem in layer.problems]
    if problems:
        raise UsageError("\n".join(problems), "the settings are listed in the README, Configuration")
    values: dict[str, Any] = {name: default() for name, (default, _) in _SETTINGS.items()}
    origins = dict.fromkeys(_SETTINGS, "default")
    for layer in given:
        values |= layer.values
        origins |= layer.origins
    return Settings(**values, origins=origins)


class _Layer(msgspec.Struct):
    values: dict[str, str] = {}
    origins: dict[str, str] = {}
    problems: list[str] = []

    def add(self, name: str, value: object, origin: str) -> None:
        problem = _SETTINGS[name][1](value)
        if problem:
            self.problems.append(f"{origin}: {name}: {problem}")
        else:
            self.values[name] = str(value)
            self.origins[name] = origin


def _from_file() -> _Layer:
    layer = _Layer()
    path = config_path()
    if not path.exists():
        if FILE_VARIABLE in os.environ:
            layer.problems.append(f"{FILE_VARIABLE}: there is no file {path}")
        return layer
    from hitl_tui.loading.toml import read_toml

    file = read_toml(path)
    for key, value in file.values.items():
        if key in _SETTINGS:
            layer.add(key, value, file.where(key))
        else:
            place = file.where("", key) if isinstance(value, dict | list) else file.where(key)
            layer.problems.append(f"{place}: unknown key {key!r}: {did_you_mean(key, _SETTINGS)}")
    return layer


def _from_environment() -> _Layer:
    layer = _Layer()
    known = {ENV_PREFIX + name.upper(): name for name in _SETTINGS}
    for variable, value in sorted(os.environ.items()):
        if variable in known and value:
            layer.add(known[variable], value, variable)
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
        return f"must be text, not {type(value).__name__}"
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


def _nothing() -> None:
    return None


_SETTINGS: dict[str, tuple[Callable[[], str | None], Callable[[object], str]]] = {
    "store": (default_store, _one_line),
    "reviewer": (_os_user, _one_line),
    "theme": (str, _one_line),
    "model": (_nothing, _one_line),
    "api_base": (_nothing, _address),
}
