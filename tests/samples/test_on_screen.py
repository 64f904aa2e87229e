"""Graph files on screen, in a real terminal."""

from __future__ import annotations

from pathlib import Path

from tests.support.program import APP, call
from tests.support.terminal import Terminal


def test_a_start_is_written_run_and_resumed(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    assert call("new", "review", str(file)).returncode == 0
    with Terminal([*APP, "run", str(file), "--thread", "t", "--input", "task=closures"]) as terminal:
        terminal.wait_for("write is next")
        terminal.press("s")
        terminal.wait_for("check_approval is next")
        terminal.press("s")
        terminal.wait_for("WAITING")
        terminal.press("q")
        assert terminal.wait_exit() == 3
    with Terminal([*APP, "resume", "t"]) as terminal:
        terminal.wait_for("WAITING")
        terminal.press("d")
        terminal.wait_for("Is this draft good enough?")
        terminal.press("q")


def test_a_file_with_mistakes_says_where(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    assert call("new", "review", str(file)).returncode == 0
    file.write_text(file.read_text().replace('words = "feedback"', 'words = "feedbak"'))
    with Terminal([*APP, "run", str(file)]) as terminal:
        assert terminal.wait_exit() == 2
        text = " ".join(terminal.text().split())
    assert "there is no channel 'feedbak'" in text
    assert "did you mean 'feedback'?" in text
