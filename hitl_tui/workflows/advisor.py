"""The advisor workflow: a worker writes, an advisor judges, and this repeats until a draft is approved.

A cheap model does the work, and a strong one only judges it.

    START -> worker -> advisor -- approved --> END
               ^________ revise ____|
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hitl_tui.declared import declares
from hitl_tui.engine.graph.builder import StateGraph
from hitl_tui.engine.graph.description import InputField
from hitl_tui.engine.graph.gates import Gate, GateChoice
from hitl_tui.engine.graph.termination import Termination, custom_condition, max_turns
from hitl_tui.engine.log.records import END, START, Limits
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.channel import Channel
from hitl_tui.engine.state.reducers import append
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.workflows import parts

if TYPE_CHECKING:
    from hitl_tui.engine.nodes.attempt import NodeConfig
    from hitl_tui.engine.nodes.results import NodeResult

    Node: TypeAlias = Callable[[WorkflowState, NodeConfig], Awaitable[dict[str, Any] | NodeResult]]

PROMPTS = {
    "worker": "{task}",
    # Chat histories are not in the state: in a new process, the worker knows only what is in the prompt.
    "revision": "{task}\n\nFeedback on your last draft:\n{feedback}\n\nYour last draft:\n{draft}",
    "advisor": (
        "Task:\n{task}\n\nDraft:\n{draft}\n\n"
        'Begin your reply with "approved" if the draft may stay as it is, '
        'else with "revise:" and what to change.'
    ),
}
"""The prompts of worker and advisor by name; `prompts=` replaces any of them."""
_WHY = {
    "approved": "The advisor approves: its reply starts with “approved”.",
    "revise": "The advisor wants changes: its reply does not start with “approved”.",
}
"""What the thread says about a verdict."""


@declares()
def advisor_workflow(
    worker: Any,
    advisor: Any,
    max_revisions: int = 3,
    *,
    human: Literal["verdict"] | None = None,
    prompts: Mapping[str, str] | None = None,
    state_schema: Mapping[str, Channel] | None = None,
    checkpointer: Store | None = None,
    limits: Limits | None = None,
    termination: Termination | None = None,
) -> GraphRunner:
    """Return a graph in which an advisor approves a worker's drafts or sends them back with feedback.

    The advisor approves with a reply that starts with "approved"; any other reply asks for a
    revision, with the text after a leading "revise:" as feedback. The result's output is the draft.

    Args:
        worker, advisor: agents, or anything with `chat(prompt)` and a `name`.
        max_revisions: at most this many drafts after the first.
        human: "verdict" lets a person decide on every verdict before it takes effect.
        prompts: replacements for `PROMPTS`, by name.
        state_schema: channels to use instead of the workflow's own.
        checkpointer: the store of threads; with `human` one in memory by default.
        limits: what a run may use; a `max_iterations` other than 25, the default, replaces the workflow's
            own.
        termination: ends a run as completed(termination), besides the workflow's own ends.

    Raises:
        GraphInvalid: not an agent, a channel or a prompt that does not fit, or max_revisions is below 0.
    """
    parts.at_least("max_revisions", max_revisions, 0)
    parts.check_human(human, "verdict")
    parts.check_agent("worker", worker)
    parts.check_agent("advisor", advisor)
    texts = parts.prompts_for("advisor", PROMPTS, prompts)
    channels = parts.channels_for("advisor", state_schema, default_channels())
    turns = 2 * (max_revisions + 1)
    return (
        StateGraph(channels, name="advisor")
        .add_node("worker", _worker(texts), writes=["messages", "latest_draft", "revision_n"])
        .add_node("advisor", _advisor(texts), writes=["messages", "advisor_verdict", "advisor_feedback"])
        .add_edge(START, "worker")
        .add_edge("worker", "advisor")
        .add_conditional_edge("advisor", _route, {"approved": END, "revise": "worker"})
        .compile(
            checkpointer=parts.store_for(checkpointer, human),
            agents={"worker": worker, "advisor": advisor},
            interrupt_after=[_verdict_gate(advisor, max_revisions)] if human else [],
            termination=parts.ends_at(
                max_turns(turns) & custom_condition(_is_not_approved, "no approval"), termination
            ),
            limits=parts.limits_for(turns, limits),
            inputs=[InputField("task", "messages", "What should be written?", "Explain what a closure is.")],
            output="latest_draft",
        )
    )


def default_channels() -> dict[str, Channel]:
    """Return the channels of the advisor workflow."""
    return {
        "messages": Channel([], reducer=append(), description="the task, every draft and every verdict"),
        "latest_draft": Channel("", schema={"type": "string"}, description="what the worker wrote last"),
        "advisor_feedback": Channel(
            "", schema={"type": "string"}, description="what the advisor wants changed"
        ),
        "advisor_verdict": Channel(
            "revise", schema={"enum": ["approved", "revise"]}, description="approved, or revise"
        ),
        "revision_n": Channel(0, schema={"type": "integer"}, description="revisions so far"),
    }


def read_verdict(reply: str) -> tuple[str, str]:
    """Return `(verdict, feedback)` from an advisor's reply.

    It is approved only if the trimmed reply starts with "approved" in any case; otherwise the feedback is the
    text after a leading "revise:", or the whole reply without one.
    """
    text = reply.strip()
    if text.lower().startswith("approved"):
        return "approved", ""
    return "revise", text[len("revise:") :].strip() if text.lower().startswith("revise:") else text


def _worker(prompts: Mapping[str, str]) -> Node:
    async def work(state: WorkflowState, config: NodeConfig) -> dict[str, Any]:
        revision = config.iteration > 1
        prompt = parts.fill(
            prompts["revision" if revision else "worker"],
            task=parts.task_of(state, config),
            feedback=state["advisor_feedback"],
            draft=state["latest_draft"],
        )
        draft = await parts.ask(config.agents["worker"], prompt)
        revision_n = state.get("revision_n", 0) + 1 if revision else 0
        return {"messages": draft, "latest_draft": draft, "revision_n": revision_n}

    return work


def _advisor(prompts: Mapping[str, str]) -> Node:
    async def advise(state: WorkflowState, config: NodeConfig) -> NodeResult:
        from hitl_tui.engine.nodes.results import NodeResult

        prompt = parts.fill(
            prompts["advisor"], task=parts.task_of(state, config), draft=state["latest_draft"]
        )
        reply = await parts.ask(config.agents["advisor"], prompt)
        verdict, feedback = read_verdict(reply)
        updates = {"messages": reply, "advisor_verdict": verdict, "advisor_feedback": feedback}
        return NodeResult(updates, text=_WHY[verdict])

    return advise


def _is_not_approved(state: WorkflowState) -> bool:
    return bool(state["advisor_verdict"] != "approved")


def _route(state: WorkflowState) -> str:
    return "revise" if _is_not_approved(state) else "approved"


def _verdict_gate(advisor: Any, max_revisions: int) -> Gate:
    name = getattr(advisor, "name", "the advisor")

    def payload(state: WorkflowState) -> dict[str, Any]:
        return {
            "agent": name,
            "verdict": state["advisor_verdict"],
            "feedback": state["advisor_feedback"],
            "round": state.get("revision_n", 0) + 1,
            "rounds": max_revisions + 1,
        }

    def agreement(state: WorkflowState) -> str:
        if not _is_not_approved(state):
            return "agree: approve the draft"
        is_last = state.get("revision_n", 0) >= max_revisions
        return "agree: end without an approval" if is_last else "agree: send it back"

    return Gate(
        node="advisor",
        title="Approve this draft?",
        subject="latest_draft",
        payload=payload,
        recommended="accept",
        choices=[
            GateChoice("accept", "agree with the advisor", "enter", label_for=agreement),
            GateChoice("approve", "approve the draft", "a", values={"advisor_verdict": "approved"}),
            GateChoice("revise", "send back with feedback", "r", text="required", values=_own_feedback),
        ],
    )


def _own_feedback(_state: WorkflowState, text: str) -> dict[str, str]:
    return {"advisor_verdict": "revise", "advisor_feedback": text}
