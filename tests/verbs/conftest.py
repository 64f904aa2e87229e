from __future__ import annotations

import pytest

from tests.plain.talker import Talker
from tests.support.commands import App
from tests.support.homes import HomeWith, home_with
from tests.verbs.hosts import Hosts

__all__ = ["HomeWith", "home_with"]


@pytest.fixture
def talk(app: App, monkeypatch: pytest.MonkeyPatch) -> Talker:
    """Plain text mode."""
    return Talker(app, monkeypatch)


@pytest.fixture
def hosts(request: pytest.FixtureRequest) -> Hosts:
    """The three hosts."""
    return Hosts(request)
