"""What `tests/support/leaks.py` finds: `nothing_left` fails each test that leaves one of these behind."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType

import pytest

import hitl_tui.errors
import hitl_tui.suggest
from tests.support import leaks
from tests.support.leaks import Attributes, Snapshot


@contextmanager
def variable() -> Iterator[None]:
    os.environ["LEFT"] = "1"
    yield
    del os.environ["LEFT"]


@contextmanager
def directory() -> Iterator[None]:
    before = Path.cwd()
    os.chdir("/")
    yield
    os.chdir(before)


@contextmanager
def module() -> Iterator[None]:
    sys.modules["left"] = ModuleType("left")
    sys.modules["left"].__file__ = "/nowhere/left.py"
    yield
    del sys.modules["left"]


@contextmanager
def lost_module() -> Iterator[None]:
    lost = sys.modules.pop("hitl_tui.errors")
    yield
    sys.modules["hitl_tui.errors"] = lost


@contextmanager
def thread() -> Iterator[None]:
    end = threading.Event()
    left = threading.Thread(target=end.wait, name="left")
    left.start()
    yield
    end.set()
    left.join()


@contextmanager
def descriptor() -> Iterator[None]:
    left = os.open("/dev/null", os.O_RDONLY)
    yield
    os.close(left)


@contextmanager
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGUSR2, before)


@contextmanager
def level() -> Iterator[None]:
    before = logging.root.level
    logging.root.setLevel(before + 1)
    yield
    logging.root.setLevel(before)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (variable, "the environment variable b'LEFT'"),
        (directory, "the working directory is '/'"),
        (module, "sys.modules has 'left'"),
        (lost_module, "sys.modules has lost 'hitl_tui.errors'"),
        (thread, "the thread 'left' is still running"),
        (descriptor, "is open: /dev/null"),
        (handler, "the handlers of signals"),
        (level, "the logger root"),
    ],
)
def test_what_a_test_leaves_behind_is_found_and_nothing_else(
    left: Callable[[], AbstractContextManager[None]], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaks, "PATIENCE", 0.01)
    before = Snapshot()
    assert before.leaks() == []
    with left():
        [found] = before.leaks()
    assert words in found
    assert before.leaks() == []


def test_a_module_or_a_name_that_was_replaced_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Attributes()
    monkeypatch.setattr(hitl_tui.errors, "HitlError", ValueError)
    monkeypatch.setitem(sys.modules, "hitl_tui.suggest", ModuleType("hitl_tui.suggest"))
    found = {sentence.partition(" is ")[0] for sentence in before.leaks()}
    assert {"sys.modules has another 'hitl_tui.suggest' than before", "hitl_tui.errors.HitlError"} <= found
