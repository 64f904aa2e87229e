"""Homes with threads in them, made once: making one takes far longer than copying it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Hashable

import pytest

HomeWith = Callable[[Hashable, Callable[[], object]], None]

_made: dict[Hashable, str] = {}


@pytest.fixture
def home_with(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> HomeWith:
    """A function that moves the test into a home with what a function puts there.

    It calls that function once in a process for each name.  All these homes have the same path, since the
    graphs that the user agreed to run are kept by the path of the store.
    """
    kept = tmp_path_factory.getbasetemp() / "homes made once"
    home, before = str(kept / "home"), os.environ["HOME"]

    def move(name: Hashable, make: Callable[[], object]) -> None:
        shutil.rmtree(home, ignore_errors=True)
        for variable, value in list(os.environ.items()):
            if value.startswith(before):
                monkeypatch.setenv(variable, home + value.removeprefix(before))
        if name in _made:
            shutil.copytree(_made[name], home)
            return
        os.makedirs(home)
        make()
        copy = str(kept / str(len(_made)))
        shutil.copytree(home, copy)
        _made[name] = copy

    return move
