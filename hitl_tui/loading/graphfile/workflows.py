"""Builds ready-made workflows by name, with agents, options and channels from a graph file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from hitl_tui.agents.agent import Agent
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.runner import GraphRunner
from hitl_tui.loading.graphfile.channels import build_channels
from hitl_tui.loading.graphfile.decode import Problems, check_value
from hitl_tui.loading.graphfile.edges import build_limits, build_termination
from hitl_tui.loading.graphfile.functions import find_function
from hitl_tui.loading.graphfile.shape import GraphFile
from hitl_tui.loading.toml import KeyPath
from hitl_tui.suggest import did_you_mean
from hitl_tui.workflows.parts import ChannelsMissing


class Recipe(NamedTuple):
    """How to call a workflow's function.

    Attributes:
        place: `module:function`.
        roles: parameters that take one agent each, the one of the same name in [agents].
        options: parameters that [options] may set.
        others: the parameter that takes a list of all other agents, in the file's order.
        optional: the roles that may be left out.
        functions: the options that name a Python function.
    """

    place: str
    roles: tuple[str, ...]
    options: tuple[str, ...] = ()
    others: str = ""
    optional: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


WORKFLOWS = {
    "advisor": Recipe(
        "hitl_tui.workflows.advisor:advisor_workflow",
        ("worker", "advisor"),
        ("max_revisions", "human", "prompts"),
    ),
    "sequential": Recipe(
        "hitl_tui.workflows.sequential:sequential_workflow", (), ("human", "prompts"), others="agents"
    ),
    "supervisor": Recipe(
        "hitl_tui.workflows.supervisor:supervisor_workflow",
        ("manager",),
        ("max_rounds", "human", "prompts"),
        others="workers",
    ),
    "debate": Recipe(
        "hitl_tui.workflows.debate:debate_workflow",
        ("judge",),
        ("max_rounds", "human", "prompts"),
        others="agents",
        optional=("judge",),
    ),
    "planner": Recipe(
        "hitl_tui.workflows.planner:planner_workflow",
        ("planner", "evaluator"),
        ("max_replans", "max_steps", "human", "parse_plan", "prompts"),
        others="workers",
        optional=("evaluator",),
        functions=("parse_plan",),
    ),
}

_NO_PLACE = (
    "nodes",
    "maps",
    "parallels",
    "subgraphs",
    "edges",
    "routes",
    "interrupts",
    "inputs",
    "compensations",
)


def build_workflow(
    file: GraphFile, agents: Mapping[str, Agent], store: Store, directory: Path, problems: Problems
) -> GraphRunner | None:
    """Return the workflow that a file names; None if it has problems, which are added to the file's.

    Args:
        directory: the directory of the functions that its options name.
    """
    name = file.graph.workflow
    if name not in WORKFLOWS:
        problems.add(("graph", "workflow"), f"there is no workflow {name!r}", did_you_mean(name, WORKFLOWS))
        return None
    recipe = WORKFLOWS[name]
    module, _, attribute = recipe.place.partition(":")
    function = getattr(import_module(module), attribute)
    for table in _NO_PLACE:
        if getattr(file, table) != getattr(GraphFile(), table):
            problems.add((table,), f"it has no place beside workflow = {name!r}", "the workflow has its own")
    _check_roles(name, recipe, file, problems)
    options = _options(recipe, file, get_type_hints(function), directory, problems)
    channels, _ = build_channels(file.channels, directory, problems)
    if len(problems):
        return None
    arguments: dict[str, Any] = {"checkpointer": store} | {
        role: agents[role] for role in recipe.roles if role in agents
    }
    if recipe.others:
        arguments[recipe.others] = [agent for role, agent in agents.items() if role not in recipe.roles]
    if channels:
        arguments["state_schema"] = channels
    known = channels or import_module(module).default_channels()
    arguments["limits"] = build_limits(file.limits)
    arguments["termination"] = build_termination(
        file.termination, problems, partial(_check_channel, problems, known)
    )
    if len(problems):
        return None
    with problems.at(("options",)):
        try:
            runner: GraphRunner = function(**arguments, **options)
            return runner
        except ChannelsMissing as error:
            problems.add(("channels",), f"it lacks {', '.join(error.missing)}", error.hint)
    return None


def _check_channel(problems: Problems, known: Collection[str], path: KeyPath, name: str) -> None:
    if name not in known:
        problems.unknown(path, "channel", name, known)


def _options(
    recipe: Recipe, file: GraphFile, hints: Mapping[str, Any], directory: Path, problems: Problems
) -> dict[str, Any]:
    """Return the file's options for the workflow, with functions instead of their names."""
    options = dict(file.options)
    for option, value in file.options.items():
        if option not in recipe.options:
            problems.add(("options", option), f"unknown key {option!r}", did_you_mean(option, recipe.options))
        elif option in recipe.functions and isinstance(value, str):
            with problems.at(("options", option)):
                options[option] = find_function(value, directory)
        elif option in recipe.functions:
            problems.add(("options", option), "must be text", "as in my_plans.py:parse")
        else:
            check_value(value, hints[option], problems, ("options", option))
    return options


def _check_roles(name: str, recipe: Recipe, file: GraphFile, problems: Problems) -> None:
    for role in recipe.roles:
        if role not in file.agents and role not in recipe.optional:
            problems.add(("agents",), f"the {name} workflow needs an agent {role!r}", f"add [agents.{role}]")
    if recipe.others and all(agent in recipe.roles for agent in file.agents):
        problems.add(("agents",), f"the {name} workflow needs {recipe.others}", "add [agents.NAME]")
    for agent in file.agents:
        if agent not in recipe.roles and not recipe.others:
            hint = did_you_mean(agent, recipe.roles)
            problems.add(("agents", agent), f"the {name} workflow has no {agent!r}", hint)
