"""What a watch shows of a step."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.run_view import open_view
from hitl_tui.view.spans import plain_text
from hitl_tui.view.step_view import head_step
from hitl_tui.view.watches import keep_watches, read_watches, watch, watch_columns, watch_line
from tests.support import tape as tapes

VIEW = open_view(tapes.advisor_tape().end)
STEP = head_step(VIEW)
CHANNELS = VIEW.graph.channels


def test_a_watch_is_marked_where_the_step_changed_its_value() -> None:
    changed = {update.channel for update in STEP.updates if update.changed}
    for info in CHANNELS:
        assert (watch(info.name, STEP, CHANNELS).mark == "≠") == (info.name in changed)
    assert watch("len(messages) >= 0", STEP, CHANNELS).mark == " "


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nowhere", "there is no channel 'nowhere'"),
        ("messages[99]", "there is no item 99 among"),
        ("revision_n +", "invalid syntax"),
    ],
)
def test_an_undefined_watch_says_why(text: str, why: str) -> None:
    assert why in watch(text, STEP, CHANNELS).why


def test_private_values_and_control_characters_never_come_out() -> None:
    values = {**STEP.values, "latest_draft": PRIVATE, "advisor_feedback": "x\x1b[2Jy\u202e"}
    step = msgspec.structs.replace(STEP, values=values, updates=())
    assert "is not defined" in watch("latest_draft", step, CHANNELS).why
    shown = watch("advisor_feedback", step, CHANNELS)
    line = plain_text(watch_line(shown, (), watch_columns([shown]), 60))
    assert line.startswith("  advisor_feedback  “x")
    assert "\x1b" not in line
    assert "\u202e" not in line


def test_watches_are_kept_for_each_graph(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "watches.json"
    assert read_watches(file) == {}
    keep_watches(file, "one", ["n"])
    keep_watches(file, "other", ["m", "len(x)"])
    keep_watches(file, "one", [])
    assert read_watches(file) == {"other": ("m", "len(x)")}
    file.write_text("[damaged")
    assert read_watches(file) == {}
