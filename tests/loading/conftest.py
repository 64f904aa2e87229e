from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import GraphRunner, ScriptedModel
from hitl_tui.loading.graphs import load_graph

LoadFile = Callable[..., GraphRunner]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted models that write without pauses."""
    monkeypatch.setitem(ScriptedModel.__init__.__kwdefaults__, "pace", 0.0)


@pytest.fixture
def load_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: None) -> LoadFile:
    """Writes a text to mine.toml in the current directory and loads it."""
    monkeypatch.chdir(tmp_path)

    def build(text: str, options: dict[str, Any] | None = None, **defaults: Any) -> GraphRunner:
        Path("mine.toml").write_text(text, encoding="utf-8")
        graph = load_graph("mine.toml", options, defaults).graph
        assert isinstance(graph, GraphRunner)
        return graph

    return build
