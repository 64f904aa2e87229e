"""Writes the page of all keys from the actions of the screen: `python -m tests.tools.key_page`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from hitl_tui.verbs.actions import ALL_ACTIONS
from hitl_tui.view.actions import Action

PAGE = Path(__file__).resolve().parents[2] / "docs" / "keys.md"
HEAD = """\
# Keys

This page lists every action of the full-screen app with its keys and its id. To list the keys in use:

```bash
hitl-tui keys
```

`[keys]` in `config.toml` [changes them](configuration.md#change-keys). This page is written by
`python -m tests.tools.key_page`.
"""
PLACES = {
    "Run": "Running",
    "Look": "Looking",
    "Change": "Deciding and changing",
    "Travel": "Through the steps",
    "Card": "On the review card",
    "App": "Everywhere",
}


def row(action: Action) -> str:
    """A row of a table: keys, id and meaning."""
    keys = " ".join(f"`{key}`" for key in action.keys.split(","))
    return f"| {keys} | `{action.id}` | {action.help[0].lower()}{action.help[1:]} |"


def page_text() -> str:
    """The whole page."""
    groups = list(dict.fromkeys(action.group for action in ALL_ACTIONS))
    ordered = sorted(ALL_ACTIONS, key=lambda action: groups.index(action.group))
    parts = [HEAD]
    for group, actions in groupby(ordered, key=lambda action: action.group):
        rows = "\n".join(row(action) for action in actions)
        parts.append(f"## {PLACES.get(group, group)}\n\n| key | id | what it does |\n|---|---|---|\n{rows}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
