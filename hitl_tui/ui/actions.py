"""Every action a user can take, once: bindings, footer, help and command palette are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from hitl_tui.drivers.protocol import Capabilities
from hitl_tui.engine.log.records import Status
from hitl_tui.ui.key_names import parse_key, written

Group = Literal["Run", "Look", "Change", "Travel", "Card", "App"]
ScreenGroup = Literal[
    "Lists", "Pages", "Questions", "Forms", "Editor", "Find", "Threads", "Verify", "Compare", "Agents",
    "Branches", "Breakpoints",
]  # fmt: skip
_ALL: Final = Capabilities()


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides whether an action can be taken now.

    Args:
        undoing: it is being rolled back, and goes no way on but that.
        saved: the file of the graph was saved since it was loaded.
        inside: the shown step, or what goes on, has branches or a thread of its own.
        owned: it is the thread of a subgraph's run.
        found: a text was looked for and stands somewhere.
        card: what the review card does: "" while it is closed, "sending" while a decision can be taken back.
        typing: letters go into a text.
        tainted, private: what the selected channel is.
        ways: what to press for an action, where it isn't the default key.
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
    saved: bool = False
    inside: bool = False
    owned: bool = False
    found: bool = False
    can: Capabilities = _ALL
    card: Literal["", "open", "sending"] = ""
    typing: bool = False
    tainted: bool = False
    private: bool = False
    ways: Mapping[str, str] = field(default_factory=dict)

    def way(self, action_id: str) -> str:
        """What to press for an action."""
        return self.ways.get(action_id) or BY_ID[action_id].key


WhyNot = Callable[[Situation], str]


@dataclass(frozen=True, slots=True)
class Action:
    """One action.

    Args:
        id: what a keymap names, as in "run.step".
        keys: default keys, separated by commas.
        label: one or two words for the footer.
        help: a sentence for the help screen and the palette.
        why_not: says why it can't be taken now; "" where it can.
        footer: its place in the footer, 0 for none; lower ones stay longest when it gets narrow.
        offered: the footer shows it only while it can be taken.
        twin: the action whose key the footer shows beside its own.
        both: what the footer calls it together with its twin.
    """

    id: str
    keys: str
    label: str
    help: str
    group: Group | ScreenGroup
    why_not: WhyNot = lambda situation: ""
    footer: int = 0
    twin: str = ""
    both: str = ""
    offered: bool = False

    @property
    def default_keys(self) -> tuple[str, ...]:
        """Its default keys as Textual calls them."""
        return tuple(parse_key(key) for key in self.keys.split(","))

    @property
    def key(self) -> str:
        """The first default key, as a screen shows it."""
        return written(self.default_keys[0])

    @property
    def method(self) -> str:
        """The method that does it, on the run screen or in a group of its keys, as `do_run_step`."""
        return "do_" + self.id.replace(".", "_")


def _open(now: Situation) -> str:
    return "" if now.open else "the thread is being opened"


def _can_run(now: Situation) -> str:
    if not now.open:
        return _open(now)
    if not now.can.can_run:
        return now.can.why_not or "this thread can only be looked at"
    if now.past:
        back = now.way("app.back")
        return f"this is not the newest step: {back} goes back to it, {now.way('change.fork')} forks here"
    if now.running:
        return f"it runs already; {now.way('run.pause')} pauses it"
    if now.undoing and now.status not in ("completed", "cancelled"):
        return f"it is being rolled back: {now.way('change.rollback')} goes on with that"
    if now.deciding and not now.breakpoint:
        return f"it waits for your decision: {now.way('change.decide')} decides"
    if now.limited:
        return f"a limit stopped the run: {now.way('change.extend')} raises it"
    if now.status in ("completed", "cancelled"):
        return f"the run is {now.status}; {now.way('change.fork')} forks from any of its steps"
    return ""


def _can_break(now: Situation) -> str:
    return _open(now) or ("" if now.can.can_run else now.can.why_not or "this thread can only be looked at")


def _can_pause(now: Situation) -> str:
    if not now.can.can_run:
        return now.can.why_not or "this thread can only be looked at"
    return _open(now) or ("" if now.running else f"{now.way('run.pause')} pauses a run, and nothing runs")


def _can_edit(now: Situation) -> str:
    if not now.open:
        return _open(now)
    if not now.has_steps:
        return "there is nothing to edit yet"
    if not (now.can.can_edit_past if now.past else now.can.can_edit):
        return now.can.why_not or "this thread can't be edited here"
    if now.running and not now.past:
        return f"it runs; {now.way('run.pause')} pauses it, then {now.way('change.edit')} edits"
    return ""


def _can_decide(now: Situation) -> str:
    if not now.open:
        return _open(now)
    if not now.deciding:
        return "nothing waits for a decision"
    if now.breakpoint:
        return f"it only stopped here: {now.way('run.step')} steps, {now.way('run.continue')} continues"
    if not now.can.can_answer:
        return now.can.why_not or "decisions can't be made here"
    return _not_newest(now) if now.past else ""


def _can_fork(now: Situation) -> str:
    if not now.open:
        return _open(now)
    if not now.can.can_fork:
        return now.can.why_not or "this thread can't be forked"
    return "" if now.has_steps else "there is no step to fork from yet"


def _has_steps(now: Situation) -> str:
    return _open(now) or ("" if now.has_steps else "there is no step yet")


def _found(now: Situation) -> str:
    return "" if now.found else f"nothing was looked for yet; {now.way('look.find')} finds"


def _can_cancel(now: Situation) -> str:
    if not now.open:
        return _open(now)
    if not now.can.can_cancel:
        return now.can.why_not or "this thread can't be cancelled here"
    return f"the run is {now.status} already" if now.status in ("completed", "cancelled") else ""


def _can_roll_back(now: Situation) -> str:
    if not now.open:
        return _open(now)
    if not now.can.can_roll_back:
        return now.can.why_not or "this thread can't be rolled back here"
    if not now.has_steps:
        return "there is nothing to undo yet"
    return f"it runs; {now.way('run.pause')} pauses it" if now.running else ""


def _can_check(now: Situation) -> str:
    if not now.open:
        return _open(now)
    if not now.can.can_check:
        return now.can.why_not or "this thread's log can't be checked here"
    return "" if now.has_steps else "there is nothing to check yet"


def _can_extend(now: Situation) -> str:
    if not now.open:
        return _open(now)
    return "" if now.limited else "no limit has stopped the run"


def _inside(now: Situation) -> str:
    return _open(now) or ("" if now.inside else "no step here has branches or a thread of its own")


def _owned(now: Situation) -> str:
    return _open(now) or ("" if now.owned else "this thread runs for no other")


def _can_reload(now: Situation) -> str:
    if not now.open:
        return _open(now)
    if not now.saved and now.can.can_run:
        return "the file of the graph is as it was when it was loaded"
    if not now.can.can_reload:
        return now.can.why_not or "this thread can only be looked at"
    return f"it runs; {now.way('run.pause')} pauses it" if now.running else ""


def _can_reveal(now: Situation) -> str:
    if not now.private:
        return _open(now) or "the selected channel is not private: its value is shown"
    return _has_steps(now) or (f"it runs; {now.way('run.pause')} pauses it" if now.running else "")


def _can_declassify(now: Situation) -> str:
    if not now.tainted:
        return _open(now) or "the selected channel is not tainted"
    if now.past:
        return _not_newest(now)
    return _can_edit(now)


def _past(now: Situation) -> str:
    return "" if now.past else "this is the newest step"


def _not_newest(now: Situation) -> str:
    return f"this is not the newest step: {now.way('app.back')} goes back to it"


def _card(now: Situation) -> str:
    return "" if now.card else "no decision is being made"


def _unsent(now: Situation) -> str:
    return "" if now.card == "sending" else "no decision is on its way"


ACTIONS: Final[tuple[Action, ...]] = (
    Action("run.step", "s", "Step", "Run one node; on a failed node, try it again", "Run", _can_run, 1),
    Action("run.continue", "c", "Continue", "Run until something waits, fails or ends", "Run", _can_run, 2),
    Action("run.pause", "p", "Pause", "Stop at the next node boundary", "Run", _can_pause, 5),
    Action("run.cancel", "x", "Cancel", "Give up the node in flight, or end the thread", "Run", _can_cancel),
    Action("run.break", "b", "Break", "Stop before a node: the one chosen in the graph, or choose one",
           "Run", _can_break, 8),
    Action("run.breaks", "B", "Breakpoints", "All breakpoints, and the conditions under which they stop",
           "Run", _can_break),
    Action("change.decide", "d", "Decide", "Answer the request that waits", "Change", _can_decide, 3),
    Action("change.edit", "e", "Edit", "Edit the selected channel; at a past step this forks", "Change",
           _can_edit, 4),
    Action("change.fork", "f", "Fork", "Make a new thread from the shown step", "Change", _can_fork, 6),
    Action("change.agent", "T", "Try", "Another model or instructions for an agent, here or in a fork",
           "Change", _can_fork),
    Action("change.extend", "m", "Raise limit", "Raise the limit that stopped the run, then go on", "Change",
           _can_extend, 3, offered=True),
    Action("change.rollback", "U", "Roll back", "Undo what the nodes did outside, last one first", "Change",
           _can_roll_back),
    Action("look.check", "V", "Verify", "Check the log, reduce it again or replay it; go to what is found",
           "Look", _can_check),
    Action("look.text", "1", "Text", "Show the value as text", "Look", _open),
    Action("look.diff", "D,2", "Diff", "Show what changed in the value since its last version", "Look",
           _open, 11),
    Action("look.json", "3", "JSON", "Show the value as JSON", "Look", _open),
    Action("look.blame", "4", "Blame", "Show who wrote each line of the value", "Look", _open),
    Action("look.find", "/", "Find", "Find a text in channels, values, steps and notes", "Look", _has_steps),
    Action("look.next", ">", "Next found", "To the next place where the text stands", "Look", _found),
    Action("look.previous", "<", "Last found", "To the place before where the text stands", "Look", _found),
    Action("look.compare", "=", "Compare", "Two steps, threads or forks side by side", "Look", _has_steps),
    Action("look.view", "v", "Views", "Go round text, diff, JSON and blame", "Look", _open),
    Action("look.costs", "$", "Costs", "Show what the thread has cost, by agent, by node and by step", "Look",
           _open),
    Action("look.taint", "y", "Taint", "Show what came from outside, and how it got into the channel",
           "Look", _has_steps),
    Action("look.inside", "N", "Inside", "Open the branches or the thread inside the shown step or node",
           "Look", _inside),
    Action("look.enter", "enter", "Open", "Open the thread of the shown step, or what is inside it", "Look",
           _open),
    Action("look.outside", "backspace", "Outside", "From the thread of a subgraph to the one it runs for",
           "Look", _owned),
    Action("look.contract", "i", "Contract", "What the node may read and write, and what it did", "Look",
           _has_steps),
    Action("look.reveal", "o", "Reveal", "Show the selected private value; the ledger keeps that you looked",
           "Look", _can_reveal),
    Action("change.declassify", "Y", "Declassify", "Say why the selected tainted channel may be trusted",
           "Change", _can_declassify),
    Action("look.agents", "A", "Agents", "Models, use and chat turns of each agent; let one forget them",
           "Look", _open),
    Action("look.tab", "w", "Panes", "On a narrow screen: the next pane", "Look"),
    Action("travel.back", "[,h,left", "Earlier", "Show the step before", "Travel", _open, 7, "travel.on",
           "Steps"),
    Action("travel.on", "],l,right", "Later", "Show the step after", "Travel", _open),
    Action("travel.first", "0,home", "Oldest", "Show the oldest loaded step", "Travel", _open),
    Action("travel.head", "g,end", "Newest", "Back to the newest step", "Travel", _past),
    Action("travel.up", "K", "Line above", "To the thread above in the timeline", "Travel", _open),
    Action("travel.down", "J", "Line below", "To the thread below in the timeline", "Travel", _open),
    Action("card.reason", "tab,/", "Reason", "Type a reason, or the answer", "Card", _card),
    Action("card.edit", "e", "Edit draft", "Edit what is decided about, then decide", "Card", _card),
    Action("card.next", ">", "Next question", "Of several that wait, the next one", "Card", _card),
    Action("card.previous", "<", "Question before", "Of several that wait, the one before", "Card", _card),
    Action("card.back", "backspace", "Action before", "Of several actions, back to the one before", "Card",
           _card),
    Action("card.undo", "z", "Take back", "Take a decision back before it is sent", "Card", _unsent),
    Action("app.reload", "R", "Reload", "Go on with the graph as its file is now", "App", _can_reload,
           3, offered=True),
    Action("app.threads", "t", "Threads", "List, search and open threads", "App", footer=9),
    Action("app.next", "n", "Next", "The next thread that waits for a human: it goes on once you decide",
           "App", _open, 10),
    Action("app.help", "?,f1", "Help", "All keys, and what words and signs mean", "App", footer=12),
    Action("app.back", "escape", "Back", "Close the card; to the newest step; out of a thread inside", "App"),
    Action("app.quit", "q", "Quit", "Leave; what is committed stays", "App", footer=13),
    Action("app.palette", "ctrl+p", "Palette", "Find any action by name", "App"),
)  # fmt: skip

BY_ID: Final = {action.id: action for action in ACTIONS}
