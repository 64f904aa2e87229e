"""Spans of a thread, as a collector gets them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hitl_tui import END, START, Agent, Channel, MemoryCheckpointer, RetryPolicy, ScriptedModel, StateGraph
from hitl_tui.agents import ToolCall
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.errors import NodeFailed
from hitl_tui.team.telemetry import Spans


class Memory:
    """A collector in this process."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def spans(self) -> dict[str, ReadableSpan]:
        """The spans that have ended, by name."""
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def above(self, name: str) -> str:
        """The name of the span that one stands below."""
        parent = self.spans()[name].parent
        assert parent is not None
        names = {
            span.context.span_id: span.name for span in self.exporter.get_finished_spans() if span.context
        }
        return names.get(parent.span_id, "")


def weather(city: str) -> str:
    """The weather of a city."""
    return f"secret rain in {city}"


def guided() -> GraphRunner:
    """A graph with an agent that calls a tool, and a person behind it."""
    graph = StateGraph({"reply": Channel("")}, name="guided")
    graph.add_node("ask", lambda state, config: {"reply": config.agents["guide"].chat("secret prompt")})
    graph.add_node("send", lambda state, config: {})
    graph.add_edge(START, "ask").add_edge("ask", "send").add_edge("send", END)
    model = ScriptedModel([ToolCall("weather", {"city": "Graz"}), "secret reply"])
    return graph.compile(
        checkpointer=MemoryCheckpointer(),
        agents={"guide": Agent("guide", model, tools=[weather])},
        interrupt_after=["ask"],
    )


def test_spans_of_run_node_attempt_and_calls_are_nested() -> None:
    memory, runner = Memory(), guided()
    runner.invoke(thread_id="t", on_event=Spans(runner, memory.provider))
    spans = memory.spans()
    assert memory.above("node ask") == "invoke_workflow guided"
    assert memory.above("attempt 1") == "node ask"
    assert memory.above("execute_tool weather") == "attempt 1"
    (chat,) = [span for name, span in spans.items() if name.startswith("chat ")]
    assert memory.above(chat.name) == "attempt 1"
    assert chat.attributes is not None
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.agent.name"] == "guide"
    assert chat.attributes["gen_ai.usage.output_tokens"] > 0  # type: ignore[operator]
    run = spans["invoke_workflow guided"]
    assert run.attributes is not None
    assert run.attributes["hitl_tui.status"] == "waiting"
    assert run.attributes["gen_ai.conversation.id"] == "t"


def test_the_wait_for_a_person_and_all_runs_are_of_one_trace_below_the_threads_span() -> None:
    memory, runner = Memory(), guided()
    (request,) = runner.invoke(thread_id="t", on_event=Spans(runner, memory.provider)).pending
    asked = [entry for entry in runner.store.ledger("t") if entry.kind == "request"]  # type: ignore[union-attr]
    runner.invoke(thread_id="t", on_event=Spans(runner, memory.provider))  # as another process would
    spans = memory.spans()
    wait = spans["wait for a human"]
    assert wait.attributes is not None
    assert wait.attributes["hitl_tui.request.id"] == request.id
    assert wait.start_time == asked[0].at * 1000
    assert wait.end_time is not None
    assert wait.end_time >= wait.start_time
    thread = spans["thread guided"]
    assert thread.parent is None
    assert memory.above("invoke_workflow guided") == memory.above("wait for a human") == "thread guided"
    assert len({span.context.trace_id for span in spans.values() if span.context}) == 1


def test_spans_have_no_prompts_replies_or_values() -> None:
    memory, runner = Memory(), guided()
    runner.invoke(thread_id="t", on_event=Spans(runner, memory.provider))
    assert "secret" not in "".join(span.to_json() for span in memory.exporter.get_finished_spans())


def test_each_attempt_has_a_span_and_failures_name_their_kind_only() -> None:
    tries = []

    def flaky(state: Any, config: Any) -> dict[str, Any]:
        tries.append(1)
        raise ValueError("secret value")

    graph = StateGraph({"n": Channel(0)}, name="flaky")
    graph.add_node("flaky", flaky, retry=RetryPolicy(max_attempts=2, wait=0.001))
    graph.add_edge(START, "flaky").add_edge("flaky", END)
    memory, runner = Memory(), graph.compile(checkpointer=MemoryCheckpointer())
    with pytest.raises(NodeFailed):
        runner.invoke(thread_id="t", on_event=Spans(runner, memory.provider))
    spans = memory.spans()
    assert len(tries) == 2
    assert memory.above("attempt 2") == "node flaky"
    assert not spans["attempt 1"].status.is_ok
    assert not spans["invoke_workflow flaky"].status.is_ok
    assert "secret" not in "".join(span.to_json() for span in spans.values())


class Received:
    """An OTLP collector over HTTP: the names of the spans it was sent."""

    def __init__(self) -> None:
        self.names: list[str] = []
        received = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = ExportTraceServiceRequest()
                request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        received.names += [span.name for span in scope.spans]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def received() -> Iterator[Received]:
    """A collector that listens."""
    collector = Received()
    yield collector
    collector.server.shutdown()
    collector.server.server_close()


def hitl_tui(tmp_path: Path, url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command with a collector in its settings."""
    env = {**os.environ, "HITL_TUI_TELEMETRY": url, "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    run = [sys.executable, "-m", "hitl_tui", *arguments]
    return subprocess.run(run, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.integration
def test_commands_send_spans_to_the_collector_of_the_settings(tmp_path: Path, received: Received) -> None:
    ran = hitl_tui(
        tmp_path, received.url, "run", "review", "--thread", "t", "--headless", "--input", "task=x"
    )
    assert ran.returncode == 3, ran.stderr
    assert "invoke_workflow review" in received.names
    approved = hitl_tui(tmp_path, received.url, "approve", "t")
    assert approved.returncode == 0, approved.stderr
    assert "wait for a human" in received.names


@pytest.mark.integration
def test_an_unreachable_collector_is_reported_at_the_end(tmp_path: Path) -> None:
    ran = hitl_tui(
        tmp_path, "http://127.0.0.1:9", "run", "counter", "--thread", "t", "--headless", "--input", "limit=2"
    )
    assert ran.returncode == 0, ran.stderr
    assert "spans could not be sent to http://127.0.0.1:9" in ran.stderr
    assert "Traceback" not in ran.stderr
