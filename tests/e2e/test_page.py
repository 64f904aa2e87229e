"""The app below a server of pages: no terminal, keys and paint in packets, and a page that goes away."""

from __future__ import annotations

import signal
from pathlib import Path

from hitl_tui import SQLiteCheckpointer
from tests.support.page import Page
from tests.support.program import APP


def test_a_page_is_stepped_resized_and_saved_and_its_session_ends_with_it(tmp_path: Path) -> None:
    place = tmp_path / "runs.db"
    with Page([*APP, "demo", "--store", str(place)]) as page:
        assert page.prelude == b"__GANGLION__\n"
        page.wait_for("READY")
        assert "╭─ Graph" in page.text(), "a page shows UTF-8, whatever the locale of the server"
        page.resize(80, 24)
        page.wait_until(lambda: "Timeline" in page.text() and "Stream" in page.text(), "tabs")
        page.press("\x13")  # ctrl+s
        page.wait_until(
            lambda: any(meta["type"] == "deliver_file_start" for meta in page.metas), "a download"
        )
        page.press("s")
        page.wait_for("RUNNING")
        assert page.program.stdin is not None
        page.program.stdin.close()
        assert page.program.wait(30) == 128 + signal.SIGHUP
    store = SQLiteCheckpointer(place)
    assert [(summary.reason, summary.held_by) for summary in store.threads()] == [("paused", None)]
    store.close()
