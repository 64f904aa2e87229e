"""Last row: the keys that can be used now, painted by one widget from the action table."""

from __future__ import annotations

from collections.abc import Collection

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.timer import Timer

from hitl_tui.ui.widgets.lines import LineBar, ours
from hitl_tui.verbs.actions import ACTIONS, BY_ID
from hitl_tui.view.actions import Action, Situation
from hitl_tui.view.keymap import Keymap
from hitl_tui.view.spans import Line, Span, plain_text

_MESSAGE_SECONDS = 5.0
_WIDE = 80
"""Cells from which every key keeps its place, whether it can be used or not."""


class FooterBar(LineBar):
    """Keys and their labels; those that can't be used now are dim. A click does what the key does."""

    class Chosen(Message):
        """An action was clicked."""

        def __init__(self, action: Action) -> None:
            super().__init__()
            self.action = action

    def __init__(self, keymap: Keymap) -> None:
        super().__init__(id="footer")
        self._keymap = keymap
        self._situation = Situation(key_hints=keymap.key_hints)
        self._message: Line = ()
        self._key_pressed = ""
        self._timer: Timer | None = None
        self._places: list[tuple[int, int, Action]] = []
        self._actions = sorted(
            (action for action in ACTIONS if action.footer and keymap.bindings[action.id]),
            key=lambda action: (action.group not in ("Card", "Stage"), action.footer),
        )

    def show(self, situation: Situation) -> None:
        """Show the actions of a situation; paint only if they differ."""
        if situation != self._situation:
            self._situation = situation
            self.refresh()

    def say(self, message: Line) -> None:
        """Show a message beside the keys for a few seconds; the least important keys make room for it."""
        self._message = message
        self.refresh()
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_MESSAGE_SECONDS, self._forget)

    def show_key(self, key: str) -> None:
        """Show the last pressed key as people write it; "" shows none."""
        self._key_pressed = key
        self.refresh()

    def take_back(self, texts: Collection[str]) -> None:
        """Remove the message if it is one of these."""
        if plain_text(self._message) in texts:
            self._forget()

    def _forget(self) -> None:
        self._message = ()
        self.refresh()

    @property
    def message(self) -> Line:
        """Current message, () if there is none."""
        return self._message

    def bar(self, width: int) -> Line:
        """Return the message, or as many keys as fit, with the palette's at the right end."""
        if self._message:
            said = cell_len(plain_text(self._message)) + 2
            return (*self._keys(max(width - said, 0)), Span("  "), *self._message)
        if self._situation.typing:
            # The field exists by now; importing it with the screen would delay the first paint.
            from hitl_tui.ui.widgets.safe_text import ReasonField

            self._places = []
            if self.screen.focused is not None and self.screen.focused.id == "find":
                return self._of_search()
            field = "reason.leave" if isinstance(self.screen.focused, ReasonField) else "form.leave"
            key = self._keymap.shown(field)
            return (ours(f" {key}", "key"), Span(" Done typing "), Span("  typing decides nothing", "dim"))
        if self._key_pressed:
            shown: Line = (
                Span("key pressed: ", "dim"),
                ours(f" {self._key_pressed} ", "selected"),
                Span(" "),
            )
            return (*self._keys(width - cell_len(plain_text(shown))), *shown)
        palette = self._keymap.shown("app.palette")
        room = width - len(f" {palette} palette ") - 1
        keys = self._keys(room)
        return (*keys, ours("│", "faint"), ours(f" {palette}", "key"), Span(" palette ", "dim"))

    def _of_search(self) -> Line:
        """Return the keys of a search beside the panes, and later those that walk its results."""
        keys = self._keymap.shown
        own = (
            (keys("find.go"), "Go there"),
            (f"{keys('find.up')} {keys('find.down')}", "Select"),
            (keys("find.back"), "Back"),
        )
        walk = f"  then {keys('app.next')} next, {keys('app.before')} the one before"
        return (
            *(span for key, word in own for span in (ours(f" {key}", "key"), Span(f" {word} "))),
            Span(walk, "dim"),
        )

    def _keys(self, room: int) -> Line:
        """Return as many keys as fit, padded with blanks; the card's keys come first."""
        now = self._situation
        shown = [
            action
            for action in self._actions
            if action.is_shown(now) and not ((action.offered or now.card) and action.disabled_reason(now))
        ]
        if now.card in ("open", "sending"):
            shown = [action for action in shown if action.works_on_card]
        if now.show:
            shown = self._of_show(shown)
        if self._walks:  # the keys that walk the results are what the search was opened for
            shown.sort(key=lambda action: action.id != "app.next")
        while shown and sum(self._width(action) for action in shown) > room:
            shown.pop(self._least(shown, room))
        spans: list[Span] = []
        self._places = []
        x = 0
        for action in shown:
            usable = not action.disabled_reason(self._situation)
            waits = action.id == "change.decide" and usable
            spans.append(ours(f" {self._key(action)}", "key" if usable else "key-off"))
            spans.append(
                ours(f" {self._word(action)} ", "accent" if waits else "plain" if usable else "key-off")
            )
            self._places.append((x, x + self._width(action), action))
            x += self._width(action)
        return (*spans, Span(" " * max(0, room - x)))

    def _of_show(self, shown: list[Action]) -> list[Action]:
        """Return the keys of a presentation, for an audience with its effects; the card has its own keys."""
        if self._situation.card:
            return [action for action in shown if action.group != "Stage"]
        fork, spotlight = BY_ID["change.fork"], BY_ID["look.spotlight"]
        first, *rest = (action for action in shown if action.group == "Stage")
        return [first, spotlight, fork, *rest, *(action for action in shown if action.group == "App")]

    def on_click(self, event: events.Click) -> None:
        """Do what the key under the mouse does."""
        for start, end, action in self._places:
            if start <= event.x < end:
                self.post_message(self.Chosen(action))
                return
        if self._places and event.x > self.size.width - len(self._keymap.shown("app.palette")) - 11:
            self.app.action_command_palette()

    def _key(self, action: Action) -> str:
        keys = (self._keymap.shown(action.id), self._keymap.shown(action.twin) if action.twin else "")
        return " ".join(key for key in keys if key)

    def _least(self, actions: list[Action], width: int) -> int:
        """Return which actions to leave out first: on a narrow screen disabled ones; help and quit last."""
        idle = [at for at, action in enumerate(actions) if action.disabled_reason(self._situation)]
        return idle[-1] if idle and width < _WIDE else max(len(actions) - 3, 0)

    def _width(self, action: Action) -> int:
        return cell_len(self._key(action)) + cell_len(self._word(action)) + 3

    def _word(self, action: Action) -> str:
        if action.group == "Stage" and self._situation.show:
            words = {"stage.faster": f"Pace {self._situation.pace}"}
            words |= {"stage.hold": "Continue"} if self._situation.held else {}
            return words.get(action.id, action.both or action.label)
        walks = action.id == "app.next" and self._walks
        return "Next match" if walks else action.both or action.label

    @property
    def _walks(self) -> bool:
        """Whether the key for the next thread walks search results."""
        return self._situation.found and not self._situation.card
