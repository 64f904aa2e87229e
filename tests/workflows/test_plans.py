"""From a planner's words to steps, and what is said where they are none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui import HitlError
from hitl_tui.workflows.planner import parse_lines, plan_text, read_plan
from tests.support.spec import spec

pytestmark = spec("15")

WORKERS = ("researcher", "writer")


def step(worker: str, instruction: str) -> dict[str, str]:
    return {"worker": worker, "instruction": instruction}


@pytest.mark.parametrize(
    ("line", "instruction"),
    [
        ("writer: Write it.", "Write it."),
        ("writer:Write it.", "Write it."),
        ("  writer :  Write it.  ", "Write it."),
        ("1. writer: Write it.", "Write it."),
        ("1.writer: Write it.", "Write it."),
        ("12) writer: Write it.", "Write it."),
        ("(3) writer: Write it.", "Write it."),
        ("- writer: Write it.", "Write it."),
        ("* writer: Write it.", "Write it."),
        ("• writer: Write it.", "Write it."),
        ("  - 2. writer: Write it.", "Write it."),
        ("Writer: Write it.", "Write it."),
        ("writer: Write: one, two: three", "Write: one, two: three"),
        ("writer: 1. Write it.", "1. Write it."),
        ("writer: - a dash", "- a dash"),
    ],
    ids=["plain", "no blank", "many blanks", "a number", "a number without a blank", "a number and a bracket",
         "a number in brackets", "a dash", "a star", "a bullet", "a dash and a number", "a capital",
         "colons in the instruction", "a number in the instruction", "a dash in the instruction"],
)  # fmt: skip
def test_a_line_is_a_step(line: str, instruction: str) -> None:
    assert parse_lines(line, WORKERS) == [step("writer", instruction)]


def test_blank_lines_are_skipped_and_the_order_is_kept() -> None:
    text = "\n1. researcher: Find it.\n\n   \n2. writer: Write it.\n\n"
    assert parse_lines(text, WORKERS) == [step("researcher", "Find it."), step("writer", "Write it.")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("writer: a\nHere is my plan\nwriter: b", "line 2 of the plan, 'Here is my plan', has no colon"),
        ("Plan:", "line 1 of the plan, 'Plan:', has no instruction"),
        ("\n\nwriter:   ", "line 3 of the plan, 'writer:', has no instruction"),
        ("1. editor: b", "line 1 of the plan, '1. editor: b': there is no worker 'editor'"),
        ("**writer**: b", "line 1 of the plan, '**writer**: b': there is no worker '**writer**'"),
        ("underwriter: b", "line 1 of the plan, 'underwriter: b': there is no worker 'underwriter'"),
        ("writer, researcher: b", "line 1 of the plan, 'writer, researcher: b': there is no"),
        (": b", "line 1 of the plan, ': b': there is no worker ''"),
        ("", "the plan has no step"),
        ("\n \n", "the plan has no step"),
        ("writer: a\n" * 4, "the plan has 4 steps, max_steps is 3"),
        ("x" * 500, f"line 1 of the plan, '{'x' * 120}…', has no colon"),
        ([step("editor", "b")], "step 1 of the plan, \"{'worker': 'editor', 'instruction': 'b'}\": there"),
        ([step("writer", "a"), "writer: b"], "step 2 of the plan, 'writer: b', is not a step"),
        ([{"worker": "writer"}], "step 1 of the plan, \"{'worker': 'writer'}\", is not a step"),
        ([], "the plan has no step"),
        (None, "step 1 of the plan, 'None', is not a step"),
    ],
    ids=["a preface", "a heading", "no instruction", "an unknown worker", "a worker in bold",
         "a worker's name inside a word", "two workers", "no worker",
         "nothing", "blank lines alone", "more than max_steps", "an endless line", "a step for nobody",
         "a text among the steps", "a step without instruction", "no steps", "null"],
)  # fmt: skip
def test_an_invalid_plan_is_quoted(text: Any, message: str) -> None:
    with pytest.raises(HitlError) as caught:
        read_plan(text, WORKERS, 3)
    assert caught.value.message.startswith(message)
    assert caught.value.hint
    assert caught.value.channel == "plan"


@given(st.lists(st.tuples(st.sampled_from(WORKERS), st.text("abc: -1.)", min_size=1).filter(str.strip))))
def test_a_plan_survives_being_shown_and_read_again(steps: list[tuple[str, str]]) -> None:
    plan = [step(worker, instruction.strip()) for worker, instruction in steps]
    assert parse_lines(plan_text(plan), WORKERS) == plan


class TestAnOwnParser:
    def test_its_steps_are_checked_like_others(self) -> None:
        assert read_plan("x", WORKERS, 3, lambda text: [step("writer", text)]) == [step("writer", "x")]
        with pytest.raises(HitlError, match="no worker 'cook'"):
            read_plan("x", WORKERS, 3, lambda text: [step("cook", text)])

    def test_an_error_of_a_parser_is_reported_with_the_plan(self) -> None:
        import json

        with pytest.raises(
            HitlError, match=r"loads can't read the plan 'no JSON': JSONDecodeError"
        ) as caught:
            read_plan("no JSON", WORKERS, 3, json.loads)
        assert caught.value.channel == "plan"
