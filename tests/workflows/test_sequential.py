"""The sequential workflow, to the letter of its row in docs/spec/workflows.md."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import (
    Agent,
    AnswerRefused,
    Channel,
    GraphInvalid,
    GraphRunner,
    HitlError,
    MemoryCheckpointer,
    ScriptedModel,
    append,
    sequential_workflow,
)
from tests.support.flows import check_log, pending_id
from tests.support.spec import spec
from tests.support.stubs import Stub, check_every_fork, decide

pytestmark = spec("15")


def team(**replies: str) -> list[Stub]:
    return [Stub(name, lambda _, reply=reply: reply) for name, reply in replies.items()]


def in_a_row(human: Any = None, **options: Any) -> tuple[GraphRunner, list[Stub]]:
    agents = team(drafter="a draft", reviewer="a review", polisher="polished")
    options.setdefault("checkpointer", MemoryCheckpointer())
    return sequential_workflow(agents, human=human, **options), agents


def test_agents_speak_in_order_and_each_gets_only_the_last_message() -> None:
    runner, agents = in_a_row()
    result = runner.invoke({"messages": ["Write about tidy data."]}, thread_id="t")
    assert (result.status, result.reason, result.output()) == ("completed", "end", "polished")
    assert list(result["messages"]) == ["Write about tidy data.", "a draft", "a review", "polished"]
    assert [agent.prompts for agent in agents] == [["Write about tidy data."], ["a draft"], ["a review"]]


def test_a_second_task_goes_through_the_same_row_without_the_first() -> None:
    runner, agents = in_a_row()
    runner.invoke({"task": "one"}, thread_id="t")
    runner.invoke({"task": "two"}, thread_id="t")
    assert agents[0].prompts == ["one", "two"]


def test_an_agent_with_its_own_chat_still_gets_only_the_last_message() -> None:
    seen: list[int] = []

    def reply(messages: Any) -> str:
        seen.append(len(messages))
        return "said"

    agent = Agent("a", ScriptedModel(reply, pace=0))
    runner = sequential_workflow([agent], checkpointer=MemoryCheckpointer())
    runner.invoke({"task": "one"}, thread_id="t")
    runner.invoke({"task": "two"}, thread_id="t")
    assert seen == [1, 1]


def test_agents_may_be_named_by_a_mapping() -> None:
    result = sequential_workflow({"x": Stub("a", ["1"]), "y": Stub("a", ["2"])}).invoke({"task": "t"})
    assert result.output() == "2"


def test_a_row_longer_than_the_default_limit_is_not_cut_short() -> None:
    agents = {f"a{number}": Stub("a", ["said"]) for number in range(40)}
    result = sequential_workflow(agents).invoke({"task": "t"})
    assert (result.status, len(result["messages"])) == ("completed", 41)


@pytest.mark.parametrize(
    ("agents", "what"),
    [([], "agents is empty"), ([Stub("a", []), Stub("a", [])], "'a' is used twice"),
     ([object()], "an agent has no name"), ({"END": Stub("a", [])}, "'END' means something else")],
    ids=["no agents", "one name twice", "no name", "a reserved name"],
)  # fmt: skip
def test_agents_with_missing_or_repeated_names_are_refused_when_built(agents: Any, what: str) -> None:
    with pytest.raises(GraphInvalid, match=what):
        sequential_workflow(agents)


def test_without_the_output_channel_it_runs_and_output_raises() -> None:
    runner, _ = in_a_row(state_schema={"messages": Channel([], reducer=append())})
    result = runner.invoke({"task": "t"})
    assert result["messages"][-1] == "polished"
    with pytest.raises(HitlError, match="output"):
        result.output()


def test_a_missing_channel_is_an_error_when_built() -> None:
    with pytest.raises(GraphInvalid, match="lacks messages"):
        in_a_row(state_schema={"output": Channel("")})
    with pytest.raises(GraphInvalid, match="lacks output"):
        in_a_row("handover", state_schema={"messages": Channel([], reducer=append())})


def test_a_fork_at_any_step_ends_the_same() -> None:
    runner, _ = in_a_row()
    runner.invoke({"task": "t"}, thread_id="t")
    check_every_fork(runner)


class TestHandingOver:
    def test_each_hand_over_is_asked_about_but_not_the_last_reply(self) -> None:
        runner, _ = in_a_row("handover")
        result = runner.invoke({"task": "t"}, thread_id="t")
        assert [request.title for request in result.pending] == ["Pass this on to reviewer?"]
        result = decide(runner, "pass")
        assert [request.title for request in result.pending] == ["Pass this on to polisher?"]
        ended = decide(runner, "pass")
        assert (ended.output(), len(ended["messages"])) == ("polished", 4)
        assert [point.decision for point in runner.history("t")[::-1]] == [
            None, None, "pass", None, "pass", None,
        ]  # fmt: skip
        check_log(runner, "t")

    def test_an_edited_text_is_what_the_next_agent_gets(self) -> None:
        runner, agents = in_a_row("handover")
        runner.invoke({"task": "t"}, thread_id="t")
        runner.update_state("t", {"output": "my draft"}, actor="ann")
        decide(runner, "pass")
        assert agents[1].prompts == ["my draft"]
        assert list(runner.get_state("t")["messages"]) == ["t", "a draft", "my draft", "a review"]

    def test_an_own_text_takes_the_place_of_the_reply(self) -> None:
        runner, agents = in_a_row("handover")
        runner.invoke({"task": "t"}, thread_id="t")
        decide(runner, "replace", "say it shorter")
        assert agents[1].prompts == ["say it shorter"]
        assert runner.verify("t", strict=True).ok

    def test_an_own_text_needs_words(self) -> None:
        runner, _ = in_a_row("handover")
        runner.invoke({"task": "t"}, thread_id="t")
        with pytest.raises(AnswerRefused, match="needs a comment"):
            runner.answer("t", pending_id(runner, "t"), "replace", step=1)
