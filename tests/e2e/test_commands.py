"""The commands in a real terminal: what they open, what they leave behind, what they say when they can't."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.cli.logs import log_path
from tests.support.places import SAMPLES
from tests.support.program import APP, call
from tests.support.terminal import Terminal


@contextmanager
def opened(*arguments: str, **options: object) -> Iterator[Terminal]:
    with Terminal([*APP, *arguments], **options) as terminal:  # type: ignore[arg-type]
        yield terminal


def leave(terminal: Terminal, code: int = 3) -> str:
    """Quit, and return what is on the terminal then; the thread waits, unless another code says otherwise."""
    terminal.press("q")
    assert terminal.wait_exit() == code
    return terminal.text()


def refused(terminal: Terminal, code: int = 2) -> str:
    """What a command that can't do its work says, on one line."""
    assert terminal.wait_exit() == code
    return " ".join(terminal.text().split())


def test_a_sample_runs_to_its_end() -> None:
    with opened("run", str(SAMPLES / "counter.py"), "--input", "limit=2", "--thread", "c") as terminal:
        terminal.wait_for("increment is next")
        terminal.press("c")
        terminal.wait_for("DONE")
        assert "continue with" not in leave(terminal, code=0)
    with opened("threads") as terminal:
        text = refused(terminal, code=0)
        assert "THREAD ORIGIN GRAPH STATUS STEP" in text
        assert "c - counter completed (end) 2" in text


def test_inputs_of_a_graph_are_asked_for_on_screen() -> None:
    with opened("run", str(SAMPLES / "review.py")) as terminal:
        terminal.wait_for("What to write")
        terminal.press("Explain recursion", "enter")
        terminal.wait_for_words("write is next", "Explain recursion")
        assert "hitl-tui resume review-" in leave(terminal)


def test_an_input_the_graph_does_not_know() -> None:
    with opened("run", str(SAMPLES / "counter.py"), "--input", "limt=2") as terminal:
        assert "takes no input 'limt'" in refused(terminal)


def test_an_error_in_a_graph_file_shows_its_lines(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def helper():\n    return {}['key']\n\ngraph = helper()\n")
    with opened("run", "mine.py", cwd=tmp_path) as terminal:
        text = refused(terminal)
    assert "The graph's code failed: mine.py: KeyError: 'key'" in text
    assert 'mine.py", line 2, in helper' in text
    assert "hitl_tui/loading" not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "no.py"], "there is no file"),
        (["run", "no"], "doesn't name a graph"),
        (["demo", "--theme", "drak"], "there is no theme 'drak' (flag) did you mean 'dark'?"),
        (["demo", "--store", "https://x"], "there is no store of the kind"),
        (["resume"], "`hitl-tui demo` makes it"),
        (["resume", "--store", "none.db"], "there is no store none.db check --store"),
        (["run", "x.py", "--input", "novalue"], "has no name and value"),
        (["demo", "--no-such"], "No such option"),
    ],
)
def test_mistakes_leave_the_terminal_clean(arguments: list[str], words: str, tmp_path: Path) -> None:
    with opened(*arguments, cwd=tmp_path) as terminal:
        assert words in refused(terminal)


def test_an_unknown_thread_gets_a_hint() -> None:
    with opened("demo", "--thread", "evening", "--pace", "0") as terminal:
        terminal.wait_for("worker is next")
        leave(terminal)
    with opened("resume", "evenin") as terminal:
        assert "there is no thread 'evenin' did you mean 'evening'?" in refused(terminal)


def test_without_a_command_the_threads_are_listed() -> None:
    with opened() as terminal:
        assert terminal.wait_exit() == 0
        assert "Print the completion script" in terminal.text()
    for name in ("one", "two"):
        with opened("demo", "--thread", name, "--pace", "0") as terminal:
            terminal.wait_for("worker is next")
            leave(terminal)
    with opened() as terminal:
        terminal.wait_for("part of a name")
        terminal.wait_for("one")
        terminal.press("down", "enter")
        terminal.wait_for("worker is next")
        terminal.wait_gone("part of a name")
        leave(terminal, code=0)


@pytest.mark.slow
def test_a_power_cut_loses_only_what_was_not_committed() -> None:
    with opened("demo", "--thread", "cut") as terminal:
        terminal.wait_for("worker is next")
        terminal.press("s")
        terminal.wait_for("worker · ")
        terminal.kill()
    with opened("resume", "cut") as terminal:
        terminal.wait_for_words("worker is next", "step 0", "taken over from tester@")
        terminal.press("s")
        terminal.wait_for("advisor is next")
        leave(terminal)


def test_quitting_in_the_middle_of_a_node_says_what_was_not_committed() -> None:
    with opened("demo", "--thread", "half", "--pace", "2") as terminal:
        terminal.wait_for("worker is next")
        terminal.press("s")
        terminal.wait_for("worker · ")
        terminal.press("q")
        terminal.wait_for("quit anyway")
        text = leave(terminal)
    assert "worker" in text
    assert "continue with: hitl-tui resume half" in text


def test_a_bug_is_shown_with_the_log_file_and_q_still_quits() -> None:
    program = """
import sys, hitl_tui.ui.app as app
def broken(self): raise RuntimeError("\\x1b[2Jboom")
app.HitlApp.on_mount = broken
sys.argv = ["hitl-tui", "demo"]
from hitl_tui.cli.main import main
main()
"""
    with Terminal([sys.executable, "-P", "-c", program]) as terminal:
        shown = terminal.wait_for_words("Unexpected error", "RuntimeError: ␛[2Jboom", "hitl-tui.log")
        assert "Traceback" not in shown + leave(terminal)
    assert "RuntimeError" in log_path().read_text()


def test_an_error_that_ends_textual_is_one_line_too() -> None:
    program = """
import sys, hitl_tui.ui.app as app
app.HitlApp.on_mount = lambda self: self.panic("\\x1b[2Jno such style")
sys.argv = ["hitl-tui", "demo"]
from hitl_tui.cli.main import main
main()
"""
    with Terminal([sys.executable, "-P", "-c", program]) as terminal:
        text = refused(terminal, code=1)
    assert "hitl-tui: unexpected RuntimeError: " in text
    assert "no such style" in text
    assert "Traceback" not in text
    assert "no such style" in log_path().read_text()


def test_without_a_terminal_it_runs_in_plain_text_mode() -> None:
    done = call("demo")
    assert done.returncode == 3
    assert "Ready at step 0: worker is next." in done.stdout
    assert "Left. Continue with: hitl-tui resume demo-" in done.stdout


def test_no_key_is_stored(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    arguments = ["--model", "openai/gpt-4o-mini", "--input", "task=x", "--thread", "k"]
    with opened("run", str(SAMPLES / "advisor.py"), *arguments) as terminal:
        terminal.wait_for("worker is next", timeout=150)
        leave(terminal)
    store = SQLiteCheckpointer(isolated / "data" / "hitl-tui" / "threads.db")
    info = store.info("k")
    store.close()
    assert info is not None
    assert info.source == {
        "graph": str(SAMPLES / "advisor.py"),
        "options": {"model": "openai/gpt-4o-mini"},
    }
    written = [path for path in isolated.rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if b"sk-very-secret" in path.read_bytes()]
