"""Plays the conversation of a verb on screen: a dialog for each question."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from hitl_tui.drivers.protocol import Driver, Hub
from hitl_tui.engine.commands import Pause
from hitl_tui.errors import ExitCode, HitlError
from hitl_tui.ui.bindings import keymap_of
from hitl_tui.ui.guard import failure_words
from hitl_tui.ui.new_files import write_file
from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult
from hitl_tui.ui.screens.modal import Host, StoreHost
from hitl_tui.ui.work import start_work
from hitl_tui.verbs import verbs
from hitl_tui.verbs.conversation import (
    Ask,
    AskField,
    AskReply,
    At,
    Begin,
    BeginEach,
    Consequences,
    Continue,
    Copy,
    Do,
    Follow,
    Listing,
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
from hitl_tui.view.continuing import run_on
from hitl_tui.view.format import capital
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.session import ViewSession
from hitl_tui.view.value_lines import ValuePart

if TYPE_CHECKING:
    from hitl_tui.ui.screens.list_question import ListQuestion
    from hitl_tui.ui.screens.progress import ProgressDialog

_AT_ONCE: Final = 4
"""Number of conversations about several threads that are had at the same time."""
_CONTINUE_AT_ONCE: Final = 8
"""Number of threads that continue at the same time after a conversation."""
_MORE: Final = Option("more fields", "+", "more fields")
_SOON: Final = 0.3
"""Seconds after which work gets a dialog that has not ended."""
_ENTER: Final = "Enter moves through the fields, then takes the first answer; tab moves to the answers."


async def play(
    screen: Host,
    session: ViewSession,
    verb: Verb,
    *,
    selected: str = "",
    part: ValuePart | None = None,
    agent: str = "",
    request: str = "",
    call: int | None = None,
    answering: tuple[str, str] = ("", ""),
) -> None:
    """Play the conversation of a verb about the shown thread, in a worker of the screen.

    Args:
        selected, part, agent, request, call, answering: as for `At`.
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
        agent=agent,
        request=request,
        call=call,
        answering=answering,
        claim_minutes=screen.attention.claim_minutes,
        running=session.view.running_node or "",
    )
    await _Player(screen, session, at).play_to_end(verb.talk(at))


async def play_in_list(screen: StoreHost, at: At, verb: Verb) -> Listing | None:
    """Play the conversation of a verb about rows of a list or about a store, in a worker of the screen.

    Returns:
        The things that it listed, each with its outcome; None for a verb that lists nothing.
    """
    return await _ListPlayer(screen, at).play_to_end(verb.talk(at))


async def play_on_store(screen: StoreHost, at: At, name: str) -> bool:
    """Play the conversation of a verb about a store, in a worker of the screen, which shows errors.

    Returns:
        Whether it said what was done.
    """
    player = _ListPlayer(screen, at)
    try:
        await player.play_to_end(verbs()[name].load().talk(at))
    except HitlError as error:
        screen.show_message(failure_words(error), capital(name), "error")
    return player.has_shown


class _Left(Exception):
    """What shows the conversation was closed before its end."""


class _ListPlayer:
    def __init__(self, screen: StoreHost, at: At) -> None:
        self._screen, self._at = screen, at
        self.has_shown = False
        self._list: ListQuestion | None = None
        self._continuing = asyncio.Semaphore(_CONTINUE_AT_ONCE)

    async def play_to_end(self, talk: Talk) -> Listing | None:
        """Play a conversation, and wait until the person has closed its list."""
        try:
            await self.play(talk)
            return await self._list.closed() if self._list is not None else None
        finally:
            if self._list is not None:
                self._list.dismiss(None)

    async def play(self, talk: Talk) -> None:
        """Answer each step, until the conversation ends or is left."""
        try:
            await self._converse(talk)
        except _Left:
            await talk.aclose()

    async def _converse(self, talk: Talk) -> None:
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
            case Ask(listing=None):
                return await self._ask(step)
            case Ask():
                return await (await self._listed(step.title)).ask(step)
            case Begin(talk):
                await self.play(talk)
            case Do(command, driver):
                return await (driver or self._at.driver).execute(command)
            case BeginEach():
                await self._each(step)
            case Continue(thread_id, hub):
                start_work(screen.app, partial(self._continue, hub, thread_id), group="continue")
            case Copy(text):
                if text:
                    screen.app.copy_to_clipboard(text)
                else:
                    screen.show_message("there is nothing to copy")
            case Save(name, text, media_type, title):
                write_file(screen, name, text.encode(), media_type, title)
            case Work():
                return await self._work(step)
            case Show(listing=listing) if listing is not None:
                (await self._listed(step.text)).finish(step)
            case Show(text, title, hint=hint, more=more, visible=visible):
                self.has_shown = True
                keys = [f"{keymap_of(screen.app).key_hints[hint[0]]} {hint[1]}"] if hint is not None else []
                if more or not visible:
                    screen.show_message("; ".join([text, *more, *keys]), title)
        return None

    async def _work(self, step: Work) -> Any:
        """Wait for some work; a list says what is done, a dialog shows how far it is and can stop it."""
        if step.title:
            shown = await self._listed(step.title, step.text)
            result = await step.run(lambda done, of: True)
            if shown.left.done():
                raise _Left
            return result
        if step.stopping:
            return await self._stoppable(step)
        self._screen.show_work(step.text)
        return await step.run(lambda done, of: True)

    async def _stoppable(self, step: Work) -> Any:
        from hitl_tui.ui.screens.progress import WorkDialog

        dialog = WorkDialog(step)
        opening = self._screen.app.set_timer(_SOON, partial(self._screen.app.push_screen, dialog))
        try:
            return await step.run(dialog.report)
        finally:
            opening.stop()
            dialog.end()

    async def _listed(self, title: str, doing: str = "") -> ListQuestion:
        """Return the list that shows this conversation, opened if there is none yet."""
        from hitl_tui.ui.screens.list_question import ListQuestion

        if self._list is None:
            self._list = ListQuestion(title, doing)
            await self._screen.app.push_screen(self._list)
        return self._list

    async def _continue(self, hub: Hub, thread_id: str) -> None:
        async with self._continuing:
            await run_on(hub, thread_id)

    async def _each(self, each: BeginEach) -> None:
        """Have some conversations at a time, beside the list of what came of them."""
        shown = await self._listed("")
        places = asyncio.Semaphore(_AT_ONCE)

        async def one(talk: Talk) -> None:
            async with places:
                await (talk.aclose() if shown.stops else self.play(talk))

        async def all_of_them() -> None:
            await asyncio.gather(*map(one, each.talks))

        await shown.follow(each, all_of_them)

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
                optional=not (field.required or field.value or field.begins),
                long=field.long,
            )
            for field in fields
        ]
        several = [_ENTER] if fields and len(ask.choices) > 1 and not final else []
        rows = [row for listed in ask.rows for row in listed.first(len(listed.rows))]
        dialog = Dialog(ask.title, [*ask.text, *rows, *_refused(ask.refused), *several], options, shown)
        if ask.find_out is not None:
            self._screen.command(partial(_find_out, ask.find_out, dialog), group="repeats")
        return await self._screen.app.push_screen_wait(dialog)


async def _find_out(find_out: Callable[[], Coroutine[Any, Any, Consequences]], dialog: Dialog) -> None:
    dialog.say_more((await find_out()).text)


class _Player(_ListPlayer):
    def __init__(self, screen: Host, session: ViewSession, at: At) -> None:
        super().__init__(screen, at)
        self._host, self._session = screen, session
        self._progress: ProgressDialog | None = None

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
            _Left: the person closed the dialog before that.
        """
        from hitl_tui.ui.screens.progress import ProgressDialog

        seen = (await driver.snapshot()).last_event
        await self._reply(Do(step.command, driver))
        pause = partial(self._reply, Do(Pause(self._at.actor), driver))
        self._progress = ProgressDialog(step, driver, seen, pause)
        self._host.app.push_screen(self._progress)
        if not await self._progress.ended:
            raise _Left


def _refused(error: HitlError | None) -> list[str]:
    if error is None:
        return []
    return [f"{error.message}; {error.hint}" if error.hint else error.message]
