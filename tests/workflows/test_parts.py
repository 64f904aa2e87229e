"""What the ready-made workflows share: names that mean something else, and bounds."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import (
    GraphInvalid,
    advisor_workflow,
    debate_workflow,
    planner_workflow,
    sequential_workflow,
    supervisor_workflow,
)
from hitl_tui.workflows.parts import agents_by_name, at_least, check_human
from tests.support.spec import spec

pytestmark = spec("15")


@pytest.mark.parametrize("name", ["DONE", "done", "Done", "start", "END"])
def test_a_name_that_means_something_else_is_refused_in_any_case(name: str) -> None:
    with pytest.raises(GraphInvalid, match=f"the name '{name}' means something else"):
        agents_by_name({name: object()}, "workers", taken=("DONE",))


@pytest.mark.parametrize("value", [True, 0, 1.0, "1", None])
def test_a_bound_is_a_whole_number_and_no_flag(value: Any) -> None:
    with pytest.raises(GraphInvalid, match="give a whole number of at least 1"):
        at_least("max_rounds", value, 1)


SPEAKER = {"one": object()}
WORKFLOWS: dict[str, Any] = {
    "sequential": lambda human: sequential_workflow(SPEAKER, human=human),
    "supervisor": lambda human: supervisor_workflow(object(), SPEAKER, human=human),
    "debate": lambda human: debate_workflow(SPEAKER, human=human),
    "advisor": lambda human: advisor_workflow(object(), object(), human=human),
    "planner": lambda human: planner_workflow(object(), SPEAKER, human=human),
}


@pytest.mark.parametrize("human", ["verdikt", True, ""], ids=repr)
@pytest.mark.parametrize("build", WORKFLOWS.values(), ids=WORKFLOWS)
def test_a_person_is_never_left_out_by_a_wrong_word(build: Any, human: Any) -> None:
    with pytest.raises(GraphInvalid, match="is not a place where a person decides") as caught:
        build(human)
    assert "give human=" in caught.value.hint


def test_a_known_word_is_taken() -> None:
    check_human(None, "plan")
    check_human("plan", "plan", "both")
