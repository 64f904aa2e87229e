"""All actions with their keys and descriptions, from the one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import ClassVar, get_args

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Key
from textual.widgets import Input

from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.page import KEYS_OF_PAGE, KeysBar, OverlayScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView, ours
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.verbs.actions import ACTIONS, ALL_BY_ID, SCREEN_ACTIONS
from hitl_tui.view.actions import Action, Group, ScreenGroup, Situation
from hitl_tui.view.glyphs import UNICODE
from hitl_tui.view.keymap import Keymap
from hitl_tui.view.rows import wrap_line
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Span

_ALSO: tuple[tuple[str, str], ...] = (
    ("tab", "next pane; shift+tab: previous pane"),
    ("letters", "next to a choice: takes that choice, while the choices have the focus"),
    ("mouse", "click a channel, a step, a tab, a choice or a key in the footer"),
)

_WORDS: tuple[tuple[str, str], ...] = (
    ("graph", "nodes that run one after another, and the edges between them"),
    ("channel", "a named value that nodes read and write; all of them together are the state"),
    (
        "reducer",
        "makes a channel's new value from the old one and an update: overwrite, append, sum and others",
    ),
    (
        "step",
        "what one node or one person wrote, kept in the log; each can be looked at, compared and forked",
    ),
    ("thread", "one run of a graph, step by step; a fork is a thread that begins at a step of another one"),
)
_G = UNICODE
_SIGNS: tuple[tuple[str, str], ...] = (
    (
        f"{_G.grew} {_G.changed} {_G.same} {_G.edit}",
        "what the step did to a channel: more in it, changed, the same again, set by hand",
    ),
    (_G.tainted, "a channel that holds untrusted data"),
    (
        f"{_G.input} {_G.node} {_G.head}",
        "in the timeline: the input, a step, the newest step of the open thread",
    ),
    (
        f"{_G.edit} {_G.done} {_G.cancelled}",
        "in the timeline, by a person: an edit, a decision, what was undone",
    ),
    (_G.note, "in the timeline: somebody left a note on the step"),
    (f"{_G.running} {_G.waiting} {_G.failed} {_G.done}", "runs, waits, failed, done"),
    (f"{_G.breakpoint} {_G.logpoint}", "in the graph: a breakpoint, one that does not stop; ×2 ran twice"),
)

_OF_DEVELOPERS = ("graph", "reducer", f"{_G.breakpoint} {_G.logpoint}")
_HEIGHTS: list[tuple[int, str]] = [(0, "-low"), (16, "-tall")]
_FEWEST_KEYS = len("backspace")
_MOST_KEYS = len("tab shift+tab")
_NARROWEST = 16
_LONGEST = 60
_NARROW = 36
"""Cells for a description; with fewer it is below the name."""
_LABELS = max(len(action.label) for action in (*ACTIONS, *SCREEN_ACTIONS))


class _Filter(SafeInput):
    """Field for a filter; while it is empty, the keys that close the page do so."""

    def __init__(self, closers: Sequence[str]) -> None:
        super().__init__(id="find", placeholder="type part of a word")
        self._closers = closers

    def on_key(self, event: Key) -> None:
        """Close the page with its keys, unless they are part of a word."""
        if not self.value and event.key in self._closers:
            event.stop()
            event.prevent_default()
            self.screen.dismiss()


class HelpScreen(OverlayScreen):
    """One scrolled page, which begins with the keys of the pane that has the focus; typing filters it.

    Args:
        pane: name of the pane, "" for none.
        keys_of_pane: actions that have keys of their own in the pane.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "help.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("page.close", "close"),
        bound("list.up", "scroll(-1)"),
        bound("list.down", "scroll(1)"),
        bound("list.page_up", "turn_pages(-1)"),
        bound("list.page_down", "turn_pages(1)"),
    ]
    AUTO_FOCUS = "#find"
    VERTICAL_BREAKPOINTS = _HEIGHTS

    def __init__(
        self, situation: Situation, keymap: Keymap, pane: str = "", keys_of_pane: Sequence[str] = ()
    ) -> None:
        super().__init__(keymap.bindings["app.help"])
        self._situation = situation
        self._keymap = keymap
        self._pane = pane
        self._keys_of_pane = keys_of_pane

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield _Filter((*self._keymap.bindings["app.help"], *self._keymap.bindings["page.close"]))
        yield LineView("help", "Keys, words and signs")
        yield KeysBar(KEYS_OF_PAGE)

    def on_mount(self) -> None:
        """Write the page once its width is known."""
        self.query_one("#help", LineView).can_focus = False

    @on(Input.Changed)
    def _typed(self) -> None:
        self._write()

    def action_scroll(self, by: int) -> None:
        """Scroll the page by rows."""
        self.query_one("#help", LineView).scroll_relative(y=by, animate=False, immediate=True)

    def action_turn_pages(self, by: int) -> None:
        """Scroll the page by pages."""
        self.query_one("#help", LineView).turn_pages(by)

    def on_resize(self) -> None:
        """Write the page for the width."""
        self.call_after_refresh(self._write)

    def _write(self) -> None:
        typed = self.query_one(Input).value.lower().split()
        lines = self._matching(typed) if typed else self._lines()
        self.query_one("#help", LineView).show(lines or [(Span("nothing matches", "dim"),)], home=True)

    def _matching(self, typed: Sequence[str]) -> list[Line]:
        """Return the actions, words and signs that contain everything typed."""

        def matches(*texts: str) -> bool:
            return all(word in " ".join(texts).lower() for word in typed)

        shown = [
            action
            for action in (*ACTIONS, *SCREEN_ACTIONS)
            if action.is_shown(self._situation)
            and matches(self._keymap.all_shown(action.id), action.label, action.help, action.group)
        ]
        room = max((_FEWEST_KEYS, *(len(self._keys_of(action)) for action in shown)))
        defined = [(name, words) for name, words in self._defined((*_WORDS, *_SIGNS)) if matches(name, words)]
        return [
            *(line for action in shown for line in self._rows(action, room)),
            *(line for name, words in defined for line in self._definition(f"{name:<{_FEWEST_KEYS}}", words)),
        ]

    def _lines(self) -> list[Line]:
        lines: list[Line] = []
        if own := [ALL_BY_ID[name] for name in self._keys_of_pane]:
            room = max(_FEWEST_KEYS, *(len(self._keys_of(action)) for action in own))
            lines.append((Span(f"In the pane {sanitise_line(self._pane, _LONGEST)}", "title"),))
            lines += [*(line for action in own for line in self._rows(action, room)), ()]
        for group in get_args(Group):
            lines += self._group(group, ACTIONS)
            lines.append(())
        lines.append((Span("Also", "title"),))
        lines += [(ours(f"  {key:<{_FEWEST_KEYS}} ", "key"), Span(text, "dim")) for key, text in _ALSO]
        for title, rows in (("Words", _WORDS), ("Signs", _SIGNS)):
            lines += [(), (Span(title, "title"),)]
            lines += [
                line
                for name, words in self._defined(rows)
                for line in self._definition(f"{name:<{_FEWEST_KEYS}}", words)
            ]
        for screen in get_args(ScreenGroup):
            if group := self._group(screen, SCREEN_ACTIONS):
                lines += [(), *group]
        if self._situation.reviewing:
            way = self._keymap.key_hint("look.developer")
            lines = [
                (Span(f"The keys of developers are not listed; {way} shows their view.", "dim"),),
                (),
                *lines,
            ]
        return lines

    def _defined(self, rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return words or signs without those of panes that are not shown."""
        return [row for row in rows if not (self._situation.reviewing and row[0] in _OF_DEVELOPERS)]

    def _definition(self, name: str, words: str) -> list[Line]:
        """Return a word or a sign, and its meaning."""
        width = self.query_one("#help", LineView).scrollable_content_region.width - len(name) - 3
        first, *rest = wrap_line(words, max(width, _NARROWEST))
        indent = Span(" " * (len(name) + 3))
        lead = (Span(f"  {name} ", "name"), Span(first, "dim"))
        return [lead, *((indent, Span(row, "dim")) for row in rest)]

    def _group(self, group: str, actions: Sequence[Action]) -> list[Line]:
        """Return the name of a group, and its actions below."""
        rows = [each for each in actions if each.group == group and each.is_shown(self._situation)]
        if not rows:
            return []
        room = max(_FEWEST_KEYS, *(len(self._keys_of(action)) for action in rows))
        return [(Span(group, "title"),), *(line for action in rows for line in self._rows(action, room))]

    def _keys_of(self, action: Action) -> str:
        """Return the keys of an action, as many as there is room for."""
        keys = self._keymap.all_shown(action.id)
        if len(keys) <= _MOST_KEYS:
            return keys
        return keys[: _MOST_KEYS - 1].rpartition(" ")[0] + " …"

    def _rows(self, action: Action, room: int) -> list[Line]:
        """Return an action: its keys, dim if disabled; its description; below it why it is disabled."""
        why = action.disabled_reason(self._situation)
        name = (
            ours(f"  {self._keys_of(action):<{room}} ", "key-off" if why else "key"),
            Span(f"{action.label:<{_LABELS}} "),
        )
        indent = room + _LABELS + 4
        width = self.query_one("#help", LineView).scrollable_content_region.width
        below = width - indent < _NARROW
        if below:
            indent = room + 3
        words = [action.help, *([f"disabled: {why}"] if why else [])]
        first, *rest = [row for text in words for row in wrap_line(text, max(width - indent, _NARROWEST))]
        lines: list[Line] = [name, *([(Span(" " * indent), Span(first, "dim"))] if below else ())]
        if not below:
            lines = [(*name, Span(first, "dim"))]
        return [*lines, *((Span(" " * indent), Span(row, "dim")) for row in rest)]
