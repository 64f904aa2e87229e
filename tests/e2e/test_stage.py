"""A show in one terminal, its notes in another, and a recording of it."""

from __future__ import annotations

import json
from pathlib import Path

import pyte

from tests.support.program import APP
from tests.support.terminal import Terminal

SCRIPT = """
[show]
graph = "counter"
title = "counting"
pace = 8

[inputs]
limit = 2

[[stops]]
at = "start"
title = "Nothing is counted yet."
notes = "Take a breath."

[[stops]]
at = "end"
title = "It is counted."
notes = "Say goodbye."
"""


def test_notes_follow_a_presentation_in_another_terminal_and_the_recording_shows_it(tmp_path: Path) -> None:
    script, cast = tmp_path / "show.toml", tmp_path / "show.cast"
    script.write_text(SCRIPT)
    with (
        Terminal(
            [*APP, "present", str(script), "--record-screen", str(cast)], size=(100, 30), cwd=tmp_path
        ) as show,
    ):
        show.wait_for("Nothing is counted yet.")
        with Terminal([*APP, "present", str(script), "--notes"], size=(80, 24), cwd=tmp_path) as notes:
            notes.wait_for("Take a breath.")
            notes.wait_for("It is counted.")  # what comes next
            notes.wait_for("step 0: ")  # as the store has it
            show.resize(80, 24)
            show.press("space")
            show.wait_for("stop 2 of 2")
            notes.wait_for("Say goodbye.")
            notes.wait_for("step 2: completed")
            show.press("q")
            notes.wait_for("the presentation is over")
    header, *events = map(json.loads, cast.read_text(encoding="utf-8").splitlines())
    screen = pyte.Screen(header["term"]["cols"], header["term"]["rows"])
    stream = pyte.Stream(screen)
    seen: list[str] = []
    for _, code, data in events:
        if code == "r":
            columns, rows = map(int, data.split("x"))
            screen.resize(rows, columns)
        elif code == "o":
            stream.feed(data)
            seen.append("\n".join(screen.display))
    assert any("stop 1 of 2" in shown and "Nothing is counted yet." in shown for shown in seen)
    assert any("stop 2 of 2" in shown and "It is counted." in shown for shown in seen)
    assert not any("breath" in shown or "goodbye" in shown for shown in seen)  # the notes are the speaker's
    assert [data for _, code, data in events if code == "r"] == ["80x24"]
