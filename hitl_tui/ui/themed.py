"""The looks of the app: its theme, applied anew when its file is saved, and the characters it keeps to."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from textual.app import App

from hitl_tui.errors import HitlError
from hitl_tui.ui.theme_watch import ThemeWatch
from hitl_tui.ui.theming import DEFAULT_THEME, LoadedTheme, ThemeInvalid, Themes, builtin_theme

if TYPE_CHECKING:
    from textual.filter import LineFilter

    from hitl_tui.ui.app import Look

Result = TypeVar("Result")


class Themed(App[Result]):
    """An app that wears a `Look`."""

    _plain_chars: LineFilter | None = None

    def wear(self, look: Look) -> None:
        """Choose theme and characters; once, before anything is painted."""
        self.look = look
        self._watch = ThemeWatch(Themes(look.themes))
        self._set_characters()
        self._begin_theme()

    @abstractmethod
    def tell_error(self, error: HitlError) -> None:
        """Say what went wrong once there is a screen to say it on."""

    def theme_names(self) -> list[str]:
        """All themes there are."""
        return list(self._watch.themes.names())

    def _set_characters(self) -> None:
        """Keep to ASCII where that is wished, or where the locale shows nothing else."""
        wished = self.look.ascii
        if wished is False:
            return
        from hitl_tui.ui.locale_encoding import shown_encoding

        encoding = shown_encoding(os.environ)
        if wished or encoding != "utf-8":
            from hitl_tui.ui.plain_terminal import PlainChars

            self._plain_chars = PlainChars(encoding)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What all rows go through on their way to the terminal."""
        filters = super().get_line_filters()
        return [*filters, self._plain_chars] if self._plain_chars else filters

    def _begin_theme(self) -> None:
        """The chosen theme, or the default one and a message where that can't be used."""
        try:
            self._apply(self._watch.choose(self.look.theme or DEFAULT_THEME))
        except ThemeInvalid as error:
            mend = f"{error.hint}; " if error.hint else ""
            self.tell_error(ThemeInvalid(error.message, f"{mend}the theme {DEFAULT_THEME!r} is used instead"))
            self._apply(self._watch.fallback())

    def _apply(self, loaded: LoadedTheme) -> None:
        name = loaded.theme.name
        self.register_theme(loaded.theme)
        if self.theme == name:
            self.mutate_reactive(Themed.theme)
        else:
            self.theme = name

    def look_at_theme(self) -> None:
        """Apply a theme that was saved; a broken one leaves the last good one in use."""
        try:
            loaded = self._watch.saved()
        except ThemeInvalid as error:
            self.tell_error(ThemeInvalid(error.message, "the colours stay as they were"))
            return
        if loaded is not None:
            self._apply(loaded)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our roles for themes that don't know them."""
        theme = builtin_theme(DEFAULT_THEME)
        return dict(theme.variables) if theme else {}

    def use_theme(self, name: str) -> None:
        """Change the colours."""
        try:
            self._apply(self._watch.choose(name))
        except ThemeInvalid as error:
            self.tell_error(ThemeInvalid(error.message, "the colours stay as they were"))
