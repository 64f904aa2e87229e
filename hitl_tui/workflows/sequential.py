"""The sequential workflow: agents in a row, each of which gets only the last message.

START -> drafter -> reviewer -> polisher -> END
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from hitl_tui.declared import declares
from hitl_tui.engine.graph.builder import StateGraph
from hitl_tui.engine.graph.description import InputField
from hitl_tui.engine.graph.gates import Gate, GateChoice
from hitl_tui.engine.graph.termination import Termination
from hitl_tui.engine.log.records import END, START, Limits
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.nodes.attempt import NodeConfig
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.channel import Channel
from hitl_tui.engine.state.reducers import append
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.workflows import parts

PROMPTS = {"agent": "{message}"}
"""The prompt of each agent by name; `prompts=` replaces any of them."""


@declares()
def sequential_workflow(
    agents: parts.Team,
    *,
    human: Literal["handover"] | None = None,
    prompts: Mapping[str, str] | None = None,
    state_schema: Mapping[str, Channel] | None = None,
    checkpointer: Store | None = None,
    limits: Limits | None = None,
    termination: Termination | None = None,
) -> GraphRunner:
    """Return a graph in which agents speak once each, in order; each gets only the last message.

    The result's output is the last agent's reply.

    Args:
        agents: `{name: agent}`, or a list of agents with a `name` each.
        human: "handover" lets a person accept, edit or replace what each agent hands to the next one.
        prompts: replacements for `PROMPTS`, by name.
        state_schema: channels to use instead of the workflow's own.
        checkpointer: the store of threads; with `human` one in memory by default.
        limits: what a run may use; a `max_iterations` other than 25, the default, replaces the workflow's
            own.
        termination: ends a run as completed(termination), besides the workflow's own ends.

    Raises:
        GraphInvalid: no agents, a repeated name, a missing channel, or no such prompt.
    """
    parts.check_human(human, "handover")
    team = parts.agents_by_name(agents, "agents")
    prompt = parts.prompts_for("sequential", PROMPTS, prompts)["agent"]
    optional = () if human else ("output",)
    channels = parts.channels_for("sequential", state_schema, default_channels(), optional)
    written = [name for name in ("messages", "output") if name in channels]
    graph = StateGraph(channels, name="sequential")
    for name in team:
        graph.add_node(name, _speaker(name, prompt, written), reads=["messages"], writes=written)
    for source, target in pairwise([START, *team, END]):
        graph.add_edge(source, target)
    return graph.compile(
        checkpointer=parts.store_for(checkpointer, human),
        agents=team,
        interrupt_after=[_handover(giver, taker) for giver, taker in pairwise(team)] if human else [],
        termination=parts.ends_at(None, termination),
        limits=parts.limits_for(len(team), limits),
        inputs=[InputField("task", "messages", "What should they work on?", "Write a post about tidy data.")],
        output="output",
    )


def default_channels() -> dict[str, Channel]:
    """Return the channels of the sequential workflow."""
    return {
        "messages": Channel([], reducer=append(), description="the task and every reply"),
        "output": Channel("", schema={"type": "string"}, description="the last reply"),
    }


def _speaker(name: str, prompt: str, written: Sequence[str]) -> Callable[..., Awaitable[dict[str, Any]]]:
    async def speak(state: WorkflowState, config: NodeConfig) -> dict[str, Any]:
        reply = await parts.ask_alone(
            config.agents[name], parts.fill(prompt, message=parts.last_of(state["messages"]))
        )
        return dict.fromkeys(written, reply)

    return speak


def _handover(giver: str, taker: str) -> Gate:
    return Gate(
        node=giver,
        title=f"Pass this on to {taker}?",
        subject="output",
        recommended="pass",
        choices=[
            GateChoice("pass", f"pass it on to {taker}", "enter", text="none", values=_accepted_output),
            GateChoice("replace", "send my own text instead", "r", text="required", values=_own_text),
        ],
    )


def _accepted_output(state: WorkflowState, _text: str) -> dict[str, Any]:
    """Return what accepting sets: an edited output as the last message, otherwise nothing."""
    edited = state["output"]
    return {} if edited == parts.last_of(state["messages"]) else _own_text(state, edited)


def _own_text(state: WorkflowState, text: str) -> dict[str, Any]:
    return {"messages": [*state["messages"], text], "output": text}
