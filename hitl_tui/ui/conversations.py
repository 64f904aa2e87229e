"""Plays the conversation of a verb on screen: a dialog for each question."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine.commands import Pause
from hitl_tui.errors import ExitCode, HitlError
from hitl_tui.ui.bindings import keymap_of
from hitl_tui.ui.new_files import write_file
from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult
from hitl_tui.ui.screens.modal import Host, StoreHost
from hitl_tui.verbs.conversation import (
    Ask,
    AskField,
    AskReply,
    At,
    Begin,
    Consequences,
    Copy,
    Do,
    Follow,
    Open,
    Save,
    Show,
    ShowValue,
    Talk,
    TalkStep,
    Verb,
    Work,
    advance,
)
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.session import ViewSession
from hitl_tui.view.value_lines import ValuePart

if TYPE_CHECKING:
    from hitl_tui.ui.screens.progress import ProgressDialog

_MORE: Final = Option("more fields", "+", "more fields")
_ENTER: Final = "Enter moves through the fields, then takes the first answer; tab moves to the answers."


async def play(
    screen: Host,
    session: ViewSession,
    verb: Verb,
    *,
    selected: str = "",
    part: ValuePart | None = None,
    request: str = "",
    call: int | None = None,
    answering: tuple[str, str] = ("", ""),
) -> None:
    """Play the conversation of a verb about the shown thread, in a worker of the screen.

    Args:
        selected, part, request, call, answering: as for `At`.
    """
    thread_id, step = (verb.at_step and session.shown) or (session.thread_id, None)
    at = At(
        await session.driver_of(thread_id),
        session.hub,
        screen.actor,
        session.view.state_hash,
        step=step,
        selected=selected,
        part=part,
        request=request,
        call=call,
        answering=answering,
        claim_minutes=screen.attention.claim_minutes,
        running=session.view.running_node or "",
    )
    await _Player(screen, session, at).play(verb.talk(at))


async def play_in_list(screen: StoreHost, at: At, verb: Verb) -> None:
    """Play the conversation of a verb about the selected row of a list, in a worker of the screen."""
    await _ListPlayer(screen, at).play(verb.talk(at))


async def play_on_store(screen: StoreHost, hub: Hub, actor: str, verb: Verb) -> None:
    """Play the conversation of a verb about a store, in a worker of the screen."""
    await _StorePlayer(screen).play(verb.talk(At(None, hub, actor)))


class _StorePlayer:
    def __init__(self, screen: StoreHost) -> None:
        self._screen = screen

    async def play(self, talk: Talk) -> None:
        """Answer each step, and send errors back, until the conversation ends."""
        reply, error = None, None
        while (step := await advance(talk, reply, error)) is not None:
            reply, error = None, None
            try:
                reply = await self._reply(step)
            except HitlError as refused:
                error = refused

    async def _reply(self, step: TalkStep) -> Any:
        screen = self._screen
        match step:
            case Ask():
                return await self._ask(step)
            case Begin(talk):
                await self.play(talk)
            case Copy(text):
                if text:
                    screen.app.copy_to_clipboard(text)
                else:
                    screen.show_message("there is nothing to copy")
            case Save(name, text, media_type, title):
                write_file(screen, name, text.encode(), media_type, title)
            case Work(text, run):
                screen.show_work(text)
                return await run()
            case Show(text, title, hint=hint, more=more, visible=visible):
                keys = [f"{keymap_of(screen.app).key_hints[hint[0]]} {hint[1]}"] if hint is not None else []
                if more or not visible:
                    screen.show_message("; ".join([text, *more, *keys]), title)
        return None

    async def _ask(self, ask: Ask) -> AskReply | None:
        fields = [field for field in ask.fields if not field.rare]
        answer = await self._answer(ask, fields, more=len(fields) < len(ask.fields))
        if answer is not None and answer.id == _MORE.id:
            fields = list(ask.fields)
            answer = await self._answer(ask, fields, typed=answer.fields)
        while answer is not None and (missing := ask.missing(answer.fields)) is not None:
            answer = await self._answer(replace(ask, refused=missing), fields, typed=answer.fields)
        return None if answer is None else AskReply(answer.id, answer.fields)

    async def _answer(
        self, ask: Ask, fields: list[AskField], *, more: bool = False, typed: Mapping[str, str] | None = None
    ) -> DialogResult | None:
        choices = [Option(choice.name, choice.key, choice.label, choice.note) for choice in ask.choices]
        choices += [_MORE] if more else []
        # Leaving comes first if enter alone must not choose anything.
        final = ask.confirm or any(choice.final for choice in ask.choices)
        options = [BACK, *choices] if final else [*choices, BACK]
        shown = [
            DialogField(
                field.name,
                field.label,
                (typed or {}).get(field.name, field.value),
                optional=not (field.required or field.value),
            )
            for field in fields
        ]
        several = [_ENTER] if fields and len(ask.choices) > 1 and not final else []
        dialog = Dialog(ask.title, [*ask.text, *_refused(ask.refused), *several], options, shown)
        if ask.find_out is not None:
            self._screen.command(partial(_find_out, ask.find_out, dialog), group="repeats")
        return await self._screen.app.push_screen_wait(dialog)


async def _find_out(find_out: Callable[[], Coroutine[Any, Any, Consequences]], dialog: Dialog) -> None:
    dialog.say_more((await find_out()).text)


class _ListPlayer(_StorePlayer):
    def __init__(self, screen: StoreHost, at: At) -> None:
        super().__init__(screen)
        self._at = at

    async def _reply(self, step: TalkStep) -> Any:
        if isinstance(step, Do):
            return await (step.driver or self._at.driver).execute(step.command)
        return await super()._reply(step)


class _LeftRunning(Exception):
    """The dialog of a run was closed before the run has ended."""


class _Player(_ListPlayer):
    def __init__(self, screen: Host, session: ViewSession, at: At) -> None:
        super().__init__(screen, at)
        self._host, self._session = screen, session
        self._progress: ProgressDialog | None = None

    async def play(self, talk: Talk) -> None:
        """Answer each step, until the conversation ends or a run is left to itself."""
        try:
            await super().play(talk)
        except _LeftRunning:
            await talk.aclose()

    async def _reply(self, step: TalkStep) -> Any:
        host = self._host
        match step:
            case Do(command):
                host.before_command(command)
                result = await super()._reply(step)
                self._session.family_stale = True
                return result
            case Follow(progress=progress) if progress is not None:
                await self._watch(step, step.driver or self._at.driver)
            case Show(text, code=code) if self._progress in host.app.screen_stack:
                assert self._progress is not None
                self._progress.finish(text, failed=code is ExitCode.FAILED)
            case Follow(command, driver):
                await host.follow(command, driver or self._at.driver)
            case Open(thread_id):
                await host.open_thread(thread_id)
                return await self._session.hub.open(thread_id)
            case ShowValue(channel, shown_at, value):
                host.show_value(channel, shown_at, value)
            case _:
                return await super()._reply(step)
        return None

    async def _watch(self, step: Follow, driver: Driver) -> None:
        """Start a run, and show how far it is until it has ended.

        Raises:
            _LeftRunning: the person closed the dialog before that.
        """
        from hitl_tui.ui.screens.progress import ProgressDialog

        seen = (await driver.snapshot()).last_event
        await self._reply(Do(step.command, driver))
        pause = partial(self._reply, Do(Pause(self._at.actor), driver))
        self._progress = ProgressDialog(step, driver, seen, pause)
        self._host.app.push_screen(self._progress)
        if not await self._progress.ended:
            raise _LeftRunning


def _refused(error: HitlError | None) -> list[str]:
    if error is None:
        return []
    return [f"{error.message}; {error.hint}" if error.hint else error.message]
