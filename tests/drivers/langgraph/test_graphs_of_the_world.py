"""Graphs as others write them end in the state in which LangGraph's own `ainvoke` ends them."""

from __future__ import annotations

import pytest

from tests.drivers.langgraph.final_states import WAYS, by_langgraph, by_us
from tests.drivers.langgraph.graphs_of_the_world import CASES


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
async def test_a_graph_ends_as_langgraph_ends_it(name: str) -> None:
    case = CASES[name]
    theirs = await by_langgraph(case)
    assert {way: await by_us(case, way) for way in WAYS} == dict.fromkeys(WAYS, theirs)
