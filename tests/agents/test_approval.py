"""A person agrees to a tool's call below a node: nothing is asked, paid or done twice on the way."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.agents import Agent, ScriptedModel, Tool, ToolCall
from hitl_tui.engine.log.events import ToolCalled
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.nodes.results import RunResult
from hitl_tui.errors import AnswerRefused
from tests.agents.crashing_tool import build
from tests.support.openai_server import Call, OpenAIServer, Say
from tests.support.spec import spec
from tests.support.watching import PATIENCE

pytestmark = spec("11")

LOOKUP = Say((), calls=(Call("lookup", '{"name": "ann"}', "one"),))
SEND = Say(("I will write. ",), calls=(Call("send", '{"to": "ann@example.org", "text": "hi"}', "two"),))
DONE = Say(("All done.",))

CHANGED = "[A person changed this call before it was made. It ran with these arguments: "


class Desk:
    """The thread `t` of the clerk, and what its tools did."""

    def __init__(self, server: OpenAIServer, folder: Path) -> None:
        self.server = server
        self.sent = folder / "sent.txt"
        self.store = str(folder / "runs.db")
        self.events: list[Any] = []
        self.runner = build(self.store, self.server.api_base, self.sent)

    def open(self) -> None:
        """Open the store again, as another process would: nothing else is left."""
        self.close()
        self.runner = build(self.store, self.server.api_base, self.sent)

    def close(self) -> None:
        assert self.runner.store is not None
        self.runner.store.close()

    def run(self) -> RunResult:
        return self.runner.invoke({} if not self.exists else None, thread_id="t", on_event=self.events.append)

    @property
    def exists(self) -> bool:
        return self.runner.store is not None and self.runner.store.info("t") is not None

    @property
    def request(self) -> Request:
        (request,) = self.runner.open("t").cursor.pending
        return request

    def answer(self, value: Any) -> RunResult:
        request = self.request
        self.runner.answer("t", request.id, value, step=request.step, actor="ann")
        return self.run()

    @property
    def did(self) -> list[str]:
        return self.sent.read_text().splitlines() if self.sent.exists() else []


@pytest.fixture
def desk(server: OpenAIServer, tmp_path: Path) -> Iterator[Desk]:
    server.plan(LOOKUP, SEND, DONE)
    opened = Desk(server, tmp_path)
    yield opened
    opened.close()


def last_tool_result(server: OpenAIServer) -> str:
    """What the newest request tells of the last tool."""
    return str(server.requests[-1].body["messages"][-1]["content"])


@pytest.mark.slow
def test_the_call_waits_with_its_exact_arguments(desk: Desk) -> None:
    result = desk.run()
    assert (result.status, result.reason) == ("waiting", "approval")
    payload = desk.request.payload
    assert (payload["type"], payload["name"], payload["tool_call_id"]) == ("tool_approval", "send", "two")
    assert payload["args"] == {"to": "ann@example.org", "text": "hi"}
    assert [choice.id for choice in desk.request.choices] == ["approve", "edit", "reject", "respond"]
    assert desk.did == ["lookup ann"]


@pytest.mark.parametrize("restart", [False, True], ids=["same process", "another process"])
@pytest.mark.parametrize(
    ("answer", "did", "message"),
    [
        ("approve", ["send ann@example.org hi"], "sent"),
        (
            {"choice": "edit", "args": {"to": "bob@example.org", "text": "hello"}},
            ["send bob@example.org hello"],
            CHANGED + '{"to": "bob@example.org", "text": "hello"}]\nsent',
        ),
        ({"choice": "reject", "text": "not today"}, [], "Error: A person refused this call: not today"),
        ({"choice": "respond", "text": "already sent"}, [], "already sent"),
    ],
    ids=["approve", "edit", "reject", "respond"],
)
@pytest.mark.slow
def test_nothing_is_asked_or_done_twice(
    desk: Desk, restart: bool, answer: Any, did: list[str], message: str
) -> None:
    desk.run()
    assert len(desk.server.requests) == 2
    if restart:
        desk.open()
    result = desk.answer(answer)
    assert (result.status, result["answer"]) == ("completed", "All done.")
    assert len(desk.server.requests) == 3
    assert desk.did == ["lookup ann", *did]
    assert last_tool_result(desk.server) == message


@pytest.mark.integration
def test_a_killed_process_loses_no_pending_call(desk: Desk) -> None:
    program = [sys.executable, "-m", "tests.agents.crashing_tool"]
    killed = subprocess.run(
        [*program, desk.store, desk.server.api_base, str(desk.sent)],
        capture_output=True, timeout=100, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr
    assert len(desk.server.requests) == 2
    result = desk.answer("approve")
    assert result["answer"] == "All done."
    assert len(desk.server.requests) == 3
    assert desk.did == ["lookup ann", "send ann@example.org hi"]
    assert desk.runner.open("t").cursor.first_call == 0
    assert desk.runner.verify("t", strict=True).ok


@pytest.mark.slow
def test_the_report_counts_each_model_call_once(desk: Desk) -> None:
    desk.run()
    desk.open()
    desk.answer("approve")
    (line,) = desk.runner.cost_report("t")
    assert (line.calls, line.tokens_in) == (3, 21)
    assert desk.runner.run_info("t").tokens_in == 21


def test_a_restarted_node_emits_all_its_events_again(desk: Desk) -> None:
    desk.run()
    desk.events.clear()
    desk.answer("approve")
    assert [event.tool for event in desk.events if isinstance(event, ToolCalled)] == ["lookup", "send"]


def test_an_edit_that_does_not_fit_the_tool_is_refused(desk: Desk) -> None:
    desk.run()
    request = desk.request
    with pytest.raises(AnswerRefused, match="to"):
        desk.runner.answer(
            "t", request.id, {"choice": "edit", "args": {"to": 3, "text": "x"}}, step=request.step
        )
    assert desk.request.id == request.id
    assert desk.answer("approve")["answer"] == "All done."


@pytest.mark.slow
def test_a_node_whose_question_changed_asks_again(desk: Desk) -> None:
    desk.run()
    desk.runner.update_state("t", {"who": "bob"})
    desk.server.plan(LOOKUP, SEND, DONE)
    desk.server.next_answer()  # the one left over
    result = desk.answer("approve")
    assert result.status == "waiting", "what was approved was another call"
    assert desk.did == ["lookup ann", "lookup ann"]
    assert desk.answer("approve").status == "completed"
    assert desk.did[2:] == ["send ann@example.org hi"]


def test_a_fork_asks_again(desk: Desk) -> None:
    desk.run()
    desk.runner.fork("t", 0, "f")
    desk.server.next_answer()
    desk.server.plan(LOOKUP, SEND)
    result = desk.runner.invoke(thread_id="f")
    assert result.status == "waiting"
    assert desk.did == ["lookup ann", "lookup ann"]


def run_one(work: Callable[..., Any], agent: Agent) -> GraphRunner:
    """A runner of one node that works with one agent."""
    return (
        StateGraph({"out": Channel(None)})
        .add_node("work", work)
        .add_edge(START, "work")
        .add_edge("work", END)
        .compile(checkpointer=MemoryCheckpointer(), agents={"a": agent})
    )


def answer_all(runner: GraphRunner, choose: Callable[[Any], Any]) -> RunResult:
    """Answer questions until none is left."""
    result = runner.invoke({}, thread_id="t")
    while result.pending:
        (request,) = result.pending
        runner.answer("t", request.id, choose(request.payload["args"]), step=request.step)
        result = runner.invoke(thread_id="t")
    return result


@pytest.mark.parametrize("late", ["x", "y"])
def test_parallel_agents_each_get_the_answer_to_their_own_call(late: str) -> None:
    """Whichever asks first in one run of the node may come second in the next."""
    ran: list[str] = []
    other_asks = threading.Event()

    def stamp(what: str) -> str:
        """Stamp something."""
        ran.append(what)
        return f"stamped {what}"

    async def reply(messages: Any) -> Any:
        if messages[-1]["role"] == "tool":
            return messages[-1]["content"]
        what = messages[-1]["content"]
        if what == late:
            assert await asyncio.to_thread(other_asks.wait, PATIENCE)
        return ToolCall("stamp", {"what": what})

    def must_ask(arguments: Any) -> bool:
        if arguments["what"] != late:
            other_asks.set()
        return True

    async def work(_state: Any, config: Any) -> Any:
        agent = config.agents["a"]
        replies = await asyncio.gather(*(agent.fresh().achat(what) for what in ("x", "y")))
        return {"out": list(replies)}

    agent = Agent("a", ScriptedModel(reply, pace=0), tools=[Tool(stamp, approve=must_ask)])
    result = answer_all(
        run_one(work, agent),
        lambda args: "approve" if args["what"] == "x" else {"choice": "reject", "text": "no y"},
    )
    assert result["out"] == ["stamped x", "Error: A person refused this call: no y"]
    assert ran == ["x"]


def test_a_node_and_its_tools_each_get_their_own_answers() -> None:
    def work(_state: Any, config: Any) -> Any:
        first = config.interrupt("a number?")
        said = config.agents["a"].chat("go")
        return {"out": [first, said, config.interrupt("another?")]}

    def stamp() -> str:
        """Stamp."""
        return "ok"

    script = ScriptedModel(
        lambda m: m[-1]["content"] if m[-1]["role"] == "tool" else ToolCall("stamp"), pace=0
    )
    runner = run_one(work, Agent("a", script, tools=[stamp], approve="always"))
    result = runner.invoke({}, thread_id="t")
    for value in (1, "approve", 2):
        (request,) = result.pending
        runner.answer("t", request.id, value, step=request.step)
        result = runner.invoke(thread_id="t")
    assert result["out"] == [1, "ok", 2]


def test_a_waiting_attempt_does_not_store_its_turns_twice() -> None:
    def work(_state: Any, config: Any) -> Any:
        agent = config.agents["a"]
        agent.chat("first")
        config.interrupt("go on?")
        return {"out": [turn["content"] for turn in agent.turns]}

    runner = run_one(work, Agent("a", ScriptedModel(["one", "never"], pace=0)))
    runner.invoke({}, thread_id="t")
    (request,) = runner.open("t").cursor.pending
    runner.answer("t", request.id, "yes", step=request.step)
    assert runner.invoke(thread_id="t")["out"] == ["first", "one"]


def test_the_rule_of_a_tool_overrides_that_of_the_agent() -> None:
    def quiet() -> str:
        """Do nothing much."""
        return "ok"

    script = ScriptedModel([ToolCall("quiet"), "done"], pace=0)
    agent = Agent("a", script, tools=[Tool(quiet, approve="never")], approve="always")
    runner = run_one(lambda _s, config: {"out": config.agents["a"].chat("go")}, agent)
    assert runner.invoke({}, thread_id="t")["out"] == "done"


def test_each_branch_of_a_map_asks_for_its_own_call_and_runs_it_once() -> None:
    ran: list[str] = []
    asked: list[str] = []

    def stamp(what: str) -> str:
        """Stamp something."""
        ran.append(what)
        return f"stamped {what}"

    def reply(messages: Any) -> Any:
        if messages[-1]["role"] == "tool":
            return messages[-1]["content"]
        asked.append(messages[-1]["content"])
        return ToolCall("stamp", {"what": messages[-1]["content"]})

    async def work(_state: Any, config: Any) -> Any:
        return {"out": await config.agents["a"].fresh().achat(config.item)}

    runner = (
        StateGraph(
            {"items": Channel(["x", "y", "x"], reducer="overwrite"), "out": Channel([], reducer="append")}
        )
        .add_map("m", over="items", node=work)
        .add_edge(START, "m")
        .add_edge("m", END)
        .compile(
            checkpointer=MemoryCheckpointer(),
            agents={"a": Agent("a", ScriptedModel(reply, pace=0), tools=[stamp], approve="always")},
        )
    )
    result = runner.invoke({}, thread_id="t")
    assert [request.path for request in result.pending] == ["m[0]", "m[1]", "m[2]"]
    for request in result.pending:
        verdict = "approve" if request.payload["args"]["what"] == "x" else {"choice": "reject", "text": "no"}
        runner.answer("t", request.id, verdict, step=request.step)
    result = runner.invoke(thread_id="t")
    assert result["out"] == ["stamped x", "Error: A person refused this call: no", "stamped x"]
    assert (ran, sorted(asked)) == (["x", "x"], ["x", "x", "y"])
    assert runner.cost_report("t")[0].calls == 6
