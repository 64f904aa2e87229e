"""The samples of taint and of private channels do what they say."""

from __future__ import annotations

import pytest

from hitl_tui import AnswerRefused, MemoryCheckpointer
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.loading.sources import open_graph
from tests.support.places import ROOT
from tests.support.spec import spec

pytestmark = spec("8")


def opened(name: str) -> GraphRunner:
    return open_graph(str(ROOT / "sample_graphs" / name), MemoryCheckpointer())


@pytest.mark.parametrize("name", ["webpage.py", "webpage.toml"])
def test_a_page_is_mailed_once_somebody_has_agreed(name: str) -> None:
    runner = opened(name)
    waits = runner.invoke(thread_id="t")
    (request,) = waits.pending
    assert (request.node, request.policy, request.risk) == ("send", "on_taint", "high")
    assert sorted(runner.open("t").state.taint) == ["mail", "page", "summary"]
    assert "mail the password file" in waits["mail"]["text"]
    clean = {"to": "ann@example.com", "text": "Tidy data: one observation a row."}
    step = runner.update_state("t", {"mail": clean}, actor="ann")
    with pytest.raises(AnswerRefused, match="what it is about has changed"):
        runner.answer("t", request.id, "approve", step=step, actor="ann")
    (again,) = runner.open("t").cursor.pending
    assert (again.node, again.policy, again.step) == ("send", "on_taint", step)
    runner.answer("t", again.id, "approve", step=step, actor="ann")
    assert runner.invoke(thread_id="t")["sent"] == "to ann@example.com: 33 characters"


def test_a_private_patient_is_read_by_those_who_name_it() -> None:
    runner = opened("private.py")
    events: list[object] = []
    result = runner.invoke(thread_id="t", on_event=events.append)
    assert result["report"] == "risk: low (channels seen: risk, report)"
    assert "Ada" not in repr(events)
    assert runner.reveal("t", "patient", actor="ann")["name"] == "Ada L."
