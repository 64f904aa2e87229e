"""Letting an agent forget its chat turns."""

from __future__ import annotations

from hitl_tui.engine.commands import ClearTurns
from tests.plain.talker import Talker
from tests.support.commands import App
from tests.verbs.flows import CHATTING, REMEMBERING, stopped
from tests.verbs.hosts import Case, Hosts, each_host

test_each_host = each_host(
    Case("without a reason", "clear-turns", REMEMBERING, stopped, (ClearTurns("clerk", "ann"),),
         {"agent": "clerk"}, keys=("A",), ready="1 turn", selected=("agent",)),
    Case("of another agent, with a reason", "clear-turns", REMEMBERING, stopped,
         (ClearTurns("guide", "ann", "off the subject"),), {"agent": "guide", "note": "off the subject"},
         choice="forget", keys=("A", "down"), ready="guide", selected=("agent",)),
)  # fmt: skip


def test_an_agent_without_turns_has_nothing_to_forget(app: App, hosts: Hosts) -> None:
    hosts.prepared(Case("", "clear-turns", CHATTING, stopped, ()))
    done = app.expect(0, "clear-turns", "r", "writer")
    assert done.out == "writer remembers nothing in this process\n"
    assert "did you mean 'writer'?" in app.expect(2, "clear-turns", "r", "writr").err


def test_turns_in_a_channel_are_not_forgotten(app: App, hosts: Hosts) -> None:
    graph = CHATTING.replace('"Be clear."', '"Be clear.", history="channel:talk"')
    graph = graph.replace('Channel("")}', 'Channel(""), "talk": Channel([], reducer="overwrite")}')
    hosts.prepared(Case("", "clear-turns", graph, stopped, ()))
    said = app.expect(2, "clear-turns", "r", "writer").err
    assert "the turns of agent 'writer' are in the channel 'talk'" in said
    assert "edit that channel" in said


def test_plain_text_mode_asks_which_agent(talk: Talker, hosts: Hosts) -> None:
    hosts.prepared(Case("", "clear-turns", REMEMBERING, stopped, ()))
    output = talk("clear-turns\n2\nyes\nwhy not\na guide\nq\n", "resume", "r", "--plain").out
    assert "2: guide, 1 turn" in output
    assert "guide has forgotten 1 turn." in output
    assert "Its turns:\n  | no turns" in output
