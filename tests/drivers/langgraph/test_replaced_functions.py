"""The private functions of LangGraph that are replaced are there, and are replaced in one module alone."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import hitl_tui
from hitl_tui.drivers.langgraph import replaced_functions
from hitl_tui.drivers.langgraph.replaced_functions import ALL, SCRATCHPAD, PrivateFunction, replace_function

PACKAGE = Path(hitl_tui.__file__).parent


@pytest.mark.parametrize("function", ALL, ids=lambda function: function.name)
def test_langgraph_still_has_each_private_function_that_is_replaced(function: PrivateFunction) -> None:
    place = f"{function.module}.{function.owner}".rstrip(".")
    assert function.owning_object() is not None, (
        f"this LangGraph has no {place}.{function.name}: {function.purpose}; "
        "find out what does its work now, and change replaced_functions.py and what uses it"
    )


def test_the_scratchpad_is_made_from_what_a_guard_reads() -> None:
    names = list(inspect.signature(SCRATCHPAD.owning_object()._scratchpad).parameters)
    assert names[:3] == ["parent_scratchpad", "pending_writes", "task_id"], (
        "drivers/langgraph/guard.py hands these on by their order"
    )
    # The fourth is what the ids of interrupts are made from: it has another name in LangGraph 1.0.
    assert names[3] in ("namespace_hash", "task_checkpoint_ns")


def test_a_function_is_replaced_once_and_one_that_is_gone_is_said_to_be() -> None:
    here = PrivateFunction(__name__, "", "_example", "")
    assert replace_function(here, lambda original: lambda: original() + 1)
    assert replace_function(here, lambda original: lambda: original() + 1)
    assert _example() == 2
    assert not replace_function(PrivateFunction(__name__, "", "_no_such", ""), lambda original: original)
    assert not replace_function(PrivateFunction(__name__, "NoClass", "x", ""), lambda original: original)


def _example() -> int:
    return 1


def test_no_other_module_replaces_anything_of_langgraph() -> None:
    own = Path(replaced_functions.__file__)
    assigns = re.compile(
        r"^\s*(?:setattr\(\s*)?(?:_algo|algo|_executor|_loop|PregelLoop|types)\b\.\w+ = ", re.M
    )
    others = [path for path in (PACKAGE / "drivers" / "langgraph").glob("*.py") if path != own]
    assert others
    assert [path.name for path in others if assigns.search(path.read_text())] == []
