"""Giving an agent other settings, in its thread or in a fork."""

from __future__ import annotations

import pytest

from hitl_tui.engine.commands import ConfigureAgents, Fork, Step
from tests.plain.talker import Talker
from tests.support.commands import App
from tests.verbs.flows import ASKING_FOR_CALLS, CHATTING, changed_agent, stopped
from tests.verbs.hosts import Case, Hosts, each_host

MODEL = {"model": "demo/advisor"}
EVERYTHING = {
    "model": "demo/advisor",
    "temperature": "0.5",
    "instructions": "Be brief.",
    "api_base": "http://127.0.0.1:9",
}
SETTINGS = {**EVERYTHING, "temperature": 0.5}

test_each_host = each_host(
    Case("of the shown step's author", "change-agent", CHATTING, stopped,
         (ConfigureAgents({"writer": MODEL}, "ann"),),
         {"agent": "writer", **MODEL}, choice="next", selected=("agent",)),
    Case("with everything", "change-agent", CHATTING, stopped,
         (ConfigureAgents({"writer": SETTINGS}, "ann", "why not"),),
         {"agent": "writer", **EVERYTHING, "note": "why not"}, choice="next", selected=("agent",)),
    Case("back to the graph's, and without instructions", "change-agent", CHATTING, changed_agent,
         (ConfigureAgents({"writer": {"model": None, "temperature": None, "instructions": ""}}, "ann"),),
         {"agent": "writer", "model": "", "temperature": "", "instructions": ""}, choice="next",
         selected=("agent",)),
    Case("all of it back", "change-agent", CHATTING, changed_agent,
         (ConfigureAgents({"writer": {"model": None, "temperature": None}}, "ann"),),
         {"agent": "writer"}, choice="reset", selected=("agent",)),
    Case("in a fork", "change-agent", CHATTING, stopped,
         (Fork(0, "r-b", None, {"writer": MODEL}, "ann"), Step()),
         {"agent": "writer", **MODEL}, choice="fork", selected=("agent",)),
    Case("in a fork of an earlier step, with everything", "change-agent", CHATTING, stopped,
         (Fork(0, "mine", None, {"editor": SETTINGS}, "ann", "a try"), Step()),
         {"agent": "editor", **EVERYTHING, "new": "mine", "note": "a try"}, choice="fork", step=0,
         selected=("agent",)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("writer",), "nothing is changed"),
        (("writer", "model"), "'model' is not SETTING=VALUE"),
        (("writer", "colour=red"), "known: api_base, instructions, model, temperature"),
        (("writer", "temperature=hot"), "give a number from 0 to 2"),
        (("writer", "temperature=nan"), "give a number from 0 to 2"),
        (("writer", "temperature=2.1"), "give a number from 0 to 2"),
        (("writer", "model=demo/nothing"), "there is no demo model 'demo/nothing'"),
        (("writr", "model=x"), "did you mean 'writer'?"),
        (("writer", "--reset"), "--reset is not possible now"),
    ],
)
def test_wrong_words_are_refused(app: App, hosts: Hosts, words: tuple[str, ...], says: str) -> None:
    hosts.prepared(Case("", "change-agent", CHATTING, stopped, ()))
    assert says in app.expect(2, "change-agent", "r", *words).err
    assert app.expect(0, "agents", "r", "--json").document["agents"][1]["changed"] == []


def test_a_past_step_can_only_be_forked(app: App, hosts: Hosts) -> None:
    hosts.prepared(Case("", "change-agent", CHATTING, stopped, ()))
    said = app.expect(2, "change-agent", "r@0", "writer", "model=demo/advisor").err
    assert "step 0 is not the newest step of 'r'" in said
    assert "--fork" in said


def test_a_graph_without_agents_says_so(app: App, hosts: Hosts) -> None:
    hosts.prepared(Case("", "change-agent", ASKING_FOR_CALLS, stopped, ()))
    assert "the graph has no agents" in app.expect(2, "change-agent", "r", "writer", "model=x").err


def test_a_subcommand_says_what_a_fork_runs_again_and_prints_the_agents(app: App, hosts: Hosts) -> None:
    hosts.prepared(Case("", "change-agent", CHATTING, stopped, ()))
    done = app.expect(0, "change-agent", "r", "writer", "temperature=0", "--fork")
    assert "The fork will run: write." in done.err
    assert "Forked 'r' at step 0 as 'r-b'" in done.out
    done = app.expect(0, "change-agent", "r", "writer", "temperature=0")
    assert "The fork will run" not in done.err
    assert done.out == "writer: temperature 0, from the next step on\n"
    document = app.expect(0, "change-agent", "r", "writer", "temperature=1", "--json").document
    assert [(each["name"], each["changed"]) for each in document["agents"]] == [
        ("editor", []),
        ("writer", ["temperature"]),
    ]


def test_what_a_model_lacks_is_a_warning_of_a_subcommand(
    app: App, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    hosts.prepared(Case("", "change-agent", CHATTING, stopped, ()))
    done = app.expect(0, "change-agent", "r", "writer", "model=openai/x")
    assert "warning: openai/x: no API key; set OPENAI_API_KEY in the environment" in done.err


def test_plain_text_mode_asks_for_the_settings_and_before_it_uses_what_can_not_be_called(
    talk: Talker, hosts: Hosts, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    hosts.prepared(Case("", "change-agent", CHATTING, stopped, ()))
    typed = "T\nn\n\n7\n\nn\n\n0\nBe brief.\nT\na\nn\nopenai/x\n\n\nyes\nq\n"
    output = talk(typed, "resume", "r", "--plain", "--as", "ann").out
    assert "writer now uses scripted/scripted." in output
    assert "The fork will run: write." in output
    assert "give a number from 0 to 2" in output
    assert "writer: temperature 0, instructions “Be brief.”, from the next step on." in output
    assert "a: another agent: editor" in output
    assert "openai/x: no API key" in output
    agents = app.expect(0, "agents", "r", "--json").document["agents"]
    assert [each["changed"] for each in agents] == [["model"], ["temperature", "instructions"]]


def test_what_was_typed_in_plain_text_mode_counts_after_a_refusal(
    talk: Talker, hosts: Hosts, app: App
) -> None:
    hosts.prepared(Case("", "change-agent", CHATTING, stopped, ()))
    typed = "T writer temperature=7 'instructions=Be brief.' note=why\n\n0\n\n\nq\n"
    output = talk(typed, "resume", "r", "--plain", "--as", "ann").out
    assert "give a number from 0 to 2" in output
    assert "writer: temperature 0, instructions “Be brief.”, from the next step on." in output
    log = app.expect(0, "log", "r").out
    assert "  | why\n  | writer: temperature the graph's → 0, instructions the graph's → “Be brief.”" in log
