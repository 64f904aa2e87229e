"""Every sample runs, on scripted models, to its end or to the first question."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import GraphRunner, MemoryCheckpointer, ScriptedModel
from hitl_tui.loading.sources import open_graph, reopen_graph
from hitl_tui.view.card import answer_form
from tests.support.places import ROOT

SAMPLES = sorted(file for file in (ROOT / "sample_graphs").iterdir() if file.suffix in (".py", ".toml"))
INPUTS: dict[str, dict[str, Any]] = {
    "advisor": {"task": "Explain what a closure is."},
    "review": {"task": "Explain gradient descent"},
    "counter": {"limit": 2},
    "booking": {"city": "Ulm"},
    "order": {},
    "toolcalls": {},
    "assistant": {"request": "Planning"},
    "webpage": {},
    "private": {},
    "sequential": {"task": "Write a short post about tidy data"},
    "supervisor": {"task": "Explain what a closure is"},
    "debate": {"task": "Proposition: tests come before code"},
    "planner": {"task": "Write a short report on tidy data"},
    "memories": {},
    "research": {},
    "desk": {},
    "scores": {},
}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ScriptedModel.__init__.__kwdefaults__, "pace", 0.0)
    monkeypatch.setattr(sys, "path", list(sys.path))


def opened(name: str) -> GraphRunner:
    return open_graph(str(ROOT / "sample_graphs" / name), MemoryCheckpointer())


def answer(runner: GraphRunner, choice: str, text: str = "") -> Any:
    """Answer the one question of the thread `t` and run on."""
    (request,) = runner.open("t").cursor.pending
    runner.answer("t", request.id, {"choice": choice, "text": text}, step=request.step, actor="ann")
    return runner.invoke(thread_id="t")


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.name)
def test_a_sample_runs_to_its_end_or_to_a_question(file: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some words")
    inputs = INPUTS.get(file.stem, {"file_path": str(tmp_path / "a.txt")})
    result = opened(file.name).invoke(inputs, thread_id="t")
    assert result.status in ("waiting", "completed")
    assert bool(result.pending) == (result.status == "waiting")


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.name)
def test_a_sample_says_how_to_run_it(file: Path) -> None:
    assert f"hitl-tui run sample_graphs/{file.name}" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["advisor.py", "advisor.toml"])
def test_advisor(name: str) -> None:
    runner = opened(name)
    first = runner.invoke(INPUTS["advisor"], thread_id="t")
    assert first["advisor_verdict"] == "revise"
    second = answer(runner, "revise", "shorter, please")
    assert second["revision_n"] == 1
    assert second["latest_draft"] != first["latest_draft"]
    result = answer(runner, "approve")
    assert (result.status, result.output()) == ("completed", second["latest_draft"])


@pytest.mark.parametrize("name", ["review.py", "review.toml"])
def test_review_goes_round_until_it_is_approved(name: str) -> None:
    runner = opened(name)
    first = runner.invoke(INPUTS["review"], thread_id="t")
    assert first["draft"].startswith("Gradient descent minimises")
    second = answer(runner, "revise", "Too abstract. Use a concrete analogy.")
    assert second.status == "waiting"
    assert second["draft"].startswith("You stand on a hill")
    assert answer(runner, "approve").status == "completed"


@pytest.mark.parametrize("name", ["review.py", "review.toml"])
def test_review_by_editing_the_state(name: str) -> None:
    runner = opened(name)
    runner.invoke(INPUTS["review"], thread_id="t")
    runner.update_state("t", {"approved": True}, actor="ann")
    assert answer(runner, "approve").status == "completed"


def test_research_takes_three_answers_of_four() -> None:
    runner = opened("research.toml")
    result = runner.invoke(thread_id="t")
    assert len(result["findings"]) == 3
    assert [one.status for one in runner.history("t")[1].branches].count("ok") == 3
    assert result.output().startswith("Vectors are flat")


def test_scores_count_whole_turns_alone_and_keep_why_one_did_not() -> None:
    runner = opened("scores.py")
    result = runner.invoke(thread_id="t")
    assert result.output() == "Ada"
    assert [turn["player"] for turn in result["board"]] == ["Ada", "Bob", "Ada"]
    assert result["players"] == ["Ada", "Bob"]
    assert (result["total"], result["best"], result["least"]) == (28, 12, 7)
    assert result["referee"] == ["turns that did not count: 1"]
    cheater = runner.history("t")[1].branches[2]
    assert cheater.status == "failed"
    assert "channel 'best': 20.5 is not" in cheater.error.message  # type: ignore[union-attr]
    assert runner.verify("t", strict=True).ok


def test_desk_waits_with_the_question_of_the_graph_inside() -> None:
    runner = opened("desk.py")
    first = runner.invoke(thread_id="t")
    assert first.pending[0].payload == {"text": "All about closures."}
    answer(runner, "again", "shorter")
    result = answer(runner, "print")
    assert (result.status, result.output()) == ("completed", "ALL ABOUT CLOSURES (SHORTER).")
    assert runner.store is not None
    child = "t/editor#1"
    info = runner.store.info(child)
    assert info is not None
    again = reopen_graph(child, info.source, runner.store)
    assert again.verify(child, strict=True).ok
    assert again.get_state(child)["approved"] is True


@pytest.mark.parametrize("name", ["counter.py", "counter.toml"])
def test_counter(name: str) -> None:
    result = opened(name).invoke({"limit": 4}, thread_id="t")
    assert (result.status, result["count"], len(result["log"])) == ("completed", 4, 4)


ORDER = {
    "item": "tea",
    "amount": 2,
    "address": {"street": "Hill 1", "city": "Ulm"},
    "wrapping": "box",
    "gift": True,
}


def test_order_asks_with_a_form_and_lets_it_be_corrected() -> None:
    runner = opened("order.py")
    (request,) = runner.invoke(thread_id="t").pending
    form = answer_form(request)
    assert form is not None
    assert [field.label for field in form.fields if field.required] == [
        "item", "amount", "address.street", "address.city",
    ]  # fmt: skip
    runner.answer("t", request.id, ORDER, step=0)
    (request,) = runner.invoke(thread_id="t").pending
    assert (request.kind, request.payload) == ("edit", ORDER)
    runner.answer("t", request.id, {**ORDER, "amount": 3}, step=1)
    assert runner.invoke(thread_id="t")["receipt"] == "3 x tea to Ulm"


def test_toolcalls_decides_on_each_call() -> None:
    runner = opened("toolcalls.py")
    (request,) = runner.invoke(thread_id="t").pending
    assert request.title == "Make 2 calls: send_mail, delete_file?"
    edited = {"choice": "edit", "args": {"to": "bo@example.org", "subject": "Minutes", "urgent": True}}
    runner.answer("t", request.id, [edited, {"choice": "reject", "text": "keep it"}], step=1)
    result = runner.invoke(thread_id="t")
    assert result["decisions"][1] == {"type": "reject", "message": "keep it"}
    assert list(result["done"]) == ["send_mail to bo@example.org; delete_file: reject keep it"]


@pytest.mark.parametrize("suffix", ["py", "toml"])
@pytest.mark.parametrize(
    ("name", "questions", "path"),
    [
        ("sequential", 2, "drafter reviewer polisher"),
        ("supervisor", 3, "manager researcher manager writer manager"),
        ("debate", 2, "pro con judge pro con judge"),
        ("planner", 4, "planner dispatcher researcher dispatcher writer dispatcher evaluator "
                       "planner dispatcher researcher dispatcher writer dispatcher evaluator"),
    ],
    ids=["sequential", "supervisor", "debate", "planner"],
)  # fmt: skip
def test_a_workflow_runs_to_its_end_if_everything_is_accepted(
    name: str, suffix: str, questions: int, path: str
) -> None:
    runner = opened(f"{name}.{suffix}")
    result = runner.invoke(INPUTS[name], thread_id="t")
    asked = 0
    while result.pending:
        asked += 1
        result = answer(runner, str(result.pending[0].recommended))
    assert (result.status, result.reason, asked) == ("completed", "end", questions)
    assert " ".join(point.node for point in runner.history("t")[::-1] if point.node) == path
    assert result.output()
    assert runner.verify("t", strict=True).ok


@pytest.mark.parametrize(
    "name", ["advisor", "sequential", "supervisor", "debate", "planner", "review", "counter"]
)
def test_both_forms_of_a_sample_make_the_same_run(name: str) -> None:
    states = []
    for suffix in ("py", "toml"):
        runner = opened(f"{name}.{suffix}")
        states.append(dict(runner.invoke(INPUTS[name], thread_id="t")))
    assert states[0] == states[1]


@pytest.mark.parametrize("suffix", ["py", "toml"])
def test_overruling_and_extending_in_the_samples(suffix: str) -> None:
    supervisor = opened(f"supervisor.{suffix}")
    supervisor.invoke(INPUTS["supervisor"], thread_id="t")
    assert answer(supervisor, "writer")["output"].startswith("Imagine a lunch box")
    assert answer(supervisor, "accept").status == "completed"
    debate = opened(f"debate.{suffix}")
    debate.invoke(INPUTS["debate"], thread_id="t")
    assert answer(debate, "end").status == "completed"


def test_memories_that_a_fork_carries_and_one_that_it_does_not() -> None:
    runner = opened("memories.py")
    runner.invoke({}, thread_id="t")
    reply = "You told me before: My name is Ada."
    last = runner.invoke(thread_id="t")
    assert (last["forgetful"], last["faithful"]) == (reply, reply)
    runner.fork("t", 1, "f")
    forked = runner.invoke(thread_id="f")
    assert (forked["forgetful"], forked["faithful"]) == ("You told me nothing before.", reply)


class TestBatch:
    """The batch survives what fails, and does nothing twice."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for name, text in (("a", "one two three"), ("b", "four five")):
            (tmp_path / f"{name}.txt").write_text(text)
        return tmp_path

    def test_a_failed_file_continues_where_it_failed(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from hitl_tui.loading.code import import_file

        batch = import_file(ROOT / "sample_graphs" / "batch.py")
        store = MemoryCheckpointer()
        calls: list[str] = []

        def rehearse(messages: Any) -> str:
            prompt = messages[-1]["content"]
            calls.append(prompt.partition("\n")[2])
            if "four" in prompt and len(calls) < 4:
                raise RuntimeError("no answer")
            return "summary"

        monkeypatch.setattr(batch, "rehearse", rehearse)
        assert batch.run_folder(folder, batch.build(checkpointer=store)) == ["b.txt"]
        assert (folder / "done.json").read_text() == '["a.txt"]'
        (folder / "b.txt").write_text("changed")

        assert batch.run_folder(folder, batch.build(checkpointer=store)) == []
        assert calls == ["one two three", "four five", "four five", "four five"]
        assert (folder / "done.json").read_text() == '["a.txt", "b.txt"]'
        assert (folder / "b.summary").read_text() == "summary"
        assert batch.run_folder(folder, batch.build(checkpointer=store)) == []
        assert len(calls) == 4

    @pytest.mark.slow
    def test_as_a_script(self, folder: Path) -> None:
        command = [sys.executable, str(ROOT / "sample_graphs" / "batch.py"), str(folder)]
        first = subprocess.run(command, capture_output=True, text=True, check=True, timeout=150)
        assert first.stdout.splitlines() == ["a.txt: done", "b.txt: done"]
        assert (folder / "a.summary").read_text() == "3 words, beginning with “one two three”."
        second = subprocess.run(command, capture_output=True, text=True, check=True, timeout=150)
        assert second.stdout == ""


@pytest.mark.parametrize(
    ("decision", "message", "sent"),
    [
        ("approve", "Done: the invitation was sent to team@example.org, 60 minutes", 1),
        (
            {"choice": "edit", "args": {"to": "ann@example.org", "subject": "Plan", "minutes": 15}},
            "Done: the invitation was sent to ann@example.org, 15 minutes",
            1,
        ),
        ({"choice": "reject", "text": "too long"}, "A person refused this call: too long", 0),
    ],
    ids=["approved", "edited", "rejected"],
)
def test_assistant_sends_only_what_was_approved(decision: Any, message: str, sent: int) -> None:
    runner = opened("assistant.py")
    first = runner.invoke(INPUTS["assistant"], thread_id="t")
    (request,) = first.pending
    assert request.payload["args"]["minutes"] == 60
    before = len(letters())
    runner.answer("t", request.id, decision, step=request.step, actor="ann")
    result = runner.invoke(thread_id="t")
    assert message in result.output()
    assert len(letters()) - before == sent
    asked = sum(line.calls for line in runner.cost_report("t"))
    assert asked == 3  # what the model said before the question was not asked again


def letters() -> list[str]:
    """What the newest assistant sample has sent."""
    return next(module.SENT for module in reversed(list(sys.modules.values())) if hasattr(module, "SENT"))
