"""Keys, headers and private values are in nothing that is shown or kept, whatever a provider says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.openai_server import (
    Answer,
    Cut,
    Garbage,
    Hang,
    OpenAIServer,
    Other,
    Reset,
    openai_server,
)
from tests.support.program import APP, call
from tests.support.terminal import Terminal

ENV_KEY = "planted-env-7f3a9c"
OPTION_KEY = "planted-option-51b2"
HEADER = "planted-header-d00d"
PRIVATE = "planted-private-Lovelace"
LAST = "500 as a page with the key"
TOML_KEY = "planted-toml-0c0ffee"
CONFIG_KEY = "planted-config-1dea"
SECRETS = (ENV_KEY, OPTION_KEY, HEADER, PRIVATE, TOML_KEY, CONFIG_KEY)

JSON = "application/json"
ECHO = "key={key} Authorization: Bearer {key} headers={headers} body={body}"
TROUBLE: dict[str, Answer] = {
    "401 that echoes the key": Other(
        401, '{"error": {"message": "Incorrect API key provided: {key}"}}', "application/json"
    ),
    "400 that echoes the body": Other(
        400, '{"error": {"message": "bad", "param": {body}, "key": "{key}"}}', "application/json"
    ),
    "429": Other(429, f"slow down {ECHO}", "text/plain", {"retry-after": "0", "x-key": "{key}"}),
    "500 as a page with the key": Other(500, f"<html><h1>Oops</h1><pre>{ECHO}</pre></html>"),
    "no answer in time": Hang(),
    "connection reset": Reset(),
    "JSON that is none": Other(200, '{"choices": [{"message": ' + ECHO, JSON),
    "another content type": Other(200, f"<html>{ECHO}</html>"),
    "redirect with the key": Other(302, ECHO, headers={"Location": "/v2?api_key={key}&{key}"}),
    "stream that ends in the middle": Cut(("half ",)),
    "stream with garbage": Garbage(("half ",)),
    "403 in words": Other(403, "forbidden: {headers}", "text/plain"),
    "409 that quotes another agent's key": Other(
        409, f'{{"error": {{"message": "in use beside {OPTION_KEY}, {HEADER}"}}}}', JSON
    ),
}

GRAPH = f'''
import os
from hitl_tui import END, START, Agent, Channel, StateGraph
by_env = dict(api_base=os.environ["BASE"], timeout=0.5, num_retries=0)
by_option = by_env | dict(api_key="{OPTION_KEY}", extra_headers={{"X-Auth": "Bearer {HEADER}"}})
agents = {{
    "one": Agent("one", "openai/gpt-4o-mini", **by_env),
    "two": Agent("two", "openai/gpt-4o-mini", **by_option),
}}
async def write(state, config):
    for trouble in filter(None, os.environ.get("TROUBLES", "").split(",")):
        for agent in config.agents.values():
            try:
                await agent.achat(f"{{trouble}}, about {{state['secret']}}")
            except Exception as error:
                print("told:", trouble, error, type(error).__name__)
            else:
                print("answered:", trouble)
    return {{"draft": await config.agents["two"].achat(f"{LAST}, about {{state['secret']}}")}}
channels = {{"draft": Channel(""), "secret": Channel("{PRIVATE}", visibility="private")}}
graph = StateGraph(channels, name="writer")
graph.add_node("write", write, reads=["secret", "draft"]).add_edge(START, "write").add_edge("write", END)
graph = graph.compile(agents=agents)
'''


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with openai_server() as running:
        running.answers |= TROUBLE
        yield running


@pytest.fixture
def place(server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "flow.py").write_text(GRAPH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BASE", server.api_base)
    monkeypatch.setenv("OPENAI_API_KEY", ENV_KEY)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def leaked(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def leaking_files(folder: Path) -> dict[str, list[str]]:
    """The files that hold a secret; only the store holds private values, to go on with.

    Not those of the graph's own source, which has them, and what Python has compiled it to.
    """
    leaks = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "flow.py" and path.parent.name != "__pycache__":
            found = leaked(path.read_bytes().decode(errors="replace"))
            own = [PRIVATE] if ".db" in path.name else []
            if found and found != own:
                leaks[str(path.relative_to(folder))] = found
    return leaks


def test_no_secret_is_in_any_output_or_file(server: OpenAIServer, place: Path, app: App) -> None:
    store = ("--store", "runs.db")
    run = call(
        "run",
        "flow.py",
        "--headless",
        "--thread",
        "t",
        "--record",
        "calls.jsonl",
        *store,
        TROUBLES=",".join(TROUBLE),
    )
    assert run.returncode == 1
    output = run.stdout.replace("\n  | ", " ")
    assert [trouble for trouble in TROUBLE if f"told: {trouble} " not in output] == []
    sent = {request.headers["authorization"] for request in server.requests}
    assert sent == {f"Bearer {ENV_KEY}", f"Bearer {OPTION_KEY}"}
    again = call("resume", "t", "--json", *store)
    said = {"run": run.stdout + run.stderr, "resume": again.stdout + again.stderr}
    looks = [(verb, "t") for verb in ("show", "log", "cost", "agents", "verify", "show", "export")]
    for words in (*looks, ("threads",), ("graph", "--thread", "t"), ("config",), ("doctor",)):
        for more in ((), ("--json",)):
            file = (f"export{len(more)}.jsonl",) if words[0] == "export" else ()
            where = store if words[0] not in ("config", "doctor") else ()
            done = app(*words, *file, *where, *more)
            said[" ".join((*words, *more))] = done.out + done.err
    assert {command: leaked(text) for command, text in said.items() if leaked(text)} == {}
    assert all(said.values())
    assert (place / "export0.jsonl").exists()
    assert "[private: secret]" in (place / "calls.jsonl").read_text()
    assert leaking_files(place) == {}


TOML_GRAPH = f"""
[graph]
name = "sent"

[channels.draft]
default = ""

[agents.one]
model = "openai/gpt-4o-mini"
api_base = "BASE"

num_retries = 0

[agents.one.options]
extra_headers = {{ X-Auth = "Bearer {TOML_KEY}" }}

[nodes.ask]
agent = "one"
prompt = "{LAST}"
writes = ["draft"]

[[edges]]
from = "START"
to = "ask"

[[edges]]
from = "ask"
to = "END"
"""


def test_no_key_in_a_graph_file_is_in_any_output_or_file(server: OpenAIServer, place: Path, app: App) -> None:
    file = place / "flow.toml"
    graph = TOML_GRAPH.replace("BASE", server.api_base)
    store = ("--store", "runs.db")
    file.write_text(graph.replace("extra_headers", f'api_key = "{TOML_KEY}"\nextra_headers'))
    refused = app.expect(2, "run", "flow.toml", "--headless", *store)
    assert "keys don't belong in a graph file" in refused.err
    assert leaked(refused.err) == []
    file.write_text(graph)
    run = app.expect(1, "run", "flow.toml", "--headless", "--thread", "t", "--record", "calls.jsonl", *store)
    assert {request.headers["x-auth"] for request in server.requests} == {f"Bearer {TOML_KEY}"}
    said = {"run": run.out + run.err}
    for words in (("resume", "t"), ("show", "t"), ("log", "t"), ("agents", "t"), ("graph", "flow.toml")):
        where = store if words[0] != "graph" else ()
        done = app(*words, "--json", *where)
        said[" ".join(words)] = done.out + done.err
    app.expect(0, "export", "t", "export.jsonl", *store)
    assert {command: leaked(text) for command, text in said.items() if leaked(text)} == {}
    assert all(said.values())
    file.unlink()
    assert leaking_files(place) == {}


@pytest.mark.parametrize(
    "line",
    [
        f'api_key = "{CONFIG_KEY}"',
        f'api_base = "https://me:{CONFIG_KEY}@example.org"',
        f'api_base = "{CONFIG_KEY}"',
        f'model = "openai/x"\napi_key = "{CONFIG_KEY}',
    ],
    ids=["no setting of ours", "in an address", "in place of an address", "without its end"],
)
def test_no_key_that_strayed_into_the_configuration_is_quoted(
    place: Path, app: App, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (place / "config.toml").write_text(f"{line}\n")
    monkeypatch.setenv("HITL_TUI_CONFIG", str(place / "config.toml"))
    for words in (("config",), ("doctor",), ("threads",), ("run", "flow.py", "--headless")):
        for more in ((), ("--json",)):
            done = app(*words, *more)
            assert done.out + done.err
            assert leaked(done.out + done.err) == []


def test_no_secret_is_on_screen(place: Path) -> None:
    with Terminal([*APP, "run", "flow.py", "--store", "runs.db"], size=(160, 60)) as terminal:
        terminal.wait_for("◉ input")
        terminal.press("s")
        terminal.wait_for("FAILED")
        terminal.press("q")
        terminal.wait_exit()
        assert leaked(bytes(terminal.raw).decode(errors="replace")) == []
    assert leaking_files(place) == {}
