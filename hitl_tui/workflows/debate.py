"""The debate workflow: agents speak in turn, and a judge may end it after a round.

START -> pro -> con -> judge -- done --> END
          ^_____ continue ___|
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

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

PROMPTS = {
    "agent": "{history}",
    "judge": (
        "{history}\n\n"
        'Is the debate settled? If it is, end your reply with the word "done", which ends it; '
        'else end it with "continue" and use the word "done" nowhere.'
    ),
}
"""The prompts of agents and judge by name; `prompts=` replaces any of them."""


@declares()
def debate_workflow(
    agents: parts.Team,
    judge: Any = None,
    max_rounds: int = 5,
    *,
    human: Literal["round"] | None = None,
    prompts: Mapping[str, str] | None = None,
    state_schema: Mapping[str, Channel] | None = None,
    checkpointer: Store | None = None,
    limits: Limits | None = None,
    termination: Termination | None = None,
) -> GraphRunner:
    """Return a graph in which agents speak in turn, for some rounds or until a judge ends the debate.

    Each agent gets the whole history. A judge speaks after each full round and ends the debate when its reply
    has the word "done". The result's output is the judge's last reply, or without a judge `{name: last
    reply}` of all agents.

    Args:
        agents: at least two, as `{name: agent}` or a list of agents with a `name` each.
        judge: an agent, or anything with `chat(prompt)`; None for a fixed number of rounds.
        max_rounds: full rounds, including the judge's turn.
        human: "round" lets a person end the debate after each round, or add a round to it.
        prompts: replacements for `PROMPTS`, by name.
        state_schema: channels to use instead of the workflow's own.
        checkpointer: the store of threads; with `human` one in memory by default.
        limits: what a run may use; a `max_iterations` other than 25, the default, replaces the workflow's
            own.
        termination: ends a run as completed(termination), besides the workflow's own ends.

    Raises:
        GraphInvalid: fewer than two agents, not an agent, a name that can't be used, a bound below 1, or a
            channel or a prompt that does not fit.
    """
    parts.at_least("max_rounds", max_rounds, 1)
    parts.check_human(human, "round")
    if judge is not None:
        parts.check_agent("judge", judge)
    team = parts.agents_by_name(agents, "agents", taken=("judge",), at_least=2)
    texts = parts.prompts_for("debate", PROMPTS, prompts)
    decided = judge is not None or human is not None
    channels = parts.channels_for("debate", state_schema, default_channels(decided), ("output",))
    speakers = [*team, *(["judge"] if judge is not None else [])]
    last, clock = speakers[-1], _Clock(len(speakers), max_rounds)
    graph = StateGraph(channels, name="debate")
    for name in team:
        kept = [] if judge is not None else [key for key in ("output",) if key in channels]
        signal = ["judge_verdict"] if decided and name == last else []
        graph.add_node(name, _speaker(name, texts["agent"], clock, *kept, *signal), reads=["messages", *kept],
                       writes=["messages", *kept, *signal])  # fmt: skip
    if judge is not None:
        written = [name for name in ("messages", "judge_verdict", "output") if name in channels]
        graph.add_node("judge", _judge(texts["judge"], written, clock), reads=["messages"], writes=written)
    for source, target in pairwise([START, *speakers]):
        graph.add_edge(source, target)
    if decided:
        graph.add_conditional_edge(last, _route, {"done": END, "continue": speakers[0]})
    else:
        graph.add_edge(last, speakers[0])
    turns = max_rounds * len(speakers)
    return graph.compile(
        checkpointer=parts.store_for(checkpointer, human),
        agents={**team, **({"judge": judge} if judge is not None else {})},
        interrupt_after=[_round_gate(last, judge is not None)] if human else [],
        termination=parts.ends_at(_rounds(turns) if decided else max_turns(turns), termination),
        limits=parts.limits_for(None if human else turns, limits),
        inputs=[InputField("task", "messages", "What is it about?", "Proposition: tests come first.")],
        output="output",
    )


def default_channels(decided: bool = True) -> dict[str, Channel]:
    """Return the channels of the debate workflow; with `judge_verdict` if a judge or a person decides."""
    channels = {
        "messages": Channel([], reducer=append(), description="the question and every reply"),
        "output": Channel("", description="the judge's last reply, or the last one of each agent"),
    }
    if decided:
        channels["judge_verdict"] = Channel(
            "continue",
            schema={"enum": ["continue", "done", "extend"]},
            description="whether the debate continues; only a person can extend it by a round",
        )
    return channels


def read_judgement(reply: str) -> tuple[str, str]:
    """Return `(verdict, why)` from a judge's reply: done if it has the word "done" in any case."""
    place = parts.find_word("done", reply)
    if place:
        return "done", f"the judge ends the debate: “done” is at character {place} of its reply"
    return "continue", "the judge continues the debate: its reply lacks the word “done”"


class _Clock(NamedTuple):
    """Describes the round of a turn."""

    speakers: int
    rounds: int

    def round_of(self, config: NodeConfig) -> str:
        return f"round {(config.iteration - 1) // self.speakers + 1} of {self.rounds}"


def _speaker(name: str, prompt: str, clock: _Clock, *also: str) -> Callable[..., Awaitable[NodeResult]]:
    async def speak(state: WorkflowState, config: NodeConfig) -> NodeResult:
        filled = parts.fill(prompt, history=parts.history(state["messages"]))
        reply = await parts.ask_alone(config.agents[name], filled)
        updates: dict[str, Any] = {"messages": reply}
        if "output" in also:
            # The first turn of an invocation starts a new debate.
            replies = state["output"] if config.iteration > 1 else None
            updates["output"] = {**(replies if isinstance(replies, Mapping) else {}), name: reply}
        if "judge_verdict" in also:
            updates["judge_verdict"] = "continue"
        return NodeResult(updates, text=clock.round_of(config))

    return speak


def _judge(prompt: str, written: Sequence[str], clock: _Clock) -> Callable[..., Awaitable[NodeResult]]:
    async def judge(state: WorkflowState, config: NodeConfig) -> NodeResult:
        filled = parts.fill(prompt, history=parts.history(state["messages"]))
        reply = await parts.ask_alone(config.agents["judge"], filled)
        verdict, why = read_judgement(reply)
        updates = {"messages": reply, "judge_verdict": verdict, "output": reply}
        chosen = {name: updates[name] for name in written}
        return NodeResult(chosen, text=f"{clock.round_of(config)}: {why}")

    return judge


def _route(state: WorkflowState) -> str:
    return "done" if state["judge_verdict"] == "done" else "continue"


def _rounds(turns: int) -> Termination:
    """Whether the rounds are over and the debate is not done, unless a person has just added a round."""
    return max_turns(turns) & custom_condition(
        lambda state: state["judge_verdict"] == "continue", "neither done nor a round added"
    )


def _agreement(state: WorkflowState) -> str:
    return f"agree with the judge: {'end the debate' if _route(state) == 'done' else 'continue'}"


def _round_gate(last: str, judged: bool) -> Gate:
    def payload(state: WorkflowState) -> dict[str, Any]:
        return {
            "agent": "judge",
            "verdict": state["judge_verdict"],
            "feedback": parts.last_of(state["messages"]),
        }

    return Gate(
        node=last,
        title="Is the debate decided?" if judged else "Continue the debate?",
        subject="output" if judged else "messages",
        payload=payload if judged else None,
        recommended="accept",
        choices=[
            GateChoice(
                "accept",
                "agree with the judge" if judged else "continue as planned",
                "enter",
                label_for=_agreement if judged else None,
            ),
            GateChoice("end", "end the debate", "x", values={"judge_verdict": "done"}),
            GateChoice("extend", "add a round", "m", values={"judge_verdict": "extend"}),
        ],
    )
