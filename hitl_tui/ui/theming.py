"""Themes as files: where they are, what is in them, and what Textual needs of them.

A theme names every colour of `COLORS` and `ROLES`; the roles become CSS variables of the same name
(`$muted`, `$human`, …).  A file that breaks the rules is refused as a whole, with every problem in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import tomli
from textual.color import Color, ColorParseError
from textual.theme import Theme

from hitl_tui.errors import UsageError

COLORS: Final = (
    "background",
    "surface",
    "panel",
    "foreground",
    "primary",
    "accent",
    "success",
    "warning",
    "error",
)
ROLES: Final = (
    "muted",
    "faint",
    "border",
    "border-focus",
    "human",
    "added",
    "added-back",
    "removed",
    "removed-back",
    "cursor",
    "cursor-text",
    "cursor-quiet",
    "route",
)
DEFAULT_THEME: Final = "dark"


class ThemeInvalid(UsageError):
    """A theme file with something wrong in it; the message lists all of it."""

    title = "The theme can't be used"


def bundled_themes() -> Path:
    """The directory of our own themes: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_bundled" / "themes"
    return installed if installed.is_dir() else package.parent / "themes"


def load_theme(path: Path) -> Theme:
    """Read one theme file.

    Raises:
        ThemeInvalid: not TOML, a missing, unknown or unreadable colour.
    """
    try:
        data = tomli.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError) as error:
        raise ThemeInvalid(f"{path}: {error}") from error
    problems = [
        *_problems("", {key: value for key, value in data.items() if key not in ("colors", "roles")}),
        *_colour_problems("colors", data.get("colors"), COLORS),
        *_colour_problems("roles", data.get("roles"), ROLES),
    ]
    if problems:
        raise ThemeInvalid(f"{path}: " + "; ".join(problems))
    colors: Mapping[str, str] = data["colors"]
    given: dict[str, Any] = dict(colors)
    return Theme(
        name=str(data.get("name", path.stem)),
        dark=bool(data.get("dark", True)),
        text_alpha=1.0,
        variables={**data["roles"], **_textual_variables(colors, data["roles"])},
        **given,
    )


@cache
def builtin_theme(name: str) -> Theme | None:
    """The bundled theme of that name, None where there is none."""
    path = bundled_themes() / f"{name}.toml"
    return load_theme(path) if path.is_file() else None


def theme_names() -> tuple[str, ...]:
    """The names of the bundled themes, the default first."""
    names = sorted(path.stem for path in bundled_themes().glob("*.toml"))
    return tuple(sorted(names, key=lambda name: name != DEFAULT_THEME))


def _problems(where: str, table: Mapping[str, Any]) -> list[str]:
    kinds = {"name": str, "title": str, "dark": bool}
    return [
        f"{where}{key}: " + (f"must be a {kinds[key].__name__}" if key in kinds else "unknown key")
        for key, value in table.items()
        if not isinstance(value, kinds.get(key, ()))
    ]


def _colour_problems(table: str, given: Any, known: tuple[str, ...]) -> list[str]:
    if not isinstance(given, dict):
        return [f"[{table}] is missing"]
    problems = [f"{table}.{name}: missing" for name in known if name not in given]
    problems += [f"{table}.{name}: unknown" for name in given if name not in known]
    for name in known:
        if name not in given:
            continue
        try:
            Color.parse(str(given[name]))
        except ColorParseError:
            problems.append(f"{table}.{name}: {str(given[name])!r} is no colour")
    return problems


def _textual_variables(colors: Mapping[str, str], roles: Mapping[str, str]) -> dict[str, str]:
    """The look of Textual's own widgets (text areas, the palette), derived from ours."""
    return {
        "border-blurred": roles["border"],
        "input-cursor-background": colors["accent"],
        "input-cursor-foreground": colors["background"],
        "input-selection-background": roles["cursor-quiet"],
        "block-cursor-background": roles["cursor"],
        "block-cursor-foreground": roles["cursor-text"],
        "block-cursor-text-style": "none",
        "scrollbar": roles["border"],
        "scrollbar-hover": roles["border-focus"],
        "scrollbar-active": roles["border-focus"],
        "scrollbar-background": colors["background"],
        "scrollbar-background-hover": colors["background"],
        "scrollbar-background-active": colors["background"],
        "scrollbar-corner-color": colors["background"],
        "link-color": colors["primary"],
        "footer-background": colors["panel"],
    }
