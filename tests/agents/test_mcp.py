"""Tools of MCP servers, real ones: programs over their standard streams, and one over HTTP."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import END, START, Agent, Channel, McpServer, MemoryCheckpointer, ScriptedModel, StateGraph
from hitl_tui.agents import ToolCall
from hitl_tui.agents.agent import submit
from hitl_tui.agents.mcp import ServerFailed
from hitl_tui.engine.log.events import Event, ToolCalled
from hitl_tui.errors import UsageError

PROGRAM = Path(__file__).parents[1] / "support" / "mcp_server.py"


@contextlib.contextmanager
def shelf(*arguments: str, **options: Any) -> Iterator[McpServer]:
    """A server of ours, ended behind the test."""
    server = McpServer("shelf", [sys.executable, str(PROGRAM), *arguments], **options)
    try:
        yield server
    finally:
        submit(server.close()).result(10)


def librarian(server: McpServer, *calls: ToolCall, **options: Any) -> Agent:
    """An agent that makes these calls and then says what it was told."""

    def reply(messages: Any) -> Any:
        results = [turn["content"] for turn in messages if turn["role"] == "tool"]
        return calls[len(results)] if len(results) < len(calls) else " / ".join(results) or "done"

    return Agent("librarian", ScriptedModel(reply), tools=[server], **options)


def call(tool: str, **arguments: Any) -> ToolCall:
    """A call as a model asks for it."""
    return ToolCall(tool, json.dumps(arguments))


@pytest.mark.slow
def test_tools_of_a_program_are_listed_and_called_once_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_SHELF", "B7")
    with shelf(env={"SHELF": "$OUR_SHELF"}) as server:
        agent = librarian(server, call("find", title="Emma", copies=2), call("books_lend", title="Emma"))
        assert not agent.tools  # nothing was started yet
        said = agent.chat("Is Emma there?")
        assert said.startswith("2 of Emma on shelf B7")
        assert '"lent"' in said
        assert set(agent.tools) == {"find", "books_lend", "lose", "crash"}
        schema = agent.tools["find"].schema["function"]
        assert schema["description"] == "Find a book."
        assert schema["parameters"]["required"] == ["title"]


@pytest.mark.slow
def test_an_error_in_a_tool_is_reported_to_the_model() -> None:
    with shelf() as server:
        agent = librarian(server, call("lose", title="Emma"), call("find", name="Emma"), call("sell"))
        said = agent.chat("Go on")
    assert "Emma is gone" in said
    assert "the arguments don't fit" in said
    assert "there is no tool 'sell'; tools: find, books_lend, lose, crash" in said


@pytest.mark.integration
def test_a_dead_mcp_server_is_reported_at_once_and_restarted() -> None:
    with shelf() as server:
        agent = librarian(server, call("crash"), call("find", title="Emma"))
        said = agent.chat("Go on")
    assert "MCP server 'shelf' went away while 'crash' ran" in said
    assert "1 of Emma" in said


@pytest.mark.integration
def test_selected_tools_can_be_renamed() -> None:
    with shelf(only=["find"], prefix="shelf_") as server:
        agent = librarian(server, call("shelf_find", title="Emma"))
        assert agent.chat("Go on").startswith("1 of Emma")
        assert set(agent.tools) == {"shelf_find"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"only": ["burn"]}, "has no tool 'burn'"),
        ({"env": {"KEY": "$NOT_SET_ANYWHERE"}}, "the variable NOT_SET_ANYWHERE is not set"),
    ],
)
@pytest.mark.integration
def test_an_mcp_server_without_the_wanted_tools_is_reported(options: dict[str, Any], words: str) -> None:
    with shelf(**options) as server, pytest.raises(UsageError, match=words):
        librarian(server).chat("Go on")


@pytest.mark.integration
def test_a_program_that_does_not_start_is_reported_with_its_last_output() -> None:
    program = "import sys; sys.exit('no shelf here')"
    server = McpServer("shelf", [sys.executable, "-c", program])
    with pytest.raises(ServerFailed, match="did not start") as failure:
        librarian(server).chat("Go on")
    assert "no shelf here" in failure.value.hint
    with pytest.raises(ServerFailed, match="no-such-program"):
        librarian(McpServer("shelf", ["no-such-program"])).chat("Go on")


def test_a_server_needs_a_valid_command_or_a_url() -> None:
    for wrong in ({}, {"command": "python server.py"}, {"command": ["x"], "url": "http://x"}, {"url": "x"}):
        with pytest.raises(UsageError, match="shelf"):
            McpServer("shelf", **wrong)  # type: ignore[arg-type]


@pytest.mark.integration
def test_an_approved_result_is_stored_and_tainted(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    with shelf(env={"CALLS": str(calls)}, approve="always", only=["find"]) as server:
        graph = StateGraph({"reply": Channel("")})
        graph.add_node("ask", lambda state, config: {"reply": config.agents["librarian"].chat("Emma?")})
        graph.add_edge(START, "ask").add_edge("ask", END)
        agents = {"librarian": librarian(server, call("find", title="Emma"))}
        store = MemoryCheckpointer()
        runner = graph.compile(checkpointer=store, agents=agents)
        waiting = runner.invoke(thread_id="t")
        (request,) = waiting.pending
        assert not calls.exists()  # nobody has agreed yet
        runner.answer("t", request.id, {"choice": "approve"}, step=request.step, actor="ann")
        events: list[Event] = []
        assert runner.invoke(thread_id="t", on_event=events.append)["reply"] == "1 of Emma on shelf ?"
        assert calls.read_text() == "Emma\n"
        (used,) = [event for event in events if isinstance(event, ToolCalled)]
        assert (used.tool, used.arguments, used.error) == ("find", {"title": "Emma", "copies": 1}, None)
        assert runner.updates("t", 1)[-1].tainted
        assert runner.verify("t", strict=True).ok


@pytest.mark.integration
def test_a_person_is_asked_about_a_call_during_which_the_server_went_away() -> None:
    with shelf(effects="once", only=["crash"]) as server:
        graph = StateGraph({"reply": Channel("")})
        graph.add_node("ask", lambda state, config: {"reply": config.agents["librarian"].chat("Emma?")})
        graph.add_edge(START, "ask").add_edge("ask", END)
        agents = {"librarian": librarian(server, call("crash"))}
        runner = graph.compile(checkpointer=MemoryCheckpointer(), agents=agents)
        (request,) = runner.invoke(thread_id="t").pending
        assert request.title == "Was crash called?"
        runner.answer("t", request.id, {"choice": "made", "text": "it fell"}, step=request.step, actor="ann")
        assert runner.invoke(thread_id="t")["reply"] == "it fell"
        assert runner.verify("t", strict=True).ok


# The HTTP client below the SDK of MCP leaves the socket of its event stream to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.integration
def test_tools_over_http() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = subprocess.Popen(
        [sys.executable, str(PROGRAM), "http", str(port)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    server = McpServer("shelf", url=f"http://127.0.0.1:{port}/mcp", headers={"X-Who": "$HOME"})
    try:
        assert program.stderr is not None
        for line in program.stderr:
            if b"running on" in line:
                break
        assert librarian(server, call("find", title="Emma")).chat("Go on").startswith("1 of Emma")
    finally:
        submit(server.close()).result(10)
        program.kill()
        program.communicate()


def ended(pid: int, *, within: float) -> bool:
    """Wait for the end of a process that is no child of this one."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], within)[0])
    finally:
        os.close(process)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux alone tells the end of others' children")
@pytest.mark.integration
def test_a_program_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    program = f"""
import os, sys
from hitl_tui import Agent, McpServer, ScriptedModel
server = McpServer("shelf", [sys.executable, "-c",
    "import os, runpy; open({str(note)!r}, 'w').write(str(os.getpid()));"
    "runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"])
print(Agent("a", ScriptedModel(["done"]), tools=[server]).chat("Go on"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    assert ended(int(note.read_text()), within=60)
