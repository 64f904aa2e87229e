"""`taint`, `declassify`, `reveal`: what is tainted and why, and what a human answers for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.places import SAMPLES
from tests.support.spec import spec

pytestmark = spec("8")

POLICY = """
from hitl_tui import END, START, Channel, MemoryCheckpointer, StateGraph
graph = StateGraph({"page": Channel(""), "sent": Channel("")}, name="policy")
graph.add_node("fetch", lambda state: {"page": "hello"}, external="web")
graph.add_node("send", lambda state: {"sent": state["page"]}, on_taint="%s")
graph = graph.add_edge(START, "fetch").add_edge("fetch", "send").add_edge("send", END)
graph = graph.compile(checkpointer=MemoryCheckpointer())
"""


@pytest.fixture
def mail(app: App) -> App:
    """The command line with a thread `w` that waits at step 3 to mail what a page says."""
    app.expect(3, "run", str(SAMPLES / "webpage.py"), "--headless", "--thread", "w")
    return app


@pytest.fixture
def patient(app: App) -> App:
    """The command line with a thread `p` that has a private channel."""
    app.expect(0, "run", str(SAMPLES / "private.py"), "--headless", "--thread", "p")
    return app


def test_taint_lists_each_tainted_channel_with_its_lineage(mail: App) -> None:
    out = mail.expect(0, "taint", "w").out
    assert "mail  from web, since step 3 by write" in out
    assert "step 1  fetch wrote page from web" in out
    assert "step 2  summarise wrote summary through page" in out


def test_taint_of_one_channel_and_of_an_earlier_step(mail: App) -> None:
    assert "mail" not in mail.expect(0, "taint", "w", "page").out
    assert "mail is not tainted" in mail.expect(0, "taint", "w@2", "mail").out
    assert "no channel is tainted" in mail.expect(0, "taint", "w@0").out
    assert "did you mean 'page'?" in mail.expect(2, "taint", "w", "paeg").err


def test_taint_as_data(mail: App) -> None:
    (row,) = mail.expect(0, "taint", "w", "summary", "--json").document["channels"]
    assert {name: row[name] for name in ("channel", "since", "node", "sources")} == {
        "channel": "summary",
        "since": 2,
        "node": "summarise",
        "sources": ["web"],
    }
    assert [(way["step"], way["channel"], way["sources"], way["channels"]) for way in row["lineage"]] == [
        (1, "page", ["web"], []),
        (2, "summary", [], ["page"]),
    ]


def test_show_and_its_data_mark_what_is_tainted(mail: App) -> None:
    assert "page, tainted:" in mail.expect(0, "show", "w").out
    document = mail.expect(0, "show", "w", "--json").document
    assert [one["channel"] for one in document["checkpoint"]["tainted"]] == ["page", "summary", "mail"]
    assert document["checkpoint"]["read"] == ["reader", "summary"]
    (update,) = document["updates"]
    assert update["tainted"]
    assert update["lineage"] == {"sources": [], "channels": ["summary"], "cleared": False}
    assert document["standing"]["pending"][0]["policy"] == "on_taint"


@pytest.mark.slow
def test_declassify_clears_one_channel_with_name_and_reason(mail: App) -> None:
    mail.expect(0, "declassify", "w", "mail", "--reason", "read it", "--as", "ann")
    assert "mail is not tainted" in mail.expect(0, "taint", "w", "mail").out
    decision = mail.expect(0, "log", "w", "--json").document["decisions"][-2]
    assert (decision["decision"], decision["actor"], decision["note"]) == ("declassify", "ann", "read it")
    assert mail.expect(0, "resume", "w", "--json").document["status"] == "completed"
    mail.expect(0, "verify", "w", "--strict")


@pytest.mark.slow
def test_declassify_refuses_a_missing_reason_an_untainted_channel_and_a_stale_step(mail: App) -> None:
    assert "--reason" in mail.expect(2, "declassify", "w", "mail").err
    assert "needs a reason" in mail.expect(2, "declassify", "w", "mail", "--reason", " ").err
    assert "is not tainted" in mail.expect(2, "declassify", "w", "sent", "--reason", "x").err
    stale = mail.expect(4, "declassify", "w", "mail", "--reason", "x", "--expected-step", "1")
    assert "is at step 3" in stale.err


def test_approving_untrusted_data_requires_yes_and_continues(mail: App) -> None:
    assert "--yes" in mail.expect(2, "approve", "w").err
    assert mail.expect(0, "approve", "w", "--yes", "--run", "--json").document["status"] == "completed"


@pytest.mark.slow
def test_reveal_shows_a_private_value_and_is_written_down(patient: App) -> None:
    for arguments in (("show", "p"), ("show", "p", "--json"), ("show", "p", "--channel", "patient")):
        assert "Ada" not in patient.expect(0, *arguments).out
    assert "Ada L." in patient.expect(0, "reveal", "p", "patient", "--as", "ann").out
    document = patient.expect(0, "reveal", "p@1", "patient", "--json", "--as", "bob").document
    assert (document["step"], document["value"]) == (1, {"age": 36, "name": "Ada L."})
    seen = [
        (one["decision"], one["actor"], one["step"], one["data"])
        for one in patient.expect(0, "log", "p", "--json").document["decisions"]
    ]
    assert seen == [
        ("reveal", "ann", 3, {"channel": "patient"}),
        ("reveal", "bob", 1, {"channel": "patient"}),
    ]
    assert "did you mean 'patient'?" in patient.expect(2, "reveal", "p", "pateint").err


def test_an_export_leaves_private_values_out_and_one_with_them_is_written_down(
    patient: App, tmp_path: Path
) -> None:
    public, whole = tmp_path / "public.jsonl", tmp_path / "whole.jsonl"
    patient.expect(0, "export", "p", str(public), "--as", "ann")
    patient.expect(0, "export", "p", str(whole), "--private", "--as", "bob")
    assert "already" in patient.expect(2, "export", "p", str(whole), "--private", "--as", "eve").err
    assert "Ada L." not in public.read_text()
    assert "Ada L." in whole.read_text()
    taken = [
        (one["decision"], one["actor"], one["note"], one["data"])
        for one in patient.expect(0, "log", "p", "--json").document["decisions"]
    ]
    assert taken == [("export", "bob", str(whole), {"channels": ["patient"]})]
    assert patient.expect(0, "verify", "p", "--strict", "--json").document["ok"] is True


def test_graph_shows_the_contract_of_each_node(app: App) -> None:
    out = app.expect(0, "graph", str(SAMPLES / "webpage.py")).out
    assert "approve: a human must agree first" in out
    nodes = app.expect(0, "graph", str(SAMPLES / "webpage.py"), "--json").document["nodes"]
    contracts = {node["name"]: (node["external"], node["on_taint"], node["reads"]) for node in nodes}
    assert contracts["fetch"] == ("web", "allow", [])
    assert contracts["send"] == (None, "approve", ["mail"])


@pytest.mark.slow
def test_a_node_that_warns_runs_and_says_so_in_words_in_data_and_in_the_log(app: App, tmp_path: Path) -> None:
    (tmp_path / "warns.py").write_text(POLICY % "warn")
    run = ["run", str(tmp_path / "warns.py"), "--headless", "--thread"]
    words = app.expect(0, *run, "a").out
    assert "Warning: send may read untrusted data:" in words
    assert "page  from web, since step 1 by fetch" in words
    result = [one for one in app.expect(0, *run, "b", "--json").documents if one.get("event") == "taint_read"]
    assert [(one["node"], [taint["channel"] for taint in one["tainted"]]) for one in result] == [
        ("send", ["page"])
    ]
    for thread in ("a", "b"):
        (decision,) = app.expect(0, "log", thread, "--json").document["decisions"]
        assert (decision["decision"], decision["note"]) == ("taint", "page (web, since step 1, fetch)")


@pytest.mark.slow
def test_a_node_that_blocks_fails_the_run_until_it_is_declassified(app: App, tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text(POLICY % "block")
    failed = app.expect(1, "run", str(tmp_path / "blocks.py"), "--headless", "--thread", "t")
    assert "Failed at step 1" in failed.out
    assert "'send' was not run" in failed.out + failed.err
    app.expect(0, "declassify", "t", "page", "--reason", "read it", "--as", "ann")
    assert app.expect(0, "resume", "t", "--headless", "--json").document["state"]["sent"] == "hello"
