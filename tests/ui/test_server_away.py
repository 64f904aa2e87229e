"""A database that goes away while somebody types: it is said, nothing typed is lost, and it comes back."""

from __future__ import annotations

from contextlib import closing

import pytest
from textual.widgets import TextArea

from hitl_tui.stores.postgres import server
from hitl_tui.stores.postgres.store import PostgresCheckpointer
from tests.support.postgres import Postgres
from tests.ui.harness import live
from tests.ui.test_waiting_threads import reviewed


async def test_what_was_typed_stays_until_the_server_is_there_again(
    postgres: Postgres, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = reviewed(PostgresCheckpointer(postgres_url))
    runner.invoke({}, thread_id="t")
    async with live(runner, ready="WAITING") as it:
        await it.press("e")
        await it.shows("Becomes step 3")
        await it.press(*"mine ")
        await it.shows("mine draft 0")
        monkeypatch.setattr(server, "PATIENCE", 0.3)
        postgres.stop()
        try:
            await it.press("ctrl+s")
            await it.shows("can't be reached")
            assert it.app.screen.query_one(TextArea).text == "mine draft 0"
        finally:
            postgres.start()
        monkeypatch.setattr(server, "PATIENCE", 60.0)
        await it.press("ctrl+s")
        await it.until(lambda: it.app.screen is it.run, "the run screen")
        await it.shows("Channels at step 3")
    with closing(PostgresCheckpointer(postgres_url)) as store:
        runner = reviewed(store)
        assert runner.get_state("t")["draft"] == "mine draft 0"
        assert runner.verify("t", strict=True).mismatches == ()
