"""The state in which a graph ends: run by LangGraph's own `ainvoke`, or here in each of our ways."""

from __future__ import annotations

import copy
import re
from typing import Any, Final

from langgraph.types import Command

from hitl_tui.cli.headless import run_on
from hitl_tui.config import load_settings
from hitl_tui.drivers.langgraph.hub import LangGraphHub
from hitl_tui.drivers.langgraph.pregel import saved_of
from hitl_tui.drivers.langgraph.values import as_json
from hitl_tui.engine.commands import Answer, Start
from hitl_tui.stores import open_store
from tests.drivers.langgraph.graphs_of_the_world import Case
from tests.support.watching import Watcher

WAYS: Final = ("step", "run", "headless")
_CONFIG: Final[Any] = {"configurable": {"thread_id": "t"}}
_ENDED: Final = ("completed", "failed", "cancelled")
_MADE_ID: Final = re.compile(r"^(lc_run-+|run-+)?[0-9a-f]{8}-[0-9a-f]{4}-")

End = tuple[Any, str]
"""The state, and how the run has ended."""


def comparable(value: Any) -> Any:
    """A state without what nothing was written to, and without ids that are made at random."""
    if isinstance(value, dict):
        kept = {name: comparable(held) for name, held in value.items() if held is not None}
        made = {"content", "type"} <= kept.keys() and _MADE_ID.match(str(kept.get("id", "")))
        return {name: held for name, held in kept.items() if not (made and name == "id")}
    return [comparable(item) for item in value] if isinstance(value, list) else value


async def by_langgraph(case: Case) -> End:
    """Run a case by `ainvoke`."""
    graph, status = case.build(), "completed"
    for given in copy.deepcopy(case.turns):
        step: Any = given
        while True:
            try:
                ended = await graph.ainvoke(step, _CONFIG)
            except Exception:  # what fails by LangGraph must fail here
                status = "failed"
                break
            state = await graph.aget_state(_CONFIG)
            # To the state of LangGraph 1.0 a node that asks a second time has finished; the run tells it.
            waits = ended.get("__interrupt__", ()) if isinstance(ended, dict) else ()
            if not state.next and not waits:
                break
            asked = {each.id: case.answer(each.value) for each in (waits or state.interrupts)}
            step = Command(resume=asked) if asked else None
    saved = saved_of(await graph.aget_state(_CONFIG), single=isinstance(graph.stream_channels_asis, str))
    return comparable(as_json(dict(saved.values if saved else {}))), status


async def by_us(case: Case, way: str) -> End:
    """Run a case here; the state is the one that is shown.

    Args:
        way: one of `WAYS`.
    """
    hub = LangGraphHub(case.build(), open_store("memory:"), name="graph", source={"graph": "app.py"})
    try:
        driver = await hub.begin("t", "ann")
        watcher, settings = await Watcher.open(driver), load_settings()
        for given in copy.deepcopy(case.turns):
            inputs = (await driver.snapshot()).graph.inputs
            entry = given if isinstance(given, dict) else {inputs[0].name: given}
            await driver.execute(Start(entry, unattended=way == "headless"))
            begins = True  # an unattended run may take its input only when it begins
            while (progress := (await driver.snapshot()).progress).status not in _ENDED or begins:
                begins = False
                for asked in progress.pending:
                    if not asked.breakpoint:
                        answer = case.answer(asked.payload)
                        await driver.execute(Answer(asked.id, answer, asked.step, "ann"))
                if way == "headless":
                    await run_on(driver, settings, as_json=True)
                else:
                    await (watcher.step() if way == "step" else watcher.run())
        return comparable(dict(await driver.state_at(progress.head))), progress.status
    finally:
        await hub.close()
