"""Ready-made workflows in graph files, and the models of agents from inside and outside the file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hitl_tui import GraphInvalid, GraphRunner, MemoryCheckpointer, UsageError
from hitl_tui.loading.graphs import load_graph, resolve_spec
from hitl_tui.loading.sources import open_graph, reopen_graph
from tests.loading.conftest import LoadFile
from tests.loading.test_graph_file import GATE, one_node

WORKFLOW = """
    [graph]
    workflow = "advisor"
    name = "mine too"
    output = "advisor_verdict"
    [options]
    max_revisions = 1
    [agents.worker]
    model = "demo/advisor"
    [agents.advisor]
    model = "demo/advisor"
"""


def test_a_ready_made_workflow(load_file: LoadFile) -> None:
    runner = load_file(WORKFLOW)
    assert (runner.graph.name, runner.graph.output) == ("mine too", "advisor_verdict")
    assert runner.graph.limits.max_iterations == 4
    assert not runner.graph.after
    assert set(runner.graph.agents) == {"worker", "advisor"}


OWN_CHANNELS = """
    [channels.messages]
    default = []
    reducer = "last_n(6)"
    [channels.latest_draft]
    [channels.advisor_feedback]
    [channels.advisor_verdict]
    default = "revise"
    [channels.revision_n]
    default = 0
    schema = {type = "integer", maximum = 9}
    [channels.extra]
    visibility = "private"
"""


def test_channels_beside_a_workflow_replace_its_own(load_file: LoadFile) -> None:
    runner = load_file(WORKFLOW + OWN_CHANNELS)
    assert runner.graph.channels["messages"].reducer.text == "last_n(6)"
    assert runner.graph.channels["extra"].visibility == "private"
    assert runner.invoke({"messages": "Explain."}, thread_id="t").status == "completed"
    assert len(runner.get_state("t")["messages"]) <= 6


def test_missing_channels_of_a_workflow_are_reported_with_their_place(load_file: LoadFile) -> None:
    with pytest.raises(GraphInvalid) as caught:
        load_file(WORKFLOW + OWN_CHANNELS.replace("latest_draft", "last_draft"))
    assert "[channels]: it lacks latest_draft" in caught.value.message
    assert "did you mean 'last_draft'?" in caught.value.message


MODELS = """
    [agents.plain]
    [agents.named]
    model = "openai/x"
    api_base = "http://file"
    temperature = 0.5
    max_tokens = 9
    timeout = 3
    num_retries = 0
    [agents.named.options]
    top_p = 0.1
    [agents.scripted]
    replies = ["yes"]
"""


def models(runner: GraphRunner) -> dict[str, tuple[str, Any]]:
    return {
        name: (str(agent.model), agent._given.get("api_base")) for name, agent in runner.graph.agents.items()
    }


def test_options_of_agents(load_file: LoadFile) -> None:
    runner = load_file(one_node("n = {}", GATE, MODELS), model="ollama/own")
    assert runner.graph.agents["named"]._given == {
        "api_base": "http://file",
        "temperature": 0.5,
        "max_tokens": 9,
        "timeout": 3,
        "num_retries": 0,
        "top_p": 0.1,
    }


def test_models_from_outside(load_file: LoadFile) -> None:
    text = one_node("n = {}", GATE, MODELS)
    own = {"plain": ("ollama/own", "http://own")}
    script = {"scripted": ("script/scripted", None)}
    default = {"model": "ollama/own", "api_base": "http://own"}
    assert models(load_file(text, **default)) == own | script | {"named": ("openai/x", "http://file")}
    assert models(load_file(text, {"model": "m/n"}, **default)) == dict.fromkeys(
        ("plain", "named", "scripted"), ("m/n", None)
    )
    forced = models(load_file(text, {"api_base": "http://flag"}, **default))
    assert forced == {"plain": ("ollama/own", "http://flag"), "named": ("openai/x", "http://flag")} | script


def test_the_longest_reply_from_outside_goes_before_that_of_the_file(load_file: LoadFile) -> None:
    runner = load_file(one_node("n = {}", GATE, MODELS), {"max_tokens": 40}, model="ollama/own")
    assert {agent._given.get("max_tokens") for agent in runner.graph.agents.values()} == {40}


def test_a_thread_is_reopened_with_the_same_models(
    load_file: LoadFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_file(one_node("n = {}", GATE, MODELS), model="x/y")
    store = MemoryCheckpointer()
    runner = open_graph("mine.toml", store, {}, {"model": "ollama/own"})
    assert runner.source == {
        "graph": resolve_spec("mine.toml"),
        "options": {"default_model": "ollama/own"},
    }
    monkeypatch.chdir("/")
    again = reopen_graph("t", json.loads(json.dumps(runner.source)), store)
    assert models(again) == models(runner)
    assert again.graph.digest == runner.graph.digest
    assert again.store is store


def test_an_option_that_files_do_not_take(load_file: LoadFile) -> None:
    with pytest.raises(UsageError, match=r"mine.toml takes no --human") as caught:
        load_file(WORKFLOW, {"human": True})
    assert caught.value.hint == "it takes model, api_base, max_tokens"


def test_a_misspelt_file_gets_a_hint(load_file: LoadFile) -> None:
    load_file(WORKFLOW)
    with pytest.raises(UsageError) as caught:
        load_graph("mime.toml")
    assert caught.value.hint == "did you mean 'mine.toml'?"
    with pytest.raises(UsageError) as caught:
        load_graph("mine")
    assert caught.value.hint == "did you mean mine.toml?"


def team(workflow: str, *agents: str, options: str = "") -> str:
    tables = "\n".join(f'[agents.{name}]\nreplies = ["{name} speaks"]' for name in agents)
    return f'[graph]\nworkflow = "{workflow}"\n[options]\n{options}\n{tables}\n'


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        (team("sequential", "b", "a"), ["b", "a"]),
        (team("supervisor", "w", "manager", "v", options="max_rounds = 4"), ["manager", "w", "v"]),
        (team("debate", "pro", "con", options="max_rounds = 1"), ["pro", "con"]),
        (team("debate", "judge", "pro", "con", options='human = "round"'), ["pro", "con", "judge"]),
        (team("planner", "planner", "w", options="max_steps = 1"), ["planner", "dispatcher", "w"]),
        (team("planner", "planner", "w", "evaluator"), ["planner", "dispatcher", "w", "evaluator"]),
    ],
    ids=["sequential", "supervisor", "debate", "debate with a judge", "planner", "planner with evaluator"],
)
def test_each_ready_made_workflow_takes_the_other_agents_in_order(
    load_file: LoadFile, text: str, nodes: list[str]
) -> None:
    assert list(load_file(text).graph.nodes) == nodes


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (team("sequential"), "[agents]: the sequential workflow needs agents, add"),
        (team("supervisor", "w"), "[agents]: the supervisor workflow needs an agent 'manager'"),
        (team("supervisor", "manager"), "[agents]: the supervisor workflow needs workers"),
        (team("debate", "pro", options="rounds = 1"), "line 4, [options] rounds: unknown key 'rounds'"),
        (team("debate", "pro", options="max_rounds = 0"), "[options]: max_rounds=0"),
        (team("debate", "pro", options='human = "yes"'), "line 4, [options] human"),
        (team("planner", "planner", "dispatcher"), "workers: the name 'dispatcher' means something else"),
        (team("planner", "planner", "w", options='human = "both"'), "human='both' needs an evaluator"),
        (team("planner", "planner", "w", options="parse_plan = 1"), "[options] parse_plan: must be text"),
        (team("planner", "planner", "w", options='parse_plan = "no.py:x"'), "line 4, [options] parse_plan"),
        (team("debate", "pro"), "agents has 1 agent"),
        (team("sequential", "a", options='prompts = "x"'), "line 4, [options] prompts: must be a table"),
        (team("sequential", "a", options="prompts = { agent = 1 }"), "prompts.agent: must be text"),
        (team("sequential", "a", options='prompts = { agnt = "x" }'), "no prompt 'agnt'"),
        (team("sequential", "a", options='prompts = { agent = "{x}" }'), "agent has no field {x}"),
    ],
    ids=["no agents", "no manager", "no workers", "an unknown option", "a bound", "an unknown gate",
         "a name that is taken", "a gate without evaluator", "a parser that is a number", "a parser nowhere",
         "a debate of one", "prompts that are a text", "a prompt that is a number", "an unknown prompt",
         "a prompt with an unknown field"],
)  # fmt: skip
def test_what_is_wrong_with_a_workflows_file_is_located(load_file: LoadFile, text: str, problem: str) -> None:
    with pytest.raises(GraphInvalid) as caught:
        load_file(text)
    assert problem in str(caught.value)


def test_a_plan_is_parsed_by_a_function_beside_the_file(load_file: LoadFile, tmp_path: Any) -> None:
    (tmp_path / "plans.py").write_text(
        "def parse(text):\n    return [{'worker': 'w', 'instruction': text.upper()}]\n"
    )
    runner = load_file(team("planner", "planner", "w", options='parse_plan = "plans.py:parse"'))
    result = runner.invoke({"task": "t"})
    assert result["plan"] == [{"worker": "w", "instruction": "PLANNER SPEAKS"}]


def test_a_file_can_have_its_own_prompts(load_file: LoadFile) -> None:
    said = 'replies = [{ when = "Improve this: t", say = "improved" }, { say = "not asked so" }]'
    text = team("sequential", "a", options='prompts.agent = "Improve this: {message}"')
    runner = load_file(text.replace('replies = ["a speaks"]', said))
    assert runner.invoke({"task": "t"}).output() == "improved"
