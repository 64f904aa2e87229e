"""A graph that the user does not trust yet: asked once, with what it would run; a no runs nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.loading.code import forget_code
from hitl_tui.loading.sources import open_graph, reopen_graph
from hitl_tui.loading.trust import Trust
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.theme import Look
from tests.support.program import APP, call
from tests.support.terminal import Terminal
from tests.ui.harness import Screen, booted

GRAPH = """
from pathlib import Path
from hitl_tui import END, START, Channel, StateGraph
Path(__file__).with_name("BUILT").touch()
def more(state):
    gate = Path(__file__).with_name("gate")
    if gate.exists():
        gate.read_bytes()
    return {"text": state["text"] + "b"}
graph = StateGraph({"text": Channel("")}, name="sent")
graph.add_node("write", lambda state: {"text": state["text"] + "a"})
graph.add_node("more", more)
graph.add_edge(START, "write").add_edge("write", "more").add_edge("more", END)
"""


class Sent:
    """A store with a thread at step 1, and its graph beside it, as another user left them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "flow.py"
        self.file.write_text(GRAPH)
        with_store = SQLiteCheckpointer(folder / "sent.db")
        runner = open_graph(str(self.file), with_store)
        runner.step({}, thread_id="t")
        with_store.close()
        self.forget()

    def forget(self) -> None:
        """As in a new process."""
        forget_code(self.folder)
        (self.folder / "BUILT").unlink(missing_ok=True)

    @property
    def built(self) -> bool:
        return (self.folder / "BUILT").exists()

    @asynccontextmanager
    async def opened(self, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Screen]:
        store = SQLiteCheckpointer(self.folder / "sent.db")
        trust = Trust(self.folder / "data" / "trust.json", str(self.folder / "sent.db"))
        hub = LocalHub(
            store,
            lambda info: reopen_graph(info.thread_id, info.source, store, trust=trust),
            lambda _, error: error.message,
        )

        async def open_driver() -> tuple[Hub, Driver]:
            return hub, await hub.open("t")

        app = HitlApp(AppStart(open_driver, "anna", None, False), Look(""))
        async with booted(app, size=size) as pilot:
            screen = Screen(app, pilot)
            await screen.shows("Timeline", "thread t", "write")
            yield screen
        await hub.close()
        self.forget()


@pytest.fixture
def sent(tmp_path: Path) -> Sent:
    return Sent(tmp_path)


@pytest.mark.slow
async def test_opening_and_looking_asks_nothing_and_builds_nothing(sent: Sent) -> None:
    async with sent.opened() as screen:
        await screen.press("left", "D")
        await screen.press("escape")
        assert "Trust this graph?" not in screen.text()
        assert not sent.built


@pytest.mark.slow
async def test_a_yes_runs_it_and_is_asked_for_once(sent: Sent) -> None:
    async with sent.opened() as screen:
        await screen.press("s")
        await screen.shows("Trust this graph?", "You have not run", "flow.py", "sent.db")
        assert not sent.built
        await screen.press("t")
        await screen.shows("DONE")
        assert sent.built
    async with sent.opened() as screen:
        await screen.press("left", "e")
        await screen.until(lambda: sent.built, "the graph")
        assert "Trust this graph?" not in screen.text()


@pytest.mark.parametrize("key", ["enter", "escape"])
@pytest.mark.slow
async def test_declining_leaves_the_thread_read_only(sent: Sent, key: str) -> None:
    async with sent.opened() as screen:
        await screen.press("s")
        await screen.shows("Trust this graph?")
        await screen.press(key)
        await screen.gone("Trust this graph?")
        await screen.shows("you said no to running its graph")
        await screen.press("s", "c", "e")
        assert "Trust this graph?" not in screen.text()
        assert not sent.built
    async with sent.opened() as screen:
        await screen.press("s")
        await screen.shows("Trust this graph?")


@pytest.mark.slow
async def test_leaving_while_it_asks_is_a_no(sent: Sent) -> None:
    async with sent.opened() as screen:
        await screen.press("s")
        await screen.shows("Trust this graph?")
        await screen.press("ctrl+q")
        await screen.until(lambda: not screen.app.is_running or "Trust" not in screen.text(), "leaving")
    assert not sent.built


@pytest.mark.slow
async def test_an_edit_asks_before_it_is_written(sent: Sent) -> None:
    async with sent.opened() as screen:
        await screen.press("e")
        await screen.shows("Trust this graph?")
        assert not sent.built
        await screen.press("t")
        await screen.until(lambda: sent.built, "the graph")
        await screen.gone("Trust this graph?")


@pytest.mark.slow
async def test_files_that_others_may_write_are_asked_about_again_with_what_changed(sent: Sent) -> None:
    sent.file.chmod(0o666)
    async with sent.opened() as screen:
        await screen.press("e")
        await screen.shows("Trust this graph?")
        await screen.press("t")
        await screen.until(lambda: sent.built, "the graph")
    sent.file.write_text(GRAPH + "\n")
    async with sent.opened(size=(80, 24)) as screen:
        await screen.press("s")
        await screen.shows("others than you may write", "changed:", "flow.py", "trust it, and run it")
        assert not sent.built
        await screen.press("t")
        await screen.shows("DONE")


def in_lines(sent: Sent, thread_id: str = "t") -> Terminal:
    return Terminal([*APP, "resume", thread_id, "--plain", "--store", str(sent.folder / "sent.db")])


@pytest.mark.parametrize("keys", [("yes", "enter"), ("no", "enter"), ("ctrl+c",)], ids="-".join)
def test_plain_text_mode_asks_for_consent_with_the_code_to_run(sent: Sent, keys: tuple[str, ...]) -> None:
    agreed = keys[0] == "yes"
    with in_lines(sent) as terminal:
        terminal.wait_for("Command:")
        terminal.press("s", "enter")
        shown = terminal.wait_for("Type yes to confirm")
        assert f"file: {sent.file}" in shown.replace("\n", "")
        assert not sent.built
        terminal.press(*keys)
        terminal.wait_for("Done at step 2" if agreed else "The graph is not trusted")
        terminal.wait_until(lambda: terminal.text().rstrip().endswith("Command:"), "the next question")
        terminal.press("q", "enter")
        assert terminal.wait_exit() == (0 if agreed else 3)
    assert sent.built == agreed


def test_declining_in_plain_text_mode_says_how_to_consent_later(sent: Sent) -> None:
    with in_lines(sent) as terminal:
        terminal.wait_for("Command:")
        terminal.press("s", "enter")
        terminal.wait_for("Type yes to confirm")
        terminal.press("no", "enter")
        shown = terminal.wait_until(lambda: terminal.text().count("Command:") == 2, "the next question")
        text = " ".join(shown.replace("|", "").split())
        assert "you said no to running its graph" in text
        assert f"hitl-tui resume t --trust --store {sent.folder / 'sent.db'}" in text
        terminal.press("c", "enter")
        terminal.wait_until(lambda: terminal.text().count("Command:") == 3, "the second refusal")
        assert terminal.text().count("Type yes to confirm") == 1
    assert not sent.built


def test_in_plain_text_mode_an_imported_thread_without_a_graph_asks_nothing(sent: Sent) -> None:
    store = ("--store", str(sent.folder / "sent.db"))
    assert call("export", "t", "t.jsonl", *store, cwd=sent.folder).returncode == 0
    assert call("import", "t.jsonl", "--thread", "new", *store, cwd=sent.folder).returncode == 0
    with in_lines(sent, "new") as terminal:
        terminal.wait_for("Command:")
        terminal.press("s", "enter")
        shown = terminal.wait_for("hitl-tui run GRAPH --thread new")
        assert "doesn't name its graph" in shown
        assert "Type yes" not in shown
    assert not sent.built


def test_plain_text_mode_asks_for_consent_only_when_no_other_process_runs_the_thread(sent: Sent) -> None:
    gate = sent.folder / "gate"
    os.mkfifo(gate)
    elsewhere = {**os.environ, "XDG_DATA_HOME": str(sent.folder / "elsewhere")}
    command = [*APP, "step", "t", "--trust", "--store", str(sent.folder / "sent.db")]
    with subprocess.Popen(command, env=elsewhere) as other, gate.open("wb"):  # waits until the node reads
        sent.forget()
        gate.unlink()
        with in_lines(sent) as terminal:
            terminal.wait_for("Command:")
            terminal.press("s", "enter")
            terminal.wait_until(lambda: terminal.text().count("Command:") == 2, "the next question")
            assert "Type yes" not in terminal.text()
            assert "thread 't' is run by" in terminal.text()
            assert not sent.built
            other.kill()
            other.wait()
            while "Paused at step 1" not in terminal.text():
                terminal.press("w", "enter")
            terminal.press("s", "enter")
            terminal.wait_for("Type yes to confirm")
            assert not sent.built
            terminal.press("yes", "enter")
            terminal.wait_for("Done at step 2")
    assert sent.built
