"""What the ready-made workflows share: names that mean something else, and bounds."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_tui import GraphInvalid
from hitl_tui.workflows.parts import at_least, named


@pytest.mark.parametrize("name", ["DONE", "done", "Done", "start", "END"])
def test_a_name_that_means_something_else_is_refused_in_any_case(name: str) -> None:
    with pytest.raises(GraphInvalid, match=f"the name '{name}' means something else"):
        named({name: object()}, "workers", taken=("DONE",))


@pytest.mark.parametrize("value", [True, 0, 1.0, "1", None])
def test_a_bound_is_a_whole_number_and_no_flag(value: Any) -> None:
    with pytest.raises(GraphInvalid, match="give a whole number of at least 1"):
        at_least("max_rounds", value, 1)
