"""The planner workflow, to the letter of its row in docs/spec/workflows.md."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hitl_tui import (
    Agent,
    AnswerRefused,
    GraphInvalid,
    GraphRunner,
    HitlError,
    MemoryCheckpointer,
    ScriptedModel,
    planner_workflow,
)
from hitl_tui.workflows.planner import default_channels, read_evaluation
from tests.support.flows import pending_id
from tests.support.spec import spec
from tests.support.stubs import Stub, check_every_fork, decide, reasons

pytestmark = spec("15")

PLAN = "1. researcher: Find facts.\n2. writer: Write: short."


class Crew:
    """Everybody of a planner workflow, and its runner on a store."""

    def __init__(self, *plans: str, verdicts: tuple[str, ...] = (), **options: Any) -> None:
        self.planner = Stub("opus", plans)
        self.researcher = Stub("researcher", [f"facts {n}" for n in range(1, 60)])
        self.writer = Stub("writer", [f"text {n}" for n in range(1, 60)])
        self.evaluator = Stub("judge", verdicts) if verdicts else None
        self.runner: GraphRunner = planner_workflow(
            self.planner, [self.researcher, self.writer], self.evaluator,
            checkpointer=MemoryCheckpointer(), **options,
        )  # fmt: skip

    def run(self, task: str = "Report.") -> Any:
        return self.runner.invoke({"messages": [task]}, thread_id="t")


WANTS_ANOTHER = "The evaluator wants a new plan: its reply starts with “replan”."
LACKS_DONE = "The evaluator wants a new plan: its reply lacks the word “done”."


@pytest.mark.parametrize(
    ("reply", "verdict", "why"),
    [
        ("done", "done", "The evaluator says done: the word is at character 1 of its reply."),
        ("All is DONE.", "done", "The evaluator says done: the word is at character 8 of its reply."),
        ("replan: more sources", "replan: more sources", WANTS_ANOTHER),
        ("Replan - not done", "replan: not done", WANTS_ANOTHER),
        ("replan", "replan: ", WANTS_ANOTHER),
        ("abandoned", "replan: abandoned", LACKS_DONE),
        ("please replan", "replan: please replan", LACKS_DONE),
        ("replanned and done", "done", "The evaluator says done: the word is at character 15 of its reply."),
        ("", "replan: ", LACKS_DONE),
    ],
    ids=["done", "done in capitals", "replan with a reason", "replan, though it says done", "replan alone",
         "done inside abandoned", "neither as it should be", "replan inside a word", "empty"],
)  # fmt: skip
def test_verdicts(reply: str, verdict: str, why: str) -> None:
    assert read_evaluation(reply) == (verdict, why)
    crew = Crew(PLAN, verdicts=(reply,), max_replans=0)
    result = crew.run()
    assert result["evaluator_verdict"] == verdict
    assert result.reason == ("end" if verdict == "done" else "termination")
    assert reasons(crew.runner)[-1] == why


def test_each_worker_gets_only_its_instruction() -> None:
    crew = Crew(PLAN)
    result = crew.run()
    assert (result.status, result.reason) == ("completed", "end")
    assert list(result["results"]) == ["facts 1", "text 1"]
    assert result.output() == result["results"]
    assert list(result["messages"]) == ["Report.", PLAN, "facts 1", "text 1"]
    assert result["plan"] == [
        {"worker": "researcher", "instruction": "Find facts."},
        {"worker": "writer", "instruction": "Write: short."},
    ]
    assert (crew.researcher.prompts, crew.writer.prompts) == (["Find facts."], ["Write: short."])
    assert result["plan_index"] == 2
    assert reasons(crew.runner) == [
        "plan: 2 steps",
        "step 1 of 2 goes to researcher",
        "step 2 of 2 goes to writer",
        "all 2 steps are done",
    ]


def test_the_channels_before_the_run() -> None:
    assert {name: channel.default for name, channel in default_channels().items()} == {
        "messages": [], "plan": [], "plan_index": 0, "current_instruction": "", "current_worker": "",
        "results": [], "evaluator_verdict": "", "replan_count": 0,
    }  # fmt: skip


def test_the_planner_gets_the_reason_to_plan_again() -> None:
    crew = Crew(PLAN, "writer: Add sources.", verdicts=("replan: sources are missing", "done"))
    result = crew.run()
    assert (result.status, result.reason, result["replan_count"]) == ("completed", "end", 1)
    assert crew.planner.prompts[0].startswith("Report.\n\nThe workers:\n- researcher\n- writer\n\n")
    again = crew.planner.prompts[1]
    assert again.startswith(f"Report.\n\nThe old plan:\n{PLAN}\n\nResults so far:\nfacts 1\n\ntext 1\n\n")
    assert "because:\nsources are missing\n\nThe workers:\n- researcher\n- writer\n" in again
    assert all(prompt.endswith("each as `worker: instruction`.") for prompt in crew.planner.prompts)
    assert crew.evaluator is not None
    assert crew.evaluator.prompts[0].startswith("Task:\nReport.\n\nResults:\nfacts 1\n\ntext 1\n\n")
    assert 'reply "done"' in crew.evaluator.prompts[0]
    assert '"replan:"' in crew.evaluator.prompts[0]


def test_a_second_task_is_planned_and_judged_as_such() -> None:
    crew = Crew(PLAN, PLAN, "writer: x", verdicts=("done", "replan: shorter", "done"))
    crew.run("one")
    result = crew.run("two")
    assert (result.status, result["replan_count"]) == ("completed", 1)
    assert crew.planner.prompts[1].startswith("two\n\nThe workers")
    assert crew.planner.prompts[2].startswith("two\n")
    assert crew.evaluator is not None
    assert [prompt.split("\n")[1] for prompt in crew.evaluator.prompts] == ["one", "two", "two"]


@pytest.mark.parametrize("most", [0, 1, 3], ids=lambda most: f"{most} replans")
def test_max_replans_is_enforced(most: int) -> None:
    crew = Crew(*[PLAN] * 9, verdicts=("replan: again",) * 9, max_replans=most)
    result = crew.run()
    assert (result.status, result.reason, result["replan_count"]) == ("completed", "termination", most)
    assert len(crew.planner.prompts) == most + 1
    assert result["evaluator_verdict"] == "replan: again"


def test_the_guard_never_cuts_a_plan_within_its_limits() -> None:
    longest = "writer: Write.\n" * 9 + "researcher: Find."
    crew = Crew(*[longest] * 3, verdicts=("replan: again", "replan: again", "done"))
    result = crew.run()
    assert (result.status, result.reason, len(result["results"])) == ("completed", "end", 30)


def test_a_custom_parser_reads_the_plan() -> None:
    def parse(text: str) -> Any:
        return json.loads(text)

    crew = Crew('[{"worker": "writer", "instruction": "Write."}]', parse_plan=parse)
    assert list(crew.run()["results"]) == ["text 1"]


@pytest.mark.parametrize(
    ("options", "what"),
    [({"max_replans": -1}, "max_replans=-1"), ({"max_steps": 0}, "max_steps=0"),
     ({"human": "replan"}, "needs an evaluator"), ({"human": "both"}, "needs an evaluator")],
    ids=["replans below 0", "no steps", "a gate on no evaluator", "both gates without evaluator"],
)  # fmt: skip
def test_what_cannot_work_is_refused_when_built(options: dict[str, Any], what: str) -> None:
    with pytest.raises(GraphInvalid, match=what):
        Crew(PLAN, **options)


@pytest.mark.parametrize("name", ["planner", "Dispatcher", "evaluator"])
def test_a_worker_with_the_name_of_a_part_is_refused(name: str) -> None:
    with pytest.raises(GraphInvalid, match="means something else"):
        planner_workflow(Stub("p", []), {name: Stub("w", [])})


@pytest.mark.parametrize("missing", list(default_channels()))
def test_a_missing_channel_is_an_error_when_built(missing: str) -> None:
    channels = {name: channel for name, channel in default_channels().items() if name != missing}
    with pytest.raises(GraphInvalid, match=missing):
        Crew(PLAN, state_schema=channels)


def test_a_fork_at_any_step_ends_the_same() -> None:
    runner = planner_workflow(
        Stub("p", lambda prompt: "writer: again" if "because" in prompt else PLAN),
        [Stub("researcher", lambda prompt: f"on {prompt}"), Stub("writer", lambda prompt: f"on {prompt}")],
        Stub("e", lambda prompt: "done" if "on again" in prompt else "replan: again"),
        checkpointer=MemoryCheckpointer(),
    )  # fmt: skip
    runner.invoke({"task": "t"}, thread_id="t")
    check_every_fork(runner)


class TestAPlanThatDoesNotParse:
    BAD = "researcher: Find facts.\nthen write it up"

    def failed(self) -> Crew:
        crew = Crew(self.BAD)
        with pytest.raises(HitlError, match=r"line 2 of the plan, 'then write it up', has no colon"):
            crew.run()
        return crew

    def test_an_invalid_plan_is_kept_and_the_thread_names_the_channel_to_fix(self) -> None:
        crew = self.failed()
        cursor = crew.runner.open("t").cursor
        assert (cursor.status, cursor.next_node) == ("failed", "dispatcher")
        assert cursor.error is not None
        assert cursor.error.channel == "plan"
        assert crew.runner.get_state("t")["plan"] == self.BAD
        assert reasons(crew.runner) == ["line 2 of the plan, 'then write it up', has no colon"]

    @pytest.mark.parametrize(
        "fixed",
        [PLAN, [{"worker": "writer", "instruction": "Write it up."}]],
        ids=["as lines", "as steps"],
    )
    @pytest.mark.parametrize("as_node", [None, "planner"], ids=["in place", "as the planner"])
    def test_editing_the_plan_fixes_it_without_calling_the_planner(
        self, fixed: Any, as_node: str | None
    ) -> None:
        crew = self.failed()
        crew.runner.update_state("t", {"plan": fixed}, as_node=as_node, actor="ann")
        result = crew.runner.invoke(thread_id="t")
        assert (result.status, result["results"][-1]) == ("completed", "text 1")
        assert len(crew.planner.prompts) == 1
        assert crew.runner.verify("t", strict=True).ok

    def test_resumed_as_it_is_it_fails_again_in_the_same_words(self) -> None:
        crew = self.failed()
        with pytest.raises(HitlError, match="line 2 of the plan"):
            crew.runner.invoke(thread_id="t")


class TestAHuman:
    def test_sees_the_plan_before_it_runs_and_edits_it(self) -> None:
        crew = Crew(PLAN, human="plan")
        (request,) = crew.run().pending
        assert (request.title, request.subject) == ("Run this plan?", "plan")
        assert request.payload == "1. researcher: Find facts.\n2. writer: Write: short."
        crew.runner.update_state(
            "t", {"plan": [{"worker": "writer", "instruction": "Just write."}]}, actor="ann"
        )
        assert decide(crew.runner, "run").status == "completed"
        assert (crew.researcher.prompts, crew.writer.prompts) == ([], ["Just write."])

    def test_gives_a_plan_of_their_own(self) -> None:
        crew = Crew("no plan at all", human="plan")
        crew.run()
        assert decide(crew.runner, "replace", "writer: Mine.").status == "completed"
        assert crew.writer.prompts == ["Mine."]

    def test_a_replacement_plan_that_does_not_parse_is_refused_and_decides_nothing(self) -> None:
        crew = Crew(PLAN, human="plan")
        crew.run()
        wanted = pending_id(crew.runner, "t")
        with pytest.raises(HitlError, match="line 1 of the plan, 'whatever', has no colon"):
            crew.runner.answer("t", wanted, {"choice": "replace", "text": "whatever"}, step=1)
        assert pending_id(crew.runner, "t") == wanted

    def test_sees_a_new_plan_too(self) -> None:
        crew = Crew(PLAN, "writer: x", verdicts=("replan: more", "done"), human="plan")
        crew.run()
        result = decide(crew.runner, "run")
        assert (result.status, result["replan_count"]) == ("waiting", 1)
        assert decide(crew.runner, "run").status == "completed"

    @pytest.mark.parametrize(
        ("choice", "text", "plans", "reason"),
        [("accept", "", 2, "more"), ("done", "", 1, ""), ("replan", "not done: less", 2, "not done: less")],
        ids=["as the evaluator says", "done all the same", "with a reason of one's own"],
    )  # fmt: skip
    def test_decides_about_a_replan(self, choice: str, text: str, plans: int, reason: str) -> None:
        crew = Crew(PLAN, PLAN, verdicts=("replan: more", "done"), human="replan")
        (request,) = crew.run().pending
        assert request.payload == {"agent": "evaluator", "verdict": "replan", "feedback": "more"}
        result = decide(crew.runner, choice, text)
        assert len(crew.planner.prompts) == plans
        assert reason in crew.planner.prompts[-1]
        assert result.status == ("completed" if plans == 1 else "waiting")
        assert crew.runner.verify("t", strict=True).ok

    def test_a_reason_is_needed(self) -> None:
        crew = Crew(PLAN, verdicts=("done",), human="both")
        crew.run()
        decide(crew.runner, "run")
        with pytest.raises(AnswerRefused, match="needs a comment"):
            decide(crew.runner, "replan")


def test_a_second_task_begins_without_the_results_of_the_first() -> None:
    prompts: list[str] = []

    def evaluate(messages: Any) -> str:
        prompts.append(messages[-1]["content"])
        return "replan: more" if len(prompts) == 1 else "done"

    runner = planner_workflow(
        Agent("planner", ScriptedModel(lambda messages: "writer: Write.", pace=0)),
        [Agent("writer", ScriptedModel([f"text {n}" for n in range(1, 9)], pace=0))],
        Agent("evaluator", ScriptedModel(evaluate, pace=0)),
        checkpointer=MemoryCheckpointer(),
    )
    first = runner.invoke({"messages": ["One."]}, thread_id="t")
    assert list(first["results"]) == ["text 1", "text 2"]
    second = runner.invoke({"messages": ["Two."]}, thread_id="t")
    assert list(second["results"]) == ["text 3"]
    assert "text 1" not in prompts[-1]
    assert runner.verify("t", strict=True).ok
    assert runner.replay("t").ok
