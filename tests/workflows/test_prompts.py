"""What a model must know stands in its prompt, `prompts=` replaces any, the task is never lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hitl_tui import (
    Agent,
    Channel,
    GraphInvalid,
    MemoryCheckpointer,
    ScriptedModel,
    advisor_workflow,
    append,
    debate_workflow,
    last_n,
    planner_workflow,
    sequential_workflow,
    supervisor_workflow,
)
from hitl_tui.workflows import advisor, debate, planner, sequential, supervisor
from tests.support.spec import spec
from tests.support.stubs import Stub

pytestmark = spec("15")


def with_role(name: str, role: str) -> Agent:
    return Agent(name, ScriptedModel(["done"] * 9, pace=0), role=role)


def bounded(channels: dict[str, Channel], n: int) -> dict[str, Channel]:
    return {**channels, "messages": Channel([], reducer=last_n(n))}


class TestTheTask:
    @pytest.mark.parametrize("n", [1, 2, 3, 8])
    def test_of_the_advisor_outlives_bounded_messages(self, n: int) -> None:
        worker, judge = Stub("w", ["d"] * 9), Stub("a", ["revise: x", "revise: y", "approved"] * 2)
        runner = advisor_workflow(
            worker, judge, state_schema=bounded(advisor.default_channels(), n),
            checkpointer=MemoryCheckpointer(),
        )  # fmt: skip
        runner.invoke({"messages": "the task"}, thread_id="t")
        assert all(prompt.startswith("the task") for prompt in worker.prompts)
        assert all(prompt.startswith("Task:\nthe task\n") for prompt in judge.prompts)
        runner.invoke({"messages": ["another task", "with more"]}, thread_id="t")
        assert all(prompt.startswith("another task") for prompt in worker.prompts[3:])

    @pytest.mark.parametrize("n", [1, 2, 3, 8])
    def test_of_the_planner_outlives_bounded_messages(self, n: int) -> None:
        boss, judge = Stub("boss", ["w: x\nw: y"] * 3), Stub("judge", ["replan: a", "replan: b", "done"])
        planner_workflow(
            boss, [Stub("w", ["r"] * 9)], judge, state_schema=bounded(planner.default_channels(), n)
        ).invoke({"messages": "the task"})
        assert len(boss.prompts) == len(judge.prompts) == 3
        assert all(prompt.startswith("the task\n") for prompt in boss.prompts)
        assert all(prompt.startswith("Task:\nthe task\n") for prompt in judge.prompts)

    def test_is_read_from_messages_so_that_an_edit_counts(self) -> None:
        worker, judge = Stub("w", ["d"] * 9), Stub("a", ["revise: x", "approved"])
        runner = advisor_workflow(worker, judge, human="verdict")
        (request,) = runner.invoke({"messages": "the task"}, thread_id="t").pending
        messages = list(runner.get_state("t")["messages"])
        step = runner.update_state("t", {"messages": ["the edited task", *messages[1:]]})
        runner.answer("t", request.id, "accept", step=step)
        runner.invoke(thread_id="t")
        assert worker.prompts[1].startswith("the edited task\n")


def test_the_advisors_prompt_has_the_words_that_decide() -> None:
    judge = Stub("a", ["approved"])
    advisor_workflow(Stub("w", ["d"]), judge).invoke({"messages": "t"})
    assert '"approved"' in judge.prompts[0]
    assert '"revise:"' in judge.prompts[0]


def test_the_judges_prompt_has_the_word_that_ends_the_debate() -> None:
    judge = Stub("j", ["done"])
    debate_workflow([Stub("a", ["x"]), Stub("b", ["y"])], judge).invoke({"messages": "t"})
    assert '"done"' in judge.prompts[0]


def test_the_managers_prompt_has_the_workers_their_roles_and_how_to_end() -> None:
    boss = Stub("boss", ["DONE"])
    supervisor_workflow(boss, [with_role("writer", "writes well"), Stub("other", [])]).invoke({"task": "t"})
    assert "\n- writer: writes well\n- other\n" in boss.prompts[0]
    assert "DONE" in boss.prompts[0]


def test_the_planners_prompt_has_the_workers_the_format_and_the_number_of_steps() -> None:
    boss = Stub("boss", ["writer: x"])
    workers = {"writer": with_role("w", "writes well")}
    planner_workflow(boss, workers, max_steps=4).invoke({"task": "t"})
    assert "\n- writer: writes well\n" in boss.prompts[0]
    assert "at most 4 steps" in boss.prompts[0]
    assert "`worker: instruction`" in boss.prompts[0]


def test_with_a_custom_parser_the_prompt_has_no_format() -> None:
    boss = Stub("boss", ["x"])
    planner_workflow(
        boss, {"w": Stub("w", ["r"])}, parse_plan=lambda text: [{"worker": "w", "instruction": text}]
    ).invoke({"task": "t"})
    assert "`worker: instruction`" not in boss.prompts[0]
    assert boss.prompts[0].endswith("steps.")


def test_a_replan_has_the_old_plan_its_results_and_the_reason() -> None:
    boss, judge = Stub("boss", ["w: first", "w: second"]), Stub("judge", ["replan: too thin", "done"])
    planner_workflow(boss, {"w": Stub("w", ["one result", "other"])}, judge).invoke({"task": "t"})
    for part in ("1. w: first", "one result", "too thin", "- w", "`worker: instruction`"):
        assert part in boss.prompts[1]


Build = Callable[[Any], Any]
ASKED: dict[str, tuple[Build, dict[str, str], dict[str, list[str]]]] = {
    "sequential": (
        lambda p: sequential_workflow([Stub("a", ["x"]), Stub("b", ["y"])], prompts=p),
        {"agent": "Improve {message}"},
        {"a": ["Improve {brace}"], "b": ["Improve x"]},
    ),
    "supervisor": (
        lambda p: supervisor_workflow(Stub("m", ["a", "DONE"]), [Stub("a", ["x"])], prompts=p),
        {"manager": "{workers}|{history}", "worker": "W {history}"},
        {"manager": ["- a|{brace}", "- a|{brace}\na\nx"], "a": ["W {brace}\na"]},
    ),
    "debate": (
        lambda p: debate_workflow([Stub("a", ["x"]), Stub("b", ["y"])], Stub("j", ["done"]), prompts=p),
        {"agent": "A {history}", "judge": 'J {history} {"json": {"a": 1}} {{history}}'},
        {"a": ["A {brace}"], "judge": ['J {brace}\nx\ny {"json": {"a": 1}} {history}']},
    ),
    "advisor": (
        lambda p: advisor_workflow(Stub("w", ["d", "e"]), Stub("a", ["no", "approved"]), prompts=p),
        {"worker": "1 {task}", "revision": "2 {task} {feedback} {draft}", "advisor": "{draft}?"},
        {"worker": ["1 {brace}", "2 {brace} no d"], "advisor": ["d?", "e?"]},
    ),
    "planner": (
        lambda p: planner_workflow(
            Stub("p", ["w: i", "w: k"]), [Stub("w", ["r", "s"])], Stub("e", ["replan: z", "done"]), prompts=p
        ),
        {"planner": "P {task}", "replan": "R {plan} {reason}", "worker": "W {instruction}",
         "evaluator": "E {results}"},
        {"planner": ["P {brace}", "R 1. w: i z"], "w": ["W i", "W k"], "evaluator": ["E r", "E r\n\ns"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("build", "prompts", "wanted"), ASKED.values(), ids=ASKED)
def test_prompts_replace_any_of_them(build: Build, prompts: dict[str, str], wanted: dict[str, Any]) -> None:
    runner = build(prompts)
    runner.invoke({"messages": "{brace}"})
    assert {name: runner.graph.agents[name].prompts for name in wanted} == wanted


@pytest.mark.parametrize("build", [build for build, _, _ in ASKED.values()], ids=ASKED)
@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ({"nobody": "x"}, "no prompt 'nobody'"),
        ("x", "prompts is"),
        ({3: "x"}, "no prompt 3"),
    ],
    ids=["no such prompt", "a text", "a number for a name"],
)
def test_prompts_that_do_not_fit_are_refused_when_built(build: Build, prompts: Any, message: str) -> None:
    with pytest.raises(GraphInvalid, match=message):
        build(prompts)


def test_a_prompt_that_is_not_text_or_has_an_unknown_field_is_refused_when_built() -> None:
    team = [Stub("a", []), Stub("b", [])]
    with pytest.raises(GraphInvalid, match=r"agent has no field \{histry\}") as caught:
        debate_workflow(team, prompts={"agent": "{histry}"})
    assert "history" in caught.value.hint
    with pytest.raises(GraphInvalid, match="prompts: agent is"):
        debate_workflow(team, prompts={"agent": 3})  # type: ignore[dict-item]


WRONG = ["gpt-4o", 3, None, object(), Stub, {"chat": 1}]


def of_the_wrong_kind(bad: Any) -> list[Callable[[], Any]]:
    good = Stub("good", [])
    builds: list[Callable[[], Any]] = [
        lambda: advisor_workflow(bad, good),
        lambda: advisor_workflow(good, bad),
        lambda: sequential_workflow([good, bad]),
        lambda: sequential_workflow({"a": bad}),
        lambda: sequential_workflow(bad),
        lambda: supervisor_workflow(bad, [good]),
        lambda: supervisor_workflow(good, {"w": bad}),
        lambda: debate_workflow({"a": good, "b": bad}),
        lambda: planner_workflow(bad, [good]),
        lambda: planner_workflow(good, {"w": bad}),
    ]
    if bad is not None:
        builds += [
            lambda: debate_workflow({"a": good, "b": good}, bad),
            lambda: planner_workflow(good, [good], bad),
        ]
    return builds


@pytest.mark.parametrize("bad", WRONG, ids=lambda bad: type(bad).__name__)
def test_a_value_that_is_not_an_agent_is_refused_when_built(bad: Any) -> None:
    for build in of_the_wrong_kind(bad):
        with pytest.raises(GraphInvalid):
            build()


@pytest.mark.parametrize(
    ("team", "message"),
    [
        ({3: Stub("a", [])}, "is a whole number"),
        ({("a",): Stub("a", [])}, "the name"),
        ({"": Stub("a", [])}, "has no name"),
        ({"writer": Stub("a", []), "Writer": Stub("b", [])}, "'Writer' is used twice"),
        ("writer", "workers is"),
    ],
    ids=["a number", "a tuple", "an empty name", "one name in two cases", "a text for a list"],
)
def test_invalid_names_are_refused_when_built(team: Any, message: str) -> None:
    with pytest.raises(GraphInvalid, match=message):
        supervisor_workflow(Stub("m", []), team)


def test_a_parser_that_is_not_a_function_is_refused_when_built() -> None:
    with pytest.raises(GraphInvalid, match="parse_plan is"):
        planner_workflow(Stub("p", []), [Stub("w", [])], parse_plan="x")  # type: ignore[arg-type]


def test_every_workflow_publishes_its_prompts() -> None:
    names = {module.__name__.rpartition(".")[2]: list(module.PROMPTS) for module in
            (sequential, supervisor, debate, advisor, planner)}  # fmt: skip
    assert names == {
        "sequential": ["agent"],
        "supervisor": ["manager", "worker"],
        "debate": ["agent", "judge"],
        "advisor": ["worker", "revision", "advisor"],
        "planner": ["planner", "replan", "worker", "evaluator"],
    }


def test_an_end_chosen_in_the_last_round_does_not_count_as_a_limit() -> None:
    schema = {**advisor.default_channels(), "messages": Channel([], reducer=append())}
    ended = advisor_workflow(Stub("w", ["d"]), Stub("a", ["approved"]), max_revisions=0, state_schema=schema)
    assert ended.invoke({"messages": "t"}).reason == "end"
    team = [Stub("a", ["x"]), Stub("b", ["y"])]
    assert debate_workflow(team, Stub("j", ["done"]), max_rounds=1).invoke({"messages": "t"}).reason == "end"
    manager = supervisor_workflow(Stub("m", ["DONE"]), [Stub("w", [])], max_rounds=1)
    assert manager.invoke({"messages": "t"}).reason == "end"
