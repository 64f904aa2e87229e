"""The threads of subgraphs on the command line: they travel with their parent, and are listed below it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import App
from tests.support.program import APP
from tests.support.spec import spec

pytestmark = spec("7")


@pytest.fixture
def desk(app: App) -> App:
    """The command line with a thread `d` that waits for `d/editor#1` inside it."""
    app.expect(3, "run", "desk", "--headless", "--thread", "d")
    return app


@pytest.mark.slow
def test_subgraph_threads_are_exported_through_a_pipe_and_verified(desk: App, tmp_path: Path) -> None:
    other = f"files:{tmp_path / 'other'}"
    importing = [*APP, "import", "-", "--thread", "new", "--store", other]
    with subprocess.Popen([*APP, "export", "d"], stdout=subprocess.PIPE, env=os.environ) as exporting:
        done = subprocess.run(importing, stdin=exporting.stdout, capture_output=True, text=True, check=True)
    assert exporting.returncode == 0
    assert done.stdout == "imported 'new' with 1 thread inside it\n"
    assert "those of 1 thread inside it among them" in desk.expect(0, "verify", "new", "--store", other).out
    strict = ["--strict", "--graph", "desk", "--store", other, "--json"]
    found = desk.expect(0, "verify", "new", *strict).document
    assert (found["ok"], found["threads"], found["missing"]) == (True, ["new/editor#1"], [])
    shown = desk.expect(0, "show", "new", "--store", other, "--json").document["standing"]
    assert shown["pending"][0]["thread"] == "new/editor#1"


@pytest.mark.slow
def test_an_export_lists_its_subgraph_threads_and_alone_leaves_them_out(desk: App, tmp_path: Path) -> None:
    whole, alone = tmp_path / "whole.jsonl", tmp_path / "alone.jsonl"
    assert desk.expect(0, "export", "d", str(whole), "--json").document["threads"] == ["d/editor#1"]
    assert (
        "those of 1 thread inside it among them" in desk.expect(0, "export", "d", str(whole), "--force").out
    )
    assert "inside" not in desk.expect(0, "export", "d", str(alone), "--alone").out
    desk.expect(0, "import", str(whole), "--thread", "whole")
    desk.expect(0, "import", str(alone), "--thread", "alone")
    output = desk.expect(1, "verify", "alone").out
    assert output.startswith("gap: alone/editor#1 ran inside it and is not in this store\n1 finding: ")
    assert desk.expect(1, "verify", "alone", "--json").document["missing"] == ["alone/editor#1"]


def test_the_list_counts_subgraph_threads_and_shows_them_on_request(desk: App) -> None:
    desk.expect(3, "run", "review", "--headless", "--input", "task=Hills", "--thread", "r")
    names = [line.split("  ")[0] for line in desk.expect(0, "threads").out.splitlines()]
    assert names == ["THREAD", "r", "d (+1 inside)"]
    output = desk.expect(0, "threads", "--inside").out.splitlines()
    assert [line.rstrip()[:12].rstrip() for line in output] == ["THREAD", "r", "d", "  d/editor#1"]
    assert len(desk.expect(0, "threads", "--inside", "--limit", "2").out.splitlines()) == 3
    assert "d/editor#1  inside d" in desk.expect(0, "threads", "editor").out


def test_the_json_list_names_the_parent_of_each_subgraph_thread(desk: App) -> None:
    def listed(*arguments: str) -> list[tuple[str, object, object]]:
        found = desk.expect(0, "threads", *arguments, "--json").document["threads"]
        return [(one["thread"], one["owner"], one["inside"]) for one in found]

    owner = {"thread": "d", "node": "editor"}
    assert listed() == [("d", None, 1)]
    assert listed("--inside") == [("d", None, 1), ("d/editor#1", owner, 0)]
    assert listed("edi") == [("d/editor#1", owner, None)]


def test_a_thread_inside_is_shown_without_a_command_of_lines(desk: App) -> None:
    shown = desk.expect(0, "show", "d").out
    assert "Inside editor: thread d/editor#1." in shown
    assert "opens it" not in shown
