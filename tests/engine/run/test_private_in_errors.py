"""No way of failing with a private value leaves it in what is recorded, shown or raised."""

from __future__ import annotations

import contextlib
import json
import traceback
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from hitl_tui import (
    END,
    START,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    HitlError,
    MemoryCheckpointer,
    NodeResult,
    RetryPolicy,
    StateGraph,
    UsageError,
    custom_condition,
)
from hitl_tui.engine.commands import Answer, Fork, execute
from hitl_tui.engine.commands.answering import expire
from hitl_tui.engine.commands.preview import preview
from hitl_tui.engine.log.requests import Request
from hitl_tui.team.telemetry import Spans
from tests.support.spec import spec

pytestmark = spec("8")

# No line of this file may hold it: failures show the lines around theirs.
SECRET = bytes.fromhex("5a713831202263616e617279220a7365636f6e64206f6620cea96c696e6573").decode()
PIN = int("904" + "217")
PARTS = (
    SECRET[:4],
    SECRET[6:12],
    SECRET[-6:],
    quote(SECRET[-6:]),
    repr(SECRET[-6:].encode())[2:-1],
    str(PIN),
)


def raising(*causes: Callable[[str], object]) -> Callable[[Any], Any]:
    """A node in which something raises that is given the private value."""

    def node(state: Any) -> Any:
        for cause in causes:
            cause(state["secret"])
        return {}

    return node


def throw(error: BaseException) -> Any:
    raise error


def chained(secret: str) -> None:
    try:
        float(secret)
    except ValueError as error:
        raise RuntimeError("can't be paid") from error


def noted(secret: str) -> None:
    error = RuntimeError("can't be paid")
    error.add_note(f"it was {secret}")
    raise error


def check(secret: str) -> None:
    assert secret == "other", secret


NODES: dict[str, Callable[[Any], Any]] = {
    "a key error": raising(lambda secret: {}[secret]),
    "a conversion": raising(float),
    "a conversion of bytes": raising(lambda secret: int(secret.encode())),
    "an assertion": raising(check),
    "a message": raising(lambda secret: throw(ValueError(f"no {secret} here"))),
    "the beginning of it": raising(lambda secret: throw(ValueError(f"{secret[:14]!r}..."))),
    "the end of it": raising(lambda secret: throw(ValueError(f"...{secret[-14:]}"))),
    "JSON in JSON": raising(lambda secret: throw(ValueError(json.dumps({"body": json.dumps(secret)})))),
    "a URL": raising(lambda secret: throw(OSError(f"https://x.test/?q={quote(secret)}"))),
    "an error of ours": raising(lambda secret: throw(UsageError(f"bad {secret}", f"not {secret}"))),
    "a cause": raising(chained),
    "a note": raising(noted),
    "a group": raising(lambda secret: throw(ExceptionGroup("two", [KeyError(secret), OSError(secret)]))),
    "a number": lambda state: throw(ValueError(f"no account {state['pin']}")),
    "an unknown channel": lambda state: {state["secret"]: 1},
    "a value of its own, and an unknown channel": lambda state: {"other": SECRET, f"x {SECRET}": 1},
    "a message that it returns": lambda state: NodeResult(text=state["secret"], status="failed"),
    "a route key": lambda state: {"go": True},
    "a route": lambda state: {"go": True},
    "a termination condition": lambda state: {},
    "a gate's payload": lambda state: {},
    "a reducer": lambda state: {"folded": 1},
    "a compensation": lambda state: {"go": True},
}


def route(way: str) -> Callable[[Any], str]:
    def pick(state: Any) -> str:
        if way == "a route" and state["go"]:
            raise KeyError(state["secret"])
        return str(state["secret"]) if way == "a route key" and state["go"] else "end"

    return pick


def fold(old: Any, _new: Any) -> Any:
    return float(old)


def graph_of(way: str) -> StateGraph:
    """START -> keep (which sets the private channels) -> fail -> END."""
    private: dict[str, Any] = {"visibility": "private"}
    channels = {
        "secret": Channel("", **private),
        "other": Channel("", **private),
        "pin": Channel(0, **private),
        "folded": Channel("", reducer=fold, **private),
        "people": Channel([], reducer="overwrite", **private),
        "go": Channel(False),
    }
    graph = StateGraph(channels, name="private")
    graph.add_node("keep", lambda _state: {"secret": SECRET, "pin": PIN})
    graph.add_node("fail", NODES[way])
    graph.add_edge(START, "keep").add_edge("keep", "fail")
    return graph.add_conditional_edge("fail", route(way), {"end": END})


class Facts:
    """All that a run shows, records and raises."""

    def __init__(self) -> None:
        self.store = MemoryCheckpointer()
        self.events: list[Any] = []
        self.words: list[str] = []

    def run(self, runner: Any, **options: Any) -> None:
        try:
            runner.invoke(options.pop("inputs", {}), thread_id="t", on_event=self.events.append, **options)
        except HitlError as error:
            self.words += [str(error), *map(str, error.args), error.details]

    def check(self, *, fails: bool = True) -> str:
        """All of it as text, in which no part of a private value is."""
        facts: list[Any] = [*self.events]
        for row in self.store.threads("", 99):
            thread = row.info.thread_id
            cursor = self.store.cursor(thread)
            assert cursor is not None
            facts += [cursor.error, cursor.reason, self.store.ledger(thread)]
            facts += [branch.outcome for branch in cursor.branches]
            for point in self.store.checkpoints(thread, None, 99):
                facts += [point.branches, point.text, point.note, point.streamed]
        text = "\n".join(
            (*self.words, *(msgspec.json.encode(fact, enc_hook=repr).decode() for fact in facts))
        )
        leaks = [part for part in PARTS if part in text]
        assert not leaks, text
        assert not fails or "[private: " in text
        return text


@pytest.mark.parametrize("way", NODES)
def test_no_error_has_a_private_value(way: str) -> None:
    facts = Facts()
    graph = graph_of(way)
    gates = []
    options: dict[str, Any] = {}
    if way == "a gate's payload":
        gates = [
            Gate(
                "fail",
                "ok?",
                [GateChoice("yes", "yes")],
                payload=lambda state: throw(KeyError(state["secret"])),
            )
        ]
    if way == "a termination condition":
        options["termination"] = custom_condition(
            lambda state: state["secret"] != "" and throw(KeyError(state["secret"]))
        )
    if way == "a compensation":
        graph = compensated()
    runner = graph.compile(checkpointer=facts.store, interrupt_after=gates, **options)
    facts.run(runner)
    if way == "a compensation":
        runner.rollback("t")
        shown = runner.run_info("t").rollback
        facts.words.append(repr(shown))
        assert [entry.args["n"] for entry in shown] == [12345]
    facts.check()


def compensated() -> StateGraph:
    """A node whose compensation fails, with private values in its arguments."""
    graph = StateGraph(
        {"secret": Channel("", visibility="private"), "pin": Channel(0, visibility="private")}, name="private"
    )
    graph.add_compensation("undo", lambda _state, _config, args: throw(KeyError(args["of"])))
    graph.add_node(
        "book",
        lambda _state: NodeResult(
            {"secret": SECRET, "pin": PIN},
            compensation=("undo", {"of": SECRET, "pin": PIN, "n": 12345, "all": [f"by {SECRET}"]}),
        ),
    )
    return graph.add_edge(START, "book").add_edge("book", END)


def test_retried_attempts_emit_no_private_value() -> None:
    facts = Facts()
    tries = iter([True, False])
    graph = StateGraph({"secret": Channel(SECRET, visibility="private"), "n": Channel(0)})
    graph.add_node(
        "work",
        lambda state: {"n": 1} if not next(tries) else throw(KeyError(state["secret"])),
        retry=RetryPolicy(2, wait=0),
    )
    facts.run(graph.add_edge(START, "work").add_edge("work", END).compile(checkpointer=facts.store))
    facts.check()


def test_what_a_node_streams_and_says_has_no_private_value() -> None:
    facts = Facts()
    graph = StateGraph({name: Channel("", visibility="private") for name in ("secret", "own", "pin")})

    def work(state: Any, config: Any) -> NodeResult:
        config.emit(f"it is {state['secret']}, pin {PIN}\n")
        return NodeResult({"own": SECRET[::-1] + "x"}, text=f"{state['secret']} and {SECRET[::-1]}x")

    graph.add_node("keep", lambda _state: {"secret": SECRET, "pin": PIN}).add_node("work", work)
    graph.add_edge(START, "keep").add_edge("keep", "work").add_edge("work", END)
    facts.run(graph.compile(checkpointer=facts.store))
    text = facts.check()
    assert SECRET[::-1][:8] not in text


def test_a_private_value_in_pieces_is_hidden_in_the_record() -> None:
    facts = Facts()
    graph = StateGraph({"secret": Channel(SECRET, visibility="private")})
    graph.add_node("work", lambda state, config: [config.emit(letter) for letter in state["secret"]] and None)
    facts.run(graph.add_edge(START, "work").add_edge("work", END).compile(checkpointer=facts.store))
    (kept,) = facts.store.checkpoints("t", None, 1)[0].streamed
    assert kept.text == "[private: secret]"


@pytest.mark.parametrize("on_error", ["collect", "fail"])
def test_failed_branches_emit_no_private_item(on_error: Any) -> None:
    facts = Facts()
    graph = StateGraph(
        {"people": Channel([], reducer="overwrite", visibility="private"), "n": Channel(0, reducer="sum")}
    )
    graph.add_node("keep", lambda _state: {"people": [{"name": SECRET}]})
    graph.add_map(
        "each", over="people", node=lambda _state, config: {}[config.item["name"]], on_error=on_error
    )
    graph.add_edge(START, "keep").add_edge("keep", "each").add_edge("each", END)
    facts.run(graph.compile(checkpointer=facts.store))
    facts.check()


def test_a_subgraph_thread_emits_no_private_value() -> None:
    facts = Facts()
    inner = StateGraph({"given": Channel("", visibility="private")}, name="inner")
    inner.add_node("ask", lambda state: {}[state["given"]]).add_edge(START, "ask").add_edge("ask", END)
    outer = StateGraph({"secret": Channel(SECRET, visibility="private")}, name="outer")
    outer.add_subgraph("team", inner, inputs={"secret": "given"}, outputs={})
    outer.add_edge(START, "team").add_edge("team", END)
    facts.run(outer.compile(checkpointer=facts.store))
    facts.check()


def test_private_parts_of_the_context_are_hidden() -> None:
    facts = Facts()
    graph = StateGraph({"n": Channel(0)})
    graph.add_node("work", lambda _state, config: {}[config.context["token"]])
    graph.add_edge(START, "work").add_edge("work", END)
    runner = graph.compile(checkpointer=facts.store, private_context=["token"])
    facts.run(runner, context={"token": SECRET})
    facts.events.clear()
    cursor = facts.store.cursor("t")
    assert cursor is not None
    assert cursor.error is not None
    assert "[private: token]" in cursor.error.message


def test_an_answer_whose_function_fails_shows_no_private_value() -> None:
    facts = Facts()
    graph = StateGraph({"secret": Channel(SECRET, visibility="private"), "n": Channel(0)})
    graph.add_node("work", lambda _state: {}).add_edge(START, "work").add_edge("work", END)
    choice = GateChoice("yes", "yes", values=lambda state: {"n": float(state["secret"])})
    runner = graph.compile(checkpointer=facts.store, interrupt_after=[Gate("work", "ok?", [choice])])
    request = runner.invoke({}, thread_id="t").pending[0]
    with pytest.raises(HitlError) as failure:
        runner.answer("t", request.id, "yes", step=request.step)
    facts.words += [str(failure.value), failure.value.details]
    facts.check()


CHOICES = [
    GateChoice("yes", "yes", values=lambda state: throw(KeyError(state["secret"]))),
    GateChoice("ours", "ours", values=lambda state: throw(UsageError(f"no {state['secret']}"))),
    GateChoice("no", "no"),
]


def answer(choice: str) -> Callable[[GraphRunner, Request], object]:
    return lambda runner, request: runner.answer("t", request.id, choice, step=request.step)


COMMANDS: dict[str, Callable[[GraphRunner, Request], object]] = {
    "an answer": answer("yes"),
    "an answer with an error of ours": answer("ours"),
    "a preview of an answer": lambda runner, request: preview(
        runner.open("t"), Answer(request.id, "yes", request.step)
    ),
    "an edit, which changes what the gate shows": lambda runner, _: runner.update_state("t", {"go": True}),
    "an edit, then a run": lambda runner, _: (
        runner.update_state("t", {"go": True}, as_node="fail"),
        runner.invoke(thread_id="t"),
    ),
    "a fork": lambda runner, _: execute(runner.open("t"), Fork(1, "f", {"go": True})),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_has_a_private_value_in_its_error(command: str, caplog: pytest.LogCaptureFixture) -> None:
    graph = graph_of("a route key")
    gate = Gate(
        "keep",
        "ok?",
        CHOICES,
        payload=lambda state: throw(KeyError(state["secret"])) if state["go"] else None,
    )
    runner = graph.compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
    request = runner.invoke({}, thread_id="t").pending[0]
    words = ""
    try:
        COMMANDS[command](runner, request)
    except Exception as error:
        words = "".join(traceback.format_exception(error)) + getattr(error, "details", "")
    words += caplog.text
    assert not [part for part in PARTS if part in words], words
    assert "[private: " in words


def test_a_deadline_has_no_private_value_in_its_error() -> None:
    choices = [CHOICES[0], CHOICES[2]]
    gate = Gate("keep", "ok?", choices, deadline=0.001, on_timeout="yes")
    runner = graph_of("a route").compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
    runner.invoke({}, thread_id="t")
    session = runner.open("t")
    session.clock = lambda: session.cursor.pending[0].deadline + 1
    with session.writing(), pytest.raises(HitlError) as raised:
        expire(session)
    words = "".join(traceback.format_exception(raised.value))
    assert "[private: secret]" in words
    assert not [part for part in PARTS if part in words]


@pytest.mark.parametrize("way", NODES)
def test_no_trace_of_telemetry_has_a_private_value(way: str) -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    provider, spans = sdk.TracerProvider(), memory.InMemorySpanExporter()
    provider.add_span_processor(export.SimpleSpanProcessor(spans))
    runner = graph_of(way).compile(checkpointer=MemoryCheckpointer())
    with contextlib.suppress(HitlError):
        runner.invoke({"go": True}, thread_id="t", on_event=Spans(runner, provider))
    sent = "\n".join(span.to_json() for span in spans.get_finished_spans())
    provider.shutdown()
    assert "node fail" in sent
    assert not [part for part in PARTS if part in sent]
