"""The debate workflow, to the letter of its row in docs/spec/workflows.md."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui import (
    Channel,
    GraphInvalid,
    GraphRunner,
    HitlError,
    MemoryCheckpointer,
    append,
    debate_workflow,
    last_n,
)
from hitl_tui.workflows.debate import default_channels, read_judgement
from tests.support.spec import spec
from tests.support.stubs import Stub, check_every_fork, decide, reasons

pytestmark = spec("15")


def floor(*verdicts: str, **options: Any) -> tuple[GraphRunner, Stub, Stub, Stub | None]:
    """Pro and con, with a judge where there are verdicts."""
    pro = Stub("pro", [f"pro {n}" for n in range(1, 40)])
    con = Stub("con", [f"con {n}" for n in range(1, 40)])
    judge = Stub("judge", verdicts) if verdicts else None
    options.setdefault("checkpointer", MemoryCheckpointer())
    return debate_workflow([pro, con], judge, **options), pro, con, judge


CONTINUES = "the judge continues the debate: its reply lacks the word “done”"


@pytest.mark.parametrize(
    ("reply", "verdict", "why"),
    [
        ("done", "done", "the judge ends the debate: “done” is at character 1 of its reply"),
        ("Settled. DONE.", "done", "the judge ends the debate: “done” is at character 10 of its reply"),
        ("It is not done yet", "done", "the judge ends the debate: “done” is at character 11 of its reply"),
        ("abandoned", "continue", CONTINUES),
        ("undone, donet, done_", "continue", CONTINUES),
        ("continue", "continue", CONTINUES),
        ("", "continue", CONTINUES),
    ],
    ids=["the bare word", "at the end in capitals", "naive: not done is done", "inside abandoned",
         "inside other words", "continue", "empty"],
)  # fmt: skip
def test_verdicts(reply: str, verdict: str, why: str) -> None:
    assert read_judgement(reply) == (verdict, why)
    runner, *_ = floor(reply, max_rounds=1)
    assert runner.invoke({"task": "t"}, thread_id="t")["judge_verdict"] == verdict
    assert reasons(runner)[-1] == f"round 1 of 1: {why}"


@given(st.text(alphabet="abcdeno ", max_size=30))
def test_done_counts_only_as_a_whole_word(reply: str) -> None:
    assert (read_judgement(reply)[0] == "done") == ("done" in reply.split())


class TestWithoutAJudge:
    def test_round_robin_on_the_whole_history(self) -> None:
        runner, pro, con, _ = floor(max_rounds=2)
        result = runner.invoke({"messages": ["R or Python?"]}, thread_id="t")
        assert (result.status, result.reason) == ("completed", "termination")
        history = ["R or Python?", "pro 1", "con 1", "pro 2", "con 2"]
        assert list(result["messages"]) == history
        assert result.output() == {"pro": "pro 2", "con": "con 2"}
        assert pro.prompts == ["\n".join(history[:1]), "\n".join(history[:3])]
        assert con.prompts == ["\n".join(history[:2]), "\n".join(history[:4])]
        assert reasons(runner) == ["round 1 of 2", "round 1 of 2", "round 2 of 2", "round 2 of 2"]

    @pytest.mark.parametrize("rounds", [1, 5, 15], ids=lambda rounds: f"{rounds} rounds")
    def test_max_rounds_times_agents_turns(self, rounds: int) -> None:
        runner, *_ = floor(max_rounds=rounds)
        assert len(runner.invoke({"task": "t"})["messages"]) == 1 + 2 * rounds

    @pytest.mark.parametrize("judge", [None, Stub("judge", [])], ids=["alone", "with a judge"])
    def test_a_debate_of_one_is_refused(self, judge: Any) -> None:
        with pytest.raises(GraphInvalid, match="agents has 1 agent"):
            debate_workflow([Stub("a", [])], judge)

    def test_a_second_debate_starts_over(self) -> None:
        runner, *_ = floor(max_rounds=1)
        runner.invoke({"task": "one"}, thread_id="t")
        result = runner.invoke({"task": "two"}, thread_id="t")
        assert result.output() == {"pro": "pro 2", "con": "con 2"}

    def test_its_channels(self) -> None:
        assert list(default_channels(decided=False)) == ["messages", "output"]


class TestWithAJudge:
    def test_the_judge_speaks_after_each_round_and_ends_it(self) -> None:
        runner, _, _, judge = floor("go on", "a tie: done")
        result = runner.invoke({"task": "t"}, thread_id="t")
        assert (result.status, result.reason, result.output()) == ("completed", "end", "a tie: done")
        said = ["t", "pro 1", "con 1", "go on", "pro 2", "con 2", "a tie: done"]
        assert list(result["messages"]) == said
        assert judge is not None
        rest = judge.prompts[0].removeprefix("\n".join(said[:3]))
        assert judge.prompts == ["\n".join(said[:3]) + rest, "\n".join(said[:6]) + rest]
        assert 'the word "done"' in rest

    @pytest.mark.parametrize("rounds", [1, 3, 12], ids=lambda rounds: f"{rounds} rounds")
    def test_max_rounds_are_full_rounds_with_the_judges_turn(self, rounds: int) -> None:
        runner, _, _, judge = floor(*["go on"] * rounds, max_rounds=rounds)
        result = runner.invoke({"task": "t"})
        assert (result.status, result.reason) == ("completed", "termination")
        assert judge is not None
        assert (len(judge.prompts), result["judge_verdict"]) == (rounds, "continue")

    def test_the_state_schema_of_the_seed(self) -> None:
        schema = {"messages": Channel([], reducer=last_n(3)), "judge_verdict": Channel("continue")}
        runner, _, _, judge = floor("go on", "done", state_schema=schema)
        result = runner.invoke({"task": "t"})
        assert list(result["messages"]) == ["pro 2", "con 2", "done"]
        assert judge is not None
        assert judge.prompts[1].startswith("go on\npro 2\ncon 2\n\n")
        with pytest.raises(HitlError, match="output"):
            result.output()

    @pytest.mark.parametrize("missing", ["messages", "judge_verdict"])
    def test_a_missing_channel_is_an_error_when_built(self, missing: str) -> None:
        channels = {name: channel for name, channel in default_channels().items() if name != missing}
        with pytest.raises(GraphInvalid, match=missing):
            floor("done", state_schema=channels)

    def test_an_agent_called_judge_is_refused(self) -> None:
        with pytest.raises(GraphInvalid, match="'judge' means something else"):
            debate_workflow([Stub("judge", [])])


def test_a_state_schema_needs_no_verdict_where_nobody_decides() -> None:
    runner, *_ = floor(max_rounds=1, state_schema={"messages": Channel([], reducer=append())})
    assert runner.invoke({"task": "t"}).status == "completed"


def test_a_fork_at_any_step_ends_the_same() -> None:
    agents = [
        Stub("pro", lambda prompt: f"pro {len(prompt)}"),
        Stub("con", lambda prompt: f"con {len(prompt)}"),
    ]
    judge = Stub("judge", lambda prompt: "done" if len(prompt.split("\n")) > 5 else "on")
    runner = debate_workflow(agents, judge, checkpointer=MemoryCheckpointer())
    runner.invoke({"task": "t"}, thread_id="t")
    check_every_fork(runner)


class TestAHumanAfterEachRound:
    def test_going_on_as_the_judge_says(self) -> None:
        runner, *_ = floor("go on", "done", human="round")
        (request,) = runner.invoke({"task": "t"}, thread_id="t").pending
        assert request.payload == {"agent": "judge", "verdict": "continue", "feedback": "go on"}
        assert decide(runner, "accept").status == "waiting"
        assert decide(runner, "accept").output() == "done"

    def test_ending_it(self) -> None:
        runner, pro, *_ = floor("go on", human="round")
        runner.invoke({"task": "t"}, thread_id="t")
        result = decide(runner, "end")
        assert (result.status, result.reason, len(pro.prompts)) == ("completed", "end", 1)

    def test_extending_what_the_judge_ended(self) -> None:
        runner, pro, *_ = floor("done", "done", human="round")
        runner.invoke({"task": "t"}, thread_id="t")
        assert decide(runner, "extend").status == "waiting"
        assert (len(pro.prompts), decide(runner, "accept").status) == (2, "completed")

    def test_extending_past_the_last_round_adds_one_each_time(self) -> None:
        runner, pro, *_ = floor(*["go on"] * 40, max_rounds=1, human="round")
        runner.invoke({"task": "t"}, thread_id="t")
        for _ in range(12):
            assert decide(runner, "extend").status == "waiting"
        result = decide(runner, "accept")
        assert (result.status, result.reason, len(pro.prompts)) == ("completed", "termination", 13)
        assert runner.verify("t", strict=True).ok

    def test_without_a_judge_the_person_is_one(self) -> None:
        runner, pro, *_ = floor(max_rounds=2, human="round")
        (request,) = runner.invoke({"task": "t"}, thread_id="t").pending
        assert request.title == "Continue the debate?"
        assert decide(runner, "accept").status == "waiting"
        assert decide(runner, "extend").status == "waiting"
        assert (decide(runner, "end").status, len(pro.prompts)) == ("completed", 3)

    def test_a_round_a_person_added_is_one_round_and_no_more(self) -> None:
        runner, pro, *_ = floor(max_rounds=1, human="round")
        runner.invoke({"task": "t"}, thread_id="t")
        assert decide(runner, "extend").status == "waiting"
        result = decide(runner, "accept")
        assert (result.status, result.reason, len(pro.prompts)) == ("completed", "termination", 2)
