"""What the ready-made workflows share: names of agents, channels that must be there, a word in a reply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hitl_tui.engine.channels.channel import Channel
from hitl_tui.engine.log.records import END, START
from hitl_tui.engine.log.store import Store
from hitl_tui.errors import GraphInvalid
from hitl_tui.suggest import did_you_mean

Team = Mapping[str, Any] | Sequence[Any]


class ChannelsMissing(GraphInvalid):
    """Channels of a user's own that lack some which the workflow writes: `missing`."""

    missing: tuple[str, ...] = ()


def named(agents: Team, what: str, taken: Iterable[str] = ()) -> dict[str, Any]:
    """Agents by name, in their order: a mapping as it is, a list by each agent's own name.

    Args:
        what: the parameter, for messages.
        taken: names that mean something else in the workflow.

    Raises:
        GraphInvalid: no agent, an agent without a name, or a name that is taken or there twice.
    """
    if isinstance(agents, Mapping):
        team = dict(agents)
    else:
        names = [getattr(agent, "name", None) for agent in agents]
        twice = next((name for name in names if names.count(name) > 1), None)
        if not all(names) or twice:
            which = f"{twice!r} is there twice" if twice else "one has no name"
            raise GraphInvalid(f"{what}: {which}", "give each a name of its own, as in {'writer': agent}")
        team = dict(zip(map(str, names), agents, strict=True))
    if not team:
        raise GraphInvalid(f"{what} is empty", "give at least one agent")
    refused = {name.lower() for name in (*taken, START, END)}
    for name in team:
        if name.lower() in refused:
            raise GraphInvalid(f"{what}: the name {name!r} means something else here", "rename the agent")
    return team


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


def find_word(word: str, text: str) -> int:
    """Where `word` first stands in `text` as a whole word in any case: 1 for its beginning, 0 for nowhere."""
    found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    return found.start() + 1 if found else 0
