"""A database that goes away while somebody types: it is said, nothing typed is lost, and it comes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from textual.widgets import TextArea

from hitl_tui import END, START, Channel, GraphRunner, StateGraph
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.postgres import server
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from hitl_tui.view.review import UNDO
from tests.support.postgres import Postgres
from tests.ui.harness import Clock, Screen, live
from tests.ui.test_waiting_threads import reviewed


def asking(store: Checkpointer) -> GraphRunner:
    """A graph that asks for two fields."""
    fields = {"amount": {"type": "integer"}, "reason": {"type": "string"}}
    form = {"type": "object", "properties": fields, "required": list(fields)}
    graph = StateGraph({"said": Channel(None)}, name="asking")
    graph.add_node("ask", lambda state, config: {"said": config.interrupt("How much?", response_schema=form)})
    return graph.add_edge(START, "ask").add_edge("ask", END).compile(checkpointer=store)


@contextmanager
def away(postgres: Postgres) -> Iterator[None]:
    """There is no server meanwhile, which is told without waiting for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "PATIENCE", 0.3)
        postgres.stop()
        try:
            yield
        finally:
            postgres.start()


async def listens(it: Screen) -> Clock:
    """The card is open, and its keys decide."""
    it.run.clock = clock = Clock()
    await it.press("d")
    await it.card_listens("Your answer")
    return clock


async def test_an_edit_is_kept_until_the_database_server_is_back(
    postgres: Postgres, postgres_url: str
) -> None:
    runner = reviewed(PostgresCheckpointer(postgres_url))
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="WAITING") as it:
        await it.press("e")
        await it.shows("Saved as step 3")
        await it.press(*"mine ")
        await it.shows("mine draft 0")
        with away(postgres):
            await it.press("ctrl+s")
            await it.shows("not applied", "can't be reached")
            assert it.app.screen.query_one(TextArea).text == "mine draft 0"
        await it.press("ctrl+s")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        await it.shows("Channels at step 3")
    with closing(PostgresCheckpointer(postgres_url)) as store:
        runner = reviewed(store)
        assert runner.get_state("t")["draft"] == "mine draft 0"
        assert runner.verify("t", strict=True).mismatches == ()


async def test_a_reason_is_kept_until_the_database_server_is_back(
    postgres: Postgres, postgres_url: str
) -> None:
    runner = reviewed(PostgresCheckpointer(postgres_url))
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="WAITING") as it:
        clock = await listens(it)
        await it.press("tab", *"good enough", "enter")
        with away(postgres):
            await it.press("a")
            await it.shows("sending")
            clock.advance(UNDO + 0.01)
            await it.shows("not accepted", "can't be reached", "good enough")
        await it.press("a")
        await it.shows("sending")
        clock.advance(UNDO + 0.01)
        await it.shows("approve by anna")
    with closing(PostgresCheckpointer(postgres_url)) as store:
        answers = [entry for entry in store.ledger("t") if entry.kind == "answer"]
        assert [answer.note for answer in answers] == ["good enough"]


async def test_form_input_is_kept_until_the_database_server_is_back(
    postgres: Postgres, postgres_url: str
) -> None:
    runner = asking(PostgresCheckpointer(postgres_url))
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="WAITING") as it:
        clock = await listens(it)
        await it.press(*"42", "enter", *"because", "enter")
        with away(postgres):
            await it.press("enter")
            await it.shows("sending")
            clock.advance(UNDO + 0.01)
            await it.shows("not accepted", "can't be reached", "42", "because")
        await it.press("enter")
        await it.shows("sending")
        clock.advance(UNDO + 0.01)
        await it.gone("Your answer")
        await it.gone("WAITING")
    with closing(PostgresCheckpointer(postgres_url)) as store:
        answers = [entry.data for entry in store.ledger("t") if entry.kind == "answer"]
        assert answers == [{"answer": {"amount": 42, "reason": "because"}}]
