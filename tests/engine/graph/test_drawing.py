"""A graph as Mermaid and Graphviz text; no name can break out of its place."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hitl_tui import END, START, Channel, GraphRunner, StateGraph, max_turns
from tests.support.spec import spec

pytestmark = spec("5")


def node(state: Any, config: Any) -> None:
    return None


def looped(worker: str = "worker", advisor: str = "advisor", again: str = "revise") -> GraphRunner:
    graph = StateGraph({"c": Channel()}, name="advisor").add_node(worker, node).add_node(advisor, node)
    graph.add_edge(START, worker).add_edge(worker, advisor)
    return graph.add_conditional_edge(advisor, lambda s: again, {"approved": END, again: worker}).compile()


def test_mermaid() -> None:
    assert looped().to_mermaid() == (
        "flowchart TD\n"
        '    n0(["START"])\n'
        '    n1["worker"]\n'
        '    n2["advisor"]\n'
        '    n3(["END"])\n'
        "    n0 --> n1\n"
        "    n1 --> n2\n"
        '    n2 -. "approved" .-> n3\n'
        '    n2 -. "revise" .-> n1\n'
    )


def test_dot() -> None:
    assert looped().to_dot() == (
        'digraph "advisor" {\n'
        "    node [shape=box, style=rounded];\n"
        '    n0 [label="START", shape=oval];\n'
        '    n1 [label="worker"];\n'
        '    n2 [label="advisor"];\n'
        '    n3 [label="END", shape=oval];\n'
        "    n0 -> n1;\n"
        "    n1 -> n2;\n"
        '    n2 -> n3 [label="approved", style=dashed];\n'
        '    n2 -> n1 [label="revise", style=dashed];\n'
        "}\n"
    )


def test_an_end_that_is_never_reached_is_not_drawn() -> None:
    graph = StateGraph({}).add_node("a", node).add_edge(START, "a").add_edge("a", "a")
    runner = graph.compile(termination=max_turns(3))
    assert "END" not in runner.to_mermaid() + runner.to_dot()


HOSTILE = {
    "a quote": 'say "hi"',
    "a bracket": 'x"] --> y["',
    "a newline": "two\nlines",
    "a carriage return": "a\rb",
    "markup": "<script>alert(1)</script>",
    "an entity": "&quot; #quot;",
    "a backslash": "a\\",
    "a backslash and a quote": '\\"];evil[label="',
    "an escape sequence": "\x1b[31mred",
    "a right-to-left override": "a\u202eb",
    "a click directive": '"\n    click n0 "https//evil"',
    "a reserved word": "end",
    "a graph": "digraph { a -> b }",
    "beyond ASCII": "Prüfung 🎉",
}


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_mermaid_keeps_a_name_in_its_quotes(name: str) -> None:
    lines = looped(name, "advisor", f"{name} key").to_mermaid().splitlines()
    assert len(lines) == 9
    for line in lines[1:]:
        place = r'n\d(\["[^"<>]*"\]|\(\["[^"<>]*"\]\))'
        arrow = r'n\d (-->|-\. "[^"<>]*" \.->) n\d'
        assert re.fullmatch(f"    ({place}|{arrow})", line), line
        assert line.isprintable()


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_dot_keeps_a_name_in_its_quotes(name: str) -> None:
    lines = looped(name, "advisor", f"{name} key").to_dot().splitlines()
    assert len(lines) == 11
    text = r'"(?:[^"\\]|\\.)*"'
    for line in lines[2:-1]:
        place = rf"n\d \[label={text}(, shape=oval)?\];"
        arrow = rf"n\d -> n\d( \[label={text}, style=dashed\])?;"
        assert re.fullmatch(f"    ({place}|{arrow})", line), line
        assert line.isprintable()


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\\", '\\"'], ids=repr)
def test_dot_reads_back_as_the_name(name: str) -> None:
    label = looped(name).to_dot().splitlines()[3].partition("label=")[2].removesuffix("];")
    assert re.sub(r"\\(.)", r"\1", label[1:-1]) == name


def test_a_readable_name_stays_readable() -> None:
    assert '["Prüfung 🎉"]' in looped("Prüfung 🎉").to_mermaid()
