"""What a node fails with, and what undoes it is given, show no private value in any output."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hitl_tui.cli.logs import log_path
from tests.support.commands import App
from tests.support.spec import spec

pytestmark = spec("8")

CANARY = bytes.fromhex("50524956434e41522d5a713831").decode()
GRAPH = f"""
import logging
from hitl_tui import END, START, Channel, MemoryCheckpointer, NodeResult, StateGraph
SECRET = bytes.fromhex("{CANARY.encode().hex()}").decode()
g = StateGraph({{"secret": Channel("", visibility="private"), "n": Channel(0)}}, name="p")
g.add_compensation("undo", lambda state, config, args: float(args["of"]))
g.add_node("book", lambda s: NodeResult({{"secret": SECRET}}, compensation=("undo", {{"of": SECRET}})))
def tell(state):
    print("it is", state["secret"])
    return {{"n": 1}}
g.add_node("tell", tell)
def fail(state):
    print("it is", state["secret"])
    logging.getLogger("a library").error("it is %s", state["secret"])
    return {{"n": float(state["secret"])}}
g.add_node("fail", fail)
g.add_edge(START, "book").add_edge("book", "tell").add_edge("tell", "fail").add_edge("fail", END)
graph = g.compile(checkpointer=MemoryCheckpointer())
"""
OUTPUTS = [
    (1, "run p.py --headless --thread t"),
    (1, "run p.py --headless --json --thread u"),
    (None, "resume t --headless --json"),
    (0, "show t"),
    (0, "show t --json"),
    (0, "log t"),
    (0, "log t --json"),
    (0, "threads"),
    (0, "threads --json"),
    (0, "export t -"),
    (0, "export t --format html -"),
    (0, "export t --format markdown -"),
    (0, "export t --format svg t.svg"),
    (0, "export t --format asciicast t.cast"),
    (0, "find t it"),
    (0, "find t convert"),
    (1, f"find t {CANARY}"),
    (0, "rollback t --dry-run"),
    (0, "rollback t --dry-run --json"),
    (None, "rollback t --yes"),
    (0, "show t --json"),
    (0, "verify t --strict"),
]


@pytest.mark.slow
def test_no_output_shows_the_private_text_of_a_failure(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.py").write_text(GRAPH)
    masked = 0
    for code, words in OUTPUTS:
        done = app(*words.split())
        assert CANARY not in done.out + done.err, words
        assert code in (None, done.code), f"{words}: {done}"
        masked += "[private: secret]" in done.out + done.err
    assert masked > 8
    for picture in ("t.svg", "t.cast"):
        assert CANARY not in Path(picture).read_text()
    for handler in logging.getLogger("hitl_tui").handlers:
        handler.flush()
    assert not log_path().exists() or CANARY not in log_path().read_text()
