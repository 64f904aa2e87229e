"""Maps keys to actions: the defaults of the action tables, changed by `[keys]` in the settings.

It needs no screen, so the command line can list and check keys too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from hitl_tui.errors import UsageError, in_words
from hitl_tui.suggest import did_you_mean
from hitl_tui.verbs.actions import ALL_ACTIONS, ALL_BY_ID, SCREEN_ACTIONS
from hitl_tui.view.actions import Action, ScreenGroup
from hitl_tui.view.keymap import PALETTE, Keymap, Keys
from hitl_tui.view.keys import NoKey, parse_key, types_text, written

_ALWAYS: Final = {"ctrl+q": "always leaves the app", "ctrl+c": "copies, or leaves the app"}
_PANES: Final = frozenset(
    {
        "up", "down", "left", "right", "home", "end", "pageup", "pagedown", "tab", "shift+tab",
        "ctrl+pageup", "ctrl+pagedown",
    }
)  # fmt: skip
_FIELDS: Final = frozenset(
    {
        "up", "down", "left", "right", "home", "end", "pageup", "pagedown", "enter", "escape", "tab",
        "shift+tab", "backspace", "delete", "insert", *(f"ctrl+{letter}" for letter in "adefjksuvwxyz"),
        *(f"{modifier}+{key}" for modifier in ("shift", "ctrl", "ctrl+shift")
          for key in ("up", "down", "left", "right", "home", "end")),
    }
)  # fmt: skip
_TYPED_IN: Final = ("Questions", "Forms", "Editor", "Find", "Comment")
_FROM_FIELDS: Final = frozenset(
    {"threads.back", "queue.back", "decisions.back", "breaks.back", "reader.back", "reader.go_there"}
)
_LISTED: Final = (
    "Run", "Pages", "Threads", "Queue", "Decisions", "Verify", "Compare", "Agents", "Branches", "Breakpoints",
    "Workers",
)  # fmt: skip
_PAGES: Final = ("Pages", "Verify", "Compare", "Family", "Artifacts", "Agents", "Branches", "Workers")
_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    # Actions that work in several places.
    PALETTE: ("Run", "Card", *get_args(ScreenGroup)),
    "app.back": ("Run", "Card"),
    "list.up": _LISTED,
    "list.down": _LISTED,
    "list.page_up": (*_LISTED, "Card"),
    "list.page_down": (*_LISTED, "Card"),
    "list.first": _LISTED,
    "list.last": _LISTED,
    "page.close": ("Pages", "Verify", "Compare", "Agents", "Branches", "Workers"),
    "ask.up": ("Questions", "Card"),
    "ask.down": ("Questions", "Card"),
    "ask.take": ("Questions", "Card"),
    "form.line": ("Forms", "Reason"),
    "reason.leave": ("Reason",),
    # Actions that also close the screen that they open.
    "app.help": ("Run", "Pages", "Threads", "Queue", "Verify", "Compare", "Agents", "Branches", "Reader"),
    "app.threads": ("Run", "Threads"),
    "app.queue": ("Run", "Queue", *_PAGES),
    "app.workers": ("Run", "Workers"),
    "app.decided": ("Run", "Decisions", *_PAGES),
    "app.store": ("Run", "Pages"),
    "look.agents": ("Run", "Agents"),
    "look.check": ("Run", "Verify"),
    "look.compare": ("Run", "Compare"),
    "look.contract": ("Run", "Pages"),
    "look.costs": ("Run", "Pages"),
    "look.inside": ("Run", "Branches"),
    "look.outside": ("Run", "Branches"),
    "look.read": ("Run", "Reader"),
    "look.taint": ("Run", "Pages"),
    "run.break": ("Run", "Breakpoints"),
    "run.breaks": ("Run", "Breakpoints"),
}


class KeysInvalid(UsageError):
    """Configured keys can't be used; the message lists them, a line each."""

    title = "Some keys can't be used"


def load_keymap(
    table: Mapping[str, Any], where: Callable[[str], str] = lambda name: f"keys.{name}"
) -> Keymap:
    """Return the defaults, changed by a table of action id = "key" or "key,key"; "" removes the keys.

    Invalid entries are left out and listed in `problems`; the rest applies.

    Args:
        where: the place of an entry, as in `config.toml:7`.
    """
    problems: list[str] = []
    wanted: dict[str, Keys] = {}
    for name, value in table.items():
        action = ALL_BY_ID.get(name)
        if action is None:
            hint = did_you_mean(name, ALL_BY_ID) or "`hitl-tui keys` lists them"
            problems.append(f"{where(name)}: there is no action {name!r}; {hint}")
            continue
        keys, wrong = _read(action, value)
        problems += [f"{where(name)}: {name}: {text}" for text in wrong]
        if keys or not wrong:
            wanted[name] = keys
    problems += _settle(wanted, where)
    bindings = {action.id: wanted.get(action.id, action.default_keys) for action in ALL_ACTIONS}
    configured = frozenset(name for name, keys in wanted.items() if keys != ALL_BY_ID[name].default_keys)
    return Keymap(bindings, ALL_BY_ID, tuple(problems), configured)


def _read(action: Action, value: Any) -> tuple[Keys, list[str]]:
    """Return the usable keys of one entry, and the problems with the others."""
    if not isinstance(value, str):
        return (), [f'must be text, as in "{action.keys.partition(",")[0]}", not {in_words(value)}']
    if not value.strip() and action.id == PALETTE:
        return (), ["needs a key, because all other actions are reached through it"]
    if not value.strip() and action in SCREEN_ACTIONS:
        return (), ["needs a key, because the palette does not list it"]
    keys: list[str] = []
    problems: list[str] = []
    for text in value.split(",") if value.strip() else ():
        try:
            key = parse_key(text.strip()) if text.strip() else ""
        except NoKey as error:
            problems.append(str(error))
            continue
        problem = _shadowed(action, key) if key else 'write "comma" for the key , itself'
        if problem:
            problems.append(problem)
        elif key not in keys:
            keys.append(key)
    return tuple(keys), problems


def _shadowed(action: Action, key: str) -> str:
    """Return why a key would never reach an action, or would block another use; "" if it is free."""
    if key in action.default_keys:
        return ""
    if key in _ALWAYS:
        return f"{written(key)} {_ALWAYS[key]}"
    if action.id == PALETTE:
        # It works everywhere, so it must not take keys needed for typing.
        taken = types_text(key) or key in _FIELDS
        return f"{written(key)} is needed in text fields" if taken else ""
    of_group = action in SCREEN_ACTIONS and any(
        key in other.default_keys for other in SCREEN_ACTIONS if other.group == action.group
    )
    if action.group in _TYPED_IN or action.id in _FROM_FIELDS:
        taken = types_text(key) or (key in _FIELDS and not of_group)
        return f"{written(key)} is needed in text fields" if taken else ""
    return f"{written(key)} is needed to move around" if key in _PANES and not of_group else ""


def _settle(wanted: dict[str, Keys], where: Callable[[str], str]) -> list[str]:
    """Drop configured keys until no two actions of a place share one."""
    problems: list[str] = []
    while wanted and (clash := _clash(wanted)):
        name, key, owner = clash
        hint = "" if owner in wanted else '; give that one another key too, or "" for none'
        place = f" ({where(owner)})" if owner in wanted else ""
        problems.append(f"{where(name)}: {name}: {written(key)} is the key of {owner}{place} already{hint}")
        left = tuple(other for other in wanted[name] if other != key)
        if left:
            wanted[name] = left
        else:
            del wanted[name]
    return problems


def _clash(wanted: Mapping[str, Keys]) -> tuple[str, str, str] | None:
    """Return an entry, its conflicting key, and the other action with that key."""
    owners = {
        (place, key): action.id
        for action in ALL_ACTIONS
        if action.id not in wanted
        for place in places_of(action)
        for key in action.default_keys
    }
    for name, keys in wanted.items():
        spots = [(place, key) for key in keys for place in places_of(ALL_BY_ID[name])]
        for spot in spots:
            # Some keys go to the widget that can use them: a pane that scrolls, else the screen.
            owner = owners.get(spot)
            if owner and not all(spot[1] in ALL_BY_ID[action].default_keys for action in (name, owner)):
                return name, spot[1], owner
        owners |= dict.fromkeys(spots, name)
    return None


def places_of(action: Action) -> tuple[str, ...]:
    """Return the places where an action's key works: the card and each screen are places."""
    own = (action.group,) if action.group in ("Card", "Stage", *get_args(ScreenGroup)) else ("Run",)
    return _PLACES.get(action.id, own)
