"""Themes as files, and the looks of the app, applied again when a file is saved."""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import tomli
from textual.app import App
from textual.color import Color, ColorParseError
from textual.theme import Theme

from hitl_tui.errors import HitlError, UsageError
from hitl_tui.given_files import read_given, text_of
from hitl_tui.suggest import did_you_mean

if TYPE_CHECKING:
    from textual.filter import LineFilter


DEFAULT_THEME: Final = "dark"
"""Bundled theme that declares all colours: one that is added there is known everywhere."""
_TABLES: Final = ("colors", "roles")
_KINDS: Final[Mapping[str, type]] = {"title": str, "dark": bool, "base": str, "colors": dict, "roles": dict}
_WORDS: Final = {str: "text", bool: "true or false", dict: "a table"}
_NAME: Final = re.compile(r"\w[\w.-]{0,59}")
_LARGEST: Final = 64 * 1024
Place = Callable[..., str]


class ThemeInvalid(UsageError):
    """Theme file with something wrong in it; the message lists all problems, a line for each."""

    title = "The theme can't be used"


class LoadedTheme(msgspec.Struct, frozen=True):
    """Valid theme, and the files it was made of: its own, then those it is based on."""

    theme: Theme
    title: str
    files: tuple[Path, ...]


class _Given(msgspec.Struct, frozen=True):
    """Settings of a file and of those it is based on."""

    title: str
    dark: bool
    colors: Mapping[str, str]
    roles: Mapping[str, str]
    files: tuple[Path, ...]


class Themes:
    """All themes: ours, and those in a directory of the user, which take precedence."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory

    def names(self) -> tuple[str, ...]:
        """Names of themes, the default one first."""
        paths = [path for place in self._places() for path in place.glob("*.toml")]
        names = {path.stem for path in paths if _NAME.fullmatch(path.stem)}
        return tuple(sorted(names, key=lambda name: (name != DEFAULT_THEME, name)))

    def path(self, name: str, *, without: tuple[Path, ...] = ()) -> Path | None:
        """Return the file of a theme, None if there is none."""
        if not _NAME.fullmatch(name):
            return None
        paths = (place / f"{name}.toml" for place in self._places())
        return next((path for path in paths if path not in without and path.is_file()), None)

    def load(self, name: str) -> LoadedTheme:
        """Return a theme by its name.

        Raises:
            ThemeInvalid: there is no such theme, or its file, or one it is based on, can't be used.
        """
        path = self.path(name)
        if path is None:
            for place in self._places():
                if (there := place / f"{name}.toml") in place.glob("*.toml"):
                    raise ThemeInvalid(f"{there}: is not a readable file")
            raise ThemeInvalid(f"there is no theme {name!r}", did_you_mean(name, self.names()))
        return self.load_file(path)

    def files(self, name: str) -> tuple[Path, ...]:
        """Return its own file and its bases, as far as they can be read; else where it would be."""
        path = self.path(name)
        if path is None and self.directory is not None and _NAME.fullmatch(name):
            return (self.directory / f"{name}.toml",)
        read: tuple[Path, ...] = ()
        while path is not None:
            read = (*read, path)
            try:
                base = _parse(path)[1].get("base")
            except ThemeInvalid:
                break
            path = self._base(base, read) if isinstance(base, str) else None
        return read

    def load_file(self, path: Path) -> LoadedTheme:
        """Return the theme of a file.

        Raises:
            ThemeInvalid: it, or one it is based on, can't be used.
        """
        given = self._read(path, ())
        variables = {**given.roles, **_textual_variables(given.colors, given.roles)}
        colors: dict[str, Any] = dict(given.colors)
        theme = Theme(name=path.stem, dark=given.dark, text_alpha=1.0, variables=variables, **colors)
        return LoadedTheme(theme, given.title, given.files)

    def _places(self) -> tuple[Path, ...]:
        return (self.directory, bundled_themes()) if self.directory else (bundled_themes(),)

    def _read(self, path: Path, above: tuple[Path, ...]) -> _Given:
        """Read a file over its bases; `above` are the files that are based on it."""
        text, data = _parse(path)

        def place(*keys: str) -> str:
            from hitl_tui.loading.toml import line_index, line_of

            line = line_of(line_index(text), keys)
            return f"{path}:{line}" if line else str(path)

        problems = _top_problems(data, place)
        base: _Given | None = None
        if isinstance(wanted := data.get("base"), str):
            base_path = self._base(wanted, (*above, path))
            if base_path is None:
                problems.append(f"{place('base')}: base: {self._no_base(wanted, path, above)}")
            else:
                base = self._read(base_path, (*above, path))
        known_base = base is not None or "base" in data
        for name in _TABLES:
            problems += _colour_problems(name, data.get(name), place, complete=not known_base)
        if problems:
            raise ThemeInvalid("\n".join(problems))
        return _Given(
            title=data.get("title", path.stem),
            dark=data.get("dark", base.dark if base else True),
            colors={**(base.colors if base else {}), **data.get("colors", {})},
            roles={**(base.roles if base else {}), **data.get("roles", {})},
            files=(path, *(base.files if base else ())),
        )

    def _base(self, wanted: str, above: tuple[Path, ...]) -> Path | None:
        """Return the base of the last of some files; ours are based on ours, whatever a user has."""
        ours = above[-1].parent == bundled_themes()
        return (Themes() if ours else self).path(wanted, without=above)

    def _no_base(self, wanted: str, path: Path, above: tuple[Path, ...]) -> str:
        if self.path(wanted) is not None:
            return f"{wanted!r} is based on this theme itself"
        hint = did_you_mean(wanted, set(self.names()) - {path.stem, *(file.stem for file in above)})
        return f"there is no theme {wanted!r}" + (f"; {hint}" if hint else "")


def bundled_themes() -> Path:
    """Return the directory of our own themes: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_bundled" / "themes"
    return installed if installed.is_dir() else package.parent / "themes"


@cache
def known_colours() -> Mapping[str, tuple[str, ...]]:
    """Return the names of a theme's colours, by their tables."""
    _, data = _parse(bundled_themes() / f"{DEFAULT_THEME}.toml")
    return {table: tuple(data[table]) for table in _TABLES}


@cache
def builtin_theme(name: str) -> Theme | None:
    """Return the bundled theme of that name, None if there is none."""
    ours = Themes()
    return ours.load(name).theme if ours.path(name) else None


def theme_names(directory: Path | None = None) -> tuple[str, ...]:
    """Return the names of the bundled themes and of those in a user's directory, the default first."""
    return Themes(directory).names()


def _parse(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        if path.stat().st_size > _LARGEST:
            raise ThemeInvalid(f"{path}: is larger than {_LARGEST // 1024} kB, so it is not a theme")
        text = text_of(read_given(path))
        return text, tomli.loads(text)
    except OSError as error:
        raise ThemeInvalid(f"{path}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ThemeInvalid(f"{path}: isn't UTF-8 text (byte {error.start})") from None
    except tomli.TOMLDecodeError as error:
        raise ThemeInvalid(f"{path}:{error.lineno}:{error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise ThemeInvalid(f"{path}: {error}") from None


def _top_problems(data: Mapping[str, Any], place: Place) -> list[str]:
    problems = []
    for key, value in data.items():
        if key not in _KINDS:
            problems.append(f"{place(key)}: unknown key {key!r}; {did_you_mean(key, _KINDS)}")
        elif not isinstance(value, _KINDS[key]):
            problems.append(f"{place(key)}: {key}: must be {_WORDS[_KINDS[key]]}")
    return problems


def _colour_problems(table: str, given: Any, place: Place, *, complete: bool) -> list[str]:
    """Return what is wrong with a table; with `complete` every colour must be there."""
    known = known_colours()[table]
    if given is None and complete:
        return [f'{place()}: the table [{table}] is missing; add it, or a line base = "{DEFAULT_THEME}"']
    if not isinstance(given, dict):
        return []
    problems = []
    for name, value in given.items():
        if name not in known:
            hint = _elsewhere(name, table) or did_you_mean(name, known)
            problem = "unknown key" + (f"; {hint}" if hint else "")
        elif not _is_colour(value):
            problem = f"{value!r} is not a colour; write it as #rrggbb"
        else:
            continue
        problems.append(f"{place(table, name)}: [{table}] {name}: {problem}")
    if complete and (missing := [name for name in known if name not in given]):
        listed = ", ".join(missing)
        problems.append(
            f'{place(table)}: [{table}] misses {listed}; add them, or a line base = "{DEFAULT_THEME}"'
        )
    return problems


def _elsewhere(name: str, table: str) -> str:
    tables = known_colours().items()
    return next(
        (f"it belongs in [{other}]" for other, known in tables if other != table and name in known), ""
    )


def _is_colour(value: Any) -> bool:
    """Whether it is a plain colour: a transparent one, or one of the terminal's, has no certain contrast."""
    try:
        color = Color.parse(value) if isinstance(value, str) else None
    except ColorParseError:
        return False
    return color is not None and color.a == 1 and color.ansi is None and color.auto is False


def _textual_variables(colors: Mapping[str, str], roles: Mapping[str, str]) -> dict[str, str]:
    """Return the look of Textual's own widgets (text areas, the palette), derived from ours."""
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


LOOK_EVERY: Final = 1.0
"""Seconds between two checks of the files."""
Stamp = tuple[int, int] | None


class ThemeWatch:
    """Keeps the last valid theme, whatever is saved."""

    def __init__(self, themes: Themes) -> None:
        self.themes = themes
        self._files: tuple[Path, ...] = ()
        self._stamps: tuple[Stamp, ...] = ()
        self._gone: tuple[Stamp, ...] = ()

    def choose(self, name: str) -> LoadedTheme:
        """Use a theme from now on; a broken one is watched too, so that a fix takes effect at once.

        Raises:
            ThemeInvalid: it can't be used.
        """
        return self._load(name)

    def fallback(self) -> LoadedTheme:
        """Return the theme that replaces a broken one."""
        return Themes().load(DEFAULT_THEME)

    def saved(self) -> LoadedTheme | None:
        """Return the theme again if one of its files was saved since the last check.

        Raises:
            ThemeInvalid: the saved theme can't be used, or a file was missing in two checks.
        """
        stamps = tuple(map(_stamp, self._files))
        if stamps == self._stamps:
            return None
        if None in stamps:
            # An editor that replaces a file may have removed the old one for a moment.
            if stamps == self._gone:
                self._stamps = stamps
                raise ThemeInvalid(f"{self._files[stamps.index(None)]} is gone")
            self._gone = stamps
            return None
        self._stamps, self._gone = stamps, ()
        return self._load(self._files[0].stem)

    def _load(self, name: str) -> LoadedTheme:
        self._files = self.themes.files(name)
        self._stamps, self._gone = tuple(map(_stamp, self._files)), ()
        return self.themes.load(name)


def _stamp(path: Path) -> Stamp:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size


Result = TypeVar("Result")


class Look(msgspec.Struct, frozen=True):
    """The user's choice of theme, keys and characters.

    Args:
        theme: name of a theme, "" for the default one.
        themes: the directory of the user's own themes, None for none.
        keys: configured keys, by action.
        key_places: where each of them is configured, for messages.
        ascii: whether to use ASCII alone, None if the locale decides.
        reviewing: whether graph, reducers and debugger are left out until asked for.
    """

    theme: str = ""
    themes: Path | None = None
    keys: Mapping[str, Any] = {}
    key_places: Mapping[str, str] = {}
    ascii: bool | None = None
    reviewing: bool = False


class Themed(App[Result]):
    """App with a `Look`."""

    ENABLE_COMMAND_PALETTE = False
    """Textual's name; see the package."""
    _plain_chars: LineFilter | None = None

    def apply_look(self, look: Look) -> None:
        """Apply theme and characters; once, before anything is painted."""
        self.look = look
        self._watch = ThemeWatch(Themes(look.themes))
        self._set_characters()
        self._begin_theme()

    @abstractmethod
    def show_error(self, error: HitlError) -> None:
        """Show an error once there is a screen to show it on."""

    def theme_names(self) -> list[str]:
        """Return the names of all themes."""
        return list(self._watch.themes.names())

    def _set_characters(self) -> None:
        """Use ASCII alone if that is configured, or if the locale can show nothing else."""
        wished = self.look.ascii
        if wished is False:
            return
        from hitl_tui.ui.terminal import shown_encoding

        encoding = shown_encoding(os.environ)
        if wished or encoding != "utf-8":
            from hitl_tui.ui.plain_terminal import PlainChars

            self._plain_chars = PlainChars(encoding)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filters that all rows pass on their way to the terminal."""
        filters = super().get_line_filters()
        return [*filters, self._plain_chars] if self._plain_chars else filters

    def _begin_theme(self) -> None:
        """Use the chosen theme, or if it can't be used the default one and a message."""
        try:
            self._apply(self._watch.choose(self.look.theme or DEFAULT_THEME))
        except ThemeInvalid as error:
            hint = f"{error.hint}; " if error.hint else ""
            self.show_error(ThemeInvalid(error.message, f"{hint}the theme {DEFAULT_THEME!r} is used instead"))
            self._apply(self._watch.fallback())

    def _apply(self, loaded: LoadedTheme) -> None:
        name = loaded.theme.name
        self.register_theme(loaded.theme)
        if self.theme == name:
            self.mutate_reactive(Themed.theme)
        else:
            self.theme = name

    def look_at_theme(self) -> None:
        """Apply a theme that was saved; a broken one leaves the last valid one in use."""
        try:
            loaded = self._watch.saved()
        except ThemeInvalid as error:
            self.show_error(ThemeInvalid(error.message, "the colours stay as they were"))
            return
        if loaded is not None:
            self._apply(loaded)

    def refresh_css(self, animate: bool = True) -> None:
        """Apply the colours; before the first screen they are only kept for it, and parsed once."""
        if self.screen_stack:
            super().refresh_css(animate)
        else:
            self.stylesheet.set_variables(self.get_css_variables())

    def get_css_variables(self) -> dict[str, str]:
        """Return the variables of the theme; before one is applied nothing asks for any."""
        return super().get_css_variables() if hasattr(self, "look") else {}

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return our roles for themes that don't define them."""
        theme = builtin_theme(DEFAULT_THEME)
        return dict(theme.variables) if theme else {}

    def use_theme(self, name: str) -> None:
        """Change the colours."""
        try:
            self._apply(self._watch.choose(name))
        except ThemeInvalid as error:
            self.show_error(ThemeInvalid(error.message, "the colours stay as they were"))
