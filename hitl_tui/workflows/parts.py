"""What the ready-made workflows share: talking to agents, reading messages, needed channels."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from hitl_tui.agents.thoughts import without_thoughts
from hitl_tui.engine.graph.options import check_compiled_with
from hitl_tui.engine.graph.termination import Termination
from hitl_tui.engine.log.records import END, START, Limits
from hitl_tui.engine.log.store import Store
from hitl_tui.engine.state.channel import Channel
from hitl_tui.engine.state.workflow_state import WorkflowState
from hitl_tui.errors import GraphInvalid, in_words
from hitl_tui.suggest import did_you_mean

if TYPE_CHECKING:
    from hitl_tui.engine.nodes.attempt import NodeConfig

_FIELD = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")


def prompts_for(workflow: str, own: Mapping[str, str], given: Mapping[str, str] | None) -> dict[str, str]:
    """The prompts of a workflow, with those that a user gives in place of its own.

    A name in braces is a field that is filled in, `{{name}}` stands for `{name}`; other braces mean nothing.

    Args:
        own: the workflow's prompts by name; each has all the fields that may be used in its place.

    Raises:
        GraphInvalid: no such prompt, no text, or a field that the prompt does not have.
    """
    if given is None:
        return dict(own)
    if not isinstance(given, Mapping):
        raise GraphInvalid(f"prompts is {in_words(given)}", f"give a dict by name: {', '.join(own)}")
    for name, text in given.items():
        if name not in own:
            close = did_you_mean(str(name), own)
            raise GraphInvalid(
                f"the {workflow} workflow has no prompt {name!r}", close or f"prompts: {', '.join(own)}"
            )
        if not isinstance(text, str):
            raise GraphInvalid(f"prompts: {name} is {in_words(text)}", "give a text")
        fields = _fields(own[name])
        for field in _fields(text):
            if field not in fields:
                raise GraphInvalid(
                    f"prompts: {name} has no field {{{field}}}",
                    f"fields: {', '.join(fields)}; {{{{{field}}}}} is a pair of braces",
                )
    return {**own, **given}


def fill(prompt: str, **fields: Any) -> str:
    """A prompt with its fields filled in; what is filled in is not looked at again."""
    return _FIELD.sub(lambda at: str(fields[at[2]]) if at[2] else f"{{{at[1]}}}", prompt)


def _fields(prompt: str) -> list[str]:
    return list(dict.fromkeys(at[2] for at in _FIELD.finditer(prompt) if at[2]))


def with_roles(team: Mapping[str, Any]) -> str:
    """A team for a prompt: a name a line, with the agent's role where it has one."""
    roles = {name: getattr(agent, "role", None) for name, agent in team.items()}
    return "\n".join(f"- {name}: {role}" if role else f"- {name}" for name, role in roles.items())


async def ask(agent: Any, prompt: str) -> str:
    """An agent's reply without any thinking.

    It is asked by `achat` where it has that, so that other work can run meanwhile, else by `chat`.
    """
    reply = agent.achat(prompt) if hasattr(agent, "achat") else agent.chat(prompt)
    return without_thoughts(str(await reply if inspect.isawaitable(reply) else reply))


async def ask_alone(agent: Any, prompt: str) -> str:
    """As `ask`, with nothing but the prompt: the chat so far is forgotten.

    What an agent knows is then the state alone, so a run that is resumed in another process, or
    forked, asks exactly what it would have asked here.
    """
    if hasattr(agent, "set_turns"):
        agent.set_turns([])
    return await ask(agent, prompt)


def text_of(message: Any) -> str:
    """The text of an entry of a messages channel: a text, or a dict with `content`."""
    if isinstance(message, dict):
        return str(message.get("content", ""))
    return str(message)


def last_of(messages: Sequence[Any] | None) -> str:
    """The text of the last message, "" where there is none."""
    return text_of(messages[-1]) if messages else ""


def history(messages: Sequence[Any] | None) -> str:
    """All messages, joined by newlines."""
    return "\n".join(text_of(message) for message in messages or ())


def task_of(state: WorkflowState, config: NodeConfig) -> str:
    """The task of an invocation: its first message.

    As it stands in `messages` while that holds it, so that an edit counts, else as the log has it.
    """
    task = config.first_input("messages")
    if task is not None:
        return text_of(task)
    messages = state["messages"]
    return text_of(messages[0]) if messages else ""


Team = Mapping[str, Any] | Sequence[Any]


class ChannelsMissing(GraphInvalid):
    """Channels of a user's own that lack some which the workflow writes: `missing`."""

    missing: tuple[str, ...] = ()


def named(agents: Team, what: str, taken: Iterable[str] = (), at_least: int = 1) -> dict[str, Any]:
    """Agents by name, in their order: a mapping as it is, a list by each agent's own name.

    Args:
        what: the parameter, for messages.
        taken: names that mean something else in the workflow.
        at_least: how many there must be.

    Raises:
        GraphInvalid: too few agents, what is no agent, or a name that is none, taken or there twice.
    """
    if isinstance(agents, str) or not isinstance(agents, (Mapping, Sequence)):
        raise GraphInvalid(f"{what} is {in_words(agents)}", "give a list of agents, or a dict by name")
    pairs: list[tuple[Any, Any]]
    if isinstance(agents, Mapping):
        pairs = list(agents.items())
    else:
        pairs = [(getattr(agent, "name", None), agent) for agent in agents]
    refused, known = {name.casefold() for name in (*taken, START, END)}, set[str]()
    for name, agent in pairs:
        mend = "give each a name of its own, as in {'writer': agent}"
        if not name:
            raise GraphInvalid(f"{what}: one has no name", mend)
        if not isinstance(name, str):
            raise GraphInvalid(f"{what}: the name {name!r} is {in_words(name)}", mend)
        if name.casefold() in known:
            raise GraphInvalid(f"{what}: {name!r} is there twice", mend)
        if name.casefold() in refused:
            raise GraphInvalid(f"{what}: the name {name!r} means something else here", "rename the agent")
        known.add(name.casefold())
        check_agent(f"{what}: {name!r}", agent)
    if len(pairs) < at_least:
        given = f"has {len(pairs)} agent{'s' if len(pairs) > 1 else ''}" if pairs else "is empty"
        raise GraphInvalid(f"{what} {given}", f"give at least {at_least}")
    return dict(pairs)


def check_agent(what: str, agent: Any) -> None:
    """Refuse what can't be asked; raises `GraphInvalid`.

    Args:
        what: who it is in the workflow.
    """
    if isinstance(agent, type) or not any(callable(getattr(agent, way, None)) for way in ("achat", "chat")):
        kind = f"the class {agent.__name__}" if isinstance(agent, type) else in_words(agent)
        raise GraphInvalid(f"{what} is {kind}", "give an Agent, or anything with chat(prompt)")


def channels_for(
    workflow: str,
    state_schema: Mapping[str, Channel] | None,
    own: Mapping[str, Channel],
    optional: Sequence[str] = (),
) -> dict[str, Channel]:
    """The channels to use: the user's where there are some, else the workflow's own.

    Raises:
        ChannelsMissing: the user's lack one of `own` that is not optional.
    """
    if state_schema is None:
        return dict(own)
    missing = [name for name in own if name not in state_schema and name not in optional]
    if missing:
        close = did_you_mean(missing[0], state_schema)
        error = ChannelsMissing(
            f"the state_schema lacks {', '.join(missing)}",
            f"the {workflow} workflow writes {'it' if len(missing) == 1 else 'them'}"
            + (f"; {close}" if close else ""),
        )
        error.missing = tuple(missing)
        raise error
    return dict(state_schema)


def at_least(name: str, value: int, least: int) -> None:
    """Check a bound; raises `GraphInvalid`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise GraphInvalid(f"{name}={value!r}: give a whole number of at least {least}")


def check_human(human: str | None, *known: str) -> None:
    """Check where a person decides: a wrong word must not leave them out; raises `GraphInvalid`."""
    if human is not None and human not in known:
        raise GraphInvalid(
            f"human={human!r} is no place where a person decides",
            f"give {' or '.join(f'human={word!r}' for word in known)}, or leave it out",
        )


def store_for(checkpointer: Store | None, human: str | None) -> Store | None:
    """Where threads live: with a human in memory by default, since a stopped run must be kept."""
    if checkpointer is None and human:
        from hitl_tui.stores import MemoryCheckpointer

        return MemoryCheckpointer()
    return checkpointer


def limits_for(iterations: int | None, given: Limits | None) -> Limits:
    """The limits of a workflow that takes `iterations` runs of nodes at most, with those that a user gives.

    The default of 25 iterations never cuts a workflow short.

    Raises:
        GraphInvalid: what is given are no limits.
    """
    check_compiled_with(None, None, None, given)
    if given is None or given.max_iterations == Limits().max_iterations:
        return replace(given or Limits(), max_iterations=iterations)
    return given


def ends_at(own: Termination | None, given: Termination | None) -> Termination | None:
    """The condition that ends a run: the workflow's own or the one that a user gives.

    Raises:
        GraphInvalid: what is given is no condition.
    """
    check_compiled_with(None, None, given, None)
    return own | given if own and given else own or given


def find_word(word: str, text: str) -> int:
    """Where `word` first stands in `text` as a whole word in any case: 1 for its beginning, 0 for nowhere."""
    match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    return match.start() + 1 if match else 0
