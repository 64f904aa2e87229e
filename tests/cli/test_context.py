"""`run --context`: what nodes read besides the state, given on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import App

GRAPH = """
[graph]
name = "ask"
output = "reply"
private_context = ["mail"]

[channels.reply]
default = ""
[agents.bot]
replies = [{ say = "I know Ann.", when = "acme, 3: ann@box" }]

[nodes.a]
agent = "bot"
prompt = "For {context.tenant}, {context.list.0}: {context.mail}"
writes = ["reply"]

[[edges]]
from = "START"
to = "a"
[[edges]]
from = "a"
to = "END"
"""
GIVEN = ("--context", "tenant=acme", "--context", "list=[3]", "--context", "mail=ann@box")


@pytest.fixture
def graph(tmp_path: Path) -> str:
    path = tmp_path / "ask.toml"
    path.write_text(GRAPH)
    return str(path)


@pytest.mark.slow
def test_the_context_reaches_prompts_and_the_log_without_private_values(app: App, graph: str) -> None:
    done = app.expect(0, "run", graph, "--headless", "--thread", "t", *GIVEN)
    assert "I know Ann." in done.out
    log = app.expect(0, "log", "t", "--json").out
    assert "acme" in log
    assert "ann@box" not in log
    app.expect(0, "verify", "t", "--strict")


def test_a_file_gives_it_as_json(app: App, graph: str, tmp_path: Path) -> None:
    file = tmp_path / "context.json"
    file.write_text('{"tenant": "acme", "list": [3], "mail": "ann@box"}')
    assert "I know Ann." in app.expect(0, "run", graph, "--headless", "--context", f"@{file}").out


@pytest.mark.slow
def test_an_existing_thread_keeps_its_context(app: App, graph: str) -> None:
    app.expect(0, "run", graph, "--headless", "--thread", "t", *GIVEN)
    done = app.expect(2, "run", graph, "--headless", "--thread", "t", *GIVEN)
    assert "leave --context out" in done.err


def test_a_field_that_the_context_lacks_is_reported(app: App, graph: str) -> None:
    done = app.expect(1, "run", graph, "--headless", "--context", "tenant=acme")
    assert "the context has nothing at {context.list.0}" in done.out + done.err
    assert "--context" in app.expect(2, "run", graph, "--headless", "--context", "tenant").err
