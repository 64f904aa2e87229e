"""What people declare wrongly is refused when it is declared: with a clear error, and nothing is stored."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from hitl_tui import (
    END,
    START,
    Agent,
    Artifact,
    Channel,
    Gate,
    GateChoice,
    HitlError,
    InputField,
    Limits,
    McpServer,
    MemoryCheckpointer,
    ModelUse,
    NodeFailed,
    NodeResult,
    RetryPolicy,
    ScriptedModel,
    StateGraph,
    Tool,
    WorkflowState,
    advisor_workflow,
    cost_limit,
    custom_condition,
    debate_workflow,
    last_n,
    max_turns,
    planner_workflow,
    quorum,
    sequential_workflow,
    supervisor_workflow,
    text_match,
)
from hitl_tui.engine import commands
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.engine.thread.comments import Comment


class Hostile:
    """An object that fails whatever it is asked."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        raise RuntimeError("measured")

    def __bool__(self) -> bool:
        raise RuntimeError("asked for truth")

    def __repr__(self) -> str:
        raise RuntimeError("shown")


NOBODY = object()
TEXTS: list[Any] = [5, True, 1.5, b"x", ["x"], {"x": 1}, object(), "\ud800", len, NOBODY, Hostile()]
NO_NUMBERS: list[Any] = ["5", True, float("nan"), float("inf"), [1], {}, object(), b"1", Hostile()]
NUMBERS: list[Any] = [*NO_NUMBERS, -float("inf"), -1]
NOT_WHOLE: list[Any] = [*NO_NUMBERS, 1.5, 0.0, 1 << 70]
WHOLE: list[Any] = [*NOT_WHOLE, -1]
FLAGS: list[Any] = [0, 1, "yes", "", None, [], object(), Hostile()]
LISTS: list[Any] = ["ann", 5, [1], [None], {"a": 1}, [b"x"], object(), ["\ud800"], [["a"]], Hostile()]
DICTS: list[Any] = ["x", 5, [1], [("a", 1)], {1: 2}, {None: 1}, {"\ud800": 1}, object(), Hostile()]
FUNCTIONS: list[Any] = ["f", 5, [len], {}, object(), Hostile()]
ONE_OF: list[Any] = ["foo", "", 5, True, None, ["x"], object(), b"public", Hostile()]
STRUCTS: list[Any] = ["x", 5, [1], True, object(), Hostile()]
JSON_DICTS: list[Any] = [
    *DICTS,
    {"a": object()},
    {"a": float("nan")},
    {"a": b"x"},
    {"a": {1: 2}},
    {"a": "\ud800"},
]


def none_but(values: list[Any]) -> list[Any]:
    """The same, and None."""
    return [*values, None]


def a_gate(**fields: Any) -> Any:
    return Gate(**{"node": "a", "title": "Good?", "choices": [GateChoice("yes", "Yes")], **fields})


def a_graph() -> StateGraph:
    graph = StateGraph({"n": Channel(0), "items": Channel([], reducer="append")})
    return graph.add_node("a", lambda state: {"n": 1}).add_edge(START, "a").add_edge("a", END)


STORE = MemoryCheckpointer()


def compiled(**fields: Any) -> Any:
    return a_graph().compile(**{"checkpointer": STORE, **fields})


def run(node: Callable[..., Any]) -> Any:
    """What a node that declares something wrongly comes to: the thread is intact, and can be looked at."""
    store = MemoryCheckpointer()
    graph = StateGraph({"n": Channel(0)}).add_node("a", node).add_edge(START, "a").add_edge("a", END)
    runner = graph.compile(checkpointer=store)
    try:
        runner.invoke(thread_id="t")
    finally:
        assert runner.verify("t", strict=True).ok
        assert runner.history("t")
    return None


def emitted(text: Any) -> Any:
    return run(lambda state, config: config.emit(text))


def asked(**fields: Any) -> Any:
    asks = {"kind": "approve", "title": "Pay?", "payload": {"amount": 5}, **fields}
    return run(lambda state, config: config.interrupt(asks))


def a_tool(amount: int) -> str:
    """Pay."""
    return str(amount)


def chatter(name: str) -> Agent:
    return Agent(name, ScriptedModel(["x"]))


def command(kind: str, **fields: Any) -> Callable[..., Any]:
    return lambda **given: getattr(commands, kind)(**{**fields, **given})


Fields = Mapping[str, list[Any]]
DECLARATIONS: dict[str, tuple[Callable[..., Any], Fields]] = {
    "GateChoice": (
        lambda **given: GateChoice(**{"id": "yes", "label": "Yes", **given}),
        {
            "id": none_but([*TEXTS, ""]),
            "label": none_but(TEXTS),
            "key": none_but(TEXTS),
            "text": ONE_OF,
            "values": none_but(JSON_DICTS),
        },
    ),
    "Gate": (
        a_gate,
        {
            "node": none_but(TEXTS),
            "title": none_but([*TEXTS, ""]),
            "choices": [*LISTS, [], [GateChoice("a", "A")] * 2, "yes", None],
            "kind": ONE_OF,
            "subject": TEXTS,
            "payload": FUNCTIONS,
            "recommended": [*TEXTS, "no"],
            "reviewers": none_but(LISTS),
            "quorum": none_but([*WHOLE, 0]),
            "one_account": FLAGS,
            "logins": none_but(LISTS),
            "signed": FLAGS,
            "four_eyes": FLAGS,
            "second_reading": [*NUMBERS, -0.1, 1.1],
            "rubric": none_but([*LISTS, ["a=b"], ["a", "a"], [" "], ["x" * 41], ["a\nb"]]),
            "deadline": [*NUMBERS, 0, 1e300],
            "on_timeout": [5, "no", [1], {"choice": 5}, object()],
            "escalate_to": none_but(LISTS),
            "escalate_after": NUMBERS,
            "risk": ONE_OF,
        },
    ),
    "Limits": (
        Limits,
        {"max_iterations": WHOLE, "max_tokens": WHOLE, "max_cost_usd": NUMBERS, "max_seconds": NUMBERS},
    ),
    "RetryPolicy": (
        RetryPolicy,
        {
            "max_attempts": none_but([*WHOLE, 0]),
            "wait": none_but(NUMBERS),
            "backoff": none_but([*NUMBERS, 0.5]),
            "jitter": none_but([*NUMBERS, 2]),
            "overlap": none_but(FLAGS),
        },
    ),
    "InputField": (
        lambda **given: InputField(**{"name": "n", "channel": "n", "label": "N?", **given}),
        dict.fromkeys(("name", "channel", "label", "example"), none_but(TEXTS)),
    ),
    "quorum": (quorum, {"n": none_but([*WHOLE, 0])}),
    "last_n": (last_n, {"n": none_but([*WHOLE, 0])}),
    "max_turns": (max_turns, {"n": none_but([*WHOLE, 0])}),
    "cost_limit": (cost_limit, {"usd": none_but([*NUMBERS, 0])}),
    "text_match": (
        lambda **given: text_match(**{"pattern": "a", "channel": "n", **given}),
        {"pattern": none_but([*TEXTS, "("]), "channel": none_but(TEXTS)},
    ),
    "custom_condition": (
        lambda **given: custom_condition(**{"fn": lambda state: True, **given}),
        {"fn": none_but(FUNCTIONS), "reason": none_but(TEXTS)},
    ),
    "Channel": (
        Channel,
        {"visibility": ONE_OF, "description": none_but(TEXTS), "reducer": [5, [1], {}, "nope", object()]},
    ),
    "WorkflowState": (WorkflowState, {"channels": none_but([*DICTS, {"n": 5}, {"a b": Channel(0)}])}),
    "StateGraph": (
        lambda **given: StateGraph(**{"channels": {"n": Channel(0)}, **given}),
        {"channels": none_but([*DICTS, {"n": 5}, {"a b": Channel(0)}]), "name": none_but([*TEXTS, ""])},
    ),
    "add_node": (
        lambda **given: a_graph().add_node(**{"name": "b", "fn": lambda state: None, **given}),
        {
            "name": none_but([*TEXTS, "", "START"]),
            "fn": none_but(FUNCTIONS),
            "reads": LISTS,
            "writes": LISTS,
            "retry": STRUCTS,
            "timeout": [*NUMBERS, 0],
            "external": [5, None, [], object()],
            "on_taint": ONE_OF,
        },
    ),
    "add_edge": (
        lambda **given: a_graph().add_edge(**{"source": "a", "target": "b", **given}),
        {"source": none_but(TEXTS), "target": none_but(TEXTS)},
    ),
    "add_conditional_edge": (
        lambda **given: a_graph().add_conditional_edge(
            **{"source": "b", "route_fn": lambda state: "x", "route_map": {"x": END}, **given}
        ),
        {
            "source": none_but(TEXTS),
            "route_fn": none_but(FUNCTIONS),
            "route_map": ["x", 5, {"x": 5}, [1], None],
        },
    ),
    "add_map": (
        lambda **given: a_graph().add_map(
            **{"name": "m", "over": "items", "node": lambda state: None, **given}
        ),
        {
            "name": none_but(TEXTS),
            "over": none_but([*TEXTS, ""]),
            "node": none_but(FUNCTIONS),
            "max_concurrent": none_but([*WHOLE, 0]),
            "max_items": none_but([*WHOLE, 0]),
            "join": ["foo", 5, True, None, [1], object(), Hostile()],
            "on_error": ONE_OF,
            "retires": [3],
            "timeout": NUMBERS,
        },
    ),
    "add_parallel": (
        lambda **given: a_graph().add_parallel(**{"name": "p", "nodes": ["a"], **given}),
        {
            "name": none_but(TEXTS),
            "nodes": none_but([*LISTS, []]),
            "join": ["foo", 5, True, None, [1], object(), Hostile()],
            "on_error": ONE_OF,
            "max_concurrent": [*WHOLE, 0],
        },
    ),
    "add_subgraph": (
        lambda **given: a_graph().add_subgraph(
            **{"name": "s", "graph": a_graph(), "inputs": {"n": "n"}, "outputs": {"n": "n"}, **given}
        ),
        {
            "name": none_but(TEXTS),
            "graph": none_but(STRUCTS),
            "inputs": none_but([*DICTS, {"n": 5}]),
            "outputs": none_but([*DICTS, {"n": 5}]),
            "on_taint": ONE_OF,
        },
    ),
    "add_compensation": (
        lambda **given: a_graph().add_compensation(**{"name": "c", "fn": lambda s, c, a: None, **given}),
        {"name": none_but(TEXTS), "fn": none_but(FUNCTIONS), "retry": STRUCTS, "timeout": NUMBERS},
    ),
    "compile": (
        compiled,
        {
            "checkpointer": [True, 5, "x.db", object(), {}, Hostile()],
            "agents": DICTS,
            "interrupt_before": none_but([5, [1], {"a": 1}, object(), ["nope"], Hostile()]),
            "interrupt_after": none_but([5, [1], object(), "nope", Hostile()]),
            "termination": STRUCTS,
            "limits": STRUCTS,
            "inputs": none_but(LISTS),
            "output": none_but(TEXTS),
            "max_update_bytes": none_but([*WHOLE, 0]),
            "private_context": none_but(LISTS),
            "interrupt": [["a"]],
        },
    ),
    "NodeResult": (
        lambda **given: run(lambda state: NodeResult(**given)),
        {
            "updates": none_but([*JSON_DICTS, {"m": 1}]),
            "text": [5, True, b"x", ["x"], object()],
            "status": none_but(["failed", 5, b"completed", object()]),
            "compensation": ["undo", ("undo",), (5, 1), [1], ("undo", object()), object()],
            "usage": [*LISTS, [ModelUse("a", "b", "c", 1, 1, None), 5]],
            "artifacts": none_but(LISTS),
        },
    ),
    "Artifact": (
        lambda **given: Artifact(**{"name": "a.txt", "media_type": "text/plain", "content": "x", **given}),
        {
            "name": none_but([*TEXTS, "", "../a", "a/b"]),
            "media_type": none_but([*TEXTS, "", "text"]),
            "content": [5, None, ["x"], object(), "\ud800", bytearray(b"x"), Hostile()],
        },
    ),
    "ModelUse": (
        lambda **given: ModelUse(
            **{
                "agent": "a",
                "provider": "p",
                "model": "m",
                "tokens_in": 1,
                "tokens_out": 1,
                "cost": None,
                **given,
            }
        ),
        {
            **dict.fromkeys(("agent", "provider", "model"), none_but(TEXTS)),
            **dict.fromkeys(("tokens_in", "tokens_out"), none_but(WHOLE)),
            "cost": NUMBERS,
        },
    ),
    "emit": (lambda **given: emitted(given["text"]), {"text": [5, b"x", None, ["x"], object(), Hostile()]}),
    "interrupt": (
        asked,
        {
            "title": [5, ["x"], b"x", "\ud800"],
            "payload": [object(), float("nan"), {1: 2}, "\ud800", b"x"],
            "subject": [5, ["n"]],
            "choices": ["yes", [5], [{"id": 5}], [None]],
            "schema": [5, "nope", {"type": 5}],
            "reviewers": ["ann", [5], 5],
            "quorum": ["2", 1.5, 0, None],
            "one_account": ["yes", 1],
            "signed": ["x", 1],
            "four_eyes": ["x", 1],
            "second_reading": ["x", -1, 2, None, float("nan")],
            "rubric": ["tone", [5], ["a", "a"], ["a=b"], [""]],
            "deadline": ["5m", 0, -1, float("nan"), 1e300],
            "on_timeout": ["no", 5],
            "escalate_to": ["ann", [5]],
            "escalate_after": ["1"],
            "risk": ["hi", 5],
        },
    ),
    "Agent": (
        lambda **given: Agent(**{"name": "a", "model": ScriptedModel(["x"]), **given}),
        {
            "name": none_but([*TEXTS, ""]),
            "model": [5, None, ["x"], object()],
            "instructions": [5, True, b"x", ["x"], object()],
            "role": [5, True, b"x", ["x"], object()],
            "tools": none_but(["x", 5, [5], ["x"], object()]),
            "approve": [5, "maybe", True, ["always"]],
            "approver": FUNCTIONS,
            "max_tool_rounds": none_but(WHOLE),
            "max_tool_result": none_but(WHOLE),
            "history": [5, b"x", ["channel:x"]],
            "cassette": ["x", 5, object()],
        },
    ),
    "Tool": (
        lambda **given: Tool(**{"function": a_tool, **given}),
        {
            "function": [5, None, "x", object()],
            "name": [5, b"x", ["x"], "a b", "\ud800"],
            "description": [5, b"x", ["x"]],
            "external": FLAGS,
            "approve": [5, "maybe", True, ["always"]],
            "timeout": NUMBERS,
        },
    ),
    "McpServer": (
        lambda **given: McpServer(**{"name": "s", "command": ["x"], **given}),
        {
            "name": none_but(TEXTS),
            "command": ["x", 5, [5], None],
            "env": ["x", 5, {"a": 5}, {1: "x"}],
            "headers": ["x", 5, {"a": 5}],
            "only": ["x", 5, [5]],
            "prefix": none_but(TEXTS),
            "external": FLAGS,
            "approve": [5, "maybe", True],
            "timeout": ["5", True, float("nan"), [1]],
        },
    ),
    "sequential_workflow": (
        lambda **given: sequential_workflow(**{"agents": [chatter("a"), chatter("b")], **given}),
        {
            "agents": ["x", 5, [5], {"a": 5}, [], None],
            "human": ["foo", 5, True],
            "prompts": ["x", 5, {"a": 5}, {1: "x"}],
            "state_schema": ["x", 5, {"messages": 5}],
        },
    ),
    "supervisor_workflow": (
        lambda **given: supervisor_workflow(**{"manager": chatter("m"), "workers": [chatter("a")], **given}),
        {
            "manager": [5, None, "x"],
            "workers": ["x", 5, [5]],
            "max_rounds": none_but(WHOLE),
            "human": ["foo", 5],
        },
    ),
    "debate_workflow": (
        lambda **given: debate_workflow(**{"agents": [chatter("a"), chatter("b")], **given}),
        {"agents": ["x", 5, [5]], "judge": [5, "x"], "max_rounds": none_but(WHOLE), "human": ["foo", 5]},
    ),
    "advisor_workflow": (
        lambda **given: advisor_workflow(**{"worker": chatter("a"), "advisor": chatter("b"), **given}),
        {"worker": [5, None], "advisor": [5, None], "max_revisions": none_but(WHOLE), "human": ["foo", 5]},
    ),
    "planner_workflow": (
        lambda **given: planner_workflow(**{"planner": chatter("p"), "workers": [chatter("a")], **given}),
        {
            "planner": [5, None],
            "workers": ["x", 5, [5]],
            "max_replans": none_but(WHOLE),
            "max_steps": none_but(WHOLE),
            "parse_plan": FUNCTIONS,
        },
    ),
    "Breakpoint": (
        lambda **given: Breakpoint(**{"kind": "before", **given}),
        {
            "kind": ONE_OF,
            "place": none_but(TEXTS),
            "condition": none_but(TEXTS),
            "hit": none_but(NOT_WHOLE),
            "log": none_but(TEXTS),
            "off": FLAGS,
        },
    ),
    "Comment": (
        lambda **given: Comment(**{"quote": "q", "text": "t", **given}),
        {
            "quote": none_but(TEXTS),
            "text": none_but(TEXTS),
            "path": none_but(TEXTS),
            "offset": none_but(["1", 1.5]),
        },
    ),
    "Answer": (
        command("Answer", request_id="r", value="yes", step=1),
        {
            "request_id": none_but(TEXTS),
            "step": none_but(["1", 1.5, True]),
            "actor": [*TEXTS, ""],
            "note": TEXTS,
            "seen": ["x", 5, None],
            "comments": ["x", [5], 5],
            "policy": ["x", {"a": 5}],
        },
    ),
    "UpdateState": (
        command("UpdateState", values={"n": 1}),
        {
            "values": none_but(DICTS),
            "expected_step": ["1", 1.5, True],
            "as_node": TEXTS,
            "actor": [*TEXTS, " "],
            "note": TEXTS,
        },
    ),
    "Fork": (
        command("Fork", step=1, new_thread_id="u"),
        {
            "step": none_but(["1", 1.5, True]),
            "new_thread_id": none_but([*TEXTS, ""]),
            "changes": DICTS,
            "agents": DICTS,
            "actor": [*TEXTS, ""],
        },
    ),
    "Cancel": (command("Cancel"), {"actor": [*TEXTS, ""], "note": TEXTS, "seen": ["x", 5], "why": ["x"]}),
    "ExtendLimits": (
        command("ExtendLimits", limits={"max_tokens": 5}),
        {"limits": none_but([*DICTS, {"max_tokens": "5"}]), "actor": [*TEXTS, ""], "note": TEXTS},
    ),
    "Claim": (
        command("Claim", request_id="r", actor="ann"),
        {
            "request_id": none_but(TEXTS),
            "actor": none_but([*TEXTS, ""]),
            "minutes": none_but(["5", True, [1]]),
        },
    ),
    "Declassify": (
        command("Declassify", channel="n", actor="ann", reason="checked"),
        dict.fromkeys(("channel", "actor", "reason"), none_but(TEXTS)),
    ),
    "ConfigureAgents": (command("ConfigureAgents", agents={}), {"agents": none_but([*DICTS, {"a": 5}])}),
}


Case = tuple[str, Mapping[str, Any]]


def cases() -> list[Case]:
    """Every declaration with every one of its wrong values."""
    return [
        (name, {field: value})
        for name, (_, fields) in DECLARATIONS.items()
        for field, values in fields.items()
        for value in values
    ]


def check(declared: list[Case]) -> None:
    """Declare each of them wrongly: every one is refused in words, at once, and none is stored."""
    wrong = []
    for name, given in declared:
        case = name, {field: type(value).__name__ for field, value in given.items()}
        try:
            DECLARATIONS[name][0](**given)
        except NodeFailed as error:
            if not isinstance(error.__cause__, HitlError):
                wrong.append((*case, repr(error)[:150]))
        except HitlError as error:
            if not error.message:
                wrong.append((*case, "without a message"))
        except Exception as error:
            wrong.append((*case, repr(error)[:150]))
        else:
            wrong.append((*case, "accepted"))
    assert not wrong, f"{len(wrong)} of {len(declared)}: {wrong[:40]}"
    assert STORE.threads() == []


@pytest.mark.parametrize("name", DECLARATIONS)
def test_a_wrong_declaration_is_refused_when_it_is_made(name: str) -> None:
    every = [case for case in cases() if case[0] == name]
    check(random.Random(name).sample(every, min(25, len(every))))


@pytest.mark.slow
def test_ten_thousand_wrong_declarations_are_refused_when_they_are_made() -> None:
    chance = random.Random(32)
    declared = cases()
    while len(declared) < 10_000:  # several wrong values at once
        name = chance.choice(list(DECLARATIONS))
        fields = DECLARATIONS[name][1]
        chosen = chance.sample(list(fields), chance.randint(1, min(4, len(fields))))
        declared.append((name, {field: chance.choice(fields[field]) for field in chosen}))
    check(declared)


def test_a_default_is_stored_in_the_same_form_as_a_given_value() -> None:
    assert type(commands.Claim("r", "ann").minutes) is type(commands.Claim("r", "ann", 15).minutes) is float
