"""Plays a verb on screen, in plain text mode and as a subcommand, and notes the commands that each sends."""

from __future__ import annotations

import asyncio
import io
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest

from hitl_tui import SQLiteCheckpointer
from hitl_tui.cli.opening import hub_over
from hitl_tui.config import load_settings
from hitl_tui.drivers.hub import LocalHub
from hitl_tui.drivers.local import LocalDriver
from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine.commands import Command, verb
from hitl_tui.stores.deletion import DeletionPlan
from hitl_tui.ui.app import AppStart, HitlApp
from hitl_tui.ui.gate import gate_of
from hitl_tui.ui.screens.dialogs import Dialog, LongField
from hitl_tui.ui.screens.list_question import ListQuestion
from hitl_tui.ui.theme import Look
from hitl_tui.ui.widgets.choices import Choices
from hitl_tui.ui.widgets.safe_text import SafeInput
from hitl_tui.verbs import verbs
from hitl_tui.verbs.conversation import Copy
from hitl_tui.view.shapes import Document
from tests.support.commands import App
from tests.ui.harness import Screen, booted

HOSTS = ("screen", "plain", "subcommand")
LOOKS = ("look_at", "prepare_graph")
"""Commands that a host sends by itself, without anybody asking for them."""


@dataclass(frozen=True)
class OnStore:
    """What was done to a store: a method of its hub."""

    method: str


@dataclass(frozen=True)
class DeletedFrom:
    """What was deleted from a store, as "ann"."""

    threads: tuple[str, ...]
    note: str | None = None
    rule: str = ""
    force: bool = False


@dataclass(frozen=True)
class Copied:
    """What was copied."""

    text: str


Sent: TypeAlias = Command[Any] | OnStore | DeletedFrom | Copied


@dataclass(frozen=True)
class Case:
    """A use of a verb: what is typed and chosen, on every host.

    Args:
        name: what is special about it, for the test's id.
        graph: the source of a graph file.
        prepare: brings a store with the thread `r` of this graph to where the verb can be used.
        fields: what is typed, by field.
        choice: the name of the choice; "" for the one that needs no name.
        step: of the thread, for a verb that takes one.
        sends: the commands that each host sends as "ann", without the seen hash.
        only: the hosts that have the verb there; all three, if nothing else is said.
        keys: what the screen presses before the verb's key, as to select a channel.
        ready: what the screen shows once these are pressed.
        codes: the exit codes that the subcommand may have.
        asked_again: what the dialog says when it comes again; "" if it closes.
        selected: the fields that the screen does not ask for, since they are selected there.
        key: the screen's key, if it is not that of the verb's action.
        listed: how many other answers the screen looks at before it takes what is listed; None for a verb
            that lists nothing.
        then: the choices in the dialogs that follow the first one on screen.
    """

    name: str
    verb: str
    graph: str
    prepare: Callable[[App], object]
    sends: tuple[Sent, ...]
    fields: Mapping[str, str] = field(default_factory=dict)
    choice: str = ""
    step: int | None = None
    only: tuple[str, ...] = HOSTS
    keys: tuple[str, ...] = ()
    ready: str = ""
    codes: tuple[int, ...] = (0, 1, 3)
    asked_again: str = ""
    selected: tuple[str, ...] = ()
    key: str = ""
    listed: int | None = None
    then: tuple[str, ...] = ()


class Hosts:
    """Plays cases on the hosts, as the person "ann"."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._app: App = request.getfixturevalue("app")
        self._monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        self._directory: Path = request.getfixturevalue("tmp_path")

    def prepared(self, case: Case) -> Path:
        """Return a store in which the thread of a case is ready; its configuration is `config.toml`."""
        config = self._directory / "config.toml"
        config.touch()
        self._monkeypatch.setenv("HITL_TUI_CONFIG", str(config))
        (self._directory / "flow.py").write_text(case.graph)
        self._monkeypatch.chdir(self._directory)
        path = self._directory / "prepared.db"
        self._monkeypatch.setenv("HITL_TUI_STORE", str(path))
        case.prepare(self._app)
        return path

    def play(self, host: str, case: Case, store: Path) -> list[Sent]:
        """Play a case on a host; return the commands that were carried out."""
        sent: list[Sent] = []
        execute, vacuum, delete = LocalDriver.execute, LocalHub.vacuum, LocalHub.delete

        async def noted(driver: LocalDriver, command: Command[Any]) -> Any:
            result = await execute(driver, command)
            if verb(type(command)) not in LOOKS:
                sent.append(command)
            return result

        def copied(text: str, document: Document) -> Copy:
            sent.append(Copied(text))
            return Copy(text, document)

        async def vacuumed(hub: LocalHub) -> Any:
            result = await vacuum(hub)
            sent.append(OnStore("vacuum"))
            return result

        async def deleted(hub: LocalHub, plan: DeletionPlan, **given: Any) -> int:
            gone = await delete(hub, plan, **given)
            assert given["actor"] == "ann"
            names = tuple(sorted(thread.thread_id for thread in plan.going))
            sent.append(DeletedFrom(names, given["note"], plan.rule, plan.force))
            return gone

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LocalHub, "delete", deleted)
            patch.setattr(LocalDriver, "execute", noted)
            patch.setattr(LocalHub, "vacuum", vacuumed)
            patch.setattr("hitl_tui.verbs.checking.copy.Copy", copied)
            patch.setattr("hitl_tui.plain.conversations.confirm", lambda console, question: True)
            match host:
                case "screen":
                    asyncio.run(self._on_screen(case, store, sent))
                case "plain":
                    self._in_plain_text(case)
                case _:
                    self._as_subcommand(case)
        return sent

    async def _on_screen(self, case: Case, path: Path, sent: list[Sent]) -> None:
        store = SQLiteCheckpointer(path)
        hub = hub_over(store, load_settings({"reviewer": "ann"}))

        async def open_driver() -> tuple[Hub, Driver]:
            return hub, await hub.open("r")

        app = HitlApp(AppStart(open_driver, "ann", None, False), Look(""))
        async with booted(app, size=(120, 40)) as pilot:
            screen = Screen(app, pilot)
            await screen.shows("Timeline")
            action = verbs()[case.verb].load().action
            assert action is not None
            if case.step is not None:
                await screen.press("home", *["right"] * case.step)
                await screen.shows(f"Channels at step {case.step}")
            await screen.press(*case.keys)
            if case.ready:
                await screen.shows(case.ready)
            if "d" in case.keys:
                await screen.shows("Your answer")
                await screen.until(lambda: screen.card.review.state == "open", "the card listens")
            await screen.press(case.key or action.default_keys[0])
            if case.listed is None or case.choice:
                await _fill(screen, case)
            if case.listed is not None:
                await _take_list(screen, case, case.listed)
            if case.asked_again:
                await screen.shows(case.asked_again)
                await screen.press("escape")
            await screen.until(lambda: not isinstance(app.screen, Dialog), "the dialog is closed")
            await screen.until(lambda: len(sent) >= len(case.sends), "the commands are sent")
        await hub.close()

    def _in_plain_text(self, case: Case) -> None:
        place = [f"@{case.step}"] if case.step is not None else []
        words = [case.verb, *place, *(f"{name}={shlex.quote(text)}" for name, text in case.fields.items())]
        words += _flag(case)
        self._monkeypatch.setattr("sys.stdin", io.StringIO(f"{' '.join(words)}\n\n\n\nq\n"))
        self._app("resume", "r", "--plain", "--as", "ann")

    def _as_subcommand(self, case: Case) -> None:
        shown = verbs()[case.verb].load()
        words = [case.verb]
        if shown.about == "thread":
            words.append("r" if case.step is None else f"r@{case.step}")
        given = {
            each: shlex.split(case.fields[each.name]) if each.many else [case.fields[each.name]]
            for each in (*shown.arguments, *shown.options)
            if each.name in case.fields
        }
        words += [text for each in shown.arguments for text in given.get(each, ())]
        for option in shown.options:
            name = option.name.replace("_", "-")
            for text in given.get(option, ()):
                pair = [f"{option.name}={text}"] if option.pair else [f"--{name}", text]
                words += [f"--{name}"] if option.switch else pair
        words += [f"--{flag}" for flag in _flag(case)]
        words += ["--yes"] if shown.confirms else []
        done = self._app(*words, "--as", "ann")
        assert done.code in case.codes, done


def _flag(case: Case) -> list[str]:
    """Return the choice of a case, if it must be named."""
    flags = [choice.name for choice in verbs()[case.verb].load().choices if choice.flag]
    return [case.choice] if case.choice in flags else []


async def _fill(screen: Screen, case: Case) -> None:
    """Answer each dialog: type into its fields, and press the key of the choice."""
    fields = {name: text for name, text in case.fields.items() if name not in case.selected}
    if not isinstance(screen.app.screen, Dialog) and not fields and not case.choice:
        return
    answered: list[Dialog] = []
    for choice in (case.choice, *case.then):
        dialog = await _next_dialog(screen, answered)
        if not case.then and any(not dialog.query(f"#{name}") for name in fields):
            await _choose(screen, "more fields")
            dialog = await _next_dialog(screen, answered)
        for name, text in fields.items():
            for entry in dialog.query(f"#{name}"):
                if isinstance(entry, SafeInput):
                    entry.value = text
                else:
                    assert isinstance(entry, LongField)
                    entry.text = text
        await _choose(screen, choice)


async def _next_dialog(screen: Screen, answered: list[Dialog]) -> Dialog:
    """Wait for a dialog that is not among these, and add it to them."""

    def is_there() -> bool:
        shown = screen.app.screen
        return isinstance(shown, Dialog) and shown.is_mounted and shown not in answered

    await screen.until(is_there, "a dialog")
    dialog = screen.app.screen
    assert isinstance(dialog, Dialog)
    answered.append(dialog)
    return dialog


async def _take_list(screen: Screen, case: Case, others: int) -> None:
    """Look at other answers, type the note, and take what is listed."""
    await screen.until(lambda: isinstance(screen.app.screen, ListQuestion), "a list")
    shown = screen.app.screen
    assert isinstance(shown, ListQuestion)
    await screen.until(lambda: shown.listing is not None, "what is listed")
    await screen.press(*["tab"] * others)
    if note := case.fields.get("note"):
        await screen.press("r", *note, "enter")
    await screen.until(lambda: gate_of(screen.app).is_settled, "keys decide")
    await screen.press("enter")
    await screen.shows("enter esc Back")
    await screen.press("enter")


async def _choose(screen: Screen, name: str) -> None:
    choices = screen.app.screen.query_one(Choices)
    choices.focus()
    option = next(
        each for each in choices.options if each.id == name or (not name and each.key != "ask.back")
    )
    await screen.until(lambda: gate_of(screen.app).is_settled and choices.has_focus, "keys decide")
    await screen.press(option.key)


def as_sent(command: Sent) -> Sent:
    """Return a command without what a host adds: the hash of what it showed, and whether nobody watches."""
    added = {"seen": b"", "unattended": False}
    changes = {name: value for name, value in added.items() if hasattr(command, name)}
    return msgspec.structs.replace(command, **changes) if isinstance(command, Command) else command


def each_host(*cases: Case) -> Any:
    """Return a test that plays each case on each host, and compares the commands field by field."""
    played = [
        pytest.param(
            case, host, id=f"{case.name}-{host}", marks=[pytest.mark.slow] if host == "screen" else []
        )
        for case in cases
        for host in case.only
    ]

    @pytest.mark.parametrize(("case", "host"), played)
    def test_the_host_sends_these_commands(case: Case, host: str, hosts: Hosts) -> None:
        sent = hosts.play(host, case, hosts.prepared(case))
        assert [as_sent(command) for command in sent] == list(case.sends)
        for command in sent:
            if hasattr(command, "seen"):
                assert bool(command.seen) is (host != "subcommand")

    return test_the_host_sends_these_commands
