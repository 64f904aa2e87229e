"""Asks for what a new thread starts with."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from hitl_tui.engine.graph.description import GraphInfo, InputField
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.screens.modal import Modal
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.lines import ROLE_CLASSES, LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.view.format import typed_input
from hitl_tui.view.keymap import Option
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import Span, untrusted


class InputsScreen(Modal[dict[str, Any] | None]):
    """One field for each input of the graph; values by channel come back, None to leave."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "inputs.tcss"]
    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [bound("ask.back", "leave")]
    AUTO_FOCUS = "Input"

    def __init__(self, graph: GraphInfo) -> None:
        super().__init__()
        self._graph = graph

    def compose(self) -> ComposeResult:
        with Vertical(id="inputs") as box:
            box.border_title = Content(sanitise(f"Start {self._graph.name}", multiline=False))
            yield LineView("inputs-text")
            for index, wanted in enumerate(self._graph.inputs):
                field = SafeInput(id=f"input-{index}", placeholder=_example(wanted))
                field.border_title = Content(sanitise(wanted.label or wanted.name, multiline=False))
                yield field
            options = [Option("start", "ask.take", "start"), Option("leave", "ask.back", "leave")]
            yield Choices(options, elsewhere=("ask.take", "ask.back"))

    def on_mount(self) -> None:
        """Say what this is about."""
        text = self.query_one("#inputs-text", LineView)
        text.can_focus = False
        begins = Span("A new thread of "), untrusted(self._graph.name, "name"), Span(" begins with:")
        examples = any(wanted.example for wanted in self._graph.inputs)
        taken = Span("An empty field takes the example in it." if examples else "", "dim")
        text.show([begins, (taken,)])

    @on(Input.Submitted)
    def _submitted(self) -> None:
        if self.focused is list(self.query(Input))[-1]:
            self._start()
        else:
            self.focus_next()

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        if event.option.id == "start":
            self._start()
        else:
            self.dismiss(None)

    def action_leave(self) -> None:
        """Leave without starting."""
        self.dismiss(None)

    def _start(self) -> None:
        values: dict[str, Any] = {}
        for index, wanted in enumerate(self._graph.inputs):
            field = self.query_one(f"#input-{index}", Input)
            text = field.value.strip() or wanted.example
            if not text:
                field.focus()
                name = sanitise(wanted.label or wanted.name, multiline=False)
                self.notify(f"{name} is needed", markup=False, severity="warning")
                return
            values[wanted.channel] = typed_input(self._graph, wanted.name, text)
        self.dismiss(values)


def _example(wanted: InputField) -> str:
    return sanitise(wanted.example, multiline=False)
