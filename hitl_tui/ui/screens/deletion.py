"""Deletion of threads: a preview with reasons, one key, its progress, and a way to stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import ClassVar, Final

from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from hitl_tui.drivers.protocol import Hub
from hitl_tui.errors import HitlError
from hitl_tui.stores.deletion import DeletionPlan, Leaving, Retention, read_rule
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.gate import decides
from hitl_tui.ui.guard import failure_words
from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult
from hitl_tui.ui.screens.page import KeysBar, OverlayScreen
from hitl_tui.ui.widgets.header import PageHeader
from hitl_tui.ui.widgets.lines import LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.ui.work import start_work
from hitl_tui.view.deletion import leaving_line, plan_words, result_words, stays_lines, unrest
from hitl_tui.view.format import capital
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.rows import wrap_line
from hitl_tui.view.spans import Line, Role, Span, trusted, untrusted

_LOOKS_EVERY: Final = 0.1
_NARROWEST: Final = 20
_KEPT_OF_THEM: Final = (
    "The ledger of the store keeps who did it, when, why, and the last hashes; nothing else remains."
)


class DeletionScreen(OverlayScreen):
    """Returns how many threads were deleted.

    Args:
        what: the threads, or the rule of `prune`.
        actor: who deletes.
        now: the time, in microseconds since the epoch.
        spared: the thread that is open here, which stays.
    """

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "batch.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        bound("deletion.go", "go"),
        bound("deletion.unrest", "unrest"),
        bound("deletion.why", "why"),
        bound("ask.back", "back"),
    ]
    AUTO_FOCUS = "#batch"

    def __init__(
        self,
        hub: Hub,
        what: Sequence[str] | Retention,
        actor: str | None,
        now: Callable[[], int],
        spared: str,
    ) -> None:
        super().__init__()
        self._hub = hub
        self._what = what
        self._actor = actor
        self._now = now
        self._spared = spared
        self._force = False
        self._plan: DeletionPlan | None = None
        self._looked = ""
        self._gone: set[str] = set()
        self._deleting = self._over = self._stop = False
        self._failure = ""

    def compose(self) -> ComposeResult:
        yield PageHeader()
        yield LineView("batch", "What would be deleted")
        yield SafeInput(id="words", placeholder="why (kept in the store)")
        yield KeysBar()

    def on_mount(self) -> None:
        """Start to find what would be deleted."""
        self._look()

    def on_unmount(self) -> None:
        """Stop after the current batch."""
        self._stop = True

    @property
    def under_way(self) -> str:
        """Return what happens to a running deletion if the user leaves; "" if none runs."""
        if not self._deleting or self._plan is None:
            return ""
        gone, of = len(self._gone), len(self._plan.going)
        return f"{gone:,} of {of:,} threads deleted; stopping after the current batch."

    def _look(self) -> None:
        self._plan, self._failure = None, ""
        self._show()
        start_work(self, self._make_plan, group="plan", exclusive=True)

    async def _make_plan(self) -> None:
        def watch(done: int, of: int) -> None:
            if self._stop:
                raise HitlError("stopped")
            self._looked = f" {done:,} of {of:,}"

        progress = self.set_interval(_LOOKS_EVERY, self._show_title)
        try:
            self._plan = await self._hub.plan_deletion(
                self._what, force=self._force, spared=self._spared, watch=watch
            )
        except HitlError as error:
            self._failure = failure_words(error)
        finally:
            progress.stop()
        self._show()

    # The display.

    def _show(self) -> None:
        view = self.query_one("#batch", LineView)
        width = max(view.scrollable_content_region.width, self.size.width - 4, _NARROWEST)
        view.show(list(self._lines(width)))
        self._show_title()
        field = self.query_one(Input)
        field.border_title = "why"
        field.set_class(not (field.has_focus or field.value) or self._over, "-empty")
        self._show_keys()

    def _show_title(self) -> None:
        plan, view = self._plan, self.query_one("#batch", LineView)
        if plan is None:
            view.set_titles("Nothing is deleted" if self._failure else f"Looking…{self._looked}")
        elif self._over:
            view.set_titles(result_words(plan, len(self._gone)))
        elif self._deleting:
            stopping = "stopping after these" if self._stop else "deleting…"
            view.set_titles(f"{len(self._gone):,} of {len(plan.going):,} deleted", stopping)
        else:
            words = plan_words(plan)
            view.set_titles(capital(words))

    def _lines(self, width: int) -> Iterator[Line]:
        """Return what is deleted, then what is kept and why."""
        plan = self._plan
        if self._failure:
            yield from _rows(self._failure, width, "error")
            yield ()
        if plan is None:
            return
        now = self._now()
        for thread in plan.going:
            yield from self._going(thread, now, width, gone=thread.thread_id in self._gone)
        if plan.going:
            yield ()
            yield from _rows(_KEPT_OF_THEM, width, "dim")
        if stays := stays_lines(plan):
            if plan.going:
                yield ()
            yield (trusted("These would be kept" if not self._over else "These are kept", "title"),)
            for line in stays:
                yield from _rows(line, width, "dim")

    def _going(self, thread: Leaving, now: int, width: int, *, gone: bool) -> Iterator[Line]:
        sign = "✔ " if gone else "! " if unrest(thread) else "  "
        role: Role = "dim" if gone else "warning" if unrest(thread) else "plain"
        for at, row in enumerate(wrap_line(leaving_line(thread, now), width - 2)):
            yield Span(sign if not at else "  ", "ok" if gone else role), untrusted(row, role, limit=width)

    def _show_keys(self) -> None:
        footer, plan = self.query_one(KeysBar), self._plan
        if self.focused is self.query_one(Input):
            entries = [("enter ask.back", "To the list")]
        elif self._deleting:
            entries = [("ask.back", "Stop")]
        else:
            entries = [("ask.back", "Back")]
            if plan is not None and not self._over:
                at_rest = [
                    ("deletion.unrest", "Idle ones only" if self._force else "Include running and waiting")
                ]
                go = [("deletion.go", f"Delete {len(plan.going):,} for good"), ("deletion.why", "Why")]
                entries = [*(go if plan.going else []), *at_rest, *entries]
        if footer.entries != entries:
            footer.entries = entries
            footer.refresh()

    def on_resize(self) -> None:
        """Wrap the rows for the width."""
        self.call_after_refresh(self._show)

    def on_descendant_focus(self) -> None:
        """Show the keys of the widget with the focus."""
        self._show()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self.query_one("#batch").focus()

    # The actions.

    def action_why(self) -> None:
        """Move to the reason."""
        if not (self._deleting or self._over):
            field = self.query_one(Input)
            field.remove_class("-empty")
            field.focus()

    def action_unrest(self) -> None:
        """Include running and waiting threads, or exclude them again."""
        if self._plan is not None and not (self._deleting or self._over):
            self._force = not self._force
            self._look()

    def action_back(self) -> None:
        """Go from the reason to the list; or stop the running deletion; else go back."""
        if self.focused is self.query_one(Input):
            self.query_one("#batch").focus()
        elif self._deleting:
            self._stop = True
            self._show_title()
        else:
            self.dismiss(len(self._gone))

    @decides
    def action_go(self) -> None:
        """Delete the listed threads."""
        if self._plan is not None and self._plan.going and not (self._deleting or self._over):
            self._deleting = True
            self._show()
            start_work(self, partial(self._delete, self._plan), group="delete", exclusive=True)

    async def _delete(self, plan: DeletionPlan) -> None:
        note = self.query_one(Input).value.strip() or None

        def on_batch(gone: Sequence[str]) -> bool:
            self._gone.update(gone)
            return not self._stop

        progress = self.set_interval(_LOOKS_EVERY, self._show_title)
        try:
            await self._hub.delete(plan, actor=self._actor, note=note, on_batch=on_batch)
        except HitlError as error:
            self._failure = failure_words(error)
        finally:
            progress.stop()
        self._deleting, self._over = False, True
        self._show()


def _rows(text: str, width: int, role: Role) -> Iterator[Line]:
    return ((untrusted(row, role, limit=width),) for row in wrap_line(text, width))


def ask_prune(app: App[object], given: Mapping[str, object], prune: Callable[[Retention], None]) -> None:
    """Ask for the rule that selects the threads to delete.

    Args:
        given: the rule of the configuration.
        prune: called with the rule.
    """

    def answered(answer: DialogResult | None) -> None:
        if answer is None or answer.id != "list":
            return
        age, last = answer.fields["older"].strip(), answer.fields["last"].strip()
        wanted: dict[str, object] = {"older_than": age} if age else {}
        wanted |= {"keep_last": int(last)} if last.isascii() and last.isdigit() else {}
        wanted |= {"keep_decided": True} if answer.fields["decided"].strip().lower() in _YES else {}
        try:
            if last and "keep_last" not in wanted:
                raise HitlError(f"{last!r} is not a number of threads")
            prune(read_rule(wanted))
        except HitlError as error:
            app.notify(failure_words(error), title="Prune", severity="warning", markup=False)

    fields = [
        DialogField(
            "older",
            "unchanged for at least, as 30d; empty: any age",
            str(given.get("older_than") or ""),
        ),
        DialogField("last", "keep the N changed last", str(given.get("keep_last") or "")),
        DialogField(
            "decided",
            "keep threads with decisions of a person: yes or no",
            "yes" if given.get("keep_decided") else "no",
        ),
    ]
    options = [Option("list", "l", "list what would be deleted"), BACK]
    text = [
        "Running and waiting threads are kept, and steps that a fork shares. "
        "Nothing is deleted before you see the list."
    ]
    app.push_screen(Dialog("Prune", text, options, fields), answered)


_YES: Final = ("y", "yes", "true", "on", "1")
