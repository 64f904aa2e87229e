"""Models that refuse, hang or are not there: who, why and how to mend it, and a way on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.openai_server import Hang, Refuse, openai_server
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
            assert "nothing of it was committed" in " ".join(terminal.text().split())
