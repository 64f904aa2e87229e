"""Leaving a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.cli.opening import hub_over
from hitl_tui.config import load_settings
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine.commands import Note
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.theme import Look
from tests.plain.talker import Talker
from tests.support.commands import App
from tests.support.second_verifier import check_export
from tests.ui.harness import Screen, booted
from tests.verbs.flows import COUNTING, stopped
from tests.verbs.hosts import Case, Hosts, each_host

test_each_host = each_host(
    Case(
        "on the newest step",
        "note",
        COUNTING,
        stopped,
        (Note("ask legal", None, "ann"),),
        {"text": "ask legal"},
    ),
    Case(
        "on an older one",
        "note",
        COUNTING,
        stopped,
        (Note("here it's wrong", 1, "ann"),),
        {"text": "here it's wrong"},
        step=1,
    ),
)

HOSTILE = "look\x1b[31m here\nsecond [b]line[/b]"


@pytest.fixture
def noted(app: App, hosts: Hosts) -> App:
    """A store with the thread `r`, which has a note on step 1 and on its newest one."""
    hosts.prepared(Case("", "note", COUNTING, stopped, ()))
    app.expect(0, "note", "r@1", HOSTILE, "--as", "bob")
    app.expect(0, "note", "r", "on the newest")
    return app


def test_show_and_log_have_it_where_it_was_left(noted: App) -> None:
    shown = noted.expect(0, "show", "r@1").out
    assert "note by bob: look␛[31m here\n" in shown
    assert "second [b]line[/b]" in shown
    assert "\x1b" not in shown
    assert "newest" not in shown.partition("note by")[2]
    assert "on the newest" in noted.expect(0, "show", "r").out
    assert ": note at step 1 by bob (" in noted.expect(0, "log", "r").out
    (note,) = noted.expect(0, "show", "r@1", "--json").document["notes"]
    assert (note["actor"], note["step"]) == ("bob", 1)
    decisions = noted.expect(0, "log", "r", "--json").document["decisions"]
    assert [entry["step"] for entry in decisions if entry["decision"] == "note"] == [1, 2]


def test_it_is_no_decision_to_be_undone(noted: App) -> None:
    assert "your last decision" not in noted.expect(0, "show", "r", "--as", "bob").out
    assert noted.expect(1, "decisions", "--mine", "--as", "bob").out == ""


@pytest.mark.parametrize("form", ["log", "markdown", "html"])
def test_exports_have_it(noted: App, form: str, tmp_path: Path) -> None:
    noted.expect(0, "export", "r", "--format", form, "-o", str(tmp_path / "out"))
    text = (tmp_path / "out").read_text("utf-8")
    assert "on the newest" in text
    assert "\x1b" not in text
    if form == "log":
        check_export(text.encode())
        noted.expect(0, "import", str(tmp_path / "out"), "--thread", "again")
        assert "on the newest" in noted.expect(0, "show", "again").out


@pytest.mark.slow
async def test_the_screen_marks_the_step_and_shows_its_notes(noted: App, tmp_path: Path) -> None:
    hub = hub_over(SQLiteCheckpointer(tmp_path / "prepared.db"), load_settings({}))

    async def open_driver() -> tuple[Hub, Driver]:
        return hub, await hub.open("r")

    async with booted(HitlApp(AppStart(open_driver, "ann", None, False), Look("")), size=(120, 40)) as pilot:
        screen = Screen(pilot.app, pilot)
        await screen.shows("note by tester: on the newest")
        await screen.shows("a ¶")
        await screen.press("left")
        await screen.shows("note by bob: look")
        await screen.press("semicolon", *"more", "enter", "n")
        await screen.shows("note by ann: more")
    await hub.close()


def test_the_log_is_intact_with_it(noted: App) -> None:
    noted.expect(0, "verify", "r", "--strict")


def test_in_plain_text_mode_it_needs_no_quotation_marks_and_log_lists_it(talk: Talker, noted: App) -> None:
    output = talk("; don't ship\nnote @0 odd input\n;\n\n; @9 what\nl\nq\n", "resume", "r", "--plain").out
    assert "Nothing was done." in output
    assert "there is no step 9" in output
    listed = output.rpartition("Step 0")[2]
    assert "note by tester: odd input" in listed.partition("Step 1")[0]
    assert "note by tester: don't ship" in listed.partition("Step 2")[2]
