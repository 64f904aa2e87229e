"""Editing a channel or an answer: value, note, and a preview of the effects; also after a node failed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from pathlib import PurePath
from typing import Any, ClassVar, Final

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.suggester import SuggestFromList
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, TextArea
from textual.worker import Worker

from hitl_tui.engine.commands import Fork, UpdateState
from hitl_tui.engine.log.events import EDIT, Preview
from hitl_tui.errors import HitlError, StaleWriter
from hitl_tui.ui.bindings import bound, keymap_of
from hitl_tui.ui.gate import decides
from hitl_tui.ui.screens.dialogs import ask_drop
from hitl_tui.ui.screens.page import KeysBar
from hitl_tui.ui.sizes import BREAKPOINTS
from hitl_tui.ui.widgets.lines import LineBar, LineView, RoleScreen, ours
from hitl_tui.ui.widgets.safe_text import DraftArea, SafeInput, elsewhere
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.ui.work import start_work
from hitl_tui.view.edits import as_node_lines, withdrawn_lines
from hitl_tui.view.form import mismatch
from hitl_tui.view.format import NotJson
from hitl_tui.view.repeats import fork_lines
from hitl_tui.view.review import GRACE
from hitl_tui.view.revision import revision
from hitl_tui.view.rows import wrapped
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span, untrusted
from hitl_tui.view.value_source import EditText, draft_of, read_draft, revised

_DEBOUNCE: Final = 0.15
_NAME: Final = 60
# Rows of a failure's message.
_WHY: Final = 6


class EditHead(LineBar):
    """What is edited, as which node, and whether it forks."""

    line: Line = ()

    def bar(self, width: int) -> Line:
        return self.line


KEYS_OF_EDITOR = (
    ("edit.apply", "Apply"), ("edit.editor", "$EDITOR"), ("tab", "Next field"), ("edit.back", "Back"),
)  # fmt: skip


class DraftScreen(RoleScreen):
    """Editor with the changes beside it, checked while the user types.

    Args:
        draft: the text that the editor begins with.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["base.tcss", "dialogs.tcss", "edit.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("edit.apply", "apply", priority=True),
        bound("edit.editor", "editor", priority=True),
        bound("edit.back", "back", priority=True),
    ]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS
    AUTO_FOCUS = "#editor"
    lost: ClassVar[str] = ""
    """Warning about unapplied changes on leaving."""

    def __init__(self, draft: EditText) -> None:
        super().__init__()
        self.draft = draft
        self._timer: Timer | None = None
        self._problem = ""
        self._refused = ""
        """Why it was refused; stays until the text changes, whatever a check says."""

    def _body(self, title: str) -> ComposeResult:
        """Yield editor and preview side by side."""
        with Horizontal(id="edit-body"):
            editor = DraftArea(self.draft.text, "editor")
            editor.border_title = Content(title)
            editor.border_subtitle = Content(self.draft.why or ("JSON" if self.draft.as_json else "text"))
            yield editor
            with Vertical(id="edit-right"):
                yield LineView("facts", "What it does")
                yield ValuePane("preview")

    @property
    def text(self) -> str:
        """Current text."""
        return self.query_one(DraftArea).whole

    @property
    def changed(self) -> bool:
        """Whether it differs from the initial text."""
        return self.text != self.draft.text

    @on(TextArea.Changed)
    def _typed(self) -> None:
        self._refused = ""
        self._check_soon()

    def _check_soon(self) -> None:
        """Check once typing pauses; a key press itself costs nothing here."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_DEBOUNCE, self._check)

    @abstractmethod
    def _check(self) -> None:
        """Find the effects of the text."""

    @abstractmethod
    def _facts(self, width: int) -> list[Line]:
        """Return the effects, in rows."""

    def _show_facts(self) -> None:
        """Show what is wrong with the text, and its effects."""
        facts = self.query_one("#facts", LineView)
        # Room is left for the scroll bar that a long text may bring.
        width = max(facts.scrollable_content_region.width - (not facts.show_vertical_scrollbar), 24)
        lines = wrapped(self._refused, width, "error") + wrapped(self._problem, width, "error")
        if self.query_one(DraftArea).is_too_large:
            lines.append((Span(elsewhere(self.app), "accent"),))
        lines += self._facts(width)
        facts.show(lines)
        facts.styles.height = len(lines) + 2

    def _show_change(self, name: str, before: Any, value: Any) -> None:
        rows = revision(before, value)
        pane = self.query_one("#preview", ValuePane)
        title = "Before and after" if rows.changed else "No change yet"
        pane.show_text(revised(name, rows, prose=isinstance(value, str)), titled=False, title=title)

    def action_editor(self) -> None:
        """Edit in the user's own editor; the text comes back into this one."""
        from hitl_tui.ui.editor import EditorFailed, edited_outside

        self._refused = ""
        try:
            edited = edited_outside(self.app, self.text, as_json=self.draft.as_json)
        except EditorFailed as error:
            self._refused = str(error)
        else:
            self.query_one(DraftArea).take(edited)
        self.refresh(repaint=True)
        self._show_facts()

    def action_back(self) -> None:
        """Leave; with changes only after asking."""
        if self.changed:
            ask_drop(self, self.lost, lambda: self.dismiss(None))
        else:
            self.dismiss(None)


class EditScreen(DraftScreen):
    """Returns the thread to show (this one, or the fork), or None if nothing was applied."""

    lost = "They have not been applied."

    def __init__(self, session: ViewSession, channel: str, actor: str) -> None:
        self.before: Any = session.step_view.values.get(channel)
        info = next((info for info in session.view.graph.channels if info.name == channel), None)
        super().__init__(draft_of(self.before, info.type if info else ""))
        self._commit_work: Worker[Any] | None = None
        self.session = session
        self.channel = channel
        self._actor = actor
        thread_id, step = session.shown or (session.thread_id, session.view.progress.head)
        self._foreign = thread_id != session.thread_id
        self.source_thread, self.base_step = thread_id, step
        self.forks = session.is_past
        error = session.view.error
        self._failed = error if error is not None and error.channel == channel and not self.forks else None
        self.then = ""
        self._preview: Preview | None = None

    def compose(self) -> ComposeResult:
        yield EditHead(id="edit-head")
        if self._failed is not None:
            yield LineView("edit-why", f"{sanitise_line(self._failed.node, _NAME)} failed")
        yield from self._body(sanitise_line(self.channel, _NAME))
        with Horizontal(id="edit-fields"):
            # The note always comes first, so that no note is typed as a name.
            yield _field("edit-note", "why (optional, logged)", "")
            if self.forks:
                name = self.session.free_name(self.source_thread)
                yield _field("new-thread", "name of the new thread", name)
        yield KeysBar(KEYS_OF_EDITOR)

    def on_mount(self) -> None:
        """Show what is edited, and the first preview."""
        head = self.query_one(EditHead)
        where: list[Span] = [
            ours(" edit ", "brand"),
            untrusted(self.channel, "name"),
            Span(f" at step {self.base_step} of ", "dim"),
            untrusted(self.source_thread, "name"),
            Span(" as ", "dim"),
            untrusted(self._actor, "human"),
        ]
        if self.forks:
            where += [
                Span("   "),
                ours(" FORKS ", "badge"),
                Span(" a past step: this makes a new thread", "accent"),
            ]
        head.line = tuple(where)
        self.query_one("#facts", LineView).can_focus = False
        self._show_facts()
        self.call_after_refresh(self._show_why)
        self._check_soon()

    def on_resize(self) -> None:
        """Wrap again."""
        self.call_after_refresh(self._show_why)

    def _show_why(self) -> None:
        """Show why the node failed, above the value that caused it."""
        if self._failed is None:
            return
        why = self.query_one("#edit-why", LineView)
        why.can_focus = False
        width = max(why.scrollable_content_region.width, 24)
        lines = wrapped(self._failed.message, width, "error") + wrapped(self._failed.hint, width, "dim")
        why.show(lines)
        why.styles.height = min(len(lines), _WHY) + 2

    @property
    def focus_chain(self) -> list[Widget]:
        """Move from field to field; read-only parts come last."""
        return sorted(super().focus_chain, key=lambda widget: not isinstance(widget, Input | TextArea))

    @property
    def unapplied(self) -> tuple[str, str]:
        """Text that has not been applied, and its name; "" for none."""
        what = f"what you wrote in channel {self.channel!r} of {self.source_thread!r}"
        return (self.text if self.changed else ""), what

    def _check(self) -> None:
        start_work(self, self._preview_text, group="preview", exclusive=True)

    async def _preview_text(self) -> None:
        try:
            value = read_draft(self.text, as_json=self.draft.as_json)
        except NotJson as error:
            self._problem, self._preview = f"not valid JSON yet: {error}", None
            self._show_facts()
            return
        try:
            at = self.base_step if self.forks and not self._foreign else None
            command = UpdateState({self.channel: value}, at, self._as_node)
            self._preview = await self.session.driver.preview(command)
        except HitlError as error:
            self._problem, self._preview = str(error), None
        else:
            problems = self._preview.problems
            self._problem = problems.get(self.channel, "") or problems.get(EDIT, "")
            await self._offer_nodes(self._preview)
        self._show_facts()
        if self._problem and self.query_one(DraftArea).is_too_large:
            return
        self._show_change(self.channel, self.before, value)

    @property
    def _as_node(self) -> str | None:
        """Return the node that the edit is made as; None leaves that open."""
        fields = self.query("#as-node").results(Input)
        return next((field.value.strip() or None for field in fields), None)

    async def _offer_nodes(self, preview: Preview) -> None:
        """Offer the nodes to choose from if the driver knows where each leads."""
        if preview.as_nodes and not self.query("#as-node"):
            field = _field("as-node", "as node (optional)", "")
            field.suggester = SuggestFromList([way.node for way in preview.as_nodes])
            await self.query_one("#edit-fields").mount(field)

    @on(Input.Changed, "#as-node")
    def _node_typed(self) -> None:
        self._refused = ""
        self._check_soon()

    def _facts(self, width: int) -> list[Line]:
        if self.forks:
            text = f"Makes a new thread from step {self.base_step}; no step of this one changes."
            lines = wrapped(text, width, "accent")
        else:
            lines = wrapped(f"Saved as step {self.base_step + 1}, replaces the value", width, "dim")
        if self._preview is not None:
            following = untrusted(self._preview.next_node or "then the route decides", "value")
            lines.append((Span("next  ", "dim"), following))
            for request in self._preview.rebinds:
                lines += wrapped(f"asks again about the new value: {request}", width, "accent")
            for sentence in fork_lines(self._preview):
                lines += wrapped(sentence, width, "dim")
            for words in withdrawn_lines(self._preview.withdraws, self._preview.next_node):
                lines += wrapped(words, width, "accent")
            for words in as_node_lines(self._preview.as_nodes):
                lines += wrapped(words, width, "dim")
        return lines + wrapped(self.then, width, "accent")

    @decides
    def action_apply(self) -> None:
        """Commit the edit, if it can be read and is not being committed already."""
        if self._commit_work is not None and self._commit_work.is_running:
            return
        try:
            value = read_draft(self.text, as_json=self.draft.as_json)
        except NotJson as error:
            self._problem = f"not applied, not valid JSON: {error}"
            self._show_facts()
            return
        if not self.changed:
            self._problem = "nothing has changed"
            self._show_facts()
            return
        self._commit_work = start_work(self, partial(self._commit, value), group="commit")

    async def _commit(self, value: Any) -> None:
        note = self.query_one("#edit-note", Input).value.strip() or None
        changes = {self.channel: value}
        driver = self.session.driver
        try:
            if self.forks:
                name = self.query_one("#new-thread", Input).value.strip()
                source = await self.session.driver_of(self.source_thread)
                thread_id = await source.execute(
                    Fork(self.base_step, name, changes, None, self._actor, note, self._as_node)
                )
                self.session.family_stale = True
                self.dismiss(thread_id)
                return
            await driver.execute(
                UpdateState(changes, self.base_step, self._as_node, actor=self._actor, note=note)
            )
        except StaleWriter as error:
            await self._moved(error)
        except HitlError as error:
            self._refused = f"not applied: {error}"
            self._show_facts()
        else:
            self.dismiss(self.session.thread_id)

    async def _moved(self, error: StaleWriter) -> None:
        """Show the difference to a newer version, and let the user apply the edit on top of it."""
        await self.session.drain()
        view = self.session.view
        theirs = view.values.get(self.channel)
        same = theirs == self.before
        self.base_step, self.before = view.progress.head, theirs
        what = "this channel is unchanged" if same else "the difference shown is to the newest value"
        on_top = f"{keymap_of(self.app).shown('edit.apply')} applies yours on top of step {self.base_step}."
        self._refused = f"not applied: {error.message}; {what}. {on_top}"
        await self._preview_text()


def _field(name: str, title: str, value: str) -> Input:
    field = SafeInput(value, id=name)
    field.border_title = Content(title)
    return field


class FailedValueScreen(EditScreen):
    """Editor that opened by itself: it takes no keys until those meant for the run have stopped coming."""

    AUTO_FOCUS = ""

    quiet = GRACE
    """Seconds without a key after which the editor takes them."""
    _timer_of_keys: Timer | None = None

    def on_mount(self) -> None:
        """Wait until no key comes."""
        self.then = "Applied; the run continues."
        self._wait()

    def on_key(self, event: events.Key) -> None:
        """Take a letter that no focused widget could take."""
        if self.focused is None and event.is_printable:
            event.stop()
            self._wait()

    def _wait(self) -> None:
        if self._timer_of_keys is not None:
            self._timer_of_keys.stop()
        self._timer_of_keys = self.set_timer(self.quiet, self._listen)

    def _listen(self) -> None:
        if self.focused is None and self.is_current:
            self.query_one("#editor").focus()


class ValueScreen(DraftScreen):
    """Editor of a value that is an answer: returns (value,), or None if it was not applied.

    Args:
        title: what the value answers.
        value: what the editor begins with.
        schema: what the answer must fit.
        text: whether the answer is a text if there is no value yet.
    """

    lost = "They are not in your answer."

    def __init__(
        self, title: str, value: Any, schema: Mapping[str, Any] | None, *, text: bool = False
    ) -> None:
        self._about = title
        self._before = value
        self._schema = schema or {}
        draft = draft_of(value, "text" if text else "")
        if value is None and draft.as_json and self._schema.get("type") == "object":
            draft = draft_of({}, "")
        super().__init__(draft)

    def compose(self) -> ComposeResult:
        yield EditHead(id="edit-head")
        yield from self._body("Your version")
        yield KeysBar(KEYS_OF_EDITOR)

    def on_mount(self) -> None:
        """Show what is answered, and the first check."""
        head = self.query_one(EditHead)
        head.line = (ours(" answer ", "brand"), untrusted(self._about, "name"))
        self.query_one("#facts", LineView).can_focus = False
        self._check()

    @property
    def unapplied(self) -> tuple[str, str]:
        """Text that has not been applied, and its name; "" for none."""
        return (self.text if self.changed else ""), f"your answer to {self._about!r}"

    def _read(self) -> tuple[Any] | None:
        """Return the current value, or None and set `_problem` if it can't be parsed."""
        try:
            value = read_draft(self.text, as_json=self.draft.as_json)
        except NotJson as error:
            self._problem = f"not valid JSON yet: {error}"
            return None
        self._problem = mismatch(self._schema, value)
        return (value,)

    def _check(self) -> None:
        read = self._read()
        self._show_facts()
        if read is not None:
            self._show_change("answer", self._before, read[0])

    def _facts(self, width: int) -> list[Line]:
        key = keymap_of(self.app).shown("edit.apply")
        return wrapped(f"{key} returns it to the question, where you send it.", width, "dim")

    @decides
    def action_apply(self) -> None:
        """Return the value to the card, if it fits."""
        read = self._read()
        self._show_facts()
        if read is not None and not self._problem:
            self.dismiss(read)
