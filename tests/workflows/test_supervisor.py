"""The supervisor workflow, to the letter of its row in docs/spec/workflows.md."""

from __future__ import annotations

from collections.abc import Sequence
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
    supervisor_workflow,
)
from hitl_tui.workflows.supervisor import default_channels, read_route
from tests.support.spec import spec
from tests.support.stubs import Stub, check_every_fork, decide, reasons

pytestmark = spec("15")

WORKERS = ("researcher", "writer")


def office(*says: str, human: Any = None, **options: Any) -> tuple[GraphRunner, Stub, Stub, Stub]:
    manager = Stub("boss", says)
    researcher, writer = Stub("researcher", ["notes"] * 9), Stub("writer", ["article"] * 9)
    options.setdefault("checkpointer", MemoryCheckpointer())
    runner = supervisor_workflow(manager, [researcher, writer], human=human, **options)
    return runner, manager, researcher, writer


NAMES_NONE = "next: the end (the reply names no worker as a whole word)"


@pytest.mark.parametrize(
    ("reply", "route", "why"),
    [
        ("writer", "writer", "next: writer (named at character 1 of the reply)"),
        ("Now the WRITER.", "writer", "next: writer (named at character 9 of the reply)"),
        ("'writer'", "writer", "next: writer (named at character 2 of the reply)"),
        ("writer first, then researcher", "researcher",
         "next: researcher (named at character 20 of the reply; writer, at 1, comes later in the list)"),
        ("The writers are tired", "DONE", NAMES_NONE),
        ("underwriter, writer_2, writer2", "DONE", NAMES_NONE),
        ("ghost-writer", "writer", "next: writer (named at character 7 of the reply)"),
        ("I will not ask the writer. DONE", "writer", "next: writer (named at character 20 of the reply)"),
        ("DONE", "DONE", NAMES_NONE),
        ("nobody", "DONE", NAMES_NONE),
        ("", "DONE", NAMES_NONE),
    ],
    ids=["the bare name", "in capitals", "in quotes", "two names: the declared order counts", "in a plural",
         "inside other words", "beside a hyphen", "named though it says DONE", "DONE", "no name", "empty"],
)  # fmt: skip
def test_routes(reply: str, route: str, why: str) -> None:
    assert read_route(reply, WORKERS) == (route, why)
    runner, _, _, _ = office(reply, max_rounds=1)
    assert runner.invoke({"task": "t"}, thread_id="t")["current_route"] == route
    assert reasons(runner) == [why]


@given(before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_name_between_spaces_is_always_found(before: str, after: str) -> None:
    assert read_route(f"{before} Writer {after}", ("writer",))[0] == "writer"


def test_a_worker_whose_name_is_a_pattern_is_taken_literally() -> None:
    assert read_route("ask c++ now", ("a.*", "c++"))[0] == "c++"


def test_the_manager_sends_workers_until_it_names_none() -> None:
    runner, manager, researcher, writer = office("researcher", "writer", "We are DONE.")
    result = runner.invoke({"messages": ["Produce an article."]}, thread_id="t")
    assert (result.status, result.reason, result.output()) == ("completed", "end", "article")
    history = ["Produce an article.", "researcher", "notes", "writer", "article", "We are DONE."]
    assert list(result["messages"]) == history
    rest = manager.prompts[0].removeprefix(history[0])
    assert manager.prompts == ["\n".join(history[:n]) + rest for n in (1, 3, 5)]
    assert rest.startswith("\n\nThe workers:\n- researcher\n- writer\n\n")
    assert "DONE" in rest
    assert researcher.prompts == ["\n".join(history[:2])]
    assert writer.prompts == ["\n".join(history[:4])]


@pytest.mark.parametrize(("rounds", "said"), [(1, 2), (2, 3), (3, 4), (30, 31)], ids=lambda value: f"{value}")
def test_max_rounds_counts_the_turns_of_manager_and_workers_together(rounds: int, said: int) -> None:
    runner, _, _, _ = office(*["researcher"] * 99, max_rounds=rounds)
    runner.graph.agents["researcher"]._replies = lambda _: "notes"  # type: ignore[attr-defined]
    result = runner.invoke({"task": "t"})
    assert (result.status, result.reason, len(result["messages"])) == ("completed", "termination", said)


@pytest.mark.parametrize(
    ("options", "what"),
    [({"workers": []}, "workers is empty"), ({"workers": {"done": Stub("d", [])}}, "'done' means"),
     ({"workers": {"manager": Stub("m", [])}}, "'manager' means"),
     ({"workers": [Stub("w", [])], "max_rounds": 0}, "max_rounds=0")],
    ids=["no workers", "a worker called done", "a worker called manager", "no rounds"],
)  # fmt: skip
def test_what_cannot_work_is_refused_when_built(options: dict[str, Any], what: str) -> None:
    with pytest.raises(GraphInvalid, match=what):
        supervisor_workflow(Stub("boss", []), **options)


@pytest.mark.parametrize("missing", ["messages", "current_route"])
def test_a_missing_channel_is_an_error_when_built(missing: str) -> None:
    channels = {name: channel for name, channel in default_channels().items() if name != missing}
    with pytest.raises(GraphInvalid, match=missing):
        office("DONE", state_schema=channels)


def test_without_the_output_channel_it_runs_and_output_raises() -> None:
    runner, *_ = office("writer", "DONE", state_schema={
        "messages": Channel([], reducer=append()), "current_route": Channel(""),
    })  # fmt: skip
    result = runner.invoke({"task": "t"})
    assert result["messages"][-2] == "article"
    with pytest.raises(HitlError, match="output"):
        result.output()


def test_a_fork_at_any_step_ends_the_same() -> None:
    def manage(prompt: str) -> str:
        return "DONE" if "article" in prompt else "writer" if "notes" in prompt else "researcher"

    workers = [Stub("researcher", lambda _: "notes"), Stub("writer", lambda _: "article")]
    runner = supervisor_workflow(Stub("boss", manage), workers, checkpointer=MemoryCheckpointer())
    runner.invoke({"task": "t"}, thread_id="t")
    check_every_fork(runner)


class TestOverruling:
    @pytest.mark.parametrize(
        ("choice", "asked"),
        [("accept", [0, 1]), ("researcher", [1, 0]), ("DONE", [0, 0])],
        ids=["as the manager says", "another worker", "end here"],
    )
    def test_the_route_follows_the_decision(self, choice: str, asked: Sequence[int]) -> None:
        runner, _, researcher, writer = office("writer", "DONE", human="route")
        result = runner.invoke({"task": "t"}, thread_id="t")
        (request,) = result.pending
        assert request.payload == {"agent": "manager", "verdict": "writer", "feedback": "writer"}
        assert [one.id for one in request.choices] == ["accept", "researcher", "writer", "DONE"]
        result = decide(runner, choice)
        assert [len(researcher.prompts), len(writer.prompts)] == asked
        assert result.status == ("completed" if choice == "DONE" else "waiting")
        assert runner.history("t")[::-1][2].decision == choice
        assert runner.verify("t", strict=True).ok

    def test_done_may_be_turned_into_more_work(self) -> None:
        runner, _, researcher, _ = office("DONE", "DONE", human="route")
        assert runner.invoke({"task": "t"}, thread_id="t").status == "waiting"
        assert decide(runner, "researcher").status == "waiting"
        assert len(researcher.prompts) == 1

    def test_an_edited_route_counts_as_well(self) -> None:
        runner, _, researcher, writer = office("writer", "DONE", human="route")
        runner.invoke({"task": "t"}, thread_id="t")
        runner.update_state("t", {"current_route": "researcher"}, actor="ann")
        decide(runner, "accept")
        assert (len(researcher.prompts), len(writer.prompts)) == (1, 0)

    def test_a_route_to_nobody_is_an_error_that_lists_who_there_is(self) -> None:
        runner, *_ = office("writer", human="route")
        runner.invoke({"task": "t"}, thread_id="t")
        runner.update_state("t", {"current_route": "waiter"}, actor="ann")
        with pytest.raises(HitlError, match=r"'waiter'.*'researcher', 'writer', 'DONE'"):
            decide(runner, "accept")
