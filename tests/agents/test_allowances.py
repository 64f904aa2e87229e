"""Calls that a person has allowed in a thread run without another question, and the ledger names why."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import AnswerRefused, GraphRunner, UsageError
from hitl_tui.agents import Agent, ScriptedModel, Tool
from hitl_tui.agents.scripted import ToolCall
from hitl_tui.engine.commands import Allow, Revoke
from hitl_tui.engine.thread.allowances import allowances, allowances_for
from hitl_tui.view.allowances import allowance_words
from tests.agents.test_approval import run_one
from tests.support.flows import ledger_of
from tests.support.spec import spec

pytestmark = spec("11")


class Clerk:
    """An agent that sends letters, one after the other, each of which a person must allow."""

    def __init__(self, *letters: dict[str, Any], external: bool = False) -> None:
        self.sent: list[str] = []

        def send(to: str, copies: int = 1) -> str:
            """Send a letter."""
            self.sent.append(to)
            return f"sent to {to}"

        script = ScriptedModel([*(ToolCall("send", letter) for letter in letters), "done"], pace=0)
        tool = Tool(send, approve="always", external=external)
        agent = Agent("a", script, tools=[tool])
        self.runner: GraphRunner = run_one(lambda _s, config: {"out": config.agents["a"].chat("go")}, agent)
        self.result = self.runner.invoke({}, thread_id="t")

    def allow(self, tool: str = "send", **more: Any) -> str:
        return self.runner._execute("t", Allow(tool, "ann", **more))

    def resume(self) -> None:
        self.result = self.runner.invoke(thread_id="t")

    def approve(self) -> None:
        (request,) = self.result.pending
        self.runner.answer("t", request.id, "approve", step=request.step, actor="ann")
        self.resume()

    def answers(self) -> list[tuple[str | None, list[str]]]:
        assert self.runner.store is not None
        return [
            (entry.actor, [by["id"] for by in entry.data.get("allowances", ())])
            for entry in ledger_of(self.runner.store, "t", "answer")
        ]


def test_an_allowance_approves_waiting_and_later_calls_and_is_named_in_the_ledger() -> None:
    clerk = Clerk({"to": "ann@box"}, {"to": "bob@box"}, {"to": "eve@web"})
    named = clerk.allow(args={"to": "*@box"})
    clerk.resume()
    assert clerk.sent == ["ann@box", "bob@box"]
    assert [request.payload["args"]["to"] for request in clerk.result.pending] == ["eve@web"]
    assert clerk.answers() == [(None, [named]), (None, [named])]
    clerk.approve()
    assert (clerk.sent, clerk.result["out"]) == (["ann@box", "bob@box", "eve@web"], "done")
    assert clerk.runner.verify("t", strict=True).ok
    assert clerk.runner.replay("t").ok


@pytest.mark.parametrize(
    ("terms", "calls"),
    [
        ({"args": {"to": "bob"}}, False),
        ({"args": {"to": "ann", "copies": 2}}, True),
        ({"args": {"copies": 3}}, False),
        ({"args": {"other": "*"}}, False),
        ({"args": {"to": "ann", "copies": 2}, "exact": True}, True),
        ({"args": {"to": "ann"}, "exact": True}, False),
        ({"args": {"to": "*", "copies": 2}, "exact": True}, False),
        ({}, True),
        ({"tool": "other"}, False),
    ],
)
def test_an_allowance_covers_only_calls_that_match_it(terms: dict[str, Any], calls: bool) -> None:
    clerk = Clerk({"to": "ann", "copies": 2})
    clerk.allow(**terms)
    clerk.resume()
    assert clerk.sent == (["ann"] if calls else [])


def test_an_allowance_covers_untrusted_data_only_if_it_says_so() -> None:
    for tainted in (False, True):
        clerk = Clerk({"to": "ann"}, {"to": "bob"}, external=True)
        clerk.allow(tainted=tainted)
        clerk.resume()
        assert clerk.sent == (["ann", "bob"] if tainted else ["ann"])


def test_an_allowance_covers_high_risk_only_if_it_says_so() -> None:
    def work(_state: Any, config: Any) -> dict[str, Any]:
        payload = {"type": "tool_approval", "name": "drop", "args": {}}
        return {"out": config.interrupt({"kind": "approve", "risk": "high", "payload": payload})}

    for high_risk in (False, True):
        runner = run_one(work, Agent("a", ScriptedModel(["x"], pace=0)))
        runner.invoke({}, thread_id="t")
        runner._execute("t", Allow("drop", "ann", high_risk=high_risk))
        assert bool(runner.invoke(thread_id="t").pending) is not high_risk


def test_an_allowance_ends_after_its_time() -> None:
    clerk = Clerk({"to": "ann"}, {"to": "bob"})
    clerk.allow(args={"to": "ann"}, minutes=60)
    clerk.allow(args={"to": "bob"}, minutes=0.000001)
    clerk.resume()
    assert clerk.sent == ["ann"]
    assert clerk.runner.store is not None
    standing, ended = allowances(clerk.runner.store.ledger("t"), "t")
    assert not standing.ended(standing.at)
    assert ended.ended(ended.at + 60)
    now = ended.at + 60
    assert ", until " in allowance_words(standing, now)
    assert ", ended at " in allowance_words(ended, now)
    assert clerk.runner.verify("t", strict=True).ok


@pytest.mark.parametrize("minutes", [0, -1, float("nan"), float("inf"), "2h"])
def test_an_allowance_that_never_holds_is_refused(minutes: Any) -> None:
    with pytest.raises(UsageError, match="minutes"):
        Allow("send", "ann", minutes=minutes)


def test_a_revoked_allowance_and_a_fork_ask_again() -> None:
    clerk = Clerk({"to": "ann"}, {"to": "bob"})
    named = clerk.allow(args={"to": "ann"})
    clerk.resume()
    assert clerk.sent == ["ann"]
    clerk.allow()
    assert clerk.runner.store is not None
    clerk.runner.fork("t", 0, "f")
    fork = clerk.runner.store.info("f")
    assert fork is not None
    assert allowances_for(clerk.runner.store, fork) == ()
    for each in (named, "a99"):
        if each == "a99":
            with pytest.raises(UsageError, match="no allowance 'a99'"):
                clerk.runner._execute("t", Revoke(each, "ann"))
        else:
            clerk.runner._execute("t", Revoke(each, "ann", "no more"))
    (left,) = allowances(clerk.runner.store.ledger("t"), "t")
    clerk.runner._execute("t", Revoke(left.id, "ann"))
    clerk.resume()
    assert clerk.sent == ["ann"]
    assert clerk.result.pending


def test_an_allowance_does_not_answer_for_named_reviewers() -> None:
    def work(_state: Any, config: Any) -> dict[str, Any]:
        payload = {"type": "tool_approval", "name": "drop", "args": {}}
        asked = {"kind": "approve", "reviewers": ["bob"], "payload": payload}
        return {"out": config.interrupt(asked)}

    runner = run_one(work, Agent("a", ScriptedModel(["x"], pace=0)))
    (request,) = runner.invoke({}, thread_id="t").pending
    runner._execute("t", Allow("drop", "ann"))
    assert runner.invoke(thread_id="t").pending
    with pytest.raises(AnswerRefused):
        runner.answer("t", request.id, "approve", step=request.step, actor="ann")
