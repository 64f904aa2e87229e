"""The seconds in which a model's library is imported: the screen says what they are for, and counts them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.openai_server import Say, openai_server
from tests.support.program import APP
from tests.support.terminal import Terminal

GRAPH = """
import os
from hitl_tui import END, START, Agent, Channel, StateGraph
worker = Agent("worker", "openai/gpt-4o-mini", api_base=os.environ["BASE"], api_key="none")
async def write(state, config):
    return {"draft": await config.agents["worker"].achat("Write.")}
graph = (
    StateGraph({"draft": Channel("")}, name="writer").add_node("write", write)
    .add_edge(START, "write").add_edge("write", END).compile(agents={"worker": worker})
)
"""

# It stands before litellm itself, which is imported once the other end of a pipe was opened.
HELD_UP = """
import os, sys
from pathlib import Path

open(os.environ["GATE"]).close()
sys.path.remove(str(Path(__file__).parent))
del sys.modules["litellm"]
import litellm
"""


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
def test_a_slow_import_is_named_with_its_seconds_until_it_is_done(
    size: tuple[int, int], tmp_path: Path
) -> None:
    (tmp_path / "writer.py").write_text(GRAPH)
    early = tmp_path / "early"
    early.mkdir()
    (early / "litellm.py").write_text(HELD_UP)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with openai_server() as server:
        server.plan(Say("All is well."))
        env = {"BASE": server.api_base, "GATE": str(gate), "PYTHONPATH": str(early)}
        argv = [*APP, "run", "writer.py", "--thread", "m"]
        with Terminal(argv, cwd=tmp_path, env=env, size=size) as terminal:

            def seconds() -> float:
                header = terminal.text().partition("\n")[0]
                waited = re.search(r"waits for litellm.* · (\d+\.\d) s +step 0", header)
                return float(waited[1]) if waited else 0.0

            terminal.wait_for("READY")
            terminal.press("s")
            terminal.wait_until(lambda: seconds() > 0, "seconds beside what is waited for")
            before = seconds()
            terminal.wait_until(lambda: seconds() >= before + 1, "another second of it")
            assert not server.requests
            gate.write_text("")
            terminal.wait_for("All is well.")
            terminal.wait_gone("waits for litellm")
