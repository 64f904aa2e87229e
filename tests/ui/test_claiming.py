"""Whose it is to decide, on the card: claimed, given back, handed over, looked at; calls that are allowed."""

from __future__ import annotations

import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hitl_tui import END, START, Channel, Gate, GateChoice, GraphRunner, MemoryCheckpointer, StateGraph
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.engine.commands import Claim
from hitl_tui.engine.log.threads import Presence
from hitl_tui.engine.thread.allowances import Allowance, allowances
from hitl_tui.view.presence import Attention
from tests.support.spec import spec
from tests.ui.harness import Screen, live

pytestmark = spec("11")


def reviewed(store: MemoryCheckpointer) -> GraphRunner:
    choices = [GateChoice("approve", "print it", "a"), GateChoice("revise", "send back", "r", "required")]
    graph = StateGraph({"text": Channel("")}, name="memo")
    graph.add_node("write", lambda state: {"text": "A memo."}).add_edge(START, "write").add_edge("write", END)
    return graph.compile(checkpointer=store, interrupt_after=[Gate("write", "Print it?", choices)])


def mailing(store: MemoryCheckpointer) -> GraphRunner:
    def ask(state: Any, config: Any) -> dict[str, Any]:
        calls = [{"name": "send_mail", "args": {"to": "ann@example.org", "copies": 2}}]
        return {"answer": config.interrupt({"action_requests": calls, "review_configs": []})}

    graph = StateGraph({"answer": Channel(None)}, name="mail")
    graph.add_node("ask", ask).add_edge(START, "ask").add_edge("ask", END)
    return graph.compile(checkpointer=store)


@asynccontextmanager
async def card(make: Any, *, look_seconds: float = 60) -> AsyncIterator[tuple[Screen, MemoryCheckpointer]]:
    """The card of a thread that waits, once its keys listen."""
    store = MemoryCheckpointer()
    runner = make(store)
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="WAITING") as it:
        it.run.attention = Attention(look_seconds=look_seconds)
        await it.press("d")
        await it.shows("Your answer")
        await it.until(lambda: it.card.review.state == "open", "the moment to read being over")
        yield it, store


def there(store: MemoryCheckpointer) -> Sequence[Presence]:
    return store.attending("t", time.time_ns() // 1000)


@pytest.mark.slow
async def test_a_key_claims_and_releases_a_request() -> None:
    async with card(reviewed) as (it, store):
        await it.press("k")
        await it.shows("you have claimed it until")
        (claim,) = there(store)
        assert (claim.actor, claim.claims, claim.lasts) == ("anna", True, False)
        await it.press("k")
        await it.gone("you have claimed it")
        assert there(store) == ()


@pytest.mark.slow
async def test_leaving_the_card_releases_a_claim_unless_it_is_lasting() -> None:
    async with card(reviewed) as (it, store):
        await it.press("k")
        await it.shows("you have claimed it until")
        await it.press("escape")
        await it.gone("Your answer")
        await it.until(lambda: there(store) == (), "given back")


@pytest.mark.slow
async def test_what_somebody_else_has_claimed_is_taken_over_after_asking_with_the_reason() -> None:
    async with card(reviewed) as (it, store):
        (request,) = store.cursor("t").pending  # type: ignore[union-attr]
        elsewhere = LocalHub(store, lambda info: reviewed(store))
        await (await elsewhere.open("t")).execute(Claim(request.id, "ben"))
        await it.shows("ben has claimed it until")
        await it.press("k")
        await it.shows("Take it over?", "ben has claimed it, 14 m left", "take it over from ben")
        await it.press("enter")
        await it.gone("Take it over?")
        assert [at.actor for at in there(store)] == ["ben"]
        await it.press("k")
        await it.shows("Take it over?")
        await it.press("shift+tab", *"ben is ill", "tab", "t")
        await it.shows("you have claimed it until")
        assert [at.actor for at in there(store)] == ["anna"]
        entry = store.ledger("t")[-1]
        assert (entry.kind, entry.actor, entry.note) == ("claim_taken", "anna", "ben is ill")
        await elsewhere.close()


@pytest.mark.slow
async def test_others_see_your_presence_while_the_card_is_open() -> None:
    async with card(reviewed, look_seconds=0.01) as (it, store):
        elsewhere = LocalHub(store, lambda info: reviewed(store))
        other = await elsewhere.open("t")
        await it.until(lambda: [at.actor for at in there(store)] == ["anna"], "the look")
        (seen,) = (await other.snapshot()).attending
        assert (seen.actor, seen.claims) == ("anna", False)
        assert it.session.view.attending == ()
        await it.press("escape")
        await it.until(lambda: there(store) == (), "nobody looking")
        assert (await other.snapshot()).attending == ()
        await elsewhere.close()


@pytest.mark.slow
async def test_an_app_that_lost_its_terminal_shows_no_presence() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        async with card(reviewed, look_seconds=0.01) as (it, store):
            await it.until(lambda: [at.actor for at in there(store)] == ["anna"], "the look")
            it.app.terminal_lost()
            await it.until(lambda: there(store) == (), "nobody looking")
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
async def test_a_terminal_that_closes_without_a_signal_ends_the_app(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitl_tui.ui.app._HANG_UP_SECONDS", 0.01)
    monkeypatch.setattr("hitl_tui.ui.app.let_go_of_a_lost_terminal", lambda: None)
    async with card(reviewed) as (it, _):
        codes: list[int] = []
        monkeypatch.setattr(it.app, "on_stop_signal", codes.append)
        it.app.terminal_lost()
        await it.until(lambda: codes == [signal.SIGHUP], "the end")


@pytest.mark.slow
async def test_a_short_look_at_the_card_is_not_shown_to_others() -> None:
    async with card(reviewed, look_seconds=60) as (it, store):
        await it.press("escape")
        await it.gone("Your answer")
        assert there(store) == ()


@pytest.mark.slow
async def test_a_request_is_handed_over_with_a_note_and_the_card_says_so() -> None:
    async with card(reviewed) as (it, store):
        await it.press("at")
        await it.shows("Hand over", "to (name)")
        await it.press(*"@ben", "enter", *"you wrote it", "enter")
        await it.shows("handed to ben by anna: “you wrote it”")
        (request,) = store.cursor("t").pending  # type: ignore[union-attr]
        assert request.handed is not None
        assert (request.handed.to, request.handed.by, request.handed.note) == ("ben", "anna", "you wrote it")


def allowed(store: MemoryCheckpointer) -> tuple[Allowance, ...]:
    return allowances(store.ledger("t"), "t")


@pytest.mark.slow
async def test_calls_like_the_one_that_is_asked_about_are_allowed() -> None:
    async with card(mailing) as (it, store):
        await it.press("plus")
        await it.shows("Allow in this thread", "send_mail with copies=2, to=ann@example.org")
        await it.press("tab", *"to=*@example.org", "enter", *"ours", "enter", *"2h", "tab", "l")
        await it.until(lambda: len(allowed(store)) == 1, "allowed")
        (allowance,) = allowed(store)
        assert (allowance.tool, allowance.args, allowance.exact) == (
            "send_mail", {"to": "*@example.org"}, False,
        )  # fmt: skip
        assert (allowance.actor, allowance.note) == ("anna", "ours")
        assert allowance.expires_at is not None


@pytest.mark.slow
async def test_a_single_call_can_be_allowed_and_an_invalid_pattern_allows_nothing() -> None:
    async with card(mailing) as (it, store):
        await it.press("plus")
        await it.shows("Allow in this thread")
        await it.press("tab", *"to", "tab", "tab", "tab", "l")
        await it.shows("'to' is not NAME=PATTERN; as in path=docs/*")
        assert allowed(store) == ()
        await it.press("backspace", "backspace", "tab", "tab", "tab", "c")
        await it.until(lambda: len(allowed(store)) == 1, "allowed")
        assert (allowed(store)[0].args, allowed(store)[0].exact) == (
            {"to": "ann@example.org", "copies": 2}, True,
        )  # fmt: skip


@pytest.mark.slow
async def test_allowed_calls_are_listed_and_revoked() -> None:
    async with card(mailing) as (it, store):
        await it.press("plus")
        await it.shows("Allow in this thread")
        await it.press("tab", *"to=*@example.org copies=2", "enter", "enter", "enter")
        await it.shows("allowed with exactly its arguments")
        assert allowed(store) == ()
        await it.press("tab", "tab", "tab", "l")
        await it.until(lambda: len(allowed(store)) == 1, "allowed")
        assert allowed(store)[0].args == {"to": "*@example.org", "copies": 2}
        await it.press("plus")
        await it.shows("show what is allowed")
        await it.press("w")
        await it.shows("Allowed in this thread", "send_mail with copies=2, to=*@example.org")
        await it.press("shift+tab", *"too wide", "tab", "1")
        await it.until(lambda: allowed(store) == (), "taken back")
        entry = store.ledger("t")[-1]
        assert (entry.kind, entry.actor, entry.note) == ("allowance_revoked", "anna", "too wide")
        await it.press("escape")
        await it.gone("Your answer")
        await it.press("plus")
        await it.shows("nothing is allowed in this thread without asking")


@pytest.mark.slow
async def test_the_selected_one_of_several_calls_is_allowed() -> None:
    def both(store: MemoryCheckpointer) -> GraphRunner:
        calls = [{"name": name, "args": {"n": at}} for at, name in enumerate(("send", "drop"))]
        graph = StateGraph({"answer": Channel(None)}, name="both")
        asked = {"action_requests": calls, "review_configs": []}
        graph.add_node("ask", lambda state, config: {"answer": config.interrupt(asked)})
        return graph.add_edge(START, "ask").add_edge("ask", END).compile(checkpointer=store)

    async with card(both) as (it, store):
        await it.press("a")
        await it.shows("2 of 2")
        await it.press("plus")
        await it.shows("Allow in this thread", "drop with")
        await it.press("c")
        await it.until(lambda: len(allowed(store)) == 1, "allowed")
        assert (allowed(store)[0].tool, allowed(store)[0].args) == ("drop", {"n": 1})


@pytest.mark.slow
async def test_without_a_tool_call_nothing_can_be_allowed() -> None:
    async with card(reviewed) as (it, _):
        await it.press("plus")
        await it.shows("no call waits")
