"""Decisions without a screen: answer, approve, revise, update-state, fork; guards as on screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hitl_tui.config import default_store
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.drivers.protocol import Driver
from hitl_tui.errors import StaleWriter
from hitl_tui.loading.sources import reopen_graph
from hitl_tui.stores import open_store
from hitl_tui.view import edits
from tests.support.commands import App
from tests.support.places import SAMPLES
from tests.support.spec import spec

pytestmark = spec("11")

RISKY = """
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
choices = [GateChoice("approve", "ship"), GateChoice("stop", "stop")]
ship = Gate("check", title="Ship it?", risk="high", choices=choices)
graph = (
    StateGraph({"n": Channel(0, schema=int), "pin": Channel("1234", visibility="private")}, name="risky")
    .add_node("check", lambda state: {"pin": "9876"}).add_edge(START, "check").add_edge("check", END)
    .compile(checkpointer=MemoryCheckpointer(), interrupt_after=[ship])
)
"""
ASKING = """
from hitl_tui import END, START, Channel, StateGraph
def ask(state, config):
    return {"n": config.interrupt({"kind": "ask", "title": "How many?", "schema": {"type": "integer"}})}
graph = StateGraph({"n": Channel(0)}, name="asking").add_node("ask", ask)
graph.add_edge(START, "ask").add_edge("ask", END)
"""

CALL = """
from hitl_tui import END, START, Channel, StateGraph
def ask(state, config):
    action = {"action": "send", "args": {"to": "a", "n": 1}}
    return {"n": config.interrupt({"action_request": action, "config": {"allow_edit": True}})}
graph = StateGraph({"n": Channel(None)}, name="call").add_node("ask", ask)
graph.add_edge(START, "ask").add_edge("ask", END)
"""


def pending(app: App, thread: str) -> str:
    return str(app.expect(0, "show", thread, "--json").document["standing"]["pending"][0]["id"])


def answered(app: App) -> dict[str, Any]:
    """The newest answer in the ledger of `r`."""
    decisions = app.expect(0, "log", "r", "--json").document["decisions"]
    return next(entry for entry in reversed(decisions) if entry["decision"] == "answer")


def test_answer_names_request_and_step(review: App) -> None:
    done = review.expect(
        0, "answer", "r", pending(review, "r"), "approve", "--step", "2", "--as", "ann", "--json"
    )
    assert done.document["state"]["approved"] is True
    assert review.expect(0, "resume", "r", "--headless").out.startswith("r: Done")
    step = review.expect(0, "show", "r@3", "--json").document["checkpoint"]
    assert (step["actor"], step["decision"]) == ("ann", "approve")
    assert answered(review)["seen"], "whoever names a step has looked at it"


def test_an_answer_without_its_step_is_refused(review: App) -> None:
    assert "--step" in review.expect(2, "answer", "r", pending(review, "r"), "approve").err


def test_revise_runs_another_round(review: App) -> None:
    done = review.expect(3, "revise", "r", "--note", "Name the hill.", "--run")
    assert "Step 4 by write" in done.out
    assert "note" not in review.expect(2, "revise", "r").out


def test_approve_can_run_on(review: App) -> None:
    assert review.expect(0, "approve", "r", "--run", "--json").document["status"] == "completed"
    assert answered(review)["seen"] is None, "the command showed nothing"
    assert "nothing waits" in review.expect(2, "approve", "r").err


OTHERS = """
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
choices = [GateChoice("stop", "stop"), GateChoice(YES, "ship it", values={"n": 7})]
gate = Gate("check", title="Ship it?", choices=choices, recommended=RECOMMENDED)
graph = StateGraph({"n": Channel(0)}).add_node("check", lambda state: {}).add_edge(START, "check")
graph = graph.add_edge("check", END).compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
"""


@pytest.fixture
def other(app: App, tmp_path: Path) -> Callable[..., App]:
    """A thread `o` that waits at a gate without an answer called "approve"."""

    def begin(yes: str, recommended: str | None) -> App:
        text = OTHERS.replace("YES", repr(yes)).replace("RECOMMENDED", repr(recommended))
        (tmp_path / "other.py").write_text(text)
        app.expect(3, "run", str(tmp_path / "other.py"), "--headless", "--thread", "o")
        return app

    return begin


@pytest.mark.parametrize("recommended", ["accept", None, "stop"])
def test_approve_gives_the_only_answer_that_means_yes_and_names_it(
    recommended: str | None, other: Callable[..., App]
) -> None:
    done = other("accept", recommended).expect(0, "approve", "o", "--json")
    assert "Ship it?: answered 'accept'." in done.err
    assert done.document["state"]["n"] == 7


REFUSED: dict[str, tuple[Callable[[App], object], tuple[str, ...]]] = {
    "not a reviewer": (lambda app: None, ("--as", "mallory")),
    "claimed": (lambda app: app.expect(0, "claim", "o", "--as", "boss"), ("--as", "ann")),
    "moved": (lambda app: app.expect(0, "update-state", "o", "n=3", "--as", "boss"), ("--step", "0")),
}


@pytest.mark.slow
@pytest.mark.parametrize("why", REFUSED)
def test_a_refused_answer_is_not_reported_as_answered(
    why: str, other: Callable[..., App], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.cli.test_decisions.OTHERS", OTHERS.replace(
        "choices=choices,", "choices=choices, reviewers=['boss', 'ann'],"))  # fmt: skip
    app = other("accept", None)
    happens, how = REFUSED[why]
    happens(app)
    assert "answered" not in app.expect(4, "approve", "o", *how).err.replace("nothing was answered", "")
    assert app.expect(0, "show", "o", "--json").document["state"]["n"] != 7


def test_a_refused_edit_does_not_claim_to_withdraw_anything(
    review: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = LocalDriver.preview

    async def preview(driver: LocalDriver, command: Any) -> Any:
        """As for a thread of LangGraph, where an edit withdraws the open questions."""
        return msgspec.structs.replace(await look(driver, command), withdraws=("Good enough?",))

    async def refuse(_driver: LocalDriver, _command: object) -> None:
        raise StaleWriter("the thread has moved")

    monkeypatch.setattr(LocalDriver, "preview", preview)
    edits = [("fork", "r", "s", "draft=Mine"), ("update-state", "r", "draft=Mine")]
    with monkeypatch.context() as patch:
        patch.setattr(LocalDriver, "execute", refuse)
        for edit in edits:
            assert "withdrawn" not in review.expect(4, *edit).err
    for edit in edits:
        assert "withdrawn; the graph must ask again: Good enough?" in review.expect(0, *edit).err


@pytest.mark.parametrize("recommended", ["ship", "stop", None])
def test_approve_without_a_clear_yes_answers_nothing_and_lists_the_choices(
    recommended: str | None, other: Callable[..., App]
) -> None:
    app = other("ship", recommended)
    done = app.expect(2, "approve", "o", "--json")
    mark = {"stop": "stop (recommended), ship", "ship": "stop, ship (recommended)"}
    assert mark.get(recommended or "", "stop, ship") in done.err
    assert "hitl-tui answer o " in done.document["hint"]
    assert app.expect(0, "show", "o", "--json").document["state"]["n"] == 0


def test_an_answer_that_is_not_allowed_is_wrong_usage(review: App) -> None:
    done = review.expect(2, "answer", "r", pending(review, "r"), "aprove", "--step", "2")
    assert "did you mean 'approve'?" in done.err
    assert review.expect(0, "show", "r", "--json").document["step"] == 2


def test_a_choice_that_requires_text_is_refused_without_it(review: App) -> None:
    assert (
        "needs a comment"
        in review.expect(2, "answer", "r", pending(review, "r"), "revise", "--step", "2").err
    )


def test_a_stale_answer_is_a_recorded_conflict_that_shows_the_difference(review: App) -> None:
    request = pending(review, "r")
    review.expect(0, "update-state", "r", "draft=Mine")
    done = review.expect(4, "answer", "r", request, "approve", "--step", "2", "--json")
    assert "no longer waits" in done.document["message"]
    assert "asked again under a new id" in done.document["message"]
    assert "+ Mine" in done.document["details"]
    assert "+ Mine" in done.err
    assert review.expect(4, "approve", "r", "--step", "2").code == 4
    decisions = review.expect(0, "log", "r", "--json").document["decisions"]
    assert [one["decision"] for one in decisions].count("refused") == 2


VOTED = """
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph

votes = {"reviewers": ["ann", "bob"], "quorum": 2, "one_account": True}
gate = Gate("n", "ship it?", [GateChoice("approve", "ship")], **votes)
graph = StateGraph({"x": Channel("")}).add_node("n", lambda s: {}).add_edge(START, "n").add_edge("n", END)
graph = graph.compile(checkpointer=MemoryCheckpointer(), interrupt_after=[gate])
"""


@pytest.mark.slow
def test_a_vote_that_does_not_settle_leaves_the_thread_waiting_and_says_so(app: App, tmp_path: Path) -> None:
    (tmp_path / "voted.py").write_text(VOTED)
    app.expect(3, "run", str(tmp_path / "voted.py"), "--headless", "--thread", "v")
    assert app.expect(3, "approve", "v", "--as", "ann", "--json").document["status"] == "waiting"
    assert app.expect(0, "approve", "v", "--as", "bob", "--json").document["status"] == "completed"


def test_an_unknown_and_an_answered_request_are_conflicts(review: App) -> None:
    request = pending(review, "r")
    assert "no request 'nope' waits" in review.expect(4, "answer", "r", "nope", "approve", "--step", "2").err
    review.expect(0, "approve", "r")
    assert "answered already" in review.expect(4, "answer", "r", request, "approve", "--step", "2").err


@pytest.mark.slow
def test_high_risk_requires_yes(app: App, tmp_path: Path) -> None:
    (tmp_path / "risky.py").write_text(RISKY)
    app.expect(3, "run", str(tmp_path / "risky.py"), "--headless", "--thread", "k")
    assert "--yes" in app.expect(2, "approve", "k").err
    app.expect(0, "approve", "k", "--yes", "--run")


@pytest.mark.slow
def test_no_output_has_private_values_or_their_hashes(app: App, tmp_path: Path) -> None:
    (tmp_path / "risky.py").write_text(RISKY)
    spec = str(tmp_path / "risky.py")
    said = app.expect(3, "run", spec, "--json", "--thread", "k").out
    said += app.expect(3, "resume", "k", "--headless").out
    for arguments in (("show", "k"), ("log", "k"), ("diff", "k@0", "k"), ("blame", "k", "pin")):
        said += app.expect(0, *arguments).out + app.expect(0, *arguments, "--json").out
    assert "9876" not in said
    assert "1234" not in said
    assert "sha256:" not in said
    assert "[private]" in said


@pytest.mark.slow
def test_a_question_of_a_node_takes_json(app: App, tmp_path: Path) -> None:
    (tmp_path / "asking.py").write_text(ASKING)
    app.expect(3, "run", str(tmp_path / "asking.py"), "--headless", "--thread", "q")
    request = pending(app, "q")
    assert "must be JSON: line 1" in app.expect(2, "answer", "q", request, "two", "--step", "0").err
    assert "wants a value" in app.expect(2, "approve", "q").err
    done = app.expect(0, "answer", "q", request, "2", "--step", "0", "--run", "--json")
    assert done.document["state"]["n"] == 2


@pytest.fixture
def order(app: App) -> App:
    """The sample that asks with a form, as thread `o`."""
    app.expect(3, "run", str(SAMPLES / "order.py"), "--headless", "--thread", "o")
    return app


@pytest.mark.slow
def test_a_form_is_filled_in_with_set(order: App) -> None:
    ask = ["answer", "o", pending(order, "o"), "--step", "0"]
    done = order.expect(2, *ask, "--set", "item=t", "--set", "amount=200", "--set", "gift=perhaps")
    for problem in (
        "item ", "amount 200 is greater than the maximum of 100", "gift must be yes or no",
        "address.street is required",
    ):  # fmt: skip
        assert problem in done.err
    assert "did you mean 'amount'?" in order.expect(2, *ask, "--set", "amont=2").err
    assert "'--set" in order.expect(2, *ask, "--set", "amount").err.replace("--set 'amount'", "'--set")
    fields = ["item=tea", "amount=2", "address.street=Hill 1", "address.city=Ulm", "wrapping=box"]
    order.expect(0, *ask, *(part for field in fields for part in ("--set", field)))
    order.expect(3, "resume", "o", "--headless")
    request = pending(order, "o")
    done = order.expect(0, "answer", "o", request, "--step", "1", "--set", "amount=3", "--run", "--json")
    assert done.document["state"]["receipt"] == "3 x tea to Ulm"


@pytest.mark.slow
def test_an_answer_as_json_or_from_a_file(order: App, tmp_path: Path) -> None:
    ask = ["answer", "o", pending(order, "o"), "--step", "0"]
    assert "line 1, column 2" in order.expect(2, *ask, "--value", "{oops").err
    assert "can't be read" in order.expect(2, *ask, "--value", f"@{tmp_path}/none.json").err
    assert "two ways" in order.expect(2, *ask, "x", "--value", "{}").err
    assert "no answer" in order.expect(2, *ask).err
    assert "required property" in order.expect(4, *ask, "--value", "{}").err
    answer = tmp_path / "answer.json"
    answer.write_text('{"item": "tea", "amount": 1, "address": {"street": "a", "city": "b"}}')
    order.expect(0, *ask, "--value", f"@{answer}")


@pytest.mark.slow
def test_tool_calls_are_decided_on_the_command_line(app: App) -> None:
    app.expect(3, "run", str(SAMPLES / "toolcalls.py"), "--headless", "--thread", "c")
    ask = ["answer", "c", pending(app, "c"), "--step", "1"]
    assert "allowed: approve, reject" in app.expect(2, *ask, "edit").err
    assert "several actions" in app.expect(2, *ask, "edit", "--set", "to=x").err
    done = app.expect(
        0, *ask, "--value", '["approve", {"choice": "reject", "text": "no"}]', "--run", "--json"
    )
    assert done.document["state"]["decisions"] == [{"type": "approve"}, {"type": "reject", "message": "no"}]


@pytest.mark.slow
def test_the_arguments_of_one_call_are_edited_with_set(app: App, tmp_path: Path) -> None:
    (tmp_path / "call.py").write_text(CALL)
    app.expect(3, "run", str(tmp_path / "call.py"), "--headless", "--thread", "k")
    ask = ["answer", "k", pending(app, "k"), "edit", "--step", "0", "--run", "--json"]
    done = app.expect(0, *ask, "--set", "to=b", "--set", "n=2")
    assert done.document["state"]["n"] == [
        {"type": "edit", "args": {"action": "send", "args": {"to": "b", "n": 2}}}
    ]


def test_update_state_is_one_step_with_name_and_note(review: App, tmp_path: Path) -> None:
    (tmp_path / "values.json").write_text('{"feedback": "from a file"}')
    done = review.expect(
        0, "update-state", "r", 'draft="Quoted"', "approved=true", f"@{tmp_path / 'values.json'}",
        "--note", "better", "--as", "ann", "--expected-step", "2", "--json",
    )  # fmt: skip
    state = done.document["state"]
    assert (done.document["made_step"], state["draft"], state["approved"]) == (3, "Quoted", True)
    assert state["feedback"] == "from a file"
    step = review.expect(0, "show", "r", "--json").document["checkpoint"]
    assert (step["source"], step["actor"], step["note"]) == ("human", "ann", "better")


@pytest.mark.slow
def test_update_state_with_as_node_moves_the_thread(review: App) -> None:
    done = review.expect(0, "update-state", "r", "approved=true", "--as-node", "check_approval", "--json")
    assert done.document["pending"] == []
    asked = review.expect(3, "resume", "r", "--headless")
    assert "Is this draft good enough?" in asked.out
    review.expect(0, "approve", "r")


@pytest.mark.slow
def test_no_edit_or_fork_as_a_node_passes_a_gate_of_others(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pay.py").write_text(GUARDED)
    app.expect(3, "run", "pay.py", "--headless", "--thread", "t")
    refused = app.expect(2, "update-state", "t", 'draft="pay 99"', "--as-node", "check", "--as", "mallory")
    assert "boss and ceo must answer it alike, signed" in refused.err
    app.expect(4, "fork", "t", "f", "--as-node", "check", "--as", "mallory")
    app.expect(2, "fork", "t@0", "f", 'draft="pay 99"', "--as-node", "check", "--as", "mallory")
    app.expect(0, "update-state", "t", 'draft="pay 99"', "--as-node", "write", "--as", "mallory")
    assert "Send it?" in app.expect(3, "resume", "t", "--headless").out
    app.expect(4, "approve", "t", "--as", "mallory", "--yes")
    app.expect(0, "verify", "t", "--strict")
    assert not Path("sent").exists()


GUARDED = """
from pathlib import Path
from hitl_tui import END, START, Channel, Gate, GateChoice, MemoryCheckpointer, StateGraph
g = StateGraph({"draft": Channel(""), "ok": Channel(False)}, name="pay")
g.add_node("write", lambda s: {"draft": "pay 10"}).add_node("check", lambda s: {})
g.add_node("send", lambda s: Path("sent").write_text(s["draft"]) and {})
g.add_edge(START, "write").add_edge("write", "check").add_edge("check", "send").add_edge("send", END)
choices = [GateChoice("yes", "yes", values={"ok": True}), GateChoice("no", "no")]
graph = g.compile(checkpointer=MemoryCheckpointer(), interrupt_after=[
    Gate("write", "Send it?", choices, subject="draft", reviewers=["boss", "ceo"], quorum=2, signed=True)])
"""


def test_an_edit_that_does_not_fit_stores_nothing(review: App) -> None:
    done = review.expect(2, "update-state", "r", "approved=perhaps", "drift=x")
    assert "approved: " in done.err
    assert "drift: " in done.err
    assert review.expect(0, "show", "r", "--json").document["step"] == 2
    assert "no name and value" in review.expect(2, "update-state", "r", "draft").err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"draft": "x",}', "no JSON: line 1, column "),
        ('{"draft": ' + "[" * 200_000, "no JSON: it is nested too deeply"),
        ('["draft"]', "it must be a JSON object"),
    ],
    ids=["no JSON", "nested without end", "a list"],
)
def test_an_edits_file_without_an_object_is_reported_with_its_place(
    review: App, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "values.json").write_text(text)
    assert said in review.expect(2, "update-state", "r", f"@{tmp_path / 'values.json'}").err
    assert "approved: " in review.expect(2, "update-state", "r", "approved=" + "[" * 5_000).err


def test_a_stale_edit_is_a_conflict_and_shows_the_difference(review: App) -> None:
    review.expect(0, "update-state", "r", "draft=Mine")
    done = review.expect(4, "update-state", "r", "draft=Yours", "--expected-step", "2")
    assert "is at step 3, the edit was made on 2" in done.err
    assert "+ Mine" in done.err


def test_an_edit_that_lost_a_race_shows_the_other_edit(review: App, monkeypatch: pytest.MonkeyPatch) -> None:
    check = edits.check_edit

    async def slow(driver: Driver, *arguments: Any) -> list[str]:
        lines = await check(driver, *arguments)
        store = open_store(default_store())
        info = store.info("r")
        assert info is not None
        reopen_graph("r", info.source, store).update_state("r", {"draft": "Theirs"})
        store.close()
        return lines

    monkeypatch.setattr(edits, "check_edit", slow)
    done = review.expect(4, "update-state", "r", "draft=Mine", "--json").document
    assert "changed since step 2:\ndraft: changed" in done["details"]
    assert "+ Theirs" in done["details"]


def test_a_decision_that_came_second_is_a_conflict_and_shows_the_first(
    review: App,
) -> None:
    review.expect(0, "approve", "r", "--step", "2", "--as", "ann")
    done = review.expect(4, "revise", "r", "--note", "shorter", "--step", "2", "--json").document
    assert "thread 'r' is at step 3, the answer is about step 2" in done["message"]
    assert "approved: changed" in done["details"]


def test_a_fork_shares_the_log_and_can_start_with_an_edit(review: App) -> None:
    done = review.expect(0, "fork", "r@1", "b", "draft=Other", "--json")
    assert done.document == {"hitl_tui": 1, "kind": "fork", "thread": "b", "parent": "r", "step": 1}
    shown = review.expect(0, "show", "b", "--json").document
    assert (shown["parent"], shown["fork_step"], shown["state"]["draft"]) == ("r", 1, "Other")
    assert "there is a thread 'b' already" in review.expect(2, "fork", "r", "b").err
    assert "forked from r@1" in review.expect(0, "show", "b").out
