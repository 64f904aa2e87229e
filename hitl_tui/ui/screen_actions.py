"""The actions of the screens over the run; each needs a key, because no palette lists them."""

from __future__ import annotations

from typing import Final

from hitl_tui.ui.actions import ACTIONS, Action

SCREEN_ACTIONS: Final[tuple[Action, ...]] = (
    Action("edit.apply", "ctrl+s", "Apply", "Apply the edit, or take it as the answer", "Editor"),
    Action("edit.editor", "f4,ctrl+e", "$EDITOR", "Edit in your own editor", "Editor"),
    Action("edit.back", "escape", "Back", "Leave; with changes only after asking", "Editor"),
    Action("threads.open", "enter", "Open", "Open the selected thread", "Threads"),
    Action("threads.search", "/", "Search", "Type a part of a name", "Threads"),
    Action("threads.back", "escape", "Back", "From the search to the list, then to the run", "Threads"),
    Action("threads.close", "q", "Close", "Back to the run at once", "Threads"),
)  # fmt: skip

ALL_ACTIONS: Final = (*ACTIONS, *SCREEN_ACTIONS)
ALL_BY_ID: Final = {action.id: action for action in ALL_ACTIONS}
