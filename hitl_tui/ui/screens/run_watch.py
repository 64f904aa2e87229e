"""Watches of the run screen: the content of their pane, and when it is updated."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hitl_tui.config import watches_file
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.work import start_work
from hitl_tui.view.session import ViewSession

if TYPE_CHECKING:
    from hitl_tui.drivers.history import Sample
    from hitl_tui.ui.screens.run import RunScreen

_SAMPLES = 60


class Watches:
    """Watched expressions of a graph; nothing is computed while there are none.

    The strips are read while the thread is at rest: they never delay a run.
    """

    def __init__(self, screen: RunScreen) -> None:
        self._screen = screen
        self._graph: str | None = None
        self._texts: tuple[str, ...] = ()
        self._samples: tuple[tuple[Sample, ...], ...] = ()
        self._sampled: tuple[object, ...] = ()
        self._shown = False

    def begin(self, session: ViewSession) -> None:
        """Use the watches of the shown thread's graph."""
        graph = session.view.graph.name
        if graph != self._graph:
            self._graph, self._texts = graph, self._kept(graph)
        self._samples, self._sampled = (), ()

    @staticmethod
    def _kept(graph: str) -> tuple[str, ...]:
        file = watches_file()
        if not file.exists():  # usually, and then nothing has to be loaded for them
            return ()
        from hitl_tui.view.watches import read_watches

        return read_watches(file).get(graph, ())

    def show(self, session: ViewSession) -> None:
        """Update the pane for the shown step."""
        if not self._texts and not self._shown:
            return
        from hitl_tui.ui.screens.watches import WatchesPane
        from hitl_tui.view.watches import watch

        panes = self._screen.query(WatchesPane)
        self._shown = bool(self._texts)
        if not self._texts:
            panes.remove()
            return
        if not panes:
            middle = self._screen.query_one("#middle")
            middle.mount(WatchesPane(), before=self._screen.query_one(ChannelsPane))
            self._screen.call_after_refresh(self._screen.show_all)
            return
        step, channels = session.step_view, session.view.graph.channels
        shown = [watch(text, step, channels) for text in self._texts]
        panes.first().show_watches(shown, self._samples, step.step)
        wanted = (session, step.step, self._texts)
        if step.checkpoint is not None and not session.running and wanted != self._sampled:
            self._sampled = wanted
            start_work(self._screen, partial(self._sample, session), group="watches", exclusive=True)

    async def _sample(self, session: ViewSession) -> None:
        thread_id = session.shown[0] if session.shown else session.thread_id
        driver = await session.driver_of(thread_id)
        self._samples = await driver.series(self._texts, session.step_view.step, _SAMPLES)
        if session is self._screen.session:
            self.show(session)

    def ask(self) -> None:
        """Ask for an expression to watch, or one to remove."""
        from hitl_tui.ui.screens.watches import WatchScreen

        session = self._screen.session
        if session is not None:
            channel = self._screen.query_one(ChannelsPane).selected
            dialog = WatchScreen(self._texts, session.view.graph.channels, channel)
            self._screen.app.push_screen(dialog, self._turn)

    def _turn(self, text: str | None) -> None:
        session = self._screen.session
        if text is None or session is None:
            return
        from hitl_tui.view.watches import MOST, keep_watches

        others = tuple(other for other in self._texts if other != text)
        self._texts = others if text in self._texts else (*others, text)[-MOST:]
        self._samples, self._sampled = (), ()
        try:
            keep_watches(watches_file(), session.view.graph.name, self._texts)
        except OSError as error:
            self._screen.show_message(f"it is not saved: {error}", "Watch", "warning")
        self.show(session)
