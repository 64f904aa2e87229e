"""`present`: a presentation from a script, and the speaker's notes on another terminal."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hitl_tui.cli.opening import Target, agree, trust_in, trust_in_script
from hitl_tui.cli.options import (
    plain_option,
    record_screen_option,
    reviewer_option,
    store_option,
    theme_option,
    trust_option,
)
from hitl_tui.cli.output import say
from hitl_tui.cli.storage import open_for_writing
from hitl_tui.drivers.node_streams import has_screen
from hitl_tui.errors import ExitCode, UsageError
from hitl_tui.given_files import real_path

if TYPE_CHECKING:
    from hitl_tui.agents.cassettes import Cassette
    from hitl_tui.config import Settings
    from hitl_tui.drivers.hub import LocalHub
    from hitl_tui.drivers.protocol import Driver
    from hitl_tui.engine.runner import GraphRunner
    from hitl_tui.loading.stage_file import Script
    from hitl_tui.stores import Checkpointer
    from hitl_tui.view.show_state import ShowFile, ShowState
    from hitl_tui.view.stage import ScriptShow


@click.command()
@click.argument("script", required=False, metavar="[FILE|THREAD]")
@click.option("--notes", is_flag=True, help="Show the speaker's notes of a presentation in another terminal.")
@click.option("--check", is_flag=True, help="Only check the script.")
@plain_option
@record_screen_option
@store_option
@theme_option
@reviewer_option
@trust_option("the script")
def present(
    *,
    script: str | None,
    notes: bool,
    check: bool,
    plain: bool,
    record_screen: Path | None,
    store: str | None,
    theme: str | None,
    reviewer: str | None,
) -> int:
    """Give a presentation from a script, or show its notes.

    FILE is a TOML file with a graph, its input, planned stops and captions, or the name of a built-in one,
    such as closures. Space goes to the next stop, home starts again in a new thread, p pauses, and + and -
    change the pace. S shows only the focused pane, and f leaves the script for a fork. --notes shows the
    speaker's notes in another terminal of this machine: those of FILE, of the presentation of THREAD, or of
    the newest one. The script's graph is code, so you are asked before it runs for the first time, also
    with --check.

        hitl-tui present closures
        hitl-tui present my-show.toml --notes
    """
    from hitl_tui.config import load_settings
    from hitl_tui.loading.stage_file import find_script, read_script

    if notes:
        return _follow(script, load_settings({"store": store, "theme": theme}), plain=plain)
    if script is None:
        raise UsageError("no script was named", "as in `hitl-tui present closures`")
    read = read_script(find_script(script))
    show_theme = theme or read.file.show.theme or None
    settings = load_settings({"store": store, "theme": show_theme, "reviewer": reviewer})
    stage = _Stage(read, settings)
    if check:
        stage.agree()
        opened = open_for_writing(settings)
        try:
            stage.build(opened)
        finally:
            opened.close()
        say(f"{read.title}: {len(read.file.stops)} stops, nothing is wrong")
        return ExitCode.DONE
    if plain or not has_screen():
        raise UsageError(
            "a presentation needs a terminal", "`hitl-tui run` runs the graph in plain text mode"
        )
    stage.agree()
    return stage.play(record_screen)


class _Stage:
    """Script, and what its graph is built and its threads are started with."""

    def __init__(self, script: Script, settings: Settings) -> None:
        self.script = script
        self.settings = settings
        self._store: Checkpointer | None = None
        self._cassette: Cassette | None = None
        self._trust = trust_in_script(script.path)
        model = script.file.show.model
        self._options = {"model": model} if model else {}

    def agree(self) -> None:
        """Ask before code that the script names runs for the first time; import nothing of it.

        Raises:
            NotTrusted: nobody can be asked, or the answer is no.
            ScriptInvalid: there is no such graph.
        """
        from hitl_tui.loading.sources import name_graph
        from hitl_tui.loading.trust import NotTrusted

        where = {}
        with self.script.problems.at(("show", "graph")):
            where = name_graph(self.script.file.show.graph, self._directory)
        self.script.problems.check()
        try:
            self._trust.check({**where, "options": self._options})
        except NotTrusted as error:
            agree(error)

    @property
    def _directory(self) -> Path:
        return real_path(self.script.path).parent

    def build(self, store: Checkpointer) -> GraphRunner:
        """Build the graph of the script, which `agree` let run, once the whole script is valid."""
        from hitl_tui.loading.sources import open_graph
        from hitl_tui.view.stage import check_script

        with self.script.problems.at(("show", "graph")):
            runner = open_graph(self.script.file.show.graph, store, self._options, directory=self._directory)
            self._trust.record(runner.source, "script")
            trust_in(store).record(runner.source, "script")
        self.script.problems.check()
        check_script(self.script, runner.graph.info)
        return runner

    def play(self, record_screen: Path | None) -> int:
        """Run the presentation until the speaker leaves; return the exit code."""
        from hitl_tui.agents.cassettes import cassette
        from hitl_tui.cli.screen import show

        with ExitStack() as stack:
            if name := self.script.file.show.cassette:
                path = self.script.path.parent / name
                self._cassette = stack.enter_context(cassette(path, pace=1.0))
            return show(
                self.settings,
                open_for_writing,
                self._first,
                perform=self._perform,
                record_screen=record_screen,
                stores=(),
            )

    def _first(self, store: Checkpointer) -> Target:
        self._store = store
        runner = self.build(store)
        return Target(self._name(), runner, self._inputs(runner))

    def _name(self) -> str:
        from hitl_tui.engine.log.store import new_thread_id

        assert self._store is not None
        return new_thread_id(self._store, self.script.file.show.thread)

    def _inputs(self, runner: GraphRunner) -> dict[str, Any]:
        fields = {field.name: field.channel for field in runner.graph.info.inputs}
        return {fields.get(name, name): value for name, value in self.script.file.inputs.items()}

    def _perform(self, hub: LocalHub) -> ScriptShow:
        from hitl_tui.config import shows_folder
        from hitl_tui.view.show_state import ShowFile
        from hitl_tui.view.stage import ScriptShow

        file = ShowFile(shows_folder(), self.script.path)

        async def new_thread() -> Driver:
            return await self._new_thread(hub)

        return ScriptShow(self.script, new_thread, file, self.settings.store)

    async def _new_thread(self, hub: LocalHub) -> Driver:
        """Start a new thread, on models without memory of the previous one."""
        from hitl_tui.engine.commands import Start

        assert self._store is not None
        if self._cassette is not None:
            self._cassette.rewind()
        runner = await asyncio.to_thread(self.build, self._store)
        actor = self.settings.reviewer
        driver = await hub.new(self._name(), runner, source=runner.source, actor=actor)
        await driver.execute(Start(self._inputs(runner), actor))
        return driver


def _follow(named: str | None, settings: Settings, *, plain: bool) -> int:
    """Show the notes of a presentation in another process, until it ends or the reader leaves."""
    from hitl_tui.config import shows_folder
    from hitl_tui.loading.stage_file import read_script
    from hitl_tui.view.show_state import ShowFile

    state = _running_show(named)
    script = read_script(Path(state.script))
    file = ShowFile(shows_folder(), script.path)
    if plain or not has_screen():
        return _follow_in_lines(script, file, state)
    from hitl_tui.cli.screen import screen_look
    from hitl_tui.ui.notes import NotesApp

    thread = _ShownThread()
    try:
        NotesApp(script, file, screen_look(settings), thread.standing).run()
    finally:
        thread.close()
    return ExitCode.DONE


class _ShownThread:
    """Thread of a presentation, read from its store by another process."""

    def __init__(self) -> None:
        self._store: Checkpointer | None = None
        self._read: tuple[object, str, str] = (None, "", "")

    def standing(self, state: ShowState) -> str:
        """Return its status, read again only after a write to the store; "" if it is unknown."""
        from hitl_tui.errors import HitlError
        from hitl_tui.stores import open_store

        if state.store == "memory:":
            return ""
        try:
            self._store = self._store or open_store(state.store)
            changes = self._store.changes()
            if changes is None or (changes, state.thread) != self._read[:2]:
                summary = self._store.summary(state.thread)
                reason = f" ({summary.reason})" if summary and summary.reason else ""
                words = f"step {summary.head}: {summary.status}{reason}" if summary else ""
                self._read = (changes, state.thread, words)
        except HitlError:
            return ""
        return self._read[2]

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()


def _running_show(named: str | None) -> ShowState:
    """Return the presentation of a script or of a thread, or the one that was started last.

    Raises:
        NoShow: it does not run.
    """
    from hitl_tui.config import shows_folder
    from hitl_tui.loading.stage_file import find_script
    from hitl_tui.view.show_state import NoShow, ShowFile, running_shows

    running = running_shows(shows_folder())
    if named is not None:
        running = [state for state in running if state.thread == named] or running
        if not running or running[0].thread != named:
            state = ShowFile(shows_folder(), find_script(named)).read()
            running = [state] if state else []
    if not running:
        what = named or "FILE"
        raise NoShow("it is not running", f"start it in another terminal: hitl-tui present {what}")
    return running[0]


def _follow_in_lines(script: Script, file: ShowFile, state: ShowState | None) -> int:
    from hitl_tui.view.spans import plain_text
    from hitl_tui.view.stage import notes_lines, standing_words

    shown: tuple[int, bool, str] | None = None
    while state is not None:
        now = (state.stop, state.going, state.thread)
        if now != shown:
            shown = now
            say(standing_words(script, state), *map(plain_text, notes_lines(script, state, 76)), "")
        _pause()
        state = file.read()
    say("the presentation is over")
    return ExitCode.DONE


def _pause() -> None:
    """Wait until the next check for the presentation."""
    time.sleep(0.25)
