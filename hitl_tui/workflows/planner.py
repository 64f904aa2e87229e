"""The planner workflow: one agent plans, cheap workers do the steps, an evaluator judges."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Literal

from hitl_tui.declared import declares
from hitl_tui.engine.graph.builder import StateGraph
from hitl_tui.engine.graph.description import InputField
from hitl_tui.engine.graph.gates import Gate, GateChoice
from hitl_tui.engine.graph.termination import Termination, custom_condition
from hitl_tui.engine.log.records import END, START, Limits
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.nodes.attempt import NodeConfig
from hitl_tui.engine.nodes.results import NodeResult
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.engine.state.channel import Channel
from hitl_tui.engine.state.reducers import append, as_reducer, overwrite
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.errors import GraphInvalid, HitlError, described, in_words
from hitl_tui.workflows import parts

Step = dict[str, str]
ParsePlan = Callable[[str], Iterable[Mapping[str, str]]]

# "1." "2)" "(3)", and "-" "*" "+" "•" "–" with a blank after it.
_MARK = re.compile(r"\s*(?:\(?\d+[.)]\s*|[-*+•–]\s+)*")
_QUOTED = 120


def parse_lines(text: str, workers: Sequence[str]) -> list[Step]:
    """Return the steps of a plan with one `worker: instruction` per line.

    Blank lines are skipped, list numbers and bullets are ignored; the first colon splits. A worker's name may
    be in any case.

    Raises:
        HitlError: quotes the first line that can't be parsed, with its number.
    """
    known = {name.casefold(): name for name in workers}
    steps = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        body = line[_MARK.match(line).end() :]  # type: ignore[union-attr]  # it matches nothing too
        worker, colon, instruction = body.partition(":")
        where = f"line {number} of the plan, {_quote(line)}"
        if not colon or not instruction.strip():
            lacks = "has no instruction" if colon else "has no colon"
            raise _broken(f"{where}, {lacks}", "write each step as `worker: instruction`")
        if worker.strip().casefold() not in known:
            raise _broken(f"{where}: there is no worker {_quote(worker)}", _known(workers))
        steps.append({"worker": known[worker.strip().casefold()], "instruction": instruction.strip()})
    return steps


def read_plan(
    plan: Any, workers: Sequence[str], max_steps: int, parse: ParsePlan | None = None
) -> list[Step]:
    """Return the steps of a plan as it is in its channel: a text to parse, or the steps.

    Raises:
        HitlError: an invalid step, an unknown worker, no step at all, or more than `max_steps`.
    """
    if isinstance(plan, str) and parse is None:
        steps = parse_lines(plan, workers)
    else:
        steps = _check_steps(_parsed(plan, parse) if isinstance(plan, str) and parse else plan, workers)
    if not steps:
        raise _broken("the plan has no step", "write each step as `worker: instruction`")
    if len(steps) > max_steps:
        raise _broken(
            f"the plan has {len(steps)} steps, max_steps is {max_steps}", "join steps, or leave some out"
        )
    return steps


def plan_text(plan: Any) -> str:
    """Return a plan for people, one step per line; a text is not changed."""
    if not isinstance(plan, list):
        return str(plan or "")
    lines = [
        f"{number}. {step.get('worker')}: {step.get('instruction')}"
        if isinstance(step, Mapping)
        else str(step)
        for number, step in enumerate(plan, 1)
    ]
    return "\n".join(lines)


def _parsed(text: str, parse: ParsePlan) -> list[Any]:
    try:
        return list(parse(text))
    except HitlError as error:
        raise _broken(error.message, error.hint) from error
    except Exception as error:
        name = getattr(parse, "__name__", "parse_plan")
        raise _broken(
            f"{name} can't read the plan {_quote(text)}: {described(error)}",
            "fix the plan, or make a new one",
        ) from error


def _check_steps(steps: Any, workers: Container[str]) -> list[Step]:
    for number, step in enumerate(steps if isinstance(steps, list) else [steps], 1):
        worker = step.get("worker") if isinstance(step, Mapping) else None
        instruction = step.get("instruction") if isinstance(step, Mapping) else None
        if not isinstance(worker, str) or not isinstance(instruction, str):
            raise _broken(
                f"step {number} of the plan, {_quote(step)}, is not a step",
                'write each as {"worker": "…", "instruction": "…"}',
            )
        if worker not in workers:
            raise _broken(
                f"step {number} of the plan, {_quote(step)}: there is no worker {worker!r}", _known(workers)
            )
    return [{"worker": step["worker"], "instruction": step["instruction"]} for step in steps]


def _broken(message: str, hint: str) -> HitlError:
    return HitlError(message, hint, channel="plan")


def _known(workers: Any) -> str:
    return f"workers: {', '.join(workers)}"


def _quote(part: Any) -> str:
    text = part.strip() if isinstance(part, str) else str(part)
    return repr(text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…")


Human = Literal["plan", "replan", "both"]

_RULES = "The workers:\n{workers}\n\nMake a plan of at most {max_steps} steps. {format}"
_FORMAT = "Answer with the plan alone, one step a line, each as `worker: instruction`."

PROMPTS = {
    "planner": "{task}\n\n" + _RULES,
    "replan": (
        "{task}\n\nThe old plan:\n{plan}\n\nResults so far:\n{results}\n\n"
        "Make a new plan, because:\n{reason}\n\n" + _RULES
    ),
    "worker": "{instruction}",
    "evaluator": (
        "Task:\n{task}\n\nResults:\n{results}\n\n"
        'Is the task done? If it is, reply "done"; else begin your reply with "replan:" and the reason.'
    ),
}
"""The prompts of planner, workers and evaluator by name; `prompts=` replaces any of them.

With a custom `parse_plan`, `{format}` is empty.
"""


@declares()
def planner_workflow(  # noqa: PLR0917  (the order of docs/spec/workflows.md)
    planner: Any,
    workers: parts.Team,
    evaluator: Any = None,
    max_replans: int = 2,
    max_steps: int = 10,
    parse_plan: ParsePlan | None = None,
    *,
    human: Human | None = None,
    prompts: Mapping[str, str] | None = None,
    state_schema: Mapping[str, Channel] | None = None,
    checkpointer: Store | None = None,
    limits: Limits | None = None,
    termination: Termination | None = None,
) -> GraphRunner:
    """Return a graph in which workers do the steps of a plan, which is then judged as a whole.

    The planner replies with one `worker: instruction` per line. The dispatcher takes the steps in order and
    calls no model; each worker gets only its instruction. The evaluator says done, or replan with a reason
    that the planner gets.  The result's output is the list of results.

    Args:
        planner, evaluator: agents, or anything with `chat(prompt)`; without an evaluator the run ends
            with the plan.
        workers: `{name: agent}`, or a list of agents with a `name` each.
        max_replans: how often the plan may be made again.
        max_steps: how long a plan may be.
        parse_plan: a function from the planner's reply to steps, each {"worker": …, "instruction": …}.
        human: "plan" lets a person edit each plan before it runs, "replan" decide on the evaluator's
            verdict; "both" does both.
        prompts: replacements for `PROMPTS`, by name.
        state_schema: channels to use instead of the workflow's own.
        checkpointer: the store of threads; with `human` one in memory by default.
        limits: what a run may use; a `max_iterations` other than 25, the default, replaces the workflow's
            own.
        termination: ends a run as completed(termination), besides the workflow's own ends.

    Raises:
        GraphInvalid: no workers, not an agent or a function, a name or a bound that can't be used, or a
            channel or a prompt that does not fit.
    """
    parts.at_least("max_replans", max_replans, 0)
    parts.at_least("max_steps", max_steps, 1)
    parts.check_human(human, "plan", "replan", "both")
    if evaluator is None and human in ("replan", "both"):
        raise GraphInvalid(f"human={human!r} needs an evaluator", 'give one, or human="plan"')
    parts.check_agent("planner", planner)
    if evaluator is not None:
        parts.check_agent("evaluator", evaluator)
    if parse_plan is not None and not callable(parse_plan):
        raise GraphInvalid(f"parse_plan is {in_words(parse_plan)}", "give a function (reply) -> steps")
    texts = parts.prompts_for("planner", PROMPTS, prompts)
    team = parts.agents_by_name(workers, "workers", taken=("planner", "dispatcher", "evaluator", "evaluate"))
    channels = parts.channels_for("planner", state_schema, default_channels())
    names = list(team)
    graph = StateGraph(channels, name="planner")
    resets = channels["results"].reducer == _COLLECTS
    graph.add_node(
        "planner",
        _planner(texts, team, max_steps, parse_plan, resets=resets),
        writes=[*_PLANNED, "results"] if resets else _PLANNED,
    )
    graph.add_node("dispatcher", _dispatcher(names, max_steps, parse_plan), writes=_DISPATCHED)
    for name in names:
        graph.add_node(
            name, _worker(name, texts["worker"]), reads=["current_instruction", "plan_index"], writes=_WORKED
        )
        graph.add_edge(name, "dispatcher")
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "dispatcher")
    after_plan = END if evaluator is None else "evaluator"
    graph.add_conditional_edge(
        "dispatcher",
        lambda state: state["current_worker"],
        {**{name: name for name in names}, "": after_plan},
    )
    if evaluator is not None:
        graph.add_node("evaluator", _evaluator(texts["evaluator"]), writes=["messages", "evaluator_verdict"])
        graph.add_conditional_edge(
            "evaluator",
            lambda state: "replan" if _wants_replan(state) else "done",
            {"done": END, "replan": "planner"},
        )
    gates = [_plan_gate(names, max_steps, parse_plan)] if human in ("plan", "both") else []
    gates += [_replan_gate(max_replans)] if human in ("replan", "both") else []
    return graph.compile(
        checkpointer=parts.store_for(checkpointer, human),
        agents={"planner": planner, **team, **({} if evaluator is None else {"evaluator": evaluator})},
        interrupt_after=gates,
        termination=parts.ends_at(
            custom_condition(
                lambda state: _wants_replan(state) and state["replan_count"] >= max_replans,
                f"{max_replans} of {max_replans} replans used",
            ),
            termination,
        ),
        # A plan takes the planner, a dispatch before and after each step, the steps and the evaluator.
        limits=parts.limits_for((2 * max_steps + 3) * (max_replans + 1), limits),
        inputs=[InputField("task", "messages", "What should be done?", "Write a report on tidy data.")],
        output="results",
    )


_PLANNED = ["messages", "plan", "plan_index", "current_worker", "current_instruction",
            "evaluator_verdict", "replan_count"]  # fmt: skip
_DISPATCHED = ["plan", "current_worker", "current_instruction"]
_WORKED = ["messages", "results", "plan_index"]


def collect(results: Any, update: Any) -> Any:
    """Add a reply to the results; a list replaces them all, such as an empty one for a new task."""
    return update if isinstance(update, list) else [*results, update]


_COLLECTS = as_reducer(collect)


def default_channels() -> dict[str, Channel]:
    """Return the channels of the planner workflow."""
    text = {"type": "string"}
    count = {"type": "integer", "minimum": 0}
    return {
        "messages": Channel([], reducer=append(), description="the task, the plans, every reply and verdict"),
        "plan": Channel(
            [],
            reducer=overwrite(),
            schema={"type": ["array", "string"]},
            description="the steps, each a worker and an instruction; or lines `worker: instruction`",
        ),
        "plan_index": Channel(0, schema=count, description="steps done"),
        "current_instruction": Channel("", schema=text, description="the current worker's instruction"),
        "current_worker": Channel("", schema=text, description='who is next, "" where the plan is done'),
        "results": Channel([], reducer=_COLLECTS, description="what the workers replied"),
        "evaluator_verdict": Channel("", schema=text, description="done, or replan: and the reason"),
        "replan_count": Channel(0, schema=count, description="plans made after the first"),
    }


def read_evaluation(reply: str) -> tuple[str, str]:
    """Return `(verdict, why)` from an evaluator's reply; the verdict is "done" or "replan: reason".

    A reply that starts with "replan" asks for a new plan, whatever follows; otherwise the word "done" in any
    case ends the run; a reply with neither is a reason to plan again.
    """
    text = reply.strip()
    if parts.find_word("replan", text) == 1:
        reason = text[len("replan") :].lstrip(" :,.-–—")
        return f"replan: {reason}", "The evaluator wants a new plan: its reply starts with “replan”."
    if place := parts.find_word("done", reply):
        return "done", f"The evaluator says done: the word is at character {place} of its reply."
    return f"replan: {text}", "The evaluator wants a new plan: its reply lacks the word “done”."


def _planner(
    prompts: Mapping[str, str],
    team: Mapping[str, Any],
    max_steps: int,
    parse: ParsePlan | None,
    *,
    resets: bool,
) -> Callable[..., Awaitable[NodeResult]]:
    async def plan(state: WorkflowState, config: NodeConfig) -> NodeResult:
        again = config.iteration > 1 and _wants_replan(state)
        prompt = parts.fill(
            prompts["replan" if again else "planner"],
            task=parts.task_of(state, config),
            plan=plan_text(state["plan"]),
            results=_results(state),
            reason=_reason(state),
            workers=parts.with_roles(team),
            max_steps=max_steps,
            format="" if parse else _FORMAT,
        ).rstrip()
        reply = await parts.ask_alone(config.agents["planner"], prompt)
        steps, why = _as_far_as_it_parses(reply, list(team), max_steps, parse)
        updates: dict[str, Any] = {
            "messages": reply,
            "plan": steps,
            "plan_index": 0,
            "current_worker": "",
            "current_instruction": "",
            "evaluator_verdict": "",
            "replan_count": state["replan_count"] + 1 if again else 0,
        }
        if resets and not again and state["results"]:
            updates["results"] = []  # the results of an earlier task
        return NodeResult(updates, text=why)

    return plan


def _as_far_as_it_parses(
    reply: str, workers: list[str], max_steps: int, parse: ParsePlan | None
) -> tuple[Any, str]:
    """Return the steps; or the reply as it is, so that a person can fix what the planner wrote."""
    try:
        steps = read_plan(reply, workers, max_steps, parse)
    except HitlError as error:
        return reply, error.message
    return steps, f"plan: {len(steps)} step{'s' if len(steps) > 1 else ''}"


def _dispatcher(workers: list[str], max_steps: int, parse: ParsePlan | None) -> Callable[..., NodeResult]:
    def dispatch(state: WorkflowState, config: NodeConfig) -> NodeResult:
        steps = read_plan(state["plan"], workers, max_steps, parse)
        place = state["plan_index"]
        updates: dict[str, Any] = {"current_worker": "", "current_instruction": ""}
        if isinstance(state["plan"], str):
            updates["plan"] = steps
        if place >= len(steps):
            return NodeResult(updates, text=f"all {len(steps)} steps are done")
        step = steps[place]
        updates.update(current_worker=step["worker"], current_instruction=step["instruction"])
        return NodeResult(updates, text=f"step {place + 1} of {len(steps)} goes to {step['worker']}")

    return dispatch


def _worker(name: str, prompt: str) -> Callable[..., Awaitable[dict[str, Any]]]:
    async def work(state: WorkflowState, config: NodeConfig) -> dict[str, Any]:
        reply = await parts.ask_alone(
            config.agents[name], parts.fill(prompt, instruction=state["current_instruction"])
        )
        return {"messages": reply, "results": reply, "plan_index": state["plan_index"] + 1}

    return work


def _evaluator(prompt: str) -> Callable[..., Awaitable[NodeResult]]:
    async def evaluate(state: WorkflowState, config: NodeConfig) -> NodeResult:
        filled = parts.fill(prompt, task=parts.task_of(state, config), results=_results(state))
        reply = await parts.ask_alone(config.agents["evaluator"], filled)
        verdict, why = read_evaluation(reply)
        return NodeResult({"messages": reply, "evaluator_verdict": verdict}, text=why)

    return evaluate


def _results(state: WorkflowState) -> str:
    return "\n\n".join(parts.text_of(result) for result in state["results"])


def _wants_replan(state: WorkflowState) -> bool:
    return str(state["evaluator_verdict"]).strip().lower().startswith("replan")


def _reason(state: WorkflowState) -> str:
    return str(state["evaluator_verdict"]).partition(":")[2].strip() or "the results are not complete"


def _plan_gate(workers: list[str], max_steps: int, parse: ParsePlan | None) -> Gate:
    def own_plan(_state: WorkflowState, text: str) -> dict[str, Any]:
        return {"plan": read_plan(text, workers, max_steps, parse)}

    return Gate(
        node="planner",
        title="Run this plan?",
        subject="plan",
        payload=lambda state: plan_text(state["plan"]),
        recommended="run",
        choices=[
            GateChoice("run", "run this plan", "enter"),
            GateChoice("replace", "run my own plan instead", "r", text="required", values=own_plan),
        ],
    )


def _replan_gate(max_replans: int) -> Gate:
    def payload(state: WorkflowState) -> dict[str, Any]:
        verdict, _, reason = state["evaluator_verdict"].partition(":")
        return {"agent": "evaluator", "verdict": verdict, "feedback": reason.strip()}

    def agreement(state: WorkflowState) -> str:
        if not _wants_replan(state):
            return "agree: done"
        is_last = state["replan_count"] >= max_replans
        return "agree: end, no new plan is left" if is_last else "agree: make a new plan"

    return Gate(
        node="evaluator",
        title="Are the results complete?",
        subject="results",
        payload=payload,
        recommended="accept",
        choices=[
            GateChoice("accept", "agree with the evaluator", "enter", label_for=agreement),
            GateChoice("done", "done: make no new plan", "x", values={"evaluator_verdict": "done"}),
            GateChoice("replan", "make a new plan for my reason", "r", text="required", values=_own_reason),
        ],
    )


def _own_reason(_state: WorkflowState, text: str) -> dict[str, Any]:
    return {"evaluator_verdict": f"replan: {text}"}
