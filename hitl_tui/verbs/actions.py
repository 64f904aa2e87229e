"""The tables of all actions of the screen, from which keys, footer, help and command palette are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from hitl_tui.engine.commands import (
    Answer,
    Fork,
    PrepareGraph,
    Run,
    UpdateState,
)
from hitl_tui.verbs import verbs
from hitl_tui.view.actions import (
    Action,
    Situation,
    card_has_keys,
    card_open,
    has_steps,
    not_newest,
    thread_open,
    when_open,
)


@when_open
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
    return thread_open(now) or now.no_agents


def _items(now: Situation) -> str:
    return thread_open(now) or now.no_items


def _workers(now: Situation) -> str:
    return thread_open(now) or now.no_workers


def _can_enter(now: Situation) -> str:
    if now.closed:
        return f"it runs as one step; {now.closed}"
    return _can_run(now)


def _can_break(now: Situation) -> str:
    return thread_open(now) or now.refusal(Run)


@when_open
def _can_edit(now: Situation) -> str:
    if not now.has_steps:
        return "there is nothing to edit yet"
    if refused := now.refusal(Fork if now.past else UpdateState):
        return refused
    if now.running and not now.past:
        return f"it runs; {now.key_hint('run.pause')} pauses it, then {now.key_hint('change.edit')} edits"
    return ""


@when_open
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
    return not_newest(now) if now.past else ""


def _found(now: Situation) -> str:
    return "" if now.found else f"no search yet; press {now.key_hint('look.find')}"


@when_open
def _frames(now: Situation) -> str:
    return "" if now.frames or now.running else "no code of yours has failed or returned here"


@when_open
def _can_check(now: Situation) -> str:
    # Reducing and routing again needs the graph.
    return now.refusal(PrepareGraph) or ("" if now.has_steps else "there is nothing to check yet")


def _inside(now: Situation) -> str:
    return thread_open(now) or ("" if now.inside else "no step here has branches or a subgraph thread")


def _owned(now: Situation) -> str:
    return thread_open(now) or ("" if now.started_children else "not a subgraph thread")


def _past(now: Situation) -> str:
    return "" if now.past else "this is the newest step"


def _show(now: Situation) -> str:
    return "" if now.show else "no presentation is running; `hitl-tui present` or `hitl-tui play` starts one"


def _unsent(now: Situation) -> str:
    return "" if now.card == "sending" else "no decision is being sent"


_OTHERS: Final[tuple[Action, ...]] = (
    Action("run.step", "s,f10", "Step", "Run one node; on a failed node, try it again", "Run", _can_run, 1,
           at_once=True),
    Action("run.into", "f11", "Into", "Step into a subgraph, before its first node", "Run", _can_enter,
           at_once=True),
    Action("run.out", "shift+f11", "Out", "Finish this thread and the node that runs it", "Run", _owned,
           at_once=True),
    Action("run.to", "G,f6", "To node", "Run, and stop before the node chosen in the graph", "Run", _can_run,
           at_once=True),
    Action("run.continue", "c,f5", "Continue", "Run until something waits, fails or ends", "Run", _can_run, 2,
           at_once=True),
    Action("run.break", "b,f9", "Break", "Stop before a node: the one chosen in the graph, or choose one",
           "Run", _can_break, 8, at_once=True),
    Action("run.breaks", "B", "Breakpoints", "All breakpoints: add, change, switch off, remove", "Run",
           _can_break),
    Action("change.decide", "d", "Decide", "Answer the request that waits", "Change", _can_decide, 3),
    Action("change.edit", "e", "Edit", "Edit the selected channel; at a past step this forks", "Change",
           _can_edit, 4),
    Action("look.check", "V", "Verify", "Check the log, reduce it again or replay it; go to any finding",
           "Look", _can_check),
    Action("look.text", "1", "Text", "Show the value as text", "Look", thread_open),
    Action("look.diff", "D,2", "Diff", "Show what changed in the value since its last version", "Look",
           thread_open, 11),
    Action("look.json", "3", "JSON", "Show the value as JSON", "Look", thread_open),
    Action("look.fold", "space", "Fold", "In JSON: fold or unfold the part under the cursor", "Look",
           thread_open),
    Action("look.folds", "*", "Fold all", "In JSON: fold or unfold all parts", "Look", thread_open),
    Action("look.blame", "4", "Blame", "Show who wrote each line of the value", "Look", thread_open),
    Action("look.find", "/", "Find", "Find a text in any step or, after ?, when a condition became true",
           "Look", has_steps),
    Action("look.next", ">", "Next match", "Go to the next match", "Look", _found),
    Action("look.previous", "<", "Previous match", "Go to the previous match", "Look", _found),
    Action("look.watch", "W", "Watch", "Watch an expression above the channels, or stop watching it", "Look",
           thread_open),
    Action("look.compare", "=", "Compare", "Compare a fork with its parent's end, or two steps", "Look",
           has_steps),
    Action("look.failure", "5", "Where",
           "Show where the node failed or is now: its lines and local variables", "Look", _frames),
    Action("look.editor", "E", "$EDITOR",
           "Open your editor where the node failed, or else at the node of the shown step", "Look",
           has_steps),
    Action("look.family", "H", "Family", "All forks and what they were forked from, as a tree", "Look",
           has_steps),
    Action("look.view", "v", "Views", "Switch between text, diff, JSON and blame", "Look", thread_open,
           on_card=True),
    Action("look.read", "O", "Read", "Read the text alone: pages, headings, changes, comments", "Look",
           has_steps),
    Action("look.costs", "$", "Costs",
           "Show what the thread has cost and how long it took, by agent, node and step", "Look",
           thread_open),
    Action("look.artifacts", "L", "Artifacts", "List, read and save the artifacts of nodes", "Look",
           has_steps),
    Action("look.items", "ctrl+k", "Items", "View the items of the graph's long-term store", "Look", _items),
    Action("look.followed", "F", "Followed", "What followed your decisions, and how to undo one", "Look",
           has_steps, on_card=True),
    Action("look.taint", "M", "Taint", "Show untrusted data, and how it got into the channel", "Look",
           has_steps),
    Action("look.inside", "I", "Inside", "Open the branches or the thread inside the shown step or node",
           "Look", _inside),
    Action("look.enter", "enter", "Open",
           "Open the thread of the shown step, or what is inside it; read the value, in its pane", "Look",
           thread_open),
    Action("look.outside", "backspace", "Outside", "Go from a subgraph thread to its parent", "Look", _owned),
    Action("look.contract", "i", "Contract", "What the node may read and write, what it did, and its route",
           "Look", has_steps),
    Action("look.channels", "&", "Filter channels",
           "Show only channels whose name contains a word, or those that the step changed", "Look",
           thread_open),
    Action("look.agents", "A", "Agents", "Models, use and chat turns of each agent; let one forget them",
           "Look", _agents),
    Action("look.tab", "w", "Panes", "Next pane, if they don't all fit; else versions merged or side by side",
           "Look", on_card=True),
    Action("look.older", "{", "Change before",
           "Go to the channel's previous change; on a card, to its previous version", "Look", has_steps,
           on_card=True),
    Action("look.newer", "}", "Change after",
           "Go to the channel's next change; on a card, to its next version", "Look", has_steps,
           on_card=True),
    Action("travel.back", "[,h,left", "Earlier", "Show the previous step", "Travel", thread_open, 7,
           "travel.on", "Steps"),
    Action("travel.on", "],l,right", "Later", "Show the next step", "Travel", thread_open),
    Action("travel.first", "0,home", "Oldest", "Show the oldest loaded step", "Travel", thread_open),
    Action("travel.head", "g,end", "Newest", "Back to the newest step", "Travel", _past),
    Action("travel.step", "#", "Go to step", "Show the step with a number", "Travel", has_steps),
    Action("travel.up", "K", "Thread above", "Go to the thread above in the timeline", "Travel", thread_open),
    Action("travel.down", "J", "Thread below", "Go to the thread below in the timeline", "Travel",
           thread_open),
    Action("card.reason", "tab,/", "Reason", "Type a reason, or the answer", "Card", card_has_keys, footer=1,
           offered=True),
    Action("card.comment", "c", "Comment", "Comment on a passage; it is sent with the decision", "Card",
           card_open, footer=2, offered=True),
    Action("card.read", "O", "Read", "Read the text alone: pages, headings, changes, comments", "Card",
           card_open, footer=3, offered=True),
    Action("card.uncomment", "C", "Undo comment", "Undo your last comment", "Card", card_open),
    Action("card.edit", "e", "Edit draft", "Edit what is decided about, then decide", "Card", card_open),
    Action("card.score", "%", "Score", "Score the criteria of the request's rubric", "Card", card_open),
    Action("card.next", ">", "Next question", "Go to the next of several questions", "Card", card_open),
    Action("card.previous", "<", "Previous question", "Go to the previous of several questions", "Card",
           card_open),
    Action("card.back", "backspace", "Previous action", "Go back to the previous of several actions", "Card",
           card_open),
    Action("card.undo", "z", "Undo", "Undo a decision before it is sent", "Card", _unsent),
    Action("stage.next", "space", "Next stop", "Next stop of a presentation, next step of a recorded run",
           "Stage", _show, footer=1, offered=True),
    Action("stage.start", "home", "Start", "Start the presentation over in a new thread; the old one stays",
           "Stage", _show, footer=4, offered=True),
    Action("stage.hold", "p", "Hold", "Hold the presentation, or continue it", "Stage", _show, footer=5,
           offered=True),
    Action("stage.faster", "+", "Faster", "Play the presentation faster", "Stage", _show, footer=6,
           twin="stage.slower", both="Pace", offered=True),
    Action("stage.slower", "-", "Slower", "Play the presentation slower", "Stage", _show),
    Action("look.spotlight", "S", "Spotlight", "Show only the focused pane, or all again", "Look",
           thread_open, on_card=True),
    Action("look.developer", "f2", "Developer view", "Show graph, reducers and debugger keys, or hide them",
           "Look"),
    Action("look.save", "ctrl+s", "Save picture", "Save the screen as SVG in the current directory", "Look"),
    Action("look.last_key", "P", "Keys shown", "Show the last key that was pressed, for an audience", "Look"),
    Action("app.threads", "t", "Threads", "List, search and open threads", "App", footer=9),
    Action("app.queue", "Q", "Waiting", "Requests that wait for a person, most urgent first", "App",
           on_card=True),
    Action("app.workers", "ctrl+g", "Workers", "Who runs what, what is queued, and what nobody can run",
           "App", _workers),
    Action("app.next", "n", "Next", "Open the most urgent request you have not seen yet", "App", thread_open,
           10, on_card=True, at_once=True),
    Action("app.before", "N", "Before", "Go back to the request you saw before this one", "App", thread_open,
           on_card=True, at_once=True),
    Action("app.new", "ctrl+n", "New", "Start a thread of a known graph", "App"),
    Action("app.decided", "ctrl+d", "Decisions", "Search all decisions: who, what, why, and the result",
           "App", thread_open),
    Action("app.store", "f12", "Store", "What fills the store (size); prune it, or free space (vacuum)",
           "App", thread_open),
    Action("app.help", "?,f1", "Help", "All keys, and what words and signs mean", "App", footer=12,
           on_card=True),
    Action("app.back", "escape", "Back", "Close the card; go to the newest step, then to the parent thread",
           "App"),
    Action("app.quit", "q", "Quit", "Quit; committed steps are kept", "App", footer=13, on_card=True),
    Action("app.repaint", "ctrl+l", "Repaint", "Redraw the screen", "App"),
    Action("app.palette", "ctrl+p", "Palette", "Find any action by name", "App"),
)  # fmt: skip


def _with_verbs(others: Sequence[Action]) -> tuple[Action, ...]:
    """Return rows with those of the verbs, each of which comes after the row that it names."""
    after: dict[str, list[Action]] = {}
    for entry in verbs().values():
        verb = entry.load()
        if verb.action is not None:
            after.setdefault(verb.after, []).append(verb.action)

    def following(row: Action) -> Iterator[Action]:
        yield row
        for action in after.get(row.id, ()):
            yield from following(action)

    return tuple(action for row in others for action in following(row))


_DEBUGGING: Final = frozenset(
    {
        "run.step", "run.into", "run.out", "run.to", "run.break", "run.breaks", "run.again", "look.check",
        "look.json", "look.fold", "look.folds", "look.watch", "look.failure", "look.editor", "look.items",
        "look.test", "look.contract", "look.agents", "change.agent", "app.workers",
    }
)  # fmt: skip
_SCREENS_OF_DEBUGGING: Final = frozenset({"Verify", "Agents", "Breakpoints", "Workers"})


def _debugging(action: Action) -> Action:
    """Return a row for developers, whose keys do nothing in a reviewer's view."""

    def disabled_reason(now: Situation) -> str:
        if now.reviewing:
            return f"for developers; {now.key_hint('look.developer')} shows their view"
        return action.disabled_reason(now)

    return replace(action, debugs=True, disabled_reason=disabled_reason)


ACTIONS: Final = tuple(
    _debugging(action) if action.id in _DEBUGGING else action for action in _with_verbs(_OTHERS)
)
BY_ID: Final = {action.id: action for action in ACTIONS}


_SCREENS: Final[tuple[Action, ...]] = (
    Action("list.up", "up,k", "Up", "One row up, in every list, pane and page", "Lists"),
    Action("list.down", "down,j", "Down", "One row down", "Lists"),
    Action("list.page_up", "pageup", "Page up", "Many rows up", "Lists", on_card=True),
    Action("list.page_down", "pagedown", "Page down", "Many rows down", "Lists", on_card=True),
    Action("list.first", "home", "First", "To the first row", "Lists"),
    Action("list.last", "end", "Last", "To the last row", "Lists"),
    Action("page.close", "escape,q", "Back", "Go back to the run", "Pages"),
    Action("ask.up", "up", "Up", "The choice above, in a dialog and on the review card", "Questions",
           on_card=True),
    Action("ask.down", "down", "Down", "The choice below", "Questions", on_card=True),
    Action("ask.take", "enter", "Take", "Take the choice under the cursor", "Questions", on_card=True),
    Action("ask.back", "escape", "Go back", "Close the dialog; nothing is done", "Questions"),
    Action("form.next", "tab,down", "Next", "The next field of a form, then the choices", "Forms"),
    Action("form.previous", "shift+tab,up", "Previous", "The previous field", "Forms"),
    Action("form.done", "enter", "Done", "Go on to the next field", "Forms"),
    Action("form.leave", "escape", "Leave", "From the fields to the choices", "Forms"),
    Action("form.line", "ctrl+j", "New line", "Break the line in a field of several lines", "Forms"),
    Action("form.left", "left", "Left", "The option to the left", "Forms"),
    Action("form.right", "right", "Right", "The option to the right", "Forms"),
    Action("form.choose", "space", "Choose", "Select the option, or not", "Forms", on_card=True),
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
    Action("reader.down", "down,j", "Next sentence", "To the next sentence", "Reader"),
    Action("reader.up", "up,k", "Sentence before", "To the sentence before", "Reader"),
    Action("reader.page_down", "pagedown,space", "Next page", "One page down", "Reader"),
    Action("reader.page_up", "pageup,b", "Page before", "One page up", "Reader"),
    Action("reader.first", "home", "First", "To the beginning of the text", "Reader"),
    Action("reader.last", "end", "Last", "To the end of the text", "Reader"),
    Action("reader.heading", "]", "Next heading", "To the next heading, or message of a chat", "Reader"),
    Action("reader.heading_back", "[", "Heading before", "To the heading before", "Reader"),
    Action("reader.go", "g", "Go to", "Type the number of a page, or words of a heading", "Reader"),
    Action("reader.change", "n", "Next change", "To the next change", "Reader"),
    Action("reader.change_back", "N", "Change before", "To the change before", "Reader"),
    Action("reader.versions", "|", "Versions",
           "Compare with what you last saw, with older versions, or with none", "Reader"),
    Action("reader.search", "/", "Search", "Search in the text", "Reader"),
    Action("reader.match", ">", "Next match", "To the next match", "Reader"),
    Action("reader.match_back", "<", "Match before", "To the match before", "Reader"),
    Action("reader.comment", "c", "Comment", "Comment on the sentence under the cursor, or what is selected",
           "Reader"),
    Action("reader.uncomment", "C", "Undo comment", "Undo your last comment", "Reader"),
    Action("reader.less", "shift+up", "Shorter", "Select a sentence less", "Reader"),
    Action("reader.more", "shift+down", "Longer", "Select a sentence more", "Reader"),
    Action("reader.source", "v", "Source", "Show the text as it is, or rendered", "Reader"),
    Action("reader.edit", "e", "Edit", "Edit the text", "Reader"),
    Action("reader.card", "tab", "Card", "Go to the review card", "Reader"),
    Action("reader.back", "escape", "Back", "From the field to the text, then to the run", "Reader"),
    Action("reader.close", "q", "Close", "Back to the run at once", "Reader"),
    Action("reader.go_there", "enter", "Done", "Go to the selected place; save the comment", "Reader"),
    Action("find.back", "escape", "Back", "Back to the run", "Find"),
    Action("threads.open", "enter", "Open", "Open the selected thread", "Threads"),
    Action("threads.inside", "space", "Inside", "Show or hide what ran inside the selected one", "Threads"),
    Action("threads.waiting", "w,Q", "Waiting", "Requests that wait for a person", "Threads"),
    Action("threads.new", "n", "New", "Start a thread of a known graph", "Threads"),
    Action("threads.workers", "ctrl+g", "Workers", "Who runs what, what is queued, and what nobody can run",
           "Threads"),
    Action("threads.decided", "ctrl+d", "Decisions", "Search all decisions and their results", "Threads"),
    Action("threads.search", "/", "Search", "Type part of a name", "Threads"),
    Action("threads.mark", "m", "Mark", "Mark the thread, to delete several at once", "Threads"),
    Action("threads.store", "f12", "Store", "What fills the store (size); prune it, or free space (vacuum)",
           "Threads"),
    Action("store.channels", "enter", "By channel", "What fills the selected thread, by channel", "Pages"),
    Action("store.deleted", "d", "Deleted", "Who deleted which threads, when and why", "Pages"),
    Action("threads.back", "escape", "Back", "From the search to the list, then to the run", "Threads"),
    Action("threads.close", "q", "Close", "Back to the run at once", "Threads"),
    Action("queue.open", "enter", "Open", "Open the thread and its review card", "Queue"),
    Action("queue.mark", "space", "Mark", "Mark the request, to decide several at once", "Queue"),
    Action("queue.alike", "=", "Mark alike", "Mark all requests of the same node of the same graph", "Queue"),
    Action("queue.all", "*", "Mark all", "Mark all listed requests, or none", "Queue"),
    Action("queue.policy", "p", "Decide by a policy",
           "Decide marked or all listed requests by the rules of a file, after you see the list", "Queue"),
    Action("queue.claim", "c", "Claim", "Claim the request for a while, or give it back", "Queue"),
    Action("queue.hand", "@", "Hand over", "Hand the request over to somebody, with a note", "Queue"),
    Action("queue.filter", "/", "Filter", "Type words, or graph: risk: due: waits: votes: claimed: handed:",
           "Queue"),
    Action("queue.decided", "ctrl+d", "Decisions", "Search all decisions and their results", "Queue"),
    Action("queue.sort", "o", "Sort", "Sort by a column", "Queue"),
    Action("queue.reverse", "O", "Reverse", "Reverse the order", "Queue"),
    Action("queue.threads", "w", "All", "All threads, not only those that wait", "Queue"),
    Action("queue.new", "n", "New", "Start a thread of a known graph", "Queue"),
    Action("queue.back", "escape", "Back", "From the filter to the list, then to the run", "Queue"),
    Action("queue.close", "q", "Close", "Back to the run at once", "Queue"),
    Action("batch.answer", "tab,right", "Other answer", "Choose the next possible answer", "Queue"),
    Action("batch.undo", "z", "Undo", "Undo a batch before it is sent", "Queue"),
    Action("batch.words", "r", "Comment", "Type a comment for all of these decisions", "Queue"),
    Action("decisions.open", "enter", "Open", "Open the thread at the step of the decision", "Decisions"),
    Action("decisions.fork", "f", "Fork", "Fork where it can be decided again", "Decisions"),
    Action("decisions.search", "/", "Search", "Type words of text or reason, or by: thread: since: until:",
           "Decisions"),
    Action("decisions.mine", "m", "Only mine", "Only your own decisions, or everybody's", "Decisions"),
    Action("decisions.stats", "s", "Stats", "Count decisions, reasons, times and agreement", "Decisions"),
    Action("decisions.back", "escape", "Back", "From the search to the list, then to the run", "Decisions"),
    Action("decisions.close", "q", "Close", "Back to the run at once", "Decisions"),
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
    Action("compare.difference", "P", "Difference", "Go to the first difference, on both sides", "Compare"),
    Action("family.take", "enter", "Take", "Open the selected thread, or compare with it", "Family"),
    Action("workers.open", "enter", "Open", "Open the thread of the selected job", "Workers"),
    Action("artifacts.save", "s,enter", "Save here", "Save it to a new file in the current directory",
           "Artifacts"),
    Action("agents.change", "T,c", "Try another", "Give the agent another model or instructions", "Agents"),
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

SCREEN_ACTIONS: Final = tuple(
    replace(action, debugs=True) if action.group in _SCREENS_OF_DEBUGGING else action
    for action in _with_verbs(_SCREENS)
)
ALL_ACTIONS: Final = (*ACTIONS, *SCREEN_ACTIONS)
ALL_BY_ID: Final = {action.id: action for action in ALL_ACTIONS}
