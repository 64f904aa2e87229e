"""Copying something of a thread."""

from __future__ import annotations

from tests.support.commands import App
from tests.verbs.flows import COUNTING, stopped
from tests.verbs.hosts import Case, Copied, Hosts, each_host

ASKING = """
from hitl_tui import END, START, Channel, Gate, GateChoice, StateGraph
graph = StateGraph({"draft": Channel("")}, name="asking").add_node("a", lambda state: {"draft": "text"})
graph = graph.add_edge(START, "a").add_edge("a", END)
graph = graph.compile(interrupt_after=[Gate("a", title="Good?", choices=[GateChoice("approve", "yes")])])
"""

test_each_host = each_host(
    Case(
        "of a value", "copy", COUNTING, stopped, (Copied("2"),),
        {"what": "value", "channel": "n"}, choice="value", selected=("what", "channel"),
    ),
    Case(
        "of a path", "copy", COUNTING, stopped, (Copied("n"),),
        {"what": "path", "channel": "n"}, choice="path", selected=("what", "channel"),
    ),
    Case(
        "of what changed", "copy", COUNTING, stopped, (Copied("  - 1\n  + 2"),),
        {"what": "diff", "channel": "n"}, choice="diff", selected=("what", "channel"),
    ),
    Case(
        "of a command", "copy", COUNTING, stopped, (Copied("hitl-tui show r@2"),),
        {"what": "command"}, choice="command", selected=("what",),
    ),
)  # fmt: skip


def test_of_a_card_and_the_command_that_answers(app: App, hosts: Hosts) -> None:
    hosts.prepared(Case("", "copy", ASKING, stopped, ()))
    assert app.expect(0, "copy", "r", "card").out.startswith("# Good?")
    document = app.expect(0, "copy", "r", "command", "--json").document
    assert document["text"].startswith("hitl-tui answer r ")
    assert document["text"].endswith(" ANSWER --step 1")
    assert "known: card, command, diff, path, value" in app.expect(2, "copy", "r", "xyz").err
    assert "did you mean 'card'" in app.expect(2, "copy", "r", "cart").err
    assert "there is no channel 'm'" in app.expect(2, "copy", "r", "value", "m").err
