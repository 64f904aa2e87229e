"""What the ready-made workflows share: prompts, calls of agents, messages, channels."""

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
    """Return the prompts of a workflow, with a user's replacements.

    A name in braces is a field that is filled in, `{{name}}` stands for `{name}`; other braces are plain
    text.

    Args:
        own: the workflow's prompts by name; a replacement may use the same fields.

    Raises:
        GraphInvalid: no such prompt, not text, or a field that the prompt does not have.
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
    """Return a prompt with its fields filled in; braces in the filled-in texts are not replaced."""
    return _FIELD.sub(lambda at: str(fields[at[2]]) if at[2] else f"{{{at[1]}}}", prompt)


def _fields(prompt: str) -> list[str]:
    return list(dict.fromkeys(at[2] for at in _FIELD.finditer(prompt) if at[2]))


def with_roles(team: Mapping[str, Any]) -> str:
    """Return a team for a prompt: one name per line, with the agent's role if it has one."""
    roles = {name: getattr(agent, "role", None) for name, agent in team.items()}
    return "\n".join(f"- {name}: {role}" if role else f"- {name}" for name, role in roles.items())


async def ask(agent: Any, prompt: str) -> str:
    """Return an agent's reply without thinking.

    It is called by `achat` if it has that, so that other work can run meanwhile, otherwise by `chat`.
    """
    reply = agent.achat(prompt) if hasattr(agent, "achat") else agent.chat(prompt)
    return without_thoughts(str(await reply if inspect.isawaitable(reply) else reply))


async def ask_alone(agent: Any, prompt: str) -> str:
    """Do what `ask` does, without the chat so far.

    Then an agent knows only what is in the state, so a run that is resumed in another process, or forked,
    sends exactly the same prompts.
    """
    if hasattr(agent, "set_turns"):
        agent.set_turns([])
    return await ask(agent, prompt)


def text_of(message: Any) -> str:
    """Return the text of an entry of a messages channel: a text, or a dict with `content`."""
    if isinstance(message, dict):
        return str(message.get("content", ""))
    return str(message)


def last_of(messages: Sequence[Any] | None) -> str:
    """Return the text of the last message, "" if there is none."""
    return text_of(messages[-1]) if messages else ""


def history(messages: Sequence[Any] | None) -> str:
    """Return all messages, joined by newlines."""
    return "\n".join(text_of(message) for message in messages or ())


def task_of(state: WorkflowState, config: NodeConfig) -> str:
    """Return the task of an invocation: its first message.

    It is the message as it is in `messages`, after edits; once that has dropped it, as the log has it.
    """
    task = config.first_input("messages")
    if task is not None:
        return text_of(task)
    messages = state["messages"]
    return text_of(messages[0]) if messages else ""


Team = Mapping[str, Any] | Sequence[Any]


class ChannelsMissing(GraphInvalid):
    """A user's channels lack some that the workflow writes: `missing`."""

    missing: tuple[str, ...] = ()


def agents_by_name(agents: Team, what: str, taken: Iterable[str] = (), at_least: int = 1) -> dict[str, Any]:
    """Return agents by name, in their order: a mapping as it is, a list by each agent's own name.

    Args:
        what: the parameter, for messages.
        taken: names that have another meaning in the workflow.
        at_least: the least number of agents.

        Raises:
            GraphInvalid: too few agents, not an agent, or an invalid, taken or repeated name.
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
        fix = "give each a name of its own, as in {'writer': agent}"
        if not name:
            raise GraphInvalid(f"{what}: an agent has no name", fix)
        if not isinstance(name, str):
            raise GraphInvalid(f"{what}: the name {name!r} is {in_words(name)}", fix)
        if name.casefold() in known:
            raise GraphInvalid(f"{what}: {name!r} is used twice", fix)
        if name.casefold() in refused:
            raise GraphInvalid(f"{what}: the name {name!r} means something else here", "rename the agent")
        known.add(name.casefold())
        check_agent(f"{what}: {name!r}", agent)
    if len(pairs) < at_least:
        given = f"has {len(pairs)} agent{'s' if len(pairs) > 1 else ''}" if pairs else "is empty"
        raise GraphInvalid(f"{what} {given}", f"give at least {at_least}")
    return dict(pairs)


def check_agent(what: str, agent: Any) -> None:
    """Refuse an agent that can't be called; raises `GraphInvalid`.

    Args:
        what: its part in the workflow.
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
    """Return the channels to use: the user's if there are any, otherwise the workflow's own.

    Raises:
        ChannelsMissing: the user's channels lack one of `own` that is not optional.
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
    """Check where a person decides, so that a misspelling does not leave them out; raises `GraphInvalid`."""
    if human is not None and human not in known:
        raise GraphInvalid(
            f"human={human!r} is not a place where a person decides",
            f"give {' or '.join(f'human={word!r}' for word in known)}, or leave it out",
        )


def store_for(checkpointer: Store | None, human: str | None) -> Store | None:
    """Return the store of threads; with `human`, by default one in memory."""
    if checkpointer is None and human:
        from hitl_tui.stores import MemoryCheckpointer

        return MemoryCheckpointer()
    return checkpointer


def limits_for(iterations: int | None, given: Limits | None) -> Limits:
    """Return the limits of a workflow with at most `iterations` node runs, with a user's changes.

    The default of 25 iterations never cuts a workflow short.

    Raises:
        GraphInvalid: the user's value is not `Limits`.
    """
    check_compiled_with(None, None, None, given)
    if given is None or given.max_iterations == Limits().max_iterations:
        return replace(given or Limits(), max_iterations=iterations)
    return given


def ends_at(own: Termination | None, given: Termination | None) -> Termination | None:
    """Return the condition that ends a run: the workflow's own, or the user's, too.

    Raises:
        GraphInvalid: the user's value is not a condition.
    """
    check_compiled_with(None, None, given, None)
    return own | given if own and given else own or given


def find_word(word: str, text: str) -> int:
    """Return where `text` first has `word` as a whole word in any case: 1 for the start, 0 for nowhere."""
    match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    return match.start() + 1 if match else 0
