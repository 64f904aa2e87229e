"""The tables of all user actions, from which keys, footer, help and command palette are made."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Literal

import msgspec

from hitl_tui.drivers.protocol import command_refusal
from hitl_tui.engine.commands import (
    Answer,
    Cancel,
    Command,
    Declassify,
    ExtendLimits,
    Fork,
    PrepareGraph,
    Rerun,
    Reveal,
    Rollback,
    Run,
    UpdateState,
    WriteTest,
)
from hitl_tui.engine.log.records import Status
from hitl_tui.suggest import did_you_mean

_RENAMED: Final = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
_NAMED: Final = frozenset(
    {
        "up", "down", "left", "right", "home", "end", "pageup", "pagedown", "insert", "delete",
        "backspace", "enter", "escape", "tab", "space", *(f"f{number}" for number in range(1, 25)),
    }
)  # fmt: skip
_MODIFIERS: Final = ("ctrl", "alt", "shift")
_SAME_AS: Final = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+h": "backspace",
    "ctrl+left_square_bracket": "escape",
}
_SHORT: Final = {
    "escape": "esc", "pageup": "pgup", "pagedown": "pgdn", "delete": "del", "insert": "ins",
    "up": "↑", "down": "↓", "left": "←", "right": "→",
}  # fmt: skip
_LONG: Final = {short: name for name, short in _SHORT.items()}


class NoKey(ValueError):
    """The text names no key; the message says why."""


def _name(char: str) -> str:
    """Return Textual's name of the key that types a character."""
    if char.isalnum():
        return char
    name = unicodedata.name(char, char).lower().replace("-", "_").replace(" ", "_")
    return _RENAMED.get(name, name)


_MARKS: Final = {_name(char): char for char in string.punctuation}


def parse_key(text: str) -> str:
    """Return Textual's name of the key that a text names: "?" is `question_mark`; "esc" and "↑" work too.

    Raises:
        NoKey: there is no such key, or terminals can't distinguish it from another one.
    """
    *modifiers, base = [text] if len(text) == 1 else text.split("+")
    for modifier in modifiers:
        if modifier not in _MODIFIERS:
            raise NoKey(_unknown(text, modifier, _MODIFIERS))
    base = _LONG.get(base, base)
    if len(modifiers) != len(set(modifiers)):
        raise NoKey(f"{text!r} names a modifier twice")
    if len(base) == 1 and base.isprintable() and not base.isspace():
        base = _name(base)
    elif base not in _NAMED and base not in _MARKS:
        raise NoKey(_unknown(text, base, (*_NAMED, *_MARKS)))
    if "shift" in modifiers and len(base) == 1 and base.isalpha():
        modifiers.remove("shift")
        base = base.upper()
    key = "+".join([*sorted(modifiers, key=_MODIFIERS.index), base])
    if same := _SAME_AS.get(key.lower()):
        raise NoKey(f"{text!r} is the same as {same} to a terminal")
    return key


@cache
def _parsed(keys: str) -> tuple[str, ...]:
    """Return Textual's names of default keys; cached for bindings, keymap and footer."""
    return tuple(parse_key(key) for key in keys.split(","))


def written(key: str) -> str:
    """Return a key as a screen shows it: `question_mark` as "?", `ctrl+p` as "^p"."""
    *modifiers, base = key.split("+")
    shown = _MARKS.get(base) or _SHORT.get(base) or (base.upper() if base[1:].isdigit() else base)
    if modifiers == ["ctrl"]:
        return f"^{shown}"
    return "+".join([*modifiers, shown])


def spelled(key: str) -> str:
    """Return a key as the settings write it and `parse_key` reads it: "ctrl+p", "?", "comma"."""
    *modifiers, base = key.split("+")
    return key if modifiers or base == "comma" else _MARKS.get(base, base)


def types_text(key: str) -> bool:
    """Whether a key writes a character into a text field."""
    return len(key) == 1 or key in _MARKS or key == "space" or ("+" not in key and key not in _NAMED)


def _unknown(text: str, part: str, known: tuple[str, ...]) -> str:
    hint = did_you_mean(part, known)
    return f"there is no key {text!r}" + (f"; {hint}" if hint else "")


Group = Literal["Run", "Look", "Change", "Travel", "Card", "Stage", "App"]
ScreenGroup = Literal[
    "Lists", "Pages", "Questions", "Forms", "Editor", "Find", "Comment", "Threads", "Queue", "Verify",
    "Compare", "Family", "Artifacts", "Agents", "Branches", "Breakpoints", "Workers",
]  # fmt: skip


class Situation(msgspec.Struct, frozen=True):
    """The facts that decide which actions are enabled now.

    Args:
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
        pace: the speed of the presentation, as "1.5×"; `held` says that it is paused.
        refusals: why commands can't be carried out now, by verb.
        key_hints: by action, the key to press, if it is not the default key.
    """

    open: bool = False
    status: Status = "pending"
    running: bool = False
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
        return self.key_hints.get(action_id) or BY_ID[action_id].key


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
        twin: the action whose key the footer shows beside its own.
        both: the footer's label for it and its twin together.
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

    @property
    def default_keys(self) -> tuple[str, ...]:
        """Its default keys by Textual's names."""
        return _parsed(self.keys)

    @property
    def key(self) -> str:
        """The first default key, as a screen shows it."""
        return written(self.default_keys[0])


def _open(now: Situation) -> str:
    return "" if now.open else "no thread is open yet"


def _when_open(disabled_reason: DisabledReason) -> DisabledReason:
    """Return why an action on the open thread is disabled."""
    return lambda now: _open(now) or disabled_reason(now)


@_when_open
def _can_run(now: Situation) -> str:
    if refused := now.refusal(Run):
        return refused
    if now.past:
        back = now.key_hint("app.back")
        return (
            f"this is not the newest step; {back} goes back to it, {now.key_hint('change.fork')} forks here"
        )
    if now.running:
        return f"already running; {now.key_hint('run.pause')} pauses it"
    if now.undoing and now.status not in ("completed", "cancelled"):
        return f"it is being rolled back; {now.key_hint('change.rollback')} continues that"
    if now.deciding and not now.breakpoint:
        return now.voted or f"it waits for your decision; {now.key_hint('change.decide')} decides"
    if now.limited:
        return f"a limit stopped the run; {now.key_hint('change.extend')} raises it"
    if now.status in ("completed", "cancelled"):
        return f"the run is {now.status}; {now.key_hint('change.fork')} forks from any of its steps"
    return ""


def _agents(now: Situation) -> str:
    return _open(now) or now.no_agents


def _items(now: Situation) -> str:
    return _open(now) or now.no_items


def _workers(now: Situation) -> str:
    return _open(now) or now.no_workers


def _can_enter(now: Situation) -> str:
    if now.closed:
        return f"it runs as one step; {now.closed}"
    return _can_run(now)


def _can_break(now: Situation) -> str:
    return _open(now) or now.refusal(Run)


@_when_open
def _can_pause(now: Situation) -> str:
    return now.refusal(Run) or (
        "" if now.running else f"{now.key_hint('run.pause')} pauses a run, and nothing is running"
    )


@_when_open
def _can_edit(now: Situation) -> str:
    if not now.has_steps:
        return "there is nothing to edit yet"
    if refused := now.refusal(Fork if now.past else UpdateState):
        return refused
    if now.running and not now.past:
        return f"it runs; {now.key_hint('run.pause')} pauses it, then {now.key_hint('change.edit')} edits"
    return ""


@_when_open
def _can_decide(now: Situation) -> str:
    if not now.deciding:
        return "nothing waits for a decision"
    if now.breakpoint:
        step, resume = now.key_hint("run.step"), now.key_hint("run.continue")
        return f"it only stopped here; {step} steps, {resume} continues"
    if refused := now.refusal(Answer) or now.voted:
        return refused
    if now.card in ("open", "sending"):
        return "its card is open"
    return _not_newest(now) if now.past else ""


@_when_open
def _can_fork(now: Situation) -> str:
    return now.refusal(Fork) or ("" if now.has_steps else "there is no step to fork from yet")


def _has_steps(now: Situation) -> str:
    return _open(now) or ("" if now.has_steps else "there is no step yet")


def _found(now: Situation) -> str:
    return "" if now.found else f"no search yet; press {now.key_hint('look.find')}"


@_when_open
def _frames(now: Situation) -> str:
    return "" if now.frames or now.running else "no code of yours has failed or returned here"


@_when_open
def _can_cancel(now: Situation) -> str:
    over = now.status in ("completed", "cancelled")
    return now.refusal(Cancel) or (f"the run is {now.status} already" if over else "")


@_when_open
def _can_roll_back(now: Situation) -> str:
    return now.refusal(Rollback) or (_running(now) if now.has_steps else "there is nothing to undo yet")


@_when_open
def _can_check(now: Situation) -> str:
    # Reducing and routing again needs the graph.
    return now.refusal(PrepareGraph) or ("" if now.has_steps else "there is nothing to check yet")


@_when_open
def _can_extend(now: Situation) -> str:
    return now.refusal(ExtendLimits) if now.limited else "no limit has stopped the run"


def _inside(now: Situation) -> str:
    return _open(now) or ("" if now.inside else "no step here has branches or a subgraph thread")


def _owned(now: Situation) -> str:
    return _open(now) or ("" if now.started_children else "not a subgraph thread")


@_when_open
def _can_test(now: Situation) -> str:
    return now.refusal(WriteTest) or _has_steps(now)


@_when_open
def _can_run_again(now: Situation) -> str:
    return now.refusal(Rerun) or _has_steps(now) or _running(now)


def _can_reveal(now: Situation) -> str:
    if now.recorded:
        return "the screen is recorded; private values stay hidden"
    if not now.private:
        return _open(now) or "the selected channel is not private; its value is shown"
    return _has_steps(now) or now.refusal(Reveal) or _running(now)


def _can_declassify(now: Situation) -> str:
    if not now.tainted:
        return _open(now) or "the selected channel is not tainted"
    if now.past:
        return _not_newest(now)
    return now.refusal(Declassify) or _can_edit(now)


def _past(now: Situation) -> str:
    return "" if now.past else "this is the newest step"


def _running(now: Situation) -> str:
    return f"it runs; {now.key_hint('run.pause')} pauses it" if now.running else ""


def _not_newest(now: Situation) -> str:
    return f"this is not the newest step; {now.key_hint('app.back')} goes back to it"


def _show(now: Situation) -> str:
    return "" if now.show else "no presentation is running; `hitl-tui present` or `hitl-tui play` starts one"


def _card(now: Situation) -> str:
    return "" if now.card else "no decision is being made"


def _card_heeds(now: Situation) -> str:
    aside = f"keys go to another pane: {now.key_hint('change.decide')} returns to the card"
    return aside if now.card == "aside" else _card(now)


def _unsent(now: Situation) -> str:
    return "" if now.card == "sending" else "no decision is being sent"


ACTIONS: Final[tuple[Action, ...]] = (
    Action("run.step", "s,f10", "Step", "Run one node; on a failed node, try it again", "Run", _can_run, 1),
    Action("run.into", "f11", "Into", "Step into a subgraph, before its first node", "Run", _can_enter),
    Action("run.out", "shift+f11", "Out", "Finish this thread and the node that runs it", "Run", _owned),
    Action("run.to", "G,f6", "To node", "Run, and stop before the node chosen in the graph", "Run",
           _can_run),
    Action("run.continue", "c,f5", "Continue", "Run until something waits, fails or ends", "Run",
           _can_run, 2),
    Action("run.pause", "p", "Pause", "Stop at the next node boundary", "Run", _can_pause, 5),
    Action("run.cancel", "x", "Cancel", "Stop the running node, or cancel the thread", "Run", _can_cancel),
    Action("run.break", "b,f9", "Break", "Stop before a node: the one chosen in the graph, or choose one",
           "Run", _can_break, 8),
    Action("run.breaks", "B", "Breakpoints", "All breakpoints: add, change, switch off, remove",
           "Run", _can_break),
    Action("run.again", "R", "Again", "Run again in a fork, from where the saved code differs",
           "Run", _can_run_again),
    Action("change.decide", "d", "Decide", "Answer the request that waits", "Change", _can_decide, 3),
    Action("change.edit", "e", "Edit", "Edit the selected channel; at a past step this forks", "Change",
           _can_edit, 4),
    Action("change.fork", "f", "Fork", "Make a new thread from the shown step", "Change", _can_fork, 6),
    Action("change.agent", "T", "Try", "Give an agent another model or instructions, here or in a fork",
           "Change", _can_fork),
    Action("change.extend", "m", "Raise limit", "Raise the limit that stopped the run, then continue",
           "Change",
           _can_extend, 3, offered=True),
    Action("change.allowed", "+", "Allowed", "Calls that need no approval in this thread; revoke one",
           "Change", _open),
    Action("change.rollback", "U", "Roll back", "Undo the side effects of the nodes, last one first",
           "Change",
           _can_roll_back),
    Action("look.check", "V", "Verify", "Check the log, reduce it again or replay it; go to any finding",
           "Look", _can_check),
    Action("look.text", "1", "Text", "Show the value as text", "Look", _open),
    Action("look.diff", "D,2", "Diff", "Show what changed in the value since its last version", "Look",
           _open, 11),
    Action("look.json", "3", "JSON", "Show the value as JSON", "Look", _open),
    Action("look.fold", "space", "Fold", "In JSON: fold or unfold the part under the cursor", "Look",
           _open),
    Action("look.folds", "*", "Fold all", "In JSON: fold or unfold all parts", "Look",
           _open),
    Action("look.blame", "4", "Blame", "Show who wrote each line of the value", "Look", _open),
    Action("look.find", "/", "Find", "Find a text in any step or, after ?, when a condition became true",
           "Look", _has_steps),
    Action("look.next", ">", "Next match", "Go to the next match", "Look", _found),
    Action("look.previous", "<", "Previous match", "Go to the previous match", "Look", _found),
    Action("look.watch", "W", "Watch", "Watch an expression above the channels, or stop watching it",
           "Look", _open),
    Action("look.compare", "=", "Compare", "Compare a fork with its parent's end, or two steps", "Look",
           _has_steps),
    Action("look.failure", "5", "Where",
           "Show where the node failed or is now: its lines and local variables", "Look",
           _frames),
    Action("look.editor", "E", "$EDITOR",
           "Open your editor where the node failed, or else at the node of the shown step", "Look",
           _has_steps),
    Action("look.family", "H", "Family", "All forks and what they were forked from, as a tree", "Look",
           _has_steps),
    Action("look.view", "v", "Views", "Switch between text, diff, JSON and blame", "Look", _open),
    Action("look.costs", "$", "Costs",
           "Show what the thread has cost and how long it took, by agent, node and step", "Look",
           _open),
    Action("look.copy", "y", "Copy", "Copy the value, its path, what changed, the card or a command", "Look",
           _open),
    Action("look.artifacts", "L", "Artifacts", "List, read and save the artifacts of nodes", "Look",
           _has_steps),
    Action("look.items", "ctrl+k", "Items", "View the items of the graph's long-term store", "Look",
           _items),
    Action("look.test", "ctrl+t", "Test", "Write a pytest of the shown step, or of what failed", "Look",
           _can_test),
    Action("look.followed", "F", "Followed", "What followed your decisions, and how to undo one", "Look",
           _has_steps),
    Action("look.taint", "M", "Taint", "Show untrusted data, and how it got into the channel",
           "Look", _has_steps),
    Action("look.inside", "I", "Inside", "Open the branches or the thread inside the shown step or node",
           "Look", _inside),
    Action("look.enter", "enter", "Open", "Open the thread of the shown step, or what is inside it", "Look",
           _open),
    Action("look.outside", "backspace", "Outside", "Go from a subgraph thread to its parent",
           "Look", _owned),
    Action("look.contract", "i", "Contract", "What the node may read and write, what it did, and its route",
           "Look",           _has_steps),
    Action("look.channels", "&", "Filter channels",
           "Show only channels whose name contains a word, or those that the step changed",
           "Look", _open),
    Action("look.reveal", "o", "Reveal", "Show the selected private value; that you looked is logged",
           "Look", _can_reveal),
    Action("change.declassify", "Y", "Declassify", "Say why the selected tainted channel may be trusted",
           "Change", _can_declassify),
    Action("look.agents", "A", "Agents", "Models, use and chat turns of each agent; let one forget them",
           "Look", _agents),
    Action("look.tab", "w", "Panes", "Next pane, if they don't all fit; else versions merged or side by side",
           "Look"),
    Action("look.older", "{", "Change before",
           "Go to the channel's previous change; on a card, to its previous version",
           "Look", _has_steps),
    Action("look.newer", "}", "Change after",
           "Go to the channel's next change; on a card, to its next version",
           "Look", _has_steps),
    Action("travel.back", "[,h,left", "Earlier", "Show the previous step", "Travel", _open, 7, "travel.on",
           "Steps"),
    Action("travel.on", "],l,right", "Later", "Show the next step", "Travel", _open),
    Action("travel.first", "0,home", "Oldest", "Show the oldest loaded step", "Travel", _open),
    Action("travel.head", "g,end", "Newest", "Back to the newest step", "Travel", _past),
    Action("travel.step", "#", "Go to step", "Show the step with a number", "Travel", _has_steps),
    Action("travel.up", "K", "Thread above", "Go to the thread above in the timeline", "Travel", _open),
    Action("travel.down", "J", "Thread below", "Go to the thread below in the timeline", "Travel", _open),
    Action("card.reason", "tab,/", "Reason", "Type a reason, or the answer", "Card",
           _card_heeds, footer=1, offered=True),
    Action("card.comment", "c", "Comment", "Comment on a passage; it is sent with the decision", "Card",
           _card, footer=2, offered=True),
    Action("card.uncomment", "C", "Undo comment", "Undo your last comment", "Card", _card),
    Action("card.edit", "e", "Edit draft", "Edit what is decided about, then decide", "Card", _card),
    Action("card.claim", "k", "Claim", "Claim the request for a while, or give it back", "Card",
           _card_heeds, footer=3, offered=True),
    Action("card.hand", "@", "Hand over", "Hand the request over to somebody, with a note", "Card",
           _card, footer=4, offered=True),
    Action("card.allow", "+", "Allow", "Allow this tool call, or all like it, in this thread", "Card",
           _card),
    Action("card.next", ">", "Next question", "Go to the next of several questions", "Card", _card),
    Action("card.previous", "<", "Previous question", "Go to the previous of several questions",
           "Card", _card),
    Action("card.back", "backspace", "Previous action", "Go back to the previous of several actions", "Card",
           _card),
    Action("card.undo", "z", "Undo", "Undo a decision before it is sent", "Card", _unsent),
    Action("stage.next", "space", "Next stop", "Next stop of a presentation, next step of a recorded run",
           "Stage", _show, footer=1, offered=True),
    Action("stage.start", "home", "Start", "Start the presentation over in a new thread; the old one stays",
           "Stage", _show, footer=4, offered=True),
    Action("stage.hold", "p", "Hold", "Hold the presentation, or continue it", "Stage",
           _show, footer=5, offered=True),
    Action("stage.faster", "+", "Faster", "Play the presentation faster", "Stage",
           _show, footer=6, twin="stage.slower", both="Pace", offered=True),
    Action("stage.slower", "-", "Slower", "Play the presentation slower", "Stage", _show),
    Action("look.spotlight", "S", "Spotlight", "Show only the focused pane, or all again",
           "Look", _open),
    Action("look.save", "ctrl+s", "Save picture", "Save the screen as SVG in the current directory",
           "Look"),
    Action("look.last_key", "P", "Keys shown", "Show the last key that was pressed, for an audience", "Look"),
    Action("app.threads", "t", "Threads", "List, search and open threads", "App", footer=9),
    Action("app.queue", "Q", "Waiting", "Requests that wait for a person, most urgent first", "App"),
    Action("app.workers", "ctrl+g", "Workers", "Who runs what, what is queued, and what nobody can run",
           "App", _workers),
    Action("app.next", "n", "Next", "Open the most urgent request you have not seen yet",
           "App", _open, 10),
    Action("app.before", "N", "Before", "Go back to the request you saw before this one",
           "App", _open),
    Action("app.new", "ctrl+n", "New", "Start a thread of a known graph", "App"),
    Action("app.decided", "ctrl+d", "Decisions", "What you decided in all threads, and what followed", "App",
           _open),
    Action("app.store", "f12", "Store", "What fills the store (size); prune it, or free space (vacuum)",
           "App", _open),
    Action("app.help", "?,f1", "Help", "All keys, and what words and signs mean", "App", footer=12),
    Action("app.back", "escape", "Back", "Close the card; go to the newest step, then to the parent thread",
           "App"),
    Action("app.quit", "q", "Quit", "Quit; committed steps are kept", "App", footer=13),
    Action("app.repaint", "ctrl+l", "Repaint", "Redraw the screen", "App"),
    Action("app.palette", "ctrl+p", "Palette", "Find any action by name", "App"),
)  # fmt: skip

BY_ID: Final = {action.id: action for action in ACTIONS}


SCREEN_ACTIONS: Final[tuple[Action, ...]] = (
    Action("list.up", "up,k", "Up", "One row up, in every list, pane and page", "Lists"),
    Action("list.down", "down,j", "Down", "One row down", "Lists"),
    Action("list.page_up", "pageup", "Page up", "Many rows up", "Lists"),
    Action("list.page_down", "pagedown", "Page down", "Many rows down", "Lists"),
    Action("list.first", "home", "First", "To the first row", "Lists"),
    Action("list.last", "end", "Last", "To the last row", "Lists"),
    Action("page.close", "escape,q", "Back", "Go back to the run", "Pages"),
    Action("ask.up", "up", "Up", "The choice above, in a dialog and on the review card", "Questions"),
    Action("ask.down", "down", "Down", "The choice below", "Questions"),
    Action("ask.take", "enter", "Take", "Take the choice under the cursor", "Questions"),
    Action("ask.back", "escape", "Go back", "Close the dialog; nothing is done", "Questions"),
    Action("form.next", "tab,down", "Next", "The next field of a form, then the choices", "Forms"),
    Action("form.previous", "shift+tab,up", "Previous", "The previous field", "Forms"),
    Action("form.done", "enter", "Done", "Go on to the next field", "Forms"),
    Action("form.leave", "escape", "Leave", "From the fields to the choices", "Forms"),
    Action("form.line", "ctrl+j", "New line", "Break the line in a field of several lines", "Forms"),
    Action("form.left", "left", "Left", "The option to the left", "Forms"),
    Action("form.right", "right", "Right", "The option to the right", "Forms"),
    Action("form.choose", "space", "Choose", "Select the option, or not", "Forms"),
    Action("reason.leave", "enter,escape,tab,shift+tab", "Leave", "Go from the reason back to the choices",
           "Forms"),
    Action("edit.apply", "ctrl+s", "Apply", "Apply the edit, or use it as the answer", "Editor"),
    Action("edit.editor", "f4,ctrl+e", "$EDITOR", "Edit in your own editor", "Editor"),
    Action("edit.back", "escape", "Back", "Leave; with changes only after asking", "Editor"),
    Action("find.go", "enter", "Go there", "Go to the selected place", "Find"),
    Action("find.up", "up", "Up", "The place above", "Find"),
    Action("find.down", "down", "Down", "The place below", "Find"),
    Action("find.page_up", "pageup", "Page up", "Ten places up", "Find"),
    Action("find.page_down", "pagedown", "Page down", "Ten places down", "Find"),
    Action("comment.pin", "enter", "Save", "Save the comment on the passage", "Comment"),
    Action("comment.up", "up", "Up", "The passage above", "Comment"),
    Action("comment.down", "down", "Down", "The passage below", "Comment"),
    Action("comment.page_up", "pageup", "Page up", "Ten passages up", "Comment"),
    Action("comment.page_down", "pagedown", "Page down", "Ten passages down", "Comment"),
    Action("comment.less", "shift+up", "Shorter", "Shorten the passage by a sentence", "Comment"),
    Action("comment.more", "shift+down", "Longer", "Lengthen the passage by a sentence", "Comment"),
    Action("comment.back", "escape", "Back", "Back to the card", "Comment"),
    Action("find.back", "escape", "Back", "Back to the run", "Find"),
    Action("threads.open", "enter", "Open", "Open the selected thread", "Threads"),
    Action("threads.inside", "space", "Inside", "Show or hide what ran inside the selected one", "Threads"),
    Action("threads.waiting", "w,Q", "Waiting", "Requests that wait for a person", "Threads"),
    Action("threads.new", "n", "New", "Start a thread of a known graph", "Threads"),
    Action("threads.workers", "ctrl+g", "Workers", "Who runs what, what is queued, and what nobody can run",
           "Threads"),
    Action("threads.decided", "ctrl+d", "Decisions", "What you decided in all threads, and what followed",
           "Threads"),
    Action("threads.search", "/", "Search", "Type part of a name", "Threads"),
    Action("threads.mark", "m", "Mark", "Mark the thread, to delete several at once", "Threads"),
    Action("threads.delete", "delete,X", "Delete",
           "Delete marked or selected threads, with their forks and subgraph threads", "Threads"),
    Action("threads.store", "f12", "Store", "What fills the store (size); prune it, or free space (vacuum)",
           "Threads"),
    Action("deletion.go", "d", "Delete", "Delete the listed threads for good", "Threads"),
    Action("deletion.unrest", "f", "Include busy", "Include threads that run or wait for a person, or not",
           "Threads"),
    Action("deletion.why", "r", "Why", "Type a reason, which the store keeps", "Threads"),
    Action("store.channels", "enter", "By channel", "What fills the selected thread, by channel", "Pages"),
    Action("store.prune", "p", "Prune", "Delete threads by a rule, after you see the list", "Pages"),
    Action("store.vacuum", "v", "Vacuum", "Free the space of deleted threads", "Pages"),
    Action("store.deleted", "d", "Deleted", "Who deleted which threads, when and why", "Pages"),
    Action("threads.back", "escape", "Back", "From the search to the list, then to the run", "Threads"),
    Action("threads.close", "q", "Close", "Back to the run at once", "Threads"),
    Action("queue.open", "enter", "Open", "Open the thread and its review card", "Queue"),
    Action("queue.mark", "space", "Mark", "Mark the request, to decide several at once", "Queue"),
    Action("queue.all", "*", "Mark all", "Mark all listed requests, or none", "Queue"),
    Action("queue.decide", "a", "Decide", "Give marked requests one answer, after you see the list", "Queue"),
    Action("queue.policy", "p", "Decide by a policy",
           "Decide marked or all listed requests by the rules of a file, after you see the list",
           "Queue"),
    Action("queue.claim", "c", "Claim", "Claim the request for a while, or give it back", "Queue"),
    Action("queue.hand", "@", "Hand over", "Hand the request over to somebody, with a note", "Queue"),
    Action("queue.filter", "/", "Filter", "Type words, or graph: risk: due: waits: votes: claimed: open:",
           "Queue"),
    Action("queue.decided", "ctrl+d", "Decisions", "What you decided in all threads, and what followed",
           "Queue"),
    Action("queue.sort", "o", "Sort", "Sort by a column", "Queue"),
    Action("queue.reverse", "O", "Reverse", "Reverse the order", "Queue"),
    Action("queue.threads", "w", "All", "All threads, not only those that wait", "Queue"),
    Action("queue.new", "n", "New", "Start a thread of a known graph", "Queue"),
    Action("queue.back", "escape", "Back", "From the filter to the list, then to the run", "Queue"),
    Action("queue.close", "q", "Close", "Back to the run at once", "Queue"),
    Action("batch.answer", "tab,right", "Other answer", "Choose the next possible answer", "Queue"),
    Action("batch.words", "r", "Comment", "Type a comment for all of these decisions", "Queue"),
    Action("check.log", "1", "Log", "Check the log against itself", "Verify"),
    Action("check.strict", "2", "Strict", "The same, and reduce every update again", "Verify"),
    Action("check.replay", "3", "Replay", "Run the graph again on its recorded results", "Verify"),
    Action("check.go", "enter", "Go to step", "Go to the step of the selected finding", "Verify"),
    Action("check.threads", "t", "Threads", "Open another thread instead of the damaged one", "Verify"),
    Action("compare.side", "tab,shift+tab", "Other side", "Let the keys move the other side", "Compare"),
    Action("compare.back", "[,left,h", "Earlier", "The step before, on that side", "Compare"),
    Action("compare.on", "],right,l", "Later", "The step after, on that side", "Compare"),
    Action("compare.place", "/,t", "Thread", "Choose another thread for that side", "Compare"),
    Action("compare.swap", "x", "Swap", "Left becomes right", "Compare"),
    Action("compare.parting", "P", "Difference", "Move both sides to the first step that differs", "Compare"),
    Action("family.take", "enter", "Take", "Open the selected thread, or compare with it", "Family"),
    Action("workers.open", "enter", "Open", "Open the thread of the selected job", "Workers"),
    Action("artifacts.save", "s,enter", "Save here", "Save it to a new file in the current directory",
           "Artifacts"),
    Action("agents.change", "T,c", "Try another", "Give the agent another model or instructions", "Agents"),
    Action("agents.forget", "x", "Forget turns", "Let the agent forget its turns", "Agents"),
    Action("agents.whole", "v", "Whole texts", "Show long texts whole, or their beginning", "Agents"),
    Action("branches.decide", "enter", "Decide", "Decide what the selected branch asks", "Branches"),
    Action("branches.sort", "o", "Sort by time", "Sort the branches by time, slowest first, or by place",
           "Branches"),
    Action("branches.next", "f", "Next problem", "Go to the next branch that failed or asks", "Branches"),
    Action("breaks.switch", "space", "On and off", "Set the breakpoint, or switch it off or on",
           "Breakpoints"),
    Action("breaks.remove", "delete,backspace", "Remove", "Remove the breakpoint", "Breakpoints"),
    Action("breaks.condition", "enter", "Change", "Type where and when it stops", "Breakpoints"),
    Action("breaks.back", "escape", "Back", "From the text to the list, then to the run", "Breakpoints"),
)  # fmt: skip

ALL_ACTIONS: Final = (*ACTIONS, *SCREEN_ACTIONS)
ALL_BY_ID: Final = {action.id: action for action in ALL_ACTIONS}

_ON_CARD: Final = frozenset(
    {
        *("look.copy", "look.older", "look.newer", "look.followed", "look.tab"),
        *("app.next", "app.before", "app.queue", "app.help", "app.quit", "look.spotlight"),
        *("list.page_up", "list.page_down", "ask.up", "ask.down", "ask.take", "form.choose"),
    }
)
"""Besides those of the card itself, what letters do while it has the focus."""


ACTS_AT_ONCE: Final = frozenset(
    {
        *("run.step", "run.into", "run.out", "run.to", "run.continue", "run.pause", "run.break"),
        *("app.next", "app.before"),
    }
)
"""What runs, changes or sends something without asking first, so that a pasted text must not do it."""


def is_on_card(action_id: str) -> bool:
    """Whether the keys of an action work while the review card has the focus."""
    return action_id in _ON_CARD or ALL_BY_ID[action_id].group in ("Card", "Stage")
