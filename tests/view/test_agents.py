"""Agents as lines: turns with their tools, long ones cut, hostile ones harmless; and changes in words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from hitl_tui.engine.log.events import ToolCalled
from hitl_tui.engine.log.outcomes import ModelUse, ToolUse
from hitl_tui.engine.log.records import LedgerEntry
from hitl_tui.engine.thread.agent_settings import AgentInfo
from hitl_tui.view.agents import (
    agent_lines,
    agent_rows,
    change_notes,
    change_words,
    entry_words,
    memory_words,
    turn_lines,
)
from hitl_tui.view.inside import call_lines, tool_line
from hitl_tui.view.spans import Line, plain_text
from tests.support.hostile import LINE

INFO = AgentInfo(
    "writer", "openai/x", "Be brief.", "", 0.5, ("temperature",), 2, 1_500, 20, None, (), None, True,
    ModelUse("writer", "openai", "x", 700, 8, 0.002), ("look",),
)  # fmt: skip


def words(lines: tuple[Line, ...]) -> str:
    return "\n".join(map(plain_text, lines))


def entry(data: Any, step: int = 1, kind: Any = "agent") -> LedgerEntry:
    return LedgerEntry("t", 1, kind, step, None, "ann", None, b"", data, 0, b"", b"")


def test_a_row_says_model_changes_and_use() -> None:
    assert plain_text(agent_rows([INFO])[0]) == (
        "writer  openai/x  changed: temperature  2 calls · 1.5k tok in, 20 tok out · cost unknown"
    )


def test_usage_is_shown_in_total_and_for_the_last_call() -> None:
    said = words(agent_lines(INFO))
    assert "in total     2 calls · 1.5k tok in, 20 tok out · cost unknown" in said
    assert "last call    700 tok in, 8 tok out · $0.0020" in said
    assert "temperature  changed 0.5" in said
    assert "tools        look" in said


def test_a_restore_says_what_happens_to_the_turns() -> None:
    assert "does not touch them" in memory_words(INFO)
    kept = memory_words(msgspec.structs.replace(INFO, history="log"))
    assert "channel log, part of the state" in kept


def test_turns_show_calls_and_what_they_gave() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"day": "monday"}'}}
    turns = [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "noon"},
    ]
    assert words(turn_lines(turns)) == (
        "1 user\n  When?\n\n2 assistant\n  calls look\n  {\n    "
        '"day": "monday"\n  }\n\n3 tool look gave\n  noon'
    )


def test_long_turns_are_cut_and_can_be_shown_whole() -> None:
    turns = [{"role": "user", "content": "x" * 5_000}] * 300
    short = words(turn_lines(turns))
    assert short.startswith("100 turns before these")
    assert "… 3,800 more characters" in short
    assert len(short) < 300_000
    assert "more characters" not in words(turn_lines(turns, whole=True))


@pytest.mark.parametrize(
    "turn",
    [
        {},
        {"role": 3, "content": {"a": 1}},
        {"role": "assistant", "content": None, "tool_calls": "no list"},
        {"role": "assistant", "tool_calls": [None, {"function": {}}, {"function": {"arguments": "{"}}]},
        {"role": "tool", "content": "x"},
    ],
    ids=["empty", "strange", "calls-are-text", "broken-calls", "no-call-id"],
)
def test_turns_of_any_shape_are_shown(turn: Any) -> None:
    assert words(turn_lines([turn])).startswith("1 ")


def test_hostile_turns_are_harmless() -> None:
    call = {"id": LINE, "function": {"name": LINE, "arguments": LINE}}
    turns = [{"role": LINE, "content": LINE, "tool_calls": [call]}, {"role": "tool", "tool_call_id": LINE}]
    said = words((*turn_lines(turns), *agent_lines(msgspec.structs.replace(INFO, instructions=LINE))))
    assert not set(said) & set("\x1b\x9b\u202e\u200b\x07")


def test_changes_are_described_in_words() -> None:
    assert change_words({"model": "a/b", "temperature": None}) == "model “a/b”, temperature as in the graph"
    assert entry_words(entry({"agent": "w", "was": {}, "is": {"model": "a/b"}})) == (
        "w: model the graph's → “a/b”"
    )
    assert entry_words(entry({"agent": "w", "was": {"temperature": 1}, "is": {}})) == (
        "w: temperature 1 → the graph's"
    )
    assert entry_words(entry({"agent": "w", "forgot": 1})) == "w forgot 1 turn"
    assert entry_words(entry(None, kind="fork")) == ""


def test_notes_are_those_between_two_steps() -> None:
    ledger = [entry({"agent": name, "forgot": 2}, step) for name, step in (("a", 0), ("b", 1), ("c", 2))]
    assert change_notes(ledger, 1) == ("then, by ann: b forgot 2 turns",)


def test_a_tools_line_has_the_arguments_as_they_were() -> None:
    call = ToolCalled("n", "w", "look", {"day": "monday", "deep": {"a": [1, None]}}, "noon", None, 300_000)
    assert tool_line(call) == 'tool look {"day": "monday", "deep": {"a": [1, null]}} -> “noon” (0.3 s)'
    failed = ToolCalled("n", "w", "look", "{no json", None, "timed out", 0)
    assert tool_line(failed) == "tool look {no json failed: timed out"


def test_a_stored_call_has_its_arguments_duration_and_outcome() -> None:
    done = ToolUse("writer", "look", {"day": "monday"}, "noon", duration=300_000)
    failed = ToolUse("writer", "look", "{no json", error="not JSON", attempt=2, path="scan[1]")
    assert [plain_text(line) for line in call_lines([done, failed])] == [
        "writer called look",
        '  {"day": "monday"}',
        "  → 0.3 s  “noon”",
        "scan[1] writer called look  attempt 2",
        "  {no json",
        "  → failed: not JSON",
    ]
