"""Small graphs, each in a form that public LangGraph projects have."""

from __future__ import annotations

import dataclasses
import decimal
import enum
import operator
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.managed import IsLastStep, RemainingSteps
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import CachePolicy, Command, Overwrite, RetryPolicy, Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict


class Case(NamedTuple):
    """One graph and what is done with it.

    Attributes:
        shape: what it is made of, in a few words.
        build: makes it anew.
        turns: its inputs, one after the other.
        answer: answers what it asks.
    """

    shape: str
    build: Callable[[], Any]
    turns: tuple[Any, ...] = ({"log": []},)
    answer: Callable[[Any], Any] = lambda asked: f"answer to {asked}"


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    n: int


def note(text: Any) -> Any:
    """A node that adds to the log."""
    return lambda state: {"log": [text]}


def chain(nodes: dict[str, Any], kind: Any = Log, **compiled: Any) -> Any:
    """A graph of nodes one after the other; each run of it has a memory of its own."""
    graph = StateGraph(kind)
    for name, node in nodes.items():
        graph.add_node(name, node)
    for before, after in zip([START, *nodes], nodes, strict=False):
        graph.add_edge(before, after)
    return graph.compile(**{"checkpointer": InMemorySaver(), **compiled})


def fan_out(middle: dict[str, Any], **after: Any) -> Any:
    """`a`, then all of `middle` at once, then `z`."""
    graph = StateGraph(Log).add_node("a", note("a")).add_edge(START, "a").add_node("z", note("z"), **after)
    for name, node in middle.items():
        graph.add_node(name, node).add_edge("a", name)
    graph.add_edge(list(middle), "z").add_edge("z", END)
    return graph.compile(checkpointer=InMemorySaver())


def count(state: Log) -> Log:
    return {"n": state.get("n", 0) + 1, "log": [state.get("n", 0)]}


def looping(route: Any, node: Any = count, kind: Any = Log, limit: int = 25, **compiled: Any) -> Any:
    graph = (
        StateGraph(kind)
        .add_node("a", node)
        .add_edge(START, "a")
        .add_conditional_edges("a", route, ["a", END])
    )
    return graph.compile(**{"checkpointer": InMemorySaver(), **compiled}).with_config(recursion_limit=limit)


def of_one_value() -> Any:
    return chain({"a": lambda s: {**s, "x": s["x"] + 1}, "b": lambda s: {**s, "y": 2}}, dict)


def deferred() -> Any:
    graph = StateGraph(Log).add_node("short", note("short")).add_node("long", note("long"))
    graph.add_node("longer", note("longer")).add_node("last", note("last"), defer=True)
    graph.add_edge(START, "short").add_edge(START, "long").add_edge("long", "longer")
    graph.add_edge("short", "last").add_edge("longer", "last")
    return graph.compile(checkpointer=InMemorySaver())


def mapping(worker: Any) -> Any:
    graph = (
        StateGraph(Log).add_node("plan", note("plan")).add_node("work", worker).add_node("join", note("join"))
    )
    graph.add_edge(START, "plan").add_edge("work", "join")
    graph.add_conditional_edges("plan", lambda state: [Send("work", {"n": n}) for n in (3, 1, 2)], ["work"])
    return graph.compile(checkpointer=InMemorySaver())


def ask(state: Log) -> Log:
    return {"log": [interrupt(f"question {state.get('n', 0)}")]}


def ask_twice(state: Log) -> Log:
    return {"log": [interrupt("first?"), interrupt("second?")]}


def ask_until_valid(state: Log) -> Log:
    tries = 0
    while not str(given := interrupt(f"a number, please ({tries})")).endswith("(2)"):
        tries += 1
    return {"log": [tries, given]}


def inner(node: Any, **compiled: Any) -> Any:
    return chain({"inside": node, "end": note("end of inside")}, **{"checkpointer": None, **compiled})


def called(state: Log) -> Log:
    return {"log": [inner(note("called")).invoke({"log": [], "n": 1})["log"][-1]]}


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def model(state: MessagesState) -> dict[str, Any]:
    if state["messages"][-1].type == "tool":
        return {"messages": [AIMessage("It rains.")]}
    call = {"name": "weather", "args": {"city": "Oslo"}, "id": "call-1", "type": "tool_call"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def agent() -> Any:
    from langgraph.prebuilt import ToolNode  # the newest one fails to be imported by LangGraph 1.0.10

    graph = StateGraph(MessagesState).add_node("model", model).add_node("tools", ToolNode([weather]))
    graph.add_edge(START, "model").add_edge("tools", "model")
    graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    return graph.compile(checkpointer=InMemorySaver())


def chat(state: MessagesState) -> dict[str, Any]:
    return {"messages": [GenericFakeChatModel(messages=iter(["hello there"])).invoke(state["messages"])]}


def forget(state: MessagesState) -> dict[str, Any]:
    return {"messages": [RemoveMessage(str(message.id)) for message in state["messages"][:-1]]}


def start_over(state: MessagesState) -> dict[str, Any]:
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), AIMessage("all anew")]}


def commanding() -> Any:
    def choose(state: Log) -> Command[Literal["left", "right"]]:
        return Command(update={"log": ["chosen"]}, goto="right")

    graph = (
        StateGraph(Log)
        .add_node("choose", choose)
        .add_node("left", note("left"))
        .add_node("right", note("right"))
    )
    return graph.add_edge(START, "choose").compile(checkpointer=InMemorySaver())


def handing_off() -> Any:
    def hand(state: Log) -> Any:
        return Command(goto="bob", update={"log": ["from alice"]}, graph=Command.PARENT)

    alice = StateGraph(Log).add_node("hand", hand).add_edge(START, "hand").compile()
    graph = StateGraph(Log).add_node("alice", alice, destinations=("bob",)).add_node("bob", note("bob"))
    return graph.add_edge(START, "alice").compile(checkpointer=InMemorySaver())


@dataclasses.dataclass
class Defaults:
    name: str = "nobody"
    log: Annotated[list[Any], operator.add] = dataclasses.field(default_factory=list)


class Checked(BaseModel):
    n: int = 0
    name: str = "x"


class Given(TypedDict):
    question: str


class Answered(TypedDict):
    answer: str


class Whole(Given, Answered):
    pass


class Private(TypedDict):
    secret: str


def private() -> Any:
    def first(state: Log) -> Private:
        return {"secret": "known to the second alone"}

    def second(state: Private) -> Log:
        return {"log": [len(state["secret"])]}

    return chain({"first": first, "second": second})


class Words(TypedDict, total=False):
    words: list[str]
    n: int
    handle: Annotated[Any, UntrackedValue]


def append(state: Words) -> Words:
    words = state["words"]
    words += ["more"]
    return {"words": words}


def append_quietly(state: Words) -> Words:
    state["words"].append("quiet")
    return {"n": state.get("n", 0) + len(state["words"])}


class Managed(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    left: RemainingSteps
    last: IsLastStep


def flaky(failures: int) -> Any:
    tries = [0]

    def fail(state: Log) -> Log:
        tries[0] += 1
        if tries[0] <= failures:
            raise ConnectionError("try again")
        return {"log": [f"after {tries[0]} tries"]}

    policy = RetryPolicy(initial_interval=0.001, max_interval=0.001, jitter=False)
    graph = StateGraph(Log).add_node("fail", fail, retry_policy=policy).add_edge(START, "fail")
    return graph.compile(checkpointer=InMemorySaver())


def cached() -> Any:
    calls = [0]

    def work(state: Log) -> Log:
        calls[0] += 1
        return {"log": [f"call {calls[0]}"]}

    policy: CachePolicy[Any] = CachePolicy(key_func=lambda state: "same")
    graph = StateGraph(Log).add_node("work", work, cache_policy=policy).add_edge(START, "work")
    return graph.compile(checkpointer=InMemorySaver(), cache=InMemoryCache())


async def remember(state: Log, runtime: Runtime[Any]) -> Log:
    assert runtime.store is not None
    await runtime.store.aput(("facts",), str(len(state["log"])), {"log": state["log"]})
    return {"log": [len(await runtime.store.asearch(("facts",)))]}


@dataclasses.dataclass
class Settings:
    model: str = "small"


def configured(state: Log, config: RunnableConfig) -> Log:
    return {"log": [config["configurable"].get("user", "nobody")]}


@task
def double(n: int) -> int:
    return 2 * n


def flow() -> Any:
    @entrypoint(checkpointer=InMemorySaver())
    def doubled(n: int) -> int:
        return sum(future.result() for future in [double(n), double(n + 1)])

    return doubled


def asking_flow() -> Any:
    @entrypoint(checkpointer=InMemorySaver())
    def asked(n: int) -> Any:
        return [double(n).result(), interrupt("go on?")]

    return asked


def remembering_flow() -> Any:
    @entrypoint(checkpointer=InMemorySaver())
    def total(n: int, *, previous: int | None = None) -> Any:
        return entrypoint.final(value=n + (previous or 0), save=n + (previous or 0) + 100)

    return total


class Colour(enum.Enum):
    RED = "red"


def odd_values(state: Any) -> Any:
    number = decimal.Decimal("1.50")
    return {
        "held": {"id": uuid.UUID(int=7), "set": {3}, "pair": (1, 2), "money": number, "colour": Colour.RED}
    }


class Held(TypedDict, total=False):
    held: Any


def written(state: Log) -> Log:
    get_stream_writer()({"progress": 1})
    return {"log": ["written"]}


async def awaited(state: Log) -> Log:
    return {"log": ["awaited"]}


def broken(state: Log) -> Log:
    raise ValueError("always")


HELLO = ({"messages": [HumanMessage("hello", id="h1")]},)
QUESTION: Any = {"question": "why?"}
ASKED = StateGraph(Whole, input_schema=Given, output_schema=Answered)
ASKED.add_node("reply", lambda state: {"answer": f"because {state['question']}"}).add_edge(START, "reply")

CASES: dict[str, Case] = {
    "chain": Case("nodes one after the other", lambda: chain({"a": note("a"), "b": note("b")})),
    "route": Case("conditional edge, loop", lambda: looping(lambda state: "a" if state["n"] < 4 else END)),
    "fan-out": Case("parallel nodes, join", lambda: fan_out({"c": note("c"), "b": note("b")})),
    "fan-out of three": Case(
        "parallel nodes, deferred end", lambda: fan_out({n: note(n) for n in "xyw"}, defer=True)
    ),
    "defer": Case("`defer=True`, branches of unequal length", deferred),
    "send": Case("`Send`, reducer", lambda: mapping(lambda state: {"log": [state["n"] * 10]})),
    "send with questions": Case("`Send`, `interrupt` in each", lambda: mapping(ask)),
    "chat": Case("`add_messages`, a model that streams", lambda: chain({"chat": chat}, MessagesState), HELLO),
    "forget": Case(
        "`RemoveMessage`, two turns",
        lambda: chain({"chat": chat, "forget": forget}, MessagesState),
        HELLO * 2,
    ),
    "start over": Case("`REMOVE_ALL_MESSAGES`", lambda: chain({"x": start_over}, MessagesState), HELLO),
    "agent": Case("`ToolNode`, loop", agent, HELLO),
    "subgraph": Case("subgraph, shared state", lambda: chain({"sub": inner(note("in")), "b": note("b")})),
    "called graph": Case("graph called in a node's code", lambda: chain({"call": called})),
    "three levels": Case("subgraphs in subgraphs, `interrupt`", lambda: chain({"one": inner(inner(ask))})),
    "parallel subgraphs": Case(
        "subgraphs at once", lambda: fan_out({"b": inner(note("b")), "c": inner(note("c"))})
    ),
    "own memory": Case(
        "`checkpointer=True`, two turns",
        lambda: chain({"sub": inner(count, checkpointer=True), "b": count}),
        ({"log": [1]}, {"log": [2]}),
    ),
    "own memory that asks": Case(
        "`checkpointer=True`, `interrupt` in a loop",
        lambda: chain({"a": inner(ask, checkpointer=True), "b": count, "c": inner(ask)}),
        ({"log": []},) * 2,
    ),
    "command": Case("`Command(goto=…, update=…)`", commanding),
    "hand-off": Case("`Command.PARENT`", handing_off),
    "question": Case("`interrupt`", lambda: chain({"a": note("a"), "ask": ask, "b": note("b")})),
    "two questions": Case("`interrupt` twice in one node", lambda: chain({"ask": ask_twice})),
    "questions at once": Case(
        "`interrupt` in parallel nodes", lambda: fan_out({"b": ask, "c": ask, "d": note("d")})
    ),
    "until valid": Case("`interrupt` in a validation loop", lambda: chain({"ask": ask_until_valid})),
    "stop before": Case(
        "`interrupt_before`", lambda: chain({n: note(n) for n in "abc"}, interrupt_before=["b", "c"])
    ),
    "stop after": Case(
        '`interrupt_after="*"`', lambda: chain({n: note(n) for n in "abc"}, interrupt_after="*")
    ),
    "dataclass": Case(
        "dataclass state with defaults",
        lambda: chain({"a": lambda s: {"log": [s.name]}}, Defaults),
        ({"name": "ann"},),
    ),
    "pydantic": Case(
        "pydantic state",
        lambda: chain({"a": lambda s: {"n": s.n + 1, "name": s.name * 2}}, Checked),
        ({"n": 1},),
    ),
    "schemas": Case(
        "input and output schema", lambda: ASKED.compile(checkpointer=InMemorySaver()), (QUESTION,)
    ),
    "state of one value": Case("`StateGraph(dict)`, two turns", of_one_value, ({"x": 1}, {"x": 5})),
    "private state": Case("private channel between nodes", private),
    "list in place": Case(
        "list changed in place and returned",
        lambda: chain({"a": append, "b": append}, Words),
        ({"words": ["x"]},),
    ),
    "quiet change": Case(
        "list changed in place, not returned",
        lambda: chain({"a": append_quietly, "b": append_quietly}, Words),
        ({"words": ["x"]},),
    ),
    "untracked": Case(
        "`UntrackedValue`",
        lambda: chain({"a": lambda s: {"handle": object()}, "b": lambda s: {"n": int("handle" in s)}}, Words),
        ({"words": []},),
    ),
    "remaining steps": Case(
        "`RemainingSteps`, `IsLastStep`",
        lambda: looping(
            lambda s: END if s["left"] <= 2 else "a", lambda s: {"log": [s["left"], s["last"]]}, Managed, 8
        ),
        ({"log": []},) * 2,
    ),
    "recursion limit": Case("`recursion_limit` reached", lambda: looping(lambda state: "a", limit=5)),
    "retry": Case("`RetryPolicy`", lambda: flaky(2)),
    "cache": Case("`CachePolicy`, two turns", cached, ({"log": []},) * 2),
    "store": Case(
        "`BaseStore`, async nodes", lambda: chain({"a": remember, "b": remember}, store=InMemoryStore())
    ),
    "configurable": Case("`configurable`", lambda: chain({"a": configured})),
    "entrypoint": Case("`@entrypoint`, `@task`", flow, (3,)),
    "entrypoint that asks": Case("`@entrypoint`, `interrupt`", asking_flow, (3,)),
    "entrypoint that remembers": Case("`entrypoint.final`, `previous`, two turns", remembering_flow, (3, 4)),
    "odd values": Case("UUID, set, tuple, Decimal, enum", lambda: chain({"a": odd_values}, Held), ({},)),
    "overwrite": Case(
        "`Overwrite`", lambda: chain({"a": note("a"), "b": lambda s: {"log": Overwrite(["only"])}})
    ),
    "custom stream": Case("`get_stream_writer`", lambda: chain({"a": written})),
    "async": Case("async nodes", lambda: chain({"a": awaited, "b": note("b")})),
    "failure": Case("a node that fails", lambda: chain({"a": note("a"), "b": broken})),
}
