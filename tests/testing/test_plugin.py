"""The pytest plugin: it costs nothing where nobody uses it, and its fixtures do what they say."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest
from hitl_tui import Agent, ToolCall, END, START, Channel, StateGraph
from hitl_tui.testing import ToolResult


def search(query: str) -> str:
    "Search."
    raise AssertionError("it is not called")


def agent():
    return Agent("bot", "openai/none", tools=[search])


def test_a_script_answers_whatever_model_an_agent_has(hitl_script):
    hitl_script({"bot": [ToolCall("search", {"query": "x"}), "Done."]}, {"search": ["rows"]})
    bot = agent()
    assert bot.chat("go") == "Done."
    assert "rows" in str(bot.turns)


def test_a_tool_may_fail(hitl_script):
    down = ToolResult(error="down")
    hitl_script({"bot": [ToolCall("search", {"query": "x"}), "Sorry."]}, {"search": [down]})
    bot = agent()
    assert bot.chat("go") == "Sorry."
    assert "Error: down" in str(bot.turns)


def test_an_unused_reply_fails_the_test(hitl_script):
    hitl_script({"bot": ["one", "two"]})
    assert agent().chat("go") == "one"


def test_a_store_is_empty(hitl_store):
    graph = StateGraph({"n": Channel(0)}).add_node("a", lambda s: {"n": 1})
    graph.add_edge(START, "a").add_edge("a", END).compile(checkpointer=hitl_store).invoke(thread_id="t")
    assert hitl_store.list_threads() == ["t"]


def test_a_cassette(hitl_cassette):
    from hitl_tui import ScriptedModel
    assert Agent("bot", ScriptedModel(["recorded"], pace=0, name="a/b")).chat("go") == "recorded"
    assert hitl_cassette.path.name == "test_a_cassette.jsonl"
"""


@pytest.mark.integration
def test_its_fixtures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TESTS)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--hitl-record")
    done.assert_outcomes(passed=5, errors=1)
    done.stdout.fnmatch_lines(["*nobody asked for what the script still has: {'bot': 1}*"])
    again = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-k", "cassette")
    again.assert_outcomes(passed=1, deselected=4)


@pytest.mark.slow
def test_loading_it_imports_nothing_of_ours_but_the_package() -> None:
    code = (
        "import sys, hitl_tui.testing.plugin; "
        "ours = {name for name in sys.modules if name.startswith('hitl_tui')}; "
        "print(sorted(ours - {'hitl_tui', 'hitl_tui.testing', 'hitl_tui.testing.plugin'}), "
        "'litellm' in sys.modules, 'textual' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] False False\n"
