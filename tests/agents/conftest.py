"""A server on loopback, agents that talk to it, and nodes for them to work below."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hitl_tui.agents.agent import Agent
from hitl_tui.engine.log.events import Event
from hitl_tui.engine.nodes.activity import Activity, current_activity
from hitl_tui.stores import Checkpointer
from tests.support.any_store import KINDS, new_store
from tests.support.openai_server import OpenAIServer, openai_server

KEY = "test-key-0123456789"


class Node:
    """A running attempt whose events are kept; `run` calls something below it."""

    def __init__(self, on_event: Callable[[Event], None] | None = None) -> None:
        self.events: list[Event] = []
        self._on_event = on_event
        self.activity = Activity("write", 1, self._take)

    def context(self) -> contextvars.Context:
        """A context in which this attempt is the running one."""
        context = contextvars.copy_context()
        context.run(current_activity.set, self.activity)
        return context

    def run(self, work: Callable[..., Any], *args: Any) -> Any:
        return self.context().run(work, *args)

    def _take(self, event: Event) -> None:
        self.events.append(event)
        if self._on_event:
            self._on_event(event)


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No keys of the developer's, no proxy between the test and loopback, and no certificates to read."""
    for name in tuple(os.environ):
        if name.endswith(("_API_KEY", "_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        yield running


@pytest.fixture
def make_agent(server: OpenAIServer) -> Callable[..., Agent]:
    def make(model: str = "openai/test", **given: Any) -> Agent:
        return Agent("writer", model, **{"api_base": server.api_base, "api_key": KEY, **given})

    return make


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpointer]:
    with closing(new_store(request.param, tmp_path)) as opened:
        yield opened
