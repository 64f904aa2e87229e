"""Removes what must not be written to a file: keys, and the values of private channels."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from hitl_tui.engine.log.redaction import hiding, written_forms
from hitl_tui.engine.log.secrets import MASK, SECRET_LOOK, is_secret_name
from hitl_tui.engine.nodes.activity import Activity, current_activity

_of_agents: set[str] = set()


def redactor(options: Mapping[str, Any], activity: Activity | None = None) -> Callable[[Any], Any]:
    """Return a function that hides secrets in any JSON: those of the running node and of this call.

    Args:
        options: those of the call; values that look like keys are hidden.
        activity: that of the node; by default the running one.
    """
    activity = activity or current_activity.get()
    hidden = hiding(activity.private() if activity else {})

    def hide(value: Any) -> Any:
        return _scrubbed(hidden(value), options)

    return hide


def _scrubbed(value: Any, options: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return scrub(value, options)
    if isinstance(value, Mapping):
        return {key: _scrubbed(item, options) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(item, options) for item in value]
    return value


def remember(options: Mapping[str, Any]) -> None:
    """Remember the secrets in an agent's options: errors of other agents in this process may quote them."""
    _of_agents.update(_secrets(options))


def scrub(text: str, options: Mapping[str, Any]) -> str:
    """Cut out the values of secret-looking options and variables, and what looks like a key."""
    # The longest first: a key may be the start of another one.
    secrets = {*_of_agents, *_secrets(options), *_secrets(os.environ)}
    for written in sorted(
        {form for secret in secrets for form in written_forms(secret)}, key=len, reverse=True
    ):
        text = text.replace(written, MASK)
    return SECRET_LOOK.sub(MASK, text)


def _secrets(options: Mapping[str, Any]) -> set[str]:
    named = [*options.items()]
    for nested in ("extra_headers", "headers"):
        # A provider may quote "Bearer KEY" or only the key.
        given = options.get(nested)
        headers = [str(value) for value in given.values()] if isinstance(given, Mapping) else []
        named += [("secret", part) for header in headers for part in (header, *header.split())]
    return {
        value for name, value in named if isinstance(value, str) and len(value) >= 8 and is_secret_name(name)
    }
