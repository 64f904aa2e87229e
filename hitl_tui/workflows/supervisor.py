"""The supervisor workflow: a manager sends one worker after another until it names none.

START -> manager -- writer --> writer -+
           |  ^----------------------- +
           +-- DONE --> END
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from hitl_tui.declared import declares
from hitl_tui.engine.graph.builder import StateGraph
from hitl_tui.engine.graph.description import InputField
from hitl_tui.engine.graph.gates import Gate, GateChoice
from hitl_tui.engine.graph.termination import Termination, custom_condition, max_turns
from hitl_tui.engine.log.records import END, START, Limits
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.nodes.attempt import NodeConfig
from hitl_tui.engine.nodes.results import NodeResult
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.channel import Channel
from hitl_tui.engine.state.reducers import append
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.workflows import parts

DONE = "DONE"

PROMPTS = {
    "manager": (
        "{history}\n\nThe workers:\n{workers}\n\n"
        "Name the one worker who is to go on, and no other; or reply DONE when the work is done."
    ),
    "worker": "{history}",
}
"""The prompts of manager and workers by name; `prompts=` replaces any of them."""


@declares()
def supervisor_workflow(
    manager: Any,
    workers: parts.Team,
    max_rounds: int = 10,
    *,
    human: Literal["route"] | None = None,
    prompts: Mapping[str, str] | None = None,
    state_schema: Mapping[str, Channel] | None = None,
    checkpointer: Store | None = None,
    limits: Limits | None = None,
    termination: Termination | None = None,
) -> GraphRunner:
    """Return a graph in which a manager sends one worker after another, until it is done.

    The route is the first worker, in declared order, whose name is in the manager's reply as a whole word in
    any case; without one the run ends.  The result's output is the last worker's reply.

    Args:
        manager: an agent, or anything with `chat(prompt)`.
        workers: `{name: agent}`, or a list of agents with a `name` each.
        max_rounds: the manager's and the workers' turns together.
        human: "route" lets a person choose another worker, or DONE, after every turn of the manager.
        prompts: replacements for `PROMPTS`, by name.
        state_schema: channels to use instead of the workflow's own.
        checkpointer: the store of threads; with `human` one in memory by default.
        limits: what a run may use; a `max_iterations` other than 25, the default, replaces the workflow's
            own.
        termination: ends a run as completed(termination), besides the workflow's own ends.

    Raises:
        GraphInvalid: no workers, not an agent, a name that can't be used, a bound below 1, or a
            channel or a prompt that does not fit.
    """
    parts.at_least("max_rounds", max_rounds, 1)
    parts.check_human(human, "route")
    parts.check_agent("manager", manager)
    team = parts.agents_by_name(workers, "workers", taken=("manager", DONE))
    channels = parts.channels_for("supervisor", state_schema, default_channels(), ("output",))
    texts = parts.prompts_for("supervisor", PROMPTS, prompts)
    written = [name for name in ("messages", "output") if name in channels]
    graph = StateGraph(channels, name="supervisor")
    graph.add_node(
        "manager", _manager(team, texts["manager"]), reads=["messages"], writes=["messages", "current_route"]
    )
    graph.add_edge(START, "manager")
    graph.add_conditional_edge(
        "manager", lambda state: state["current_route"], {**{name: name for name in team}, DONE: END}
    )
    for name in team:
        graph.add_node(name, _worker(name, texts["worker"], written), reads=["messages"], writes=written)
        graph.add_edge(name, "manager")
    return graph.compile(
        checkpointer=parts.store_for(checkpointer, human),
        agents={"manager": manager, **team},
        interrupt_after=[_route_gate(team)] if human else [],
        termination=parts.ends_at(
            max_turns(max_rounds)
            & custom_condition(lambda state: state["current_route"] != DONE, "work left"),
            termination,
        ),
        limits=parts.limits_for(max_rounds, limits),
        inputs=[InputField("task", "messages", "What should be done?", "Produce an article on closures.")],
        output="output",
    )


def default_channels() -> dict[str, Channel]:
    """Return the channels of the supervisor workflow."""
    return {
        "messages": Channel([], reducer=append(), description="the task and every reply"),
        "current_route": Channel("", schema={"type": "string"}, description="who is next, or DONE"),
        "output": Channel("", schema={"type": "string"}, description="the last worker's reply"),
    }


def read_route(reply: str, workers: Iterable[str]) -> tuple[str, str]:
    """Return `(route, why)` from a manager's reply: the first worker in order that it names, else DONE."""
    places = [(name, place) for name in workers if (place := parts.find_word(name, reply))]
    if not places:
        return DONE, "next: the end (the reply names no worker as a whole word)"
    (name, place), *others = places
    also = "".join(f"; {other}, at {at}, comes later in the list" for other, at in others)
    return name, f"next: {name} (named at character {place} of the reply{also})"


def _manager(team: Mapping[str, Any], prompt: str) -> Callable[..., Awaitable[NodeResult]]:
    async def manage(state: WorkflowState, config: NodeConfig) -> NodeResult:
        filled = parts.fill(prompt, history=parts.history(state["messages"]), workers=parts.with_roles(team))
        reply = await parts.ask_alone(config.agents["manager"], filled)
        route, why = read_route(reply, team)
        return NodeResult({"messages": reply, "current_route": route}, text=why)

    return manage


def _worker(name: str, prompt: str, written: Sequence[str]) -> Callable[..., Awaitable[dict[str, Any]]]:
    async def work(state: WorkflowState, config: NodeConfig) -> dict[str, Any]:
        reply = await parts.ask_alone(
            config.agents[name], parts.fill(prompt, history=parts.history(state["messages"]))
        )
        return dict.fromkeys(written, reply)

    return work


def _agreement(state: WorkflowState) -> str:
    route = state["current_route"]
    return "agree: end here" if route == DONE else f"agree: go to {route}"


def _route_gate(team: Mapping[str, Any]) -> Gate:
    def payload(state: WorkflowState) -> dict[str, Any]:
        return {
            "agent": "manager",
            "verdict": state["current_route"],
            "feedback": parts.last_of(state["messages"]),
        }

    others = [
        GateChoice(name, f"go to {name}", str(number), values={"current_route": name})
        for number, name in enumerate(team, 1)
    ]
    return Gate(
        node="manager",
        title="Who works next?",
        subject="current_route",
        payload=payload,
        recommended="accept",
        choices=[
            GateChoice("accept", "agree with the manager", "enter", label_for=_agreement),
            *others,
            GateChoice(DONE, "end here", "x", values={"current_route": DONE}),
        ],
    )
