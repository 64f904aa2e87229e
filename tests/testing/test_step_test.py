"""`hitl-tui test`: a pytest of a recorded step, which passes as made and fails when the node is changed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import HitlError, open_store
from hitl_tui.config import default_store
from tests.support.commands import App

FLOW = '''
from hitl_tui import END, START, Agent, Channel, MemoryCheckpointer, RetryPolicy, ScriptedModel, StateGraph
from hitl_tui import ToolCall, ToolConfig


def search(query: str) -> str:
    """Search."""
    return f"rows for {query}"


def save(text: str, config: ToolConfig) -> str:
    """Save."""
    config.update({"notes": text})
    return "saved"


CALLS = [ToolCall("search", {"query": 'a "b"'}), ToolCall("save", {"text": "found"})]
SAID = [["Let me see. ", *CALLS], "It is\\nso \\u202e\\"\\"\\".", "again"]


def plain(state):
    return {"draft": f"{state['task']}!", "total": 0.5, "items": [{"path": "a", "size": 3}, None]}


def work(state, config):
    said = config.agents["bot"].chat(state["task"])
    return {"draft": f"{config.context['tenant']}: {said}", "n": 1}


def way(state, config):
    return "again" if state["n"] < config.context["rounds"] else "done"


def hush(state):
    return {"draft": state["secret"][::-1]}


def fail(state):
    raise ValueError(f"no {state['draft'].split()[0]}!")


def ask(state, config):
    return {"draft": config.interrupt("What?")}


def build():
    channels = {
        "task": Channel("Go"),
        "draft": Channel("", schema=str),
        "total": Channel(0.0, reducer="sum", schema=float),
        "items": Channel([], reducer="overwrite"),
        "n": Channel(0, reducer="sum"),
        "notes": Channel([], reducer="append"),
        "secret": Channel("", visibility="private"),
    }
    graph = StateGraph(channels, name="flow")
    graph.add_node("plain", plain, reads=["task"])
    graph.add_node("work", work, reads=["task"])
    graph.add_node("hush", hush)
    graph.add_map("each", over="items", node=lambda s: None)
    graph.add_node("ask", ask, reads=[])
    graph.add_node("fail", fail, reads=["draft"], retry=RetryPolicy(2, wait=0))
    graph.add_edge(START, "plain").add_edge("plain", "work")
    graph.add_conditional_edge("work", way, {"again": "work", "done": "hush"})
    graph.add_edge("hush", "each").add_edge("each", "ask").add_edge("ask", "fail").add_edge("fail", END)
    agents = {"bot": Agent("bot", ScriptedModel(SAID, pace=0), tools=[search, save])}
    return graph.compile(checkpointer=MemoryCheckpointer(), agents=agents)
'''


class Recorded:
    """A thread `t` whose steps are: 1 plain, 2 and 3 work, 4 hush, 5 a map, 6 ask, 7 an edit; fail failed."""

    def __init__(self, app: App, folder: Path) -> None:
        self.app = app
        self.folder = folder
        self.flow = folder / "flow.py"
        self.flow.write_text(FLOW)
        given = ("--context", "tenant=acme", "--context", "rounds=2", "--input", "secret=hushed")
        app.expect(
            3, "run", f"{self.flow}:build", "--headless", "--thread", "t", "--input", "task=Do", *given
        )
        with closing(open_store(default_store())) as store:
            cursor = store.cursor("t")
            assert cursor
            asked = cursor.pending[0]
        app.expect(1, "answer", "t", asked.id, "This one.", "--step", str(asked.step), "--run")

    def write(self, place: str, *options: str) -> str:
        """Write the test of a step into a file, and give its text."""
        text = self.app.expect(0, "test", place, *options).out
        (self.folder / f"test_{place.replace('@', '_')}.py").write_text(text)
        return text

    def change(self, old: str, new: str) -> None:
        assert old in self.flow.read_text()
        self.flow.write_text(self.flow.read_text().replace(old, new))

    def outcome(self) -> str:
        """What pytest says of all that was written, in its last line."""
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False)
        return done.stdout.splitlines()[-1].strip("= ").rpartition(" in ")[0]

    def passes(self, place: str, old: str = "", new: str = "") -> bool:
        """Whether the test of a step passes here, with one thing of the graph's file changed."""
        other = self.folder / f"other_{abs(hash(new))}.py"
        other.write_text(FLOW.replace(old, new) if old else FLOW)
        assert not old or old in FLOW
        text = self.app.expect(0, "test", place, "--graph", f"{other}:build").out
        namespace: dict[str, Any] = {}
        exec(compile(text, place, "exec"), namespace)
        (run,) = (value for name, value in namespace.items() if name.startswith("test_"))
        try:
            run()
        except (AssertionError, HitlError):
            return False
        return True


@pytest.fixture
def recorded(app: App, tmp_path: Path) -> Recorded:
    return Recorded(app, tmp_path)


@pytest.mark.integration
def test_tests_pass_as_made_and_fail_when_the_node_is_changed(recorded: Recorded) -> None:
    for step in (1, 2, 3):
        recorded.write(f"t@{step}")
    recorded.write("t@4", "--private")
    recorded.write("t@7")
    assert recorded.outcome() == "5 passed"
    recorded.change("{state['task']}!", "{state['task']}?")
    recorded.change("{config.context['tenant']}: ", "")
    recorded.change("[::-1]", "")
    recorded.change("no {state", "not {state")
    assert recorded.outcome() == "5 failed"


@pytest.mark.parametrize(
    ("old", "new", "fails"),
    [
        ("", "", ()),
        ('< config.context["rounds"]', '<= config.context["rounds"]', ("t@3",)),
        ('chat(state["task"])', 'chat(state["task"]) + config.agents["bot"].chat("more")', ("t@2", "t@3")),
        ('config.agents["bot"].chat(state["task"])', '"again"', ("t@2", "t@3")),
        ('"n": Channel(0, reducer="sum")', '"n": Channel(5, reducer="sum")', ()),
        ('"draft": Channel("", schema=str)', '"draft": Channel("", reducer="append")', ("t@2", "t@3")),
    ],
    ids=["nothing", "the route", "it asks once more", "it asks less", "a default", "a channel's reducer"],
)
@pytest.mark.slow
def test_a_changed_node_fails_the_tests_of_its_steps(
    recorded: Recorded, old: str, new: str, fails: tuple[str, ...]
) -> None:
    for place in ("t@2", "t@3"):
        assert recorded.passes(place, old, new) == (place not in fails)


@pytest.mark.slow
def test_the_written_test_is_readable(recorded: Recorded) -> None:
    text = recorded.write("t@2")
    assert text.splitlines()[0] == '"""Node \'work\' in t@2, as hitl-tui recorded it."""'
    assert "def test_work_in_step_2():" in text
    assert "ToolCall('search', {'query': 'a \"b\"'})" in text
    assert "ToolResult(result='saved', updates=[('notes', 'found')])" in text
    assert "assert step.next_node == 'work'" in text
    assert "context={'tenant': 'acme', 'rounds': 2}" in text
    assert recorded.app.expect(0, "test", "t@2", "--json").document["text"] == text


@pytest.mark.slow
def test_a_failed_node_is_expected_to_fail(recorded: Recorded) -> None:
    text = recorded.write("t")
    assert "with pytest.raises(NodeFailed) as failed:" in text
    assert "assert 'ValueError: no This!' in failed.value.message" in text
    assert recorded.app.expect(0, "test", "t@7").out == text


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("t@0", "step 0 was made by an input"),
        ("t@5", "step 5 is a map of several runs"),
        ("t@6", "node 'ask' asked a person in step 6"),
        ("t@9", "has no step 9"),
    ],
)
def test_a_step_without_anything_to_test_says_why(recorded: Recorded, place: str, words: str) -> None:
    assert words in recorded.app.expect(2, "test", place).err


@pytest.mark.slow
def test_a_step_by_a_person_is_refused(recorded: Recorded) -> None:
    recorded.app.expect(0, "update-state", "t", "draft=mine")
    assert "step 7 was made by a person: no node ran" in recorded.app.expect(2, "test", "t@7").err


@pytest.mark.slow
def test_private_values_are_written_on_demand_alone_which_is_noted(recorded: Recorded) -> None:
    app = recorded.app
    refused = app.expect(2, "test", "t@4").err
    assert "step 4 may use what is private: secret" in refused
    assert "hushed" not in app.expect(0, "test", "t@2").out
    assert "'secret': 'hushed'" in app.expect(0, "test", "t@4", "--private", "--reviewer", "ann").out
    log = app.expect(0, "log", "t", "--json").out
    assert '"a test of t@4"' in log


def test_nothing_recorded_is_more_than_a_literal(app: App, tmp_path: Path) -> None:
    nasty = '\\"""\nimport os\nos.system("x")\n\u202e{}\r\x1b[2J'
    name = 't"""; import os #'
    flow = tmp_path / "flow.py"
    flow.write_text(
        "from hitl_tui import END, START, Channel, StateGraph\n"
        "channels = {'x': Channel('')}\n"
        "graph = StateGraph(channels).add_node('a\"\"\"\\n1', lambda s: {'x': s['x']})\n"
        'graph.add_edge(START, \'a"""\\n1\').add_edge(\'a"""\\n1\', END)\n'
    )
    file = tmp_path / "in.json"
    file.write_text(json.dumps({"x": nasty}))
    app.expect(0, "run", f"{flow}:graph", "--headless", "--thread", name, "--input", f"@{file}")
    text = app.expect(0, "test", name).out
    assert text.replace("\n", "").isprintable()
    module = ast.parse(text)
    assert [type(node).__name__ for node in module.body] == [
        "Expr", "ImportFrom", "Assign", "Assign", "FunctionDef",
    ]  # fmt: skip
    namespace: dict[str, Any] = {}
    exec(compile(text, "test_it.py", "exec"), namespace)
    namespace["test_a_1_in_step_1"]()


def test_a_thread_that_names_no_graph_takes_one(app: App, tmp_path: Path) -> None:
    flow = tmp_path / "flow.py"
    flow.write_text(FLOW)
    namespace: dict[str, object] = {}
    exec(compile(FLOW, "flow.py", "exec"), namespace)
    store = open_store(default_store())
    runner = namespace["build"]().with_store(store)  # type: ignore[operator]
    runner.step(thread_id="p")
    store.close()
    assert "--graph file.py:name" in app.expect(2, "test", "p@1").err
    assert f"GRAPH = '{flow}:build'" in app.expect(0, "test", "p@1", "--graph", f"{flow}:build").out
