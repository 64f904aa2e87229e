"""Models that refuse, hang or do not exist: which one, why, how to fix it, and what to do next."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.openai_server import Hang, Refuse, Say, openai_server
from tests.support.program import ADVISOR, APP, call
from tests.support.terminal import Terminal

MODEL = ("--model", "openai/gpt-4o-mini", "--input", "task=x", "--headless", "--thread", "m")


@pytest.mark.parametrize("trouble", ["no key", "refused", "no server"])
def test_a_model_that_does_not_answer(trouble: str, tmp_path: Path) -> None:
    keys = {"OPENAI_API_KEY": "" if trouble == "no key" else "sk-wrong"}
    with openai_server() as server:
        server.plan(*[Refuse(401, "Incorrect API key provided: sk-wrong")] * 4)
        address = {"refused": server.api_base, "no server": "http://127.0.0.1:9"}.get(trouble)
        base = ("--api-base", address) if address else ()
        done = call("run", ADVISOR, *MODEL, *base, cwd=tmp_path, **keys)
    assert done.returncode in (1, 2)
    said = done.stderr + done.stdout
    words = {"no key": "OPENAI_API_KEY", "refused": "key", "no server": "openai"}
    assert words[trouble] in said
    assert "sk-wrong" not in said
    assert "Traceback" not in said
    assert call("show", "m", cwd=tmp_path).returncode in (0, 2)


def test_a_model_that_hangs_can_be_left(tmp_path: Path) -> None:
    with openai_server() as server:
        server.plan(Hang(), Hang(), Hang(), Hang())
        argv = [*APP, "run", ADVISOR, "--model", "openai/gpt-4o-mini", "--api-base", server.api_base]
        with Terminal(
            [*argv, "--input", "task=x", "--thread", "m"], cwd=tmp_path, env={"OPENAI_API_KEY": "sk-x"}
        ) as terminal:
            terminal.wait_for("worker is next")
            terminal.press("s")
            terminal.wait_for("worker · ")
            os.kill(terminal.pid, signal.SIGTERM)
            assert terminal.wait_exit() == 128 + signal.SIGTERM
            assert "nothing of it was saved" in " ".join(terminal.text().split())


GRAPH = """
import os
from hitl_tui import END, START, Agent, Channel, StateGraph
worker = Agent("worker", "openai/gpt-4o-mini", timeout=1, num_retries=0, api_base=os.environ["BASE"])
async def write(state, config):
    return {"draft": await config.agents["worker"].achat("Write.")}
graph = (
    StateGraph({"draft": Channel("")}, name="writer").add_node("write", write)
    .add_edge(START, "write").add_edge("write", END).compile(agents={"worker": worker})
)
"""


WIDE, NARROW = (120, 40), (80, 24)


@pytest.mark.parametrize(
    ("answer", "reason", "fix", "size"),
    [
        (Hang(), "no answer in time", "pass a longer timeout", NARROW),
        (Refuse(401, "Incorrect API key"), "the API key was refused", "check api_key", WIDE),
        (Refuse(404, "no such model"), "no such model or address", "check the model's name", NARROW),
    ],
    ids=["hangs", "refuses", "unknown"],
)
def test_the_banner_names_the_failed_model_and_how_to_fix_it_and_a_retry_works(
    answer: Hang | Refuse, reason: str, fix: str, size: tuple[int, int], tmp_path: Path
) -> None:
    (tmp_path / "writer.py").write_text(GRAPH)
    with openai_server() as server:
        server.plan(answer, Say("All is well."))
        env = {"OPENAI_API_KEY": "sk-x", "BASE": server.api_base}
        with Terminal(
            [*APP, "run", "writer.py", "--thread", "m"], cwd=tmp_path, env=env, size=size
        ) as terminal:
            terminal.wait_for("READY")
            terminal.press("s")
            terminal.wait_for_words(
                "FAILED", f"write failed: openai/gpt-4o-mini: {reason}", fix, "s try again"
            )
            terminal.press("s")
            terminal.wait_for("DONE")
            terminal.wait_for("All is well.")
            terminal.press("q")
            assert terminal.wait_exit() == 0
