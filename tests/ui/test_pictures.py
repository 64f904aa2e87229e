"""Recordings as asciicast v3 and pictures as SVG: what a player shows of them is what the screen showed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyte
import pytest

from hitl_tui.errors import UsageError
from hitl_tui.new_files import new_file
from hitl_tui.ui.pictures import Recording, picture_name
from tests.support import hostile
from tests.support.commands import App
from tests.ui.harness import desk


def played(path: Path) -> tuple[dict[str, Any], list[list[Any]], list[str]]:
    """The header of a recording, its events, and the screen that a terminal shows at its end."""
    header, *events = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    screen = pyte.Screen(header["term"]["cols"], header["term"]["rows"])
    stream = pyte.Stream(screen)
    for _, code, data in events:
        if code == "o":
            stream.feed(data)
    return header, events, [line.rstrip() for line in screen.display]


def test_a_recording_has_intervals_sizes_and_an_end_but_nothing_beside_the_screen(tmp_path: Path) -> None:
    times = iter([10.0, 10.5, 12.0, 12.25])
    path = tmp_path / "x.cast"
    recording = Recording(path, (80, 24), "t", lambda: next(times))
    recording.write(f"a\x1b]52;c;c2VjcmV0\x07{hostile.TEXTS['title']}b")
    recording.resize((100, 30))
    recording.resize((100, 30))
    recording.close()
    header, events, _ = played(path)
    assert (header["version"], header["term"]["cols"], header["term"]["rows"]) == (3, 80, 24)
    assert events == [[0.5, "o", "ab"], [1.5, "r", "100x30"], [0.25, "x", "0"]]
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(UsageError):
        Recording(path, (80, 24), "t")


@pytest.mark.slow
def test_a_thread_is_recorded_from_the_real_screen_with_its_end_and_its_decision(
    app: App, tmp_path: Path
) -> None:
    app.expect(3, "run", "advisor", "--headless", "--thread", "a", "--input", "task=Hills")
    app.expect(0, "approve", "a", "--note", "reads well", "--run")
    path = tmp_path / "a.cast"
    app.expect(0, "export", "a", "--format", "asciicast", "-o", str(path), "--size", "100x30", "--pace", "1")
    header, events, screen = played(path)
    shown = "\n".join(screen)
    assert header["title"] == "tape of a"
    assert "COMPLETED" in shown or "DONE" in shown
    assert "reads well" in shown
    assert events[-1][1:] == ["x", "0"]
    assert 2 < sum(interval for interval, *_ in events) < 60
    assert len([code for _, code, _ in events if code == "o"]) > 10


@pytest.mark.slow
def test_a_picture_of_a_thread_fetches_nothing_and_shows_no_private_value(app: App, tmp_path: Path) -> None:
    app.expect(0, "run", "private", "--headless", "--thread", "p")
    path = tmp_path / "p.svg"
    result = app.expect(0, "export", "p", "--format", "svg", "-o", str(path), "--size", "100x30", "--json")
    text = path.read_text(encoding="utf-8")
    assert result.document["bytes"] == path.stat().st_size
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace(
        "https://www.textualize.io", ""
    )
    assert "[private]" in text
    assert "report" in text
    app.expect(2, "export", "p", "--format", "svg", "-o", str(tmp_path / "q.svg"), "--size", "5x5")
    app.expect(2, "export", "p", "--format", "svg")


@pytest.mark.slow
async def test_ctrl_s_saves_the_screen_in_a_new_file_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with desk() as it:
        await it.press("ctrl+s")
        await it.shows("saved as closure-explainer-step-4.svg")
        await it.press("ctrl+s")
        await it.shows("saved as closure-explainer-step-4-2.svg")
    assert new_file("closure-explainer-step-4.svg", b"") == Path("closure-explainer-step-4-3.svg")


def test_the_name_of_a_picture_is_tame_whatever_the_thread_is_called() -> None:
    assert picture_name("../../x y\x1b[2J", 3) == "x-y-2J-step-3.svg"
    assert picture_name("..", 0) == "thread-step-0.svg"
