"""Asks for the inputs of a new thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from hitl_tui.drivers.protocol import ContextField
from hitl_tui.engine.graph.description import GraphInfo, InputField
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.gate import refuse
from hitl_tui.ui.screens.modal import Modal
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.lines import ROLE_CLASSES, LineView
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.view.format import json_or_text, typed_input
from hitl_tui.view.keymap import Option
from hitl_tui.view.sanitise import sanitise
from hitl_tui.view.spans import Span, untrusted


class StartValues(NamedTuple):
    """Start values of a new thread: values by channel, and the given fields of its context."""

    inputs: dict[str, Any]
    context: dict[str, Any]


class InputsScreen(Modal[StartValues | None]):
    """One field for each input of the graph, then one for each of its context; returns None to leave."""

    CSS_PATH: ClassVar[list[str | PurePath]] = ["dialogs.tcss", "inputs.tcss"]
    COMPONENT_CLASSES: ClassVar[set[str]] = set(ROLE_CLASSES)
    BINDINGS: ClassVar[list[BindingType]] = [bound("ask.back", "leave")]
    AUTO_FOCUS = "Input"

    def __init__(self, graph: GraphInfo, context: Sequence[ContextField] = ()) -> None:
        super().__init__()
        self._graph = graph
        self._fields = context

    def compose(self) -> ComposeResult:
        with Vertical(id="inputs") as box:
            box.border_title = Content(sanitise(f"Start {self._graph.name}", multiline=False))
            yield LineView("inputs-text")
            for index, wanted in enumerate(self._graph.inputs):
                field = SafeInput(id=f"input-{index}", placeholder=_example(wanted))
                field.border_title = Content(sanitise(wanted.label or wanted.name, multiline=False))
                yield field
            for index, known in enumerate(self._fields):
                field = SafeInput(id=f"context-{index}", placeholder=sanitise(known.default, multiline=False))
                field.border_title = Content(sanitise(f"{known.name} (context)", multiline=False))
                yield field
            options = [Option("start", "ask.take", "start"), Option("leave", "ask.back", "leave")]
            yield Choices(options, elsewhere=("ask.take", "ask.back"))

    def on_mount(self) -> None:
        """Show what this is about."""
        text = self.query_one("#inputs-text", LineView)
        text.can_focus = False
        begins = Span("A new thread of "), untrusted(self._graph.name, "name"), Span(" begins with:")
        examples = any(wanted.example for wanted in self._graph.inputs)
        examples = examples or any(known.default for known in self._fields)
        taken = Span("Leave a field empty to use its example." if examples else "", "dim")
        text.show([begins, (taken,)])

    @on(Input.Submitted)
    def _submitted(self) -> None:
        if self.focused is not list(self.query(Input))[-1]:
            self.focus_next()
        elif not refuse(self.app):
            self._start()

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
                self._ask_again(field, wanted.label or wanted.name)
                return
            values[wanted.channel] = typed_input(self._graph, wanted.name, text)
        context: dict[str, Any] = {}
        for index, known in enumerate(self._fields):
            field = self.query_one(f"#context-{index}", Input)
            text = field.value.strip()
            if known.required and not text:
                self._ask_again(field, known.name)
                return
            if text:
                context[known.name] = text if known.type == "text" else json_or_text(text)
        self.dismiss(StartValues(values, context))

    def _ask_again(self, field: Input, name: str) -> None:
        field.focus()
        self.notify(f"{sanitise(name, multiline=False)} is required", markup=False, severity="warning")


def _example(wanted: InputField) -> str:
    return sanitise(wanted.example, multiline=False)
