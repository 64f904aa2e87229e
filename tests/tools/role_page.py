"""Writes the table of `docs/roles.md` from the actions that are tested: `python -m tests.tools.role_page`."""

from __future__ import annotations

import re
from pathlib import Path

from tests.stores.role_actions import ACTIONS, LOGINS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "roles.md"


def table() -> str:
    """One row an action, one column a role."""
    roles = {login: role for login, role in LOGINS.items() if role}
    names = " | ".join(f"`{role}`" for role in roles.values())
    lines = [f"| action | {names} |", f"|---|{'---|' * len(roles)}"]
    for action in ACTIONS:
        marks = " | ".join("yes" if login in action.logins else "–" for login in roles)
        lines.append(f"| {action.name} | {marks} |")
    return "\n".join(lines) + "\n"


def page_text(page: str) -> str:
    """The page with this table in place of the one that it has."""
    return re.sub(r"(?m)^\| action \|.*\n(\|.*\n)+", lambda _: table(), page)


if __name__ == "__main__":
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
