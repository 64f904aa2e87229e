"""The actions of lists, fields and the screens over the run; each needs a key of its own."""

from __future__ import annotations

from typing import Final

from hitl_tui.ui.actions import ACTIONS, Action

SCREEN_ACTIONS: Final[tuple[Action, ...]] = (
    Action("list.up", "up,k", "Up", "One row up, in every list, pane and page", "Lists"),
    Action("list.down", "down,j", "Down", "One row down", "Lists"),
    Action("list.page_up", "pageup", "Page up", "Many rows up", "Lists"),
    Action("list.page_down", "pagedown", "Page down", "Many rows down", "Lists"),
    Action("list.first", "home", "First", "To the first row", "Lists"),
    Action("list.last", "end", "Last", "To the last row", "Lists"),
    Action("page.close", "escape,q", "Back", "From a page over the run back to the run", "Pages"),
    Action("ask.up", "up", "Up", "The choice above, in a question and on the review card", "Questions"),
    Action("ask.down", "down", "Down", "The choice below", "Questions"),
    Action("ask.take", "enter", "Take", "Take the choice under the cursor", "Questions"),
    Action("ask.back", "escape", "Go back", "Leave a question; nothing is done", "Questions"),
    Action("form.next", "tab,down", "Next", "The next field of a form, then the choices", "Forms"),
    Action("form.previous", "shift+tab,up", "Previous", "The field before", "Forms"),
    Action("form.done", "enter", "Done", "On from a field that is filled in", "Forms"),
    Action("form.leave", "escape", "Leave", "From the fields to the choices", "Forms"),
    Action("form.line", "ctrl+j", "New line", "Break the line in a field of several lines", "Forms"),
    Action("form.left", "left", "Left", "The option before, of those side by side", "Forms"),
    Action("form.right", "right", "Right", "The option after", "Forms"),
    Action("form.choose", "space", "Choose", "Choose the option, or choose it no longer", "Forms"),
    Action("reason.leave", "enter,escape,tab,shift+tab", "Leave", "From the reason back to the choices",
           "Forms"),
    Action("edit.apply", "ctrl+s", "Apply", "Apply the edit, or take it as the answer", "Editor"),
    Action("edit.editor", "f4,ctrl+e", "$EDITOR", "Edit in your own editor", "Editor"),
    Action("edit.back", "escape", "Back", "Leave; with changes only after asking", "Editor"),
    Action("find.go", "enter", "Go there", "Go to the selected place", "Find"),
    Action("find.up", "up", "Up", "The place above", "Find"),
    Action("find.down", "down", "Down", "The place below", "Find"),
    Action("find.page_up", "pageup", "Page up", "Ten places up", "Find"),
    Action("find.page_down", "pagedown", "Page down", "Ten places down", "Find"),
    Action("find.back", "escape", "Back", "Back to the run", "Find"),
    Action("threads.open", "enter", "Open", "Open the selected thread", "Threads"),
    Action("threads.inside", "space", "Inside", "Show or hide what ran inside the selected one", "Threads"),
    Action("threads.waiting", "w", "Waiting", "Only the threads that wait for a human, or all", "Threads"),
    Action("threads.search", "/", "Search", "Type a part of a name", "Threads"),
    Action("threads.back", "escape", "Back", "From the search to the list, then to the run", "Threads"),
    Action("threads.close", "q", "Close", "Back to the run at once", "Threads"),
    Action("check.log", "1", "Log", "Check the log against itself", "Verify"),
    Action("check.strict", "2", "Strict", "The same, and reduce every update again", "Verify"),
    Action("check.replay", "3", "Replay", "Run the graph again on its recorded results", "Verify"),
    Action("check.go", "enter", "To the step", "Go to the step of the selected finding", "Verify"),
    Action("check.threads", "t", "Threads", "Of a damaged thread: open another one", "Verify"),
    Action("compare.side", "tab,shift+tab", "Other side", "The keys move the other side", "Compare"),
    Action("compare.back", "[,left,h", "Earlier", "The step before, on that side", "Compare"),
    Action("compare.on", "],right,l", "Later", "The step after, on that side", "Compare"),
    Action("compare.place", "/", "Thread or step", "Type another thread or step for that side", "Compare"),
    Action("compare.swap", "x", "Swap", "Left becomes right", "Compare"),
    Action("agents.change", "T,c", "Try another", "Another model or instructions for the agent", "Agents"),
    Action("agents.forget", "x", "Forget turns", "Let the agent forget its turns", "Agents"),
    Action("agents.whole", "v", "Whole texts", "Show long texts whole, or their beginning", "Agents"),
    Action("branches.decide", "enter", "Decide", "Decide what the selected branch asks", "Branches"),
    Action("branches.next", "f", "Next to look at", "To the next branch that failed or asks", "Branches"),
    Action("breaks.switch", "space", "On and off", "Set the breakpoint, or take it away", "Breakpoints"),
    Action("breaks.condition", "enter", "Condition", "Type when it stops", "Breakpoints"),
    Action("breaks.back", "escape", "Back", "From the condition to the list, then to the run", "Breakpoints"),
)  # fmt: skip

ALL_ACTIONS: Final = (*ACTIONS, *SCREEN_ACTIONS)
ALL_BY_ID: Final = {action.id: action for action in ALL_ACTIONS}
