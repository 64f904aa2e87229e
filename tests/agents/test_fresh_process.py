"""What only a fresh process shows: what is imported, and what reaches the terminal."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.openai_server import Cut, OpenAIServer, Refuse, Say

pytestmark = pytest.mark.integration


def run(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *args],
        capture_output=True, text=True, timeout=100, check=False, env=dict(os.environ),
    )  # fmt: skip


def test_a_demo_model_needs_neither_litellm_nor_a_screen() -> None:
    done = run(
        "import sys\n"
        "from hitl_tui.agents import Agent, ScriptedModel\n"
        "print(Agent('a', ScriptedModel(['hello'], pace=0)).chat('hi'))\n"
        "next(Agent('b', 'demo/advisor').stream('hi'))\n"
        "Agent('c', 'openai/test')\n"
        "print([m for m in ('litellm', 'textual', 'rich', 'openai', 'httpx') if m in sys.modules])"
    )
    assert (done.stdout.split("\n"), done.stderr) == (["hello", "[]", ""], "")


def test_importing_the_package_loads_no_agent() -> None:
    done = run(
        "import sys, hitl_tui.agents\nprint('hitl_tui.agents.agent' in sys.modules, dir(hitl_tui.agents))"
    )
    assert done.stdout.strip().startswith("False ['Agent', 'Cassette'")


def test_objects_of_litellm_are_frozen_for_the_garbage_collector() -> None:
    done = run(
        "import gc\n"
        "from hitl_tui.agents.litellm_backend import preload\n"
        "preload().result()\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 100_000)"
    )
    assert done.stdout.strip() == "True True"


def test_nothing_of_litellm_reaches_the_terminal(server: OpenAIServer) -> None:
    server.plan(
        Say(), Refuse(401, "no"), Refuse(500, "no", {"retry-after": "0"}), Say(), Cut(), Say(usage=None)
    )
    done = run(
        "import sys, os\n"
        "from hitl_tui.agents import Agent\n"
        "from hitl_tui.errors import ModelFailed\n"
        "agent = Agent('a', 'openai/test', api_base=sys.argv[1], api_key='k')\n"
        "lost = Agent('b', 'nowhere/test')\n"
        "for each in (agent, agent, agent, agent, agent, lost):\n"
        "    try:\n"
        "        each.chat('hi')\n"
        "    except ModelFailed:\n"
        "        pass\n"
        "assert len(agent.turns) == 6, agent.turns\n"
        "assert os.environ['LITELLM_LOCAL_MODEL_COST_MAP'] == 'True'\n",
        server.api_base,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_litellm_is_imported_off_the_event_loop_and_fetches_no_prices(
    server: OpenAIServer,
) -> None:
    done = run(
        "import asyncio, sys, threading\n"
        "from hitl_tui.agents import Agent\n"
        "importing, called = set(), set()\n"
        "class Watch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'litellm':\n"
        "            importing.add(threading.current_thread() is threading.main_thread())\n"
        "def hear(event, args):\n"
        "    if event == 'socket.getaddrinfo':\n"
        "        called.add(args[0])\n"
        "    elif event == 'socket.connect' and isinstance(args[1], tuple):\n"
        "        called.add(args[1][0])\n"
        "sys.meta_path.insert(0, Watch())\n"
        "sys.addaudithook(hear)\n"
        "agent = Agent('a', 'openai/gpt-4o', api_base=sys.argv[1], api_key='k')\n"
        "asyncio.run(agent.achat('hi'))\n"
        "print(importing, called, agent.cost.total > 0)",
        server.api_base,
    )
    assert (done.stdout.strip(), done.stderr) == ("{False} {'127.0.0.1'} True", "")
