"""A session in lines, typed through a pipe."""

from __future__ import annotations

import io

import pytest

from tests.support.commands import App, Done


class Talker:
    """Types lines into a session and returns what was said."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        self._app = app
        self._monkeypatch = monkeypatch

    def __call__(self, lines: str, *arguments: str) -> Done:
        self._monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        return self._app(*arguments)
