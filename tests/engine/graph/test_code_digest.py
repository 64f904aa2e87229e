"""Digests of code: what of a function and of what it uses counts, and what does not."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hitl_tui import Agent, ScriptedModel
from hitl_tui.engine.graph.code_digest import CodeReader

BASE = """
import functools
LIMITS = {"words": 3}
seen = []
WORD = "a"

class Judge:
    level = 1
    def ask(self, text):
        return text.strip()

def trim(text):
    return clean(text)[: LIMITS["words"]]

def clean(text):
    return text.replace("x", "y")

def node(state):
    seen.append(1)
    return {"text": trim(WORD) + Judge().ask(state["text"])}
"""


def digest(source: str, name: str = "node", agents: Mapping[str, Any] | None = None) -> str:
    module: dict[str, Any] = {"__name__": "theirs"}
    exec(compile(textwrap.dedent(source), "/home/ann/theirs.py", "exec"), module)
    return CodeReader(agents or {}).digest(module[name])


@pytest.mark.parametrize(
    "change",
    [
        ("trim(WORD) + Judge()", "Judge()"),
        ('"x", "y"', '"x", "z"'),  # a helper of a helper
        ('WORD = "a"', 'WORD = "b"'),
        ('{"words": 3}', '{"words": 4}'),  # a constant, though it is a dict
        ("text.strip()", "text.lstrip()"),  # a method
        ("level = 1", "level = 2"),
        ("def node(state)", "def node(state, word=3)"),
    ],
)
def test_what_a_node_does_counts_at_any_depth(change: tuple[str, str]) -> None:
    assert digest(BASE) != digest(BASE.replace(*change))


@pytest.mark.parametrize(
    "change",
    [
        ("def node(state):", "# what it does\n\n\ndef node(state):"),
        ("def clean(text):\n    return text", "def clean(words):\n    return words"),
        ("seen = []", "seen = [1, 2]"),  # it may change while it runs
        ("import functools", "import functools\ndef other(): return 3"),
    ],
)
def test_comments_line_numbers_variable_names_and_unused_code_do_not_count(change: tuple[str, str]) -> None:
    assert change[0] in BASE
    assert digest(BASE) == digest(BASE.replace(*change))


def test_closures_partials_and_wrapped_functions_count() -> None:
    closed = """
    import functools
    def make(word, log):
        def node(state):
            log.append(1)
            return {"text": word}
        return node
    def plain(word, state): return {"text": word}
    node = make("a", [])
    part = functools.partial(plain, "a")
    kept = functools.lru_cache(node)
    """
    other = closed.replace('make("a", [])', 'make("b", [])').replace('plain, "a"', 'plain, "b"')
    for name in ("node", "part", "kept"):
        assert digest(closed, name) == digest(closed.replace("[]", "[1]"), name)
        assert digest(closed, name) != digest(other, name), name


def test_an_agent_counts_for_the_code_that_names_it() -> None:
    source = """
    def node(state, config): return {"text": config.agents["judge"].chat("?")}
    def other(state, config): return {"text": config.agents["writer"].chat("?")}
    """

    def look(text: str) -> str:
        """Look something up."""
        return text

    def agents(words: str, tools: tuple[Any, ...] = ()) -> dict[str, Any]:
        return {
            "judge": Agent("judge", ScriptedModel(["a"]), words, tools=tools),
            "writer": Agent("writer", ScriptedModel(["a"])),
        }

    assert digest(source, "node", agents("be kind")) == digest(source, "node", agents("be kind"))
    assert digest(source, "node", agents("be kind")) != digest(source, "node", agents("be strict"))
    assert digest(source, "node", agents("a")) != digest(source, "node", agents("a", (look,)))
    assert digest(source, "other", agents("be kind")) == digest(source, "other", agents("be strict"))
    module: dict[str, Any] = {"__name__": "theirs"}
    exec(compile(textwrap.dedent(source), "/home/ann/theirs.py", "exec"), module)
    reader = CodeReader(agents("a", (look,)))
    reader.digest(module["node"])
    assert reader.tools == ("look",)
    reader.digest(module["other"])
    assert reader.tools == ()


def test_a_function_that_calls_itself_or_a_callable_object_has_a_digest() -> None:
    around = "def node(state): return node(state) if state else node"
    assert digest(around) != digest(around.replace("else node", "else None"))
    called = SimpleNamespace(file="")
    assert CodeReader({}).digest(lambda state: called) == CodeReader({}).digest(lambda state: called)


def test_fields_of_a_class_count_by_their_types() -> None:
    source = """
    class Plan:
        steps: list[int]
        other: "text"
    def node(state): return Plan
    """
    for other in ("tuple[int]", "list[str]", "list[int] | None", "int", "dict[str, list[int]]"):
        assert digest(source) != digest(source.replace("list[int]", other))


@pytest.mark.integration
def test_another_process_computes_the_same_digest(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(BASE.replace("LIMITS[", "{'p', 'q', 'r'} and LIMITS["))
    program = (
        "import theirs\nfrom hitl_tui.engine.graph.code_digest import CodeReader\n"
        "print(CodeReader({}).digest(theirs.node))"
    )
    output = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(output) == 1
    assert "".join(output).strip()
