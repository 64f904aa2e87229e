"""Actions of the run screen: a table from their ids to functions.

Dialogs, pages and editors are imported when a key first needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from textual.binding import Binding

from hitl_tui.ui.screens.run_look import (
    ask_step,
    filter_channels,
    fold,
    go,
    go_first,
    go_to_change,
    next_mode,
    next_pane,
)
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.graph import GraphPane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.verbs import VerbEntry, verbs
from hitl_tui.verbs.actions import ALL_BY_ID
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span
from hitl_tui.view.timeline import Place

if TYPE_CHECKING:
    from hitl_tui.ui.screens.run import RunScreen

Do = Callable[["RunScreen"], Any]
OnSession = Callable[["RunScreen", ViewSession], Any]


def _shown(do: OnSession) -> Do:
    """Wrap a function of the shown session: it does nothing without one."""
    return lambda screen: do(screen, screen.session) if screen.session is not None else None


def _break(screen: RunScreen, session: ViewSession) -> None:
    """Set or remove the breakpoint of the node that is chosen in the graph, or list them."""
    node = screen.query_one(GraphPane).chosen
    if node:
        screen.stepping.toggle_breakpoint(session, node)
    else:
        _breakpoints(screen, session)


def _run_to(screen: RunScreen) -> None:
    """Run up to the node that is chosen in the graph, or choose one there first."""
    graph = screen.query_one(GraphPane)
    if graph.chosen:
        screen.stepping.run_to(graph.chosen)
    else:
        if screen.is_narrow:
            screen.show_tab("graph")
        graph.focus()
        screen.show_message(f"choose the node: {screen.key_hints['run.to']} again runs to it", "To node")


def _breakpoints(screen: RunScreen, session: ViewSession) -> None:
    from hitl_tui.ui.screens.breakpoints import BreakpointsScreen

    node = screen.query_one(GraphPane).chosen or session.view.progress.next_node or ""
    shown = BreakpointsScreen(session, node, lambda points: screen.stepping.keep_breakpoints(session, points))
    screen.app.push_screen(shown, lambda _: screen.show_all())


def _agents(screen: RunScreen, session: ViewSession) -> None:
    """Show the agents and their memories; one of them may be chosen to be changed."""
    from hitl_tui.ui.screens.agents import AgentsScreen

    shown = AgentsScreen(session, screen.actor, screen.keymap.bindings["look.agents"])
    screen.app.push_screen(shown, lambda agent: _try_agent(screen, session, agent) if agent else None)


def _try_agent(screen: RunScreen, session: ViewSession, agent: str = "") -> None:
    """Ask how to change an agent: from the next step, or in a fork."""
    from hitl_tui.ui.screens.agents import ask_settings

    screen.command(partial(ask_settings, screen, session, agent))


def _open_editor(screen: RunScreen, session: ViewSession) -> None:
    """Open the user's editor where the thread is in their code, or at the node of the shown step."""
    screen.command(partial(_edit_code, screen, session))


async def _edit_code(screen: RunScreen, session: ViewSession) -> None:
    from hitl_tui.ui.editor import EditorFailed, open_at
    from hitl_tui.view.frames import innermost

    chosen = screen.query_one(GraphPane).chosen
    frame = None if chosen else innermost(session.frames[1])
    node = chosen or session.node_at_hand
    frame = frame or next(iter(await session.driver.code(node)), None)
    if frame is None:
        screen.show_message(f"no code of {node} is loaded", "No code", "warning")
        return
    try:
        open_at(screen.app, frame.file, frame.line)
    except EditorFailed as error:
        screen.complain(error)


def _costs(screen: RunScreen, session: ViewSession) -> None:
    from hitl_tui.ui.screens.page import CostsScreen

    screen.app.push_screen(CostsScreen(session, screen.keymap.bindings["look.costs"]))


def _artifacts(screen: RunScreen, session: ViewSession) -> None:
    from hitl_tui.ui.screens.artifacts import ArtifactsScreen

    thread_id, step = session.shown or (session.thread_id, session.view.progress.head)
    keys = screen.keymap.bindings["look.artifacts"]
    screen.app.push_screen(ArtifactsScreen(screen, session.points_of(thread_id), step, keys))


def _items(screen: RunScreen, session: ViewSession) -> None:
    from hitl_tui.ui.screens.items import ItemsScreen

    screen.app.push_screen(ItemsScreen(session.hub, screen.now))


def _compare(screen: RunScreen, session: ViewSession) -> None:
    """Compare the shown step with the newest; at the newest, with the parent's or the step before."""
    from hitl_tui.ui.screens.compare import CompareScreen

    async def compare(newest: Place) -> None:
        left = session.shown or await session.parents_end() or (session.thread_id, max(newest[1] - 1, 0))
        keys = screen.keymap.bindings["look.compare"]
        screen.app.push_screen(CompareScreen(session, left, newest, screen.now, keys))

    if session.view.head is not None:
        screen.command(partial(compare, (session.thread_id, session.view.head.step)))


def _family(screen: RunScreen, session: ViewSession) -> None:
    """Show the whole family; open the chosen thread."""
    from hitl_tui.ui.screens.family import FamilyScreen

    def chosen(place: Place | None) -> None:
        if place is not None and place[0] != session.thread_id:
            screen.command(partial(screen.open_thread, place[0]))

    keys = screen.keymap.bindings["look.family"]
    screen.app.push_screen(FamilyScreen(session, screen.now, keys), chosen)


def _check(screen: RunScreen, session: ViewSession) -> None:
    """Check the log; show the step of the chosen finding, here or in an inner thread."""
    from hitl_tui.ui.screens.check import CheckScreen

    def chosen(place: tuple[str, int | None] | None) -> None:
        if place is None or session is not screen.session:
            return
        thread_id, step = place
        if thread_id:
            screen.command(partial(screen.threads.open_at, thread_id, step))
        elif step is not None:
            screen.travel((session.thread_id, step))

    screen.app.push_screen(CheckScreen(session.driver, screen.keymap.bindings["look.check"]), chosen)


def _taint(screen: RunScreen, session: ViewSession) -> None:
    from hitl_tui.ui.screens.taint import why_tainted

    why_tainted(screen, session, screen.query_one(ChannelsPane).selected)


def _where(screen: RunScreen) -> None:
    """Show where the code of the running node is now, or where the node failed."""
    session = screen.session
    node = session.view.running_node if session is not None else None
    if session is None or node is None:
        screen.shown_value.show_failure()
        return
    from hitl_tui.ui.screens.page import PageScreen
    from hitl_tui.view.frames import frame_lines

    driver, width = session.driver, screen.size.width - 4

    async def lines() -> list[Line]:
        rows: list[Line] = []
        for frames in await driver.where(node):
            rows += [*frame_lines(frames, width), ()]
        return rows or [(Span("none of your code is running in this process", "dim"),)]

    keys = screen.keymap.bindings["look.failure"]
    screen.app.push_screen(PageScreen(f"Where {node} is now", lines, keys))


def _contract(screen: RunScreen, session: ViewSession) -> None:
    from hitl_tui.ui.screens.taint import show_contract

    show_contract(screen, session)


def _enter(screen: RunScreen, session: ViewSession) -> None:
    """Open the thread of another thread's step; else show what is inside the shown step."""
    if session.shown and session.shown[0] != session.thread_id:
        screen.command(partial(screen.open_thread, session.shown[0]))
    else:
        screen.threads.go_inside()


def _decided(screen: RunScreen) -> None:
    from hitl_tui.ui.screens.store import show_decisions

    show_decisions(screen.app, screen.hub, screen.actor, "app.decided")


def _store(screen: RunScreen, session: ViewSession) -> None:
    from hitl_tui.ui.screens.store import StoreScreen

    keys = screen.keymap.bindings["app.store"]
    screen.app.push_screen(StoreScreen(screen.hub, screen.actor, screen.now, session.thread_id, keys))


def _help(screen: RunScreen) -> None:
    from hitl_tui.ui.screens.help import HelpScreen

    pane = screen.focused
    bindings = [each for kind in type(pane).__mro__ for each in vars(kind).get("BINDINGS", ())]
    ids = {each.id for each in bindings if isinstance(each, Binding)}
    keys = [name for name in ALL_BY_ID if name in ids]
    title = str(pane.border_title or "") if pane is not None else ""
    screen.app.push_screen(HelpScreen(screen.situation, screen.keymap, title, keys))


def _back(screen: RunScreen) -> None:
    """Close the card, the outcomes, or the spotlight, or go to the newest step, or to the outer thread."""
    if screen.review.state == "sending":
        screen.review.take_back()
    elif screen.review.state:
        screen.review.close_card()
    elif screen.stage.pane:
        screen.stage.spotlight("")
    elif screen.review.followed_open:
        screen.review.turn_followed()
    elif screen.search.open or (screen.session and screen.session.is_past):
        screen.search.close()
        screen.travel(None)
    else:
        screen.threads.go_outside()


def _verb_handlers() -> dict[str, Do]:
    """Return the handler of each verb's action; it starts the conversation."""

    def handler(entry: VerbEntry) -> Do:
        return _shown(lambda screen, session: _play(screen, session, entry))

    loaded = ((entry, entry.load()) for entry in verbs().values())
    return {
        verb.action.id: handler(entry)
        for entry, verb in loaded
        if verb.action is not None and verb.about == "thread"
    }


def _play(screen: RunScreen, session: ViewSession, entry: VerbEntry) -> None:
    from hitl_tui.ui.conversations import play

    selected, pane = screen.query_one(ChannelsPane).selected, screen.query_one(ValuePane)
    asked, card = screen.review.asked_about, screen.review.card
    start = partial(
        play,
        screen,
        session,
        entry.load(),
        selected=selected,
        part=pane.part if pane.text is not None and pane.text.channel == selected else None,
        request=asked.id if asked is not None else "",
        answering=(card.review.chosen, card.review.reason) if card is not None else ("", ""),
    )
    screen.command(start)


HANDLERS: Final[Mapping[str, Do]] = {
    **_verb_handlers(),
    "run.step": lambda screen: screen.stepping.step(),
    "run.into": lambda screen: screen.stepping.step(into=True),
    "run.out": lambda screen: screen.stepping.step_out(),
    "run.to": _run_to,
    "run.continue": lambda screen: screen.stepping.continue_(),
    "run.break": _shown(_break),
    "run.breaks": _shown(_breakpoints),
    "change.decide": lambda screen: screen.review.decide(),
    "change.edit": lambda screen: screen.editing.edit_selected(),
    "change.agent": _shown(_try_agent),
    "look.check": _shown(_check),
    "look.text": lambda screen: screen.shown_value.set_mode("text"),
    "look.diff": lambda screen: screen.shown_value.set_mode("diff"),
    "look.json": lambda screen: screen.shown_value.set_mode("json"),
    "look.failure": _where,
    "look.editor": _shown(_open_editor),
    "look.fold": lambda screen: fold(screen, everything=False),
    "look.folds": lambda screen: fold(screen, everything=True),
    "look.blame": lambda screen: screen.shown_value.set_mode("blame"),
    "look.view": next_mode,
    "look.find": lambda screen: screen.search.ask(),
    "look.next": lambda screen: screen.search.walk(1),
    "look.previous": lambda screen: screen.search.walk(-1),
    "look.watch": lambda screen: screen.watches.ask(),
    "look.compare": _shown(_compare),
    "look.family": _shown(_family),
    "look.costs": _shown(_costs),
    "look.artifacts": _shown(_artifacts),
    "look.items": _shown(_items),
    "look.followed": lambda screen: screen.review.turn_followed(),
    "look.taint": _shown(_taint),
    "look.contract": _shown(_contract),
    "look.channels": filter_channels,
    "look.agents": _shown(_agents),
    "look.inside": lambda screen: screen.threads.go_inside(),
    "look.enter": _shown(_enter),
    "look.outside": lambda screen: screen.threads.go_outside(),
    "look.tab": next_pane,
    "look.older": lambda screen: go_to_change(screen, -1),
    "look.newer": lambda screen: go_to_change(screen, 1),
    "travel.back": lambda screen: go(screen, "left"),
    "travel.on": lambda screen: go(screen, "right"),
    "travel.step": _shown(ask_step),
    "travel.up": lambda screen: go(screen, "up"),
    "travel.down": lambda screen: go(screen, "down"),
    "travel.first": go_first,
    "travel.head": lambda screen: screen.travel(None),
    "card.reason": lambda screen: screen.review.type_reason(),
    "card.comment": lambda screen: screen.review.comment(),
    "card.uncomment": lambda screen: screen.review.uncomment(),
    "card.edit": lambda screen: screen.review.edit_asked(),
    "card.allow": lambda screen: screen.review.play("allow"),
    "card.next": lambda screen: screen.review.other_request(1),
    "card.previous": lambda screen: screen.review.other_request(-1),
    "card.back": lambda screen: screen.review.step_back(),
    "card.undo": lambda screen: screen.review.take_back(),
    "stage.next": lambda screen: screen.stage.next(),
    "stage.start": lambda screen: screen.stage.start(),
    "stage.hold": lambda screen: screen.stage.hold(),
    "stage.faster": lambda screen: screen.stage.faster(),
    "stage.slower": lambda screen: screen.stage.slower(),
    "look.spotlight": lambda screen: screen.stage.switch_spotlight(),
    "look.save": lambda screen: screen.stage.save_picture(),
    "look.last_key": lambda screen: screen.stage.switch_keys(),
    "app.threads": lambda screen: screen.threads.choose(),
    "app.queue": lambda screen: screen.threads.choose_waiting(),
    "app.workers": lambda screen: screen.threads.show_workers(),
    "app.new": lambda screen: screen.threads.new(),
    "app.next": lambda screen: screen.threads.open_next(),
    "app.before": lambda screen: screen.threads.open_next(back=True),
    "app.decided": _decided,
    "app.store": _shown(_store),
    "app.help": _help,
    "app.back": _back,
    "app.quit": lambda screen: screen.leave(),
}
"""Every action of `verbs/actions.py` except the palette, which belongs to the app."""
