"""Every test gets a home of its own, and nothing of the machine it runs on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

# Started in the background of a shell, a process ignores ctrl+c and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)

_DISPLAY = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CLICOLOR", "CLICOLOR_FORCE", "TERM_PROGRAM")
_PLACES = {
    "HOME": "",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "XDG_CACHE_HOME": "cache",
}


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home directory of the test; settings, store and log file are below it."""
    home = tmp_path_factory.mktemp("home")
    for variable in list(os.environ):
        if variable in _DISPLAY or variable.startswith(("HITL_TUI_", "TEXTUAL")):
            monkeypatch.delenv(variable)
    for variable, place in _PLACES.items():
        monkeypatch.setenv(variable, str(home / place))
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv("USER", "tester")
    monkeypatch.setenv("LOGNAME", "tester")
    return home
