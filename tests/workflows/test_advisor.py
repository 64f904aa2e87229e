"""The advisor workflow, to the letter of its row in docs/spec/workflows.md."""

from __future__ import annotations

from collections.abc import Sequence
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
    SQLiteCheckpointer,
    advisor_workflow,
    append,
)
from hitl_tui.workflows.advisor import default_channels, read_verdict
from tests.support.flows import check_log, pending_id
from tests.support.spec import spec
from tests.support.stubs import Stub, reasons

pytestmark = spec("15")


def scripted(name: str, replies: Sequence[str]) -> Agent:
    return Agent(name, ScriptedModel(list(replies), pace=0))


def drafts(n: int = 9) -> list[str]:
    return [f"draft {place}" for place in range(1, n + 1)]


def workflow(verdicts: Sequence[str], **options: Any) -> tuple[GraphRunner, Stub, Stub]:
    worker, advisor = Stub("worker", drafts()), Stub("advisor", verdicts)
    return advisor_workflow(worker, advisor, **options), worker, advisor


@pytest.mark.parametrize(
    ("reply", "verdict", "feedback"),
    [
        ("Approved.", "approved", ""),
        ("APPROVED", "approved", ""),
        ("  approved, nice", "approved", ""),
        ("\n\tApproved\n", "approved", ""),
        ("not approved", "revise", "not approved"),
        ("revise:x", "revise", "x"),
        ("  REVISE:  Use The Word LUNCH  ", "revise", "Use The Word LUNCH"),
        ("Revise: approved parts may stay", "revise", "approved parts may stay"),
        ("I approve", "revise", "I approve"),
        ("please revise: shorter", "revise", "please revise: shorter"),
        ("revise", "revise", "revise"),
        ("", "revise", ""),
    ],
)
def test_verdicts(reply: str, verdict: str, feedback: str) -> None:
    assert read_verdict(reply) == (verdict, feedback)
    runner, _, _ = workflow([reply], max_revisions=0)
    result = runner.invoke({"messages": "task"})
    assert (result["advisor_verdict"], result["advisor_feedback"]) == (verdict, feedback)
    assert list(result["messages"]) == ["task", "draft 1", reply]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Approved.", "The advisor approves: its reply starts with “approved”."),
        ("not approved", "The advisor wants changes: its reply does not start with “approved”."),
    ],
)
def test_the_thread_says_why_it_was_judged_so(reply: str, why: str) -> None:
    runner, _, _ = workflow([reply], max_revisions=0, checkpointer=MemoryCheckpointer())
    runner.invoke({"messages": "task"}, thread_id="t")
    assert reasons(runner) == [why]


def test_it_goes_round_until_it_is_approved() -> None:
    runner = advisor_workflow(
        scripted("worker", drafts()), scripted("advisor", ["revise: Longer", "too dry", "approved"])
    )
    result = runner.invoke({"messages": "explain"})
    assert (result.status, result.reason) == ("completed", "end")
    assert (result.output(), result["latest_draft"], result["revision_n"]) == ("draft 3", "draft 3", 2)
    assert list(result["messages"]) == [
        "explain", "draft 1", "revise: Longer", "draft 2", "too dry", "draft 3", "approved",
    ]  # fmt: skip


def test_the_channels_before_the_run() -> None:
    values = {name: channel.default for name, channel in default_channels().items()}
    assert values == {
        "messages": [],
        "latest_draft": "",
        "advisor_feedback": "",
        "advisor_verdict": "revise",
        "revision_n": 0,
    }


def test_prompts() -> None:
    runner, worker, advisor = workflow(["revise: Use LUNCH", "approved"])
    runner.invoke({"messages": ["Explain closures."]})
    assert worker.prompts[0] == "Explain closures."
    assert worker.prompts[1].startswith("Explain closures.\n")
    assert "Use LUNCH" in worker.prompts[1]
    assert "revise:" not in worker.prompts[1]
    assert "Explain closures." in advisor.prompts[0]
    assert "draft 1" in advisor.prompts[0]
    assert "draft 2" in advisor.prompts[1]
    assert "draft 1" not in advisor.prompts[1]
    assert all('"approved"' in prompt and '"revise:"' in prompt for prompt in advisor.prompts)


def test_a_task_may_be_a_message_with_content_and_named_task() -> None:
    runner, worker, _ = workflow(["approved", "approved"])
    runner.invoke({"messages": [{"role": "user", "content": "Explain."}]})
    runner.invoke({"task": "Explain more."})
    assert worker.prompts == ["Explain.", "Explain more."]


@pytest.mark.parametrize("most", [0, 1, 3, 14])
def test_at_most_max_revisions_and_one_drafts(most: int) -> None:
    worker, advisor = Stub("worker", drafts(20)), Stub("advisor", ["revise: again"] * 20)
    result = advisor_workflow(worker, advisor, max_revisions=most).invoke({"messages": "task"})
    assert (result.status, result.reason) == ("completed", "termination")
    assert len(worker.prompts) == len(advisor.prompts) == most + 1
    assert (result.output(), result["revision_n"]) == (f"draft {most + 1}", most)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(GraphInvalid, match="max_revisions=-1"):
        advisor_workflow(Stub("w", []), Stub("a", []), max_revisions=-1)


def test_a_state_schema_replaces_the_channels() -> None:
    channels = {**default_channels(), "messages": Channel([], reducer=append()), "extra": Channel(1)}
    runner, _, _ = workflow(["approved"], state_schema=channels)
    result = runner.invoke({"messages": "task", "extra": 2})
    assert (result["extra"], result.output()) == (2, "draft 1")


@pytest.mark.parametrize(
    "missing", ["messages", "latest_draft", "advisor_feedback", "advisor_verdict", "revision_n"]
)
def test_a_channel_that_is_missing_is_an_error_when_built(missing: str) -> None:
    channels = {name: channel for name, channel in default_channels().items() if name != missing}
    with pytest.raises(GraphInvalid, match=missing):
        workflow(["approved"], state_schema=channels)


def test_an_advisor_without_a_word_is_a_failure_that_can_be_resumed() -> None:
    store = MemoryCheckpointer()
    failing = advisor_workflow(scripted("worker", drafts()), scripted("advisor", [""]), checkpointer=store)
    with pytest.raises(HitlError, match="without any text"):
        failing.invoke({"messages": "task"}, thread_id="t")
    runner, worker, _ = workflow(["approved"], checkpointer=store)
    assert runner.invoke(thread_id="t").output() == "draft 1"
    assert worker.prompts == []


def test_agreeing_says_what_it_does_with_this_verdict() -> None:
    def agreement(verdict: str, **options: Any) -> str:
        runner, _, _ = workflow([verdict], human="verdict", **options)
        (request,) = runner.invoke({"messages": "task"}, thread_id="t").pending
        return request.choices[0].label

    assert agreement("revise: Longer") == "agree: send it back"
    assert agreement("approved") == "agree: approve the draft"
    assert agreement("revise: Longer", max_revisions=0) == "agree: end without an approval"


class TestWithAHuman:
    def at_verdict(self, verdicts: Sequence[str], **options: Any) -> tuple[GraphRunner, Stub, Stub]:
        runner, worker, advisor = workflow(verdicts, human="verdict", **options)
        result = runner.invoke({"messages": "task"}, thread_id="t")
        assert (result.status, result.reason, result.step) == ("waiting", "approval", 2)
        return runner, worker, advisor

    def decide(self, runner: GraphRunner, answer: Any, **more: Any) -> Any:
        step = runner.open("t").cursor.head
        after = runner.answer("t", pending_id(runner, "t"), answer, step=step, actor="ann", **more)
        assert after == step + 1
        point = runner.history("t")[0]
        choice = answer if isinstance(answer, str) else answer["choice"]
        assert (point.step, point.source, point.actor, point.decision) == (after, "human", "ann", choice)
        check_log(runner, "t")
        return runner.invoke(thread_id="t")

    def test_the_question(self) -> None:
        runner, _, _ = self.at_verdict(["revise: Longer"])
        request = runner.open("t").cursor.pending[0]
        assert (request.title, request.subject, request.recommended) == (
            "Approve this draft?", "latest_draft", "accept",
        )  # fmt: skip
        assert request.payload == {
            "agent": "advisor", "verdict": "revise", "feedback": "Longer", "round": 1, "rounds": 4,
        }  # fmt: skip
        assert [choice.id for choice in request.choices] == ["accept", "approve", "revise"]

    def test_accepting_revise_goes_round(self) -> None:
        runner, worker, _ = self.at_verdict(["revise: Longer", "approved"])
        result = self.decide(runner, "accept")
        assert (result.status, result.step) == ("waiting", 5)
        assert "Longer" in worker.prompts[1]
        result = self.decide(runner, "accept")
        assert (result.status, result.output()) == ("completed", "draft 2")

    def test_overruling_to_approved(self) -> None:
        runner, worker, _ = self.at_verdict(["revise: Longer"])
        result = self.decide(runner, "approve")
        assert (result.status, result.output(), len(worker.prompts)) == ("completed", "draft 1", 1)
        assert result["advisor_verdict"] == "approved"

    def test_overruling_an_approval_to_revise_with_own_words(self) -> None:
        runner, worker, _ = self.at_verdict(["approved", "approved"])
        result = self.decide(runner, {"choice": "revise", "text": "Say LUNCH"})
        assert result.status == "waiting"
        assert "Say LUNCH" in worker.prompts[1]
        assert [(one.channel, one.after) for one in runner.updates("t", 3)] == [
            ("advisor_feedback", "Say LUNCH"),
            ("advisor_verdict", "revise"),
        ]

    def test_revising_needs_words(self) -> None:
        runner, _, _ = self.at_verdict(["approved"])
        with pytest.raises(AnswerRefused, match="needs a comment"):
            runner.answer("t", pending_id(runner, "t"), "revise", step=2)

    def test_editing_the_draft_then_approving_what_was_edited(self) -> None:
        runner, worker, _ = self.at_verdict(["revise: Longer"])
        wanted = pending_id(runner, "t")
        assert runner.update_state("t", {"latest_draft": "my own"}, actor="ann", expected_step=2) == 3
        with pytest.raises(AnswerRefused, match="asked again"):
            runner.answer("t", wanted, "approve", step=2)
        result = self.decide(runner, "approve")
        assert (result.status, result.output(), len(worker.prompts)) == ("completed", "my own", 1)
        assert [point.source for point in runner.history("t")[::-1]] == [
            "input", "node", "node", "human", "human",
        ]  # fmt: skip

    def test_an_edited_draft_is_what_is_revised(self) -> None:
        runner, worker, advisor = self.at_verdict(["revise: Longer", "approved"])
        runner.update_state("t", {"latest_draft": "my own"}, actor="ann")
        self.decide(runner, "accept")
        assert "my own" in worker.prompts[1]
        assert "draft 2" in advisor.prompts[1]

    def test_an_edited_verdict_decides_the_route(self) -> None:
        runner, _, _ = self.at_verdict(["revise: Longer"])
        runner.update_state("t", {"advisor_verdict": "approved"}, actor="ann")
        assert self.decide(runner, "accept").status == "completed"

    def test_human_decisions_are_no_rounds(self) -> None:
        runner, worker, _ = self.at_verdict(["revise: again"] * 5, max_revisions=2)
        result = runner.invoke(thread_id="t")
        while result.status == "waiting":
            result = self.decide(runner, "accept")
        assert (result.reason, len(worker.prompts)) == ("termination", 3)

    def test_a_fresh_runner_continues(self, tmp_path: Any) -> None:
        for place, (answer, verdict) in enumerate(
            [(None, "revise: Longer"), ("accept", "revise: Shorter"), ("approve", "")]
        ):
            store = SQLiteCheckpointer(tmp_path / "runs.db")
            worker, advisor = Stub("worker", [f"draft {place + 1}"]), Stub("advisor", [verdict])
            runner = advisor_workflow(worker, advisor, human="verdict", checkpointer=store)
            if answer is None:
                runner.invoke({"messages": "task"}, thread_id="t")
            else:
                self.decide(runner, answer)
            if answer == "accept":
                assert worker.prompts[0].startswith("task\n")
                assert "Longer" in worker.prompts[0]
            store.close()
        store = SQLiteCheckpointer(tmp_path / "runs.db")
        result = advisor_workflow(Stub("w", []), Stub("a", []), human="verdict", checkpointer=store).invoke(
            thread_id="t"
        )
        assert (result.status, result.output()) == ("completed", "draft 2")
        store.close()

    def test_a_new_task_on_a_completed_thread(self) -> None:
        runner, worker, _ = self.at_verdict(["revise: Longer", "approved", "approved"])
        self.decide(runner, "accept")
        assert self.decide(runner, "accept").status == "completed"
        result = runner.invoke({"messages": "another task"}, thread_id="t")
        assert (result.status, result["latest_draft"], result["revision_n"]) == ("waiting", "draft 3", 0)
        assert worker.prompts[2] == "another task"
        assert self.decide(runner, "accept").status == "completed"

    def test_a_word_in_between_is_kept_and_does_not_become_the_task(self) -> None:
        runner, worker, advisor = self.at_verdict(["revise: Longer", "approved"])
        runner.invoke({"messages": "by the way"}, thread_id="t")
        self.decide(runner, "accept")
        assert worker.prompts[1].startswith("task\n")
        assert advisor.prompts[1].startswith("Task:\ntask\n")
        assert "by the way" in runner.get_state("t")["messages"]

    def test_a_fork_at_the_verdict_takes_the_other_way(self) -> None:
        runner, _, _ = self.at_verdict(["revise: Longer", "approved"])
        self.decide(runner, "accept")
        runner.fork("t", 2, "f")
        request = runner.open("f").cursor.pending[0]
        runner.answer("f", request.id, "approve", step=2, actor="bob")
        assert runner.invoke(thread_id="f").output() == "draft 1"
        assert runner.get_state("t")["latest_draft"] == "draft 2"
