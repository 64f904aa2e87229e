"""Give an agent another model, instructions or temperature.

The change applies from the next step on, and is logged. SETTING is model, temperature, instructions or
api_base. VALUE null, or none at all, restores the graph's own; "instructions=" leaves the agent without
any. With --fork the thread stays as it is: the agent's newest step (up to STEP) is run again in a new
thread. `hitl-tui agents THREAD` shows the agents.

    hitl-tui change-agent r1 writer model=ollama/llama3.2
    hitl-tui change-agent r1@4 writer temperature=0 --fork
    hitl-tui change-agent r1 writer --reset
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from hitl_tui.engine.commands import ConfigureAgents, Fork, Step
from hitl_tui.errors import HitlError, UsageError
from hitl_tui.verbs.conversation import (
    NOTE,
    Ask,
    AskChoice,
    AskField,
    AskReply,
    At,
    Consequences,
    Do,
    Follow,
    Open,
    Report,
    Show,
    Talk,
    Verb,
    Work,
)
from hitl_tui.view.actions import Action, can_fork
from hitl_tui.view.answers import read_setting
from hitl_tui.view.family import free_name
from hitl_tui.view.repeats import fork_lines
from hitl_tui.view.shapes import AgentsDocument, ForkDocument, RepeatsDocument

if TYPE_CHECKING:
    from hitl_tui.engine.thread.agent_settings import AgentInfo

_AGENT: Final = AskField("agent", "the agent", required=True)
_WITH_SETTINGS: Final = ("fork", "next")
_SETTINGS: Final = (
    AskField("model", "model, as provider/model; empty: the graph's", pair=True, only_for=_WITH_SETTINGS),
    AskField("temperature", "temperature, 0 to 2; empty: the graph's", pair=True, only_for=_WITH_SETTINGS),
    AskField("instructions", "instructions", pair=True, long=True, only_for=_WITH_SETTINGS),
    AskField("api_base", "address of the provider", pair=True, rare=True),
)
_NEW: Final = AskField(
    "new", "name of the fork", about="The fork's name, THREAD-b by default.", metavar="NAME", rare=True
)
_NOTE: Final = replace(NOTE, rare=True)
_FORK: Final = AskChoice(
    "fork", "f", "", "to compare both", flag="Run the agent's step again in a fork with them."
)
_NEXT: Final = AskChoice("next", "n", "change this thread", "from its next step on")
_RESET: Final = AskChoice(
    "reset", "b", "back to the graph's settings", flag="Restore the graph's own settings."
)
_OTHER: Final = AskChoice("other", "a", "")


class _Place(NamedTuple):
    """Where a thread is shown, and the name that a fork of it would get."""

    thread: str
    step: int
    is_past: bool
    fork: str


class _Trial(NamedTuple):
    """The step at which a trial forks, and what it runs."""

    base: int
    label: str


async def _talk(at: At) -> Talk:
    """Ask for other settings of an agent, until they are accepted; then try them in a fork, or use them."""
    place = await _place(at)
    agents, typed = await _agents(at, place), dict[str, str]()
    refused: HitlError | None = None
    while True:
        info = agents[0]
        trial = await _trial(at, info.name, place.step)
        reply = yield replace(
            _question(at, place, agents, trial), fields=_fields(info, place, typed), refused=refused
        )
        if reply is None:
            return
        if reply.choice == _OTHER.name:
            agents, typed, refused = [*agents[1:], info], {}, None
            continue
        # A field that was not typed this time has the text that it had.
        typed, refused = typed | reply.fields, None
        reply = AskReply(reply.choice, typed)
        try:
            settings = _settings(at, info, reply.choice, typed)
            change = ConfigureAgents({info.name: settings}, at.actor, reply.text("note"))
            lacks = yield Work("checking whether it can be called", partial(_lacks, at, change))
            if lacks and not (at.leaves or at.given or at.chosen):
                anyway = AskChoice("anyway", _KEYS[reply.choice], "use these settings all the same")
                if (yield Ask(info.name, (f"{lacks}.",), (anyway,))) is None:
                    continue
                lacks = ""
            warnings = (f"warning: {lacks}",) if lacks else ()
            if reply.choice != _FORK.name:
                yield Do(change)
                yield await _changed(at, info.name, settings, warnings)
                return
            fork = Fork(
                trial.base, reply.text("new") or place.fork, None, change.agents, at.actor, change.note
            )
            new = yield Do(fork)
        except HitlError as error:
            refused = error
        else:
            break
    driver = yield Open(new)
    yield Show(
        f"Forked {place.thread!r} at step {trial.base} as {new!r}",
        document=ForkDocument(thread=new, parent=place.thread, step=trial.base),
        hint=("look.compare", f"compares it with {place.thread}"),
        more=warnings,
    )
    yield Follow(Step(), driver)


_KEYS: Final = {choice.name: choice.key for choice in (_FORK, _NEXT, _RESET)}


async def _place(at: At) -> _Place:
    """Return where the thread is shown.

    Raises:
        UsageError: a subcommand named a past step, but no fork.
    """
    head, thread = (await at.driver.snapshot()).progress.head, at.driver.thread_id
    is_past = at.step is not None and at.step != head
    if is_past and at.leaves and at.chosen != "fork":
        raise UsageError(
            f"step {at.step} is not the newest step of {thread!r}", "leave it out, or try it with --fork"
        )
    taken = {relative.thread_id for relative in await at.driver.family()}
    return _Place(thread, head if at.step is None else at.step, is_past, free_name(thread, taken))


async def _agents(at: At, place: _Place) -> list[AgentInfo]:
    """Return the agents that can be changed; first the one that is meant, else the author of the step.

    Raises:
        UsageError: there is none, or not the one that is meant.
    """
    from hitl_tui.view.agents import find_agent

    infos = await at.driver.agents()
    wanted = at.given.get("agent") or at.agent
    if wanted and not find_agent(infos, wanted, at.hub.no_agents).can_change:
        raise UsageError(f"agent {wanted!r} can't be changed", "it is not a hitl-tui Agent")
    agents = [info for info in infos if info.can_change]
    if not agents:
        raise UsageError("the graph has no agents that can be changed", at.hub.no_agents)
    if not wanted:
        points = await at.driver.history(place.step + 1, 1)
        wanted = next((use.agent for point in points for use in reversed(point.uses)), "")
    first = next((number for number, info in enumerate(agents) if info.name == wanted), 0)
    return agents[first:] + agents[:first]


async def _trial(at: At, agent: str, shown: int) -> _Trial:
    """Return the agent's newest step up to the shown one, to run again; the next one if it has none."""
    before, page = shown + 1, 50
    while points := await at.driver.history(before, page):
        for point in points:
            if point.step > 0 and any(use.agent == agent for use in point.uses):
                return _Trial(point.step - 1, f"run step {point.step} again in a fork")
        before, page = points[-1].step, 1000
    return _Trial(max(shown, 0), f"run the step after {max(shown, 0)} in a fork")


def _question(at: At, place: _Place, agents: list[AgentInfo], trial: _Trial) -> Ask:
    info = agents[0]

    async def find_out() -> Consequences:
        preview = await at.driver.preview(Fork(trial.base, place.fork))
        document = RepeatsDocument(thread=place.thread, repeats=preview.repeats)
        return Consequences(tuple(fork_lines(preview)), document)

    choices = [replace(_FORK, label=trial.label)]
    if not place.is_past:
        choices += [_NEXT, _RESET] if info.changed else [_NEXT]
    if len(agents) > 1 and not (at.leaves or at.given.get("agent")):
        choices.append(replace(_OTHER, label=f"another agent: {agents[1].name}"))
    return Ask(
        "Try other settings",
        (f"{info.name} now uses {info.model}.",),
        tuple(choices),
        # A subcommand that forks nothing has no such consequences.
        find_out=find_out if not at.leaves or at.chosen == _FORK.name else None,
    )


def _fields(info: AgentInfo, place: _Place, typed: Mapping[str, str]) -> tuple[AskField, ...]:
    texts = {**_now(info), "new": place.fork, **typed}
    return tuple(
        replace(field, value=texts.get(field.name, ""), rare=field.rare and field.name not in typed)
        for field in (*_SETTINGS, _NEW, _NOTE)
    )


def _now(info: AgentInfo) -> dict[str, str]:
    temperature = "" if info.temperature is None else f"{info.temperature:g}"
    return {"model": info.model, "temperature": temperature, "instructions": info.instructions}


def _settings(at: At, info: AgentInfo, choice: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings to change; None restores the graph's.

    Raises:
        UsageError: there are none, or one can't be read.
    """
    if choice == "reset":
        return dict.fromkeys(info.changed)
    now = _now(info)
    settings = {
        field.name: read_setting(field.name, typed[field.name])
        for field in _SETTINGS
        if field.name in typed
        and (field.name in at.given or typed[field.name].strip() != now.get(field.name, "").strip())
    }
    if not settings:
        raise UsageError("nothing is changed yet", "give another model, temperature or instructions")
    return settings


async def _lacks(at: At, change: ConfigureAgents, _report: Report) -> str:
    """Return what is known to prevent a call with these settings."""
    return " ".join((await at.driver.preview(change)).problems.values())


async def _changed(at: At, agent: str, settings: Mapping[str, Any], warnings: tuple[str, ...]) -> Show:
    # It loads how agents are shown, which the first paint does not need.
    from hitl_tui.view.agents import change_words

    return Show(
        f"{agent}: {change_words(settings)}, from the next step on",
        document=AgentsDocument(thread=at.driver.thread_id, agents=await at.driver.agents()),
        more=warnings,
    )


VERB = Verb(
    ConfigureAgents,
    _talk,
    Action(
        "change.agent",
        "T",
        "Try",
        "Give an agent another model or instructions, here or in a fork",
        "Change",
        can_fork,
    ),
    after="change.fork",
    letter="T",
    arguments=(_AGENT,),
    pairs="SETTING=VALUE",
    options=(*_SETTINGS, _NEW, _NOTE),
    choices=(_FORK, _RESET),
    at_step=True,
    builds=True,
    alone="ask for other settings of the agent that wrote the newest step",
)
