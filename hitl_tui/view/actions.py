"""What an action of the screen is, and the facts that decide whether it is enabled.

The tables of all actions are in `hitl_tui.verbs.actions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from hitl_tui.drivers.protocol import command_refusal
from hitl_tui.engine.commands import Command, Fork
from hitl_tui.engine.log.records import Status
from hitl_tui.view.keys import parsed_keys, written

Group = Literal["Run", "Look", "Change", "Travel", "Card", "Stage", "App"]
ScreenGroup = Literal[
    "Lists", "Pages", "Questions", "Forms", "Editor", "Find", "Comment", "Threads", "Queue", "Decisions",
    "Verify", "Compare", "Family", "Artifacts", "Agents", "Branches", "Breakpoints", "Workers",
    "Reader",
]  # fmt: skip


class Situation(msgspec.Struct, frozen=True):
    """The facts that decide which actions are enabled now.

    Args:
        elsewhere: another process runs it.
        undoing: it is being rolled back, and can only continue the rollback.
        inside: the shown step, or the running node, has branches or its own thread.
        no_agents: why the agents can't be shown, "" if they can.
        no_items: why there is no long-term store to view, "" if there is one.
        no_workers: why threads can't be handed to workers here, "" if they can.
        closed: why the next node, a subgraph, can't be entered; "" for any other node.
        owned: it is a subgraph's thread.
        found: a search has matches.
        frames: the place in the user's code where the node failed is known.
        card: the state of the review card: "" while it is closed, "aside" while keys go elsewhere, "sending"
            while a decision can be undone.
        voted: the text for a person who has voted on all requests, "" if a vote of theirs is wanted.
        typing: letters go into a text field.
        tainted, private: whether the selected channel is.
        show: a presentation is running, from a script or a tape.
        recorded: the screen is recorded, so nothing private may be shown.
        reviewing: a reviewer's view is shown, without graph, reducers and debugger.
        pace: the speed of the presentation, as "1.5×"; `held` says that it is paused.
        refusals: why commands can't be carried out now, by verb.
        key_hints: by action, the key to press.
    """

    open: bool = False
    status: Status = "pending"
    running: bool = False
    elsewhere: bool = False
    deciding: bool = False
    breakpoint: bool = False
    past: bool = False
    has_steps: bool = False
    limited: bool = False
    undoing: bool = False
    inside: bool = False
    no_agents: str = ""
    no_items: str = ""
    no_workers: str = ""
    closed: str = ""
    started_children: bool = False
    found: bool = False
    frames: bool = False
    show: bool = False
    pace: str = ""
    held: bool = False
    recorded: bool = False
    reviewing: bool = False
    refusals: Mapping[str, str] = {}
    card: Literal["", "open", "aside", "sending"] = ""
    voted: str = ""
    typing: bool = False
    tainted: bool = False
    private: bool = False
    key_hints: Mapping[str, str] = {}

    def refusal(self, command: type[Command[Any]]) -> str:
        """Return why a kind of command is refused now, "" if it is not."""
        return command_refusal(self.refusals, command)

    def key_hint(self, action_id: str) -> str:
        """Return the key to press for an action."""
        return self.key_hints.get(action_id, action_id)


DisabledReason = Callable[[Situation], str]


class Action(msgspec.Struct, frozen=True):
    """Something that a user can do on screen with a key.

    Args:
        id: its name in a keymap, as in "run.step".
        keys: default keys, separated by commas.
        label: one or two words for the footer.
        help: a sentence for the help screen and the palette.
        disabled_reason: returns why it is disabled now, "" if it is not.
        footer: its place in the footer, 0 for none; if room is short, higher ones go first.
        offered: the footer shows it only while it is enabled.
        on_card: its keys also work while the review card has the focus, besides those of the card itself.
        at_once: it runs, changes or sends something without asking first, so a pasted text must not do it.
        twin: the action whose key the footer shows beside its own.
        both: the footer's label for it and its twin together.
        debugs: it is for developers; a reviewer does not see it.
    """

    id: str
    keys: str
    label: str
    help: str
    group: Group | ScreenGroup
    disabled_reason: DisabledReason = lambda situation: ""
    footer: int = 0
    twin: str = ""
    both: str = ""
    offered: bool = False
    on_card: bool = False
    at_once: bool = False
    debugs: bool = False

    def is_shown(self, now: Situation) -> bool:
        """Whether footer, help and palette have it."""
        return not (self.debugs and now.reviewing)

    @property
    def default_keys(self) -> tuple[str, ...]:
        """Its default keys by Textual's names."""
        return parsed_keys(self.keys)

    @property
    def key(self) -> str:
        """The first default key, as a screen shows it."""
        return written(self.default_keys[0])

    @property
    def works_on_card(self) -> bool:
        """Whether its keys work while the review card has the focus."""
        return self.on_card or self.group in ("Card", "Stage")


def thread_open(now: Situation) -> str:
    """Return that no thread is open yet, "" if one is."""
    return "" if now.open else "no thread is open yet"


def when_open(disabled_reason: DisabledReason) -> DisabledReason:
    """Return why an action on the open thread is disabled."""
    return lambda now: thread_open(now) or disabled_reason(now)


def running_now(now: Situation) -> str:
    """Return that the thread runs, "" if it does not."""
    return f"it runs; {now.key_hint('run.pause')} pauses it" if now.running else ""


def not_newest(now: Situation) -> str:
    """Return that the shown step is not the newest one."""
    return f"this is not the newest step; {now.key_hint('app.back')} goes back to it"


def has_steps(now: Situation) -> str:
    """Return that the thread has no steps yet, "" if it has some."""
    return thread_open(now) or ("" if now.has_steps else "there is no step yet")


@when_open
def can_fork(now: Situation) -> str:
    """Return why no step can be forked."""
    return now.refusal(Fork) or ("" if now.has_steps else "there is no step to fork from yet")


def card_open(now: Situation) -> str:
    """Return that no review card is open, "" if one is."""
    return "" if now.card else "no decision is being made"


def card_has_keys(now: Situation) -> str:
    """Return that keys do not go to the review card."""
    aside = f"keys go to another pane: {now.key_hint('change.decide')} returns to the card"
    return aside if now.card == "aside" else card_open(now)
