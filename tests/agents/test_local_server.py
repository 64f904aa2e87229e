"""A server on this machine needs no key: agents, and the demo on a model of one's own."""

from __future__ import annotations

import pytest

from hitl_tui import Agent
from hitl_tui.agents.litellm_backend import with_key
from hitl_tui.workflows.demo import build
from tests.support.openai_server import OpenAIServer, Say


def test_a_loopback_address_needs_no_key(server: OpenAIServer) -> None:
    assert Agent("a", "openai/local", api_base=server.api_base).chat("hi") == "hello"


@pytest.mark.parametrize(
    "address", ["http://localhost:8000/v1", "http://127.0.0.9/v1", "http://[::1]:1/v1", "https://x.localhost"]
)
def test_every_form_of_a_loopback_address_is_known(address: str) -> None:
    assert with_key("openai/local", {"api_base": address})["api_key"]


@pytest.mark.parametrize(
    "address",
    ["http://10.0.0.1/v1", "https://api.example.com", "http://localhost.example.com", "nonsense", ""],
)
def test_no_placeholder_key_is_sent_to_other_addresses(address: str) -> None:
    assert "api_key" not in with_key("openai/local", {"api_base": address})


def test_a_key_that_is_there_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"api_base": "http://localhost/v1"}
    assert with_key("openai/local", {**options, "api_key": "mine"})["api_key"] == "mine"
    monkeypatch.setenv("OPENAI_API_KEY", "theirs")
    assert with_key("openai/local", options) == options


def test_the_demo_runs_on_the_users_own_model(server: OpenAIServer) -> None:
    server.plan(Say(("my draft",)), Say(("approved",)))
    runner = build(human=False, model="openai/local", api_base=server.api_base, max_tokens=77)
    assert runner.invoke({"task": "t"}).output() == "my draft"
    assert [request.body["max_tokens"] for request in server.requests] == [77, 77]
