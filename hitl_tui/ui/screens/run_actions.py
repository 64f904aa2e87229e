"""Actions of the run screen: a table from their ids to functions of the screen.

Dialogs, pages and editors are imported when a key first needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from textual.binding import Binding

from hitl_tui.engine.commands import Run, Step
from hitl_tui.engine.thread.breakpoints import Breakpoint
from hitl_tui.ui.screens.run import RunScreen, armed
from hitl_tui.ui.widgets.channels import ChannelsPane
from hitl_tui.ui.widgets.graph import GraphPane
from hitl_tui.ui.widgets.value import ValuePane
from hitl_tui.verbs import VerbEntry, verbs
from hitl_tui.verbs.actions import ALL_BY_ID, BY_ID
from hitl_tui.view.keymap import BACK, Option
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span
from hitl_tui.view.timeline import Place

if TYPE_CHECKING:
    from hitl_tui.loading.known import KnownGraph
    from hitl_tui.ui.screens.decisions import DecisionChoice
    from hitl_tui.ui.screens.run_stage import StageScreen
    from hitl_tui.ui.widgets.review import ReviewPane
    from hitl_tui.view.run_view import InsidePlace

Do = Callable[[RunScreen], Any]
OnSession = Callable[[RunScreen, ViewSession], Any]


def _shown(do: OnSession) -> Do:
    """Wrap a function of the shown session: it does nothing without one."""
    return lambda screen: do(screen, screen.session) if screen.session is not None else None


def _presenting(do: Callable[[StageScreen], None]) -> Do:
    """Wrap a function of a presentation: it does nothing without one."""

    def guarded(screen: RunScreen) -> None:
        from hitl_tui.ui.screens.run_stage import StageScreen

        if isinstance(screen, StageScreen):
            do(screen)

    return guarded


def _step_into(screen: RunScreen, session: ViewSession) -> None:
    """Run one node; if it is a subgraph, show its thread before its first node."""
    if session.view.graph.kind_of(session.view.progress.next_node or "") != "subgraph":
        screen.step()
        return

    async def step_into() -> None:
        since = session.view.last_event
        await session.driver.execute(Step(True, armed(session)))
        await session.driver.ended(since)
        unfinished = (await session.driver.snapshot()).unfinished
        if unfinished is not None and unfinished.child and session is screen.session:
            await screen.open_thread(unfinished.child)

    screen.paces.step(session.thread_id)
    screen.command(step_into)


def _step_out(screen: RunScreen, session: ViewSession) -> None:
    """Finish the inner thread, and the node that runs it; show the outer one."""
    if not session.view.owners:
        return
    owner = session.view.owners[-1].thread_id

    async def step_out() -> None:
        await screen.open_thread(owner)
        outer = screen.session
        if outer is not None and outer.thread_id == owner:
            screen.paces.step(owner)
            await outer.driver.execute(Step(False, armed(outer)))

    screen.command(step_out)


def _break(screen: RunScreen, session: ViewSession) -> None:
    """Set or remove the breakpoint of the node that is chosen in the graph, or list them."""
    from hitl_tui.drivers.breakpoints import describe, toggled

    node = screen.query_one(GraphPane).chosen
    if not node:
        _breakpoints(screen, session)
        return
    before = session.breakpoints
    screen.keep_breakpoints(session, toggled(before, node))
    what = describe(Breakpoint("before", node))
    if len(session.breakpoints) > len(before):
        screen.show_message(f"runs stop {what}; {screen.key_hints['run.breaks']} lists them", "Break")
    else:
        screen.show_message(f"runs no longer stop {what}", "Break")


def _run_to(screen: RunScreen, session: ViewSession) -> None:
    """Run up to the node that is chosen in the graph, or choose one there first."""
    graph = screen.query_one(GraphPane)
    if graph.chosen:
        points = (*armed(session), Breakpoint("before", graph.chosen))
        screen.run_with(lambda driver: driver.execute(Run(points)), "run.to")
    else:
        if screen.is_narrow:
            screen.show_tab("graph")
        graph.focus()
        screen.show_message(f"choose the node: {screen.key_hints['run.to']} again runs to it", "To node")


def _breakpoints(screen: RunScreen, session: ViewSession) -> None:
    from hitl_tui.ui.screens.breakpoints import BreakpointsScreen

    node = screen.query_one(GraphPane).chosen or session.view.progress.next_node or ""
    shown = BreakpointsScreen(session, node, lambda points: screen.keep_breakpoints(session, points))
    screen.app.push_screen(shown, lambda _: screen.show_all())


def _agents(screen: RunScreen, session: ViewSession) -> None:
    """Show the agents and their memories; one of them may be chosen to be changed."""
    from hitl_tui.ui.screens.agents import AgentsScreen

    def chosen(agent: str | None) -> None:
        if agent:
            _play(screen, session, verbs()["change-agent"], agent)

    shown = AgentsScreen(session, screen.actor, screen.keymap.bindings["look.agents"])
    screen.app.push_screen(shown, chosen)


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
            screen.command(partial(screen.open_at, thread_id, step))
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


def _read(screen: RunScreen, session: ViewSession) -> None:
    """Open the reader: on what the card is about, else on the selected channel."""
    from hitl_tui.ui.screens.reader_opening import open_reader

    open_reader(screen, session, screen.query_one(ChannelsPane).selected)


def _enter(screen: RunScreen, session: ViewSession) -> None:
    """Open the thread of another thread's step; else show what is inside the shown step."""
    if session.shown and session.shown[0] != session.thread_id:
        screen.command(partial(screen.open_thread, session.shown[0]))
    else:
        _go_inside(screen, session)


def _decided(screen: RunScreen) -> None:
    """Show all decisions, and the step of a chosen one."""
    from hitl_tui.ui.screens.decisions import DecisionsScreen

    keys = screen.keymap.bindings["app.decided"]
    shown = DecisionsScreen(screen.hub, screen.actor, screen.now, keys)
    screen.app.push_screen(shown, partial(open_decision, screen))


def open_decision(screen: RunScreen, choice: DecisionChoice | None) -> None:
    """Show the step of a decision, and begin to fork there if that is wanted."""
    if choice is not None:
        screen.command(partial(_open_decision, screen, choice))


async def _open_decision(screen: RunScreen, choice: DecisionChoice) -> None:
    if screen.session is None or screen.session.thread_id != choice.thread:
        await screen.open_thread(choice.thread)
    if screen.session is not None and screen.session.thread_id == choice.thread:
        if choice.about:
            screen.query_one(ChannelsPane).select(choice.about)
        screen.travel((choice.thread, choice.step))
        if choice.fork:
            screen.action_do("change.fork")


def _store(screen: RunScreen, session: ViewSession) -> None:
    from hitl_tui.ui.screens.store import StoreScreen

    keys = screen.keymap.bindings["app.store"]
    screen.app.push_screen(StoreScreen(screen.hub, screen.actor, screen.now, session.thread_id, keys))


def _help(screen: RunScreen) -> None:
    from hitl_tui.ui.screens.help import HelpScreen

    pane = screen.focused
    bindings = [each for kind in type(pane).__mro__ for each in vars(kind).get("BINDINGS", ())]
    ids = {each.id for each in bindings if isinstance(each, Binding)}
    if pane is not None and screen.card_state == "open":
        ids |= {name for name, action in BY_ID.items() if action.group == "Card"}
    keys = sorted((name for name in ALL_BY_ID if name in ids), key=lambda name: not name.startswith("card."))
    title = str(pane.border_title or "") if pane is not None else ""
    screen.app.push_screen(HelpScreen(screen.situation, screen.keymap, title, keys))


def _back(screen: RunScreen) -> None:
    """Close the card, the outcomes, or the spotlight, or go to the newest step, or to the outer thread.

    A spotlight over the card ends first.
    """
    if screen.card_state == "sending" and screen.card is not None:
        screen.card.take_back()
    elif screen.card_state and screen.spotlit:
        screen.decide()
    elif screen.card_state:
        screen.close_card()
    elif screen.spotlit:
        screen.spotlight("")
    elif screen.followed_open:
        screen.switch_followed()
    elif screen.finding is not None or (screen.session and screen.session.is_past):
        screen.close_search()
        screen.travel(None)
    else:
        _go_outside(screen)


def _go_outside(screen: RunScreen) -> None:
    """Go back to the thread that runs this one."""
    if screen.session is not None and screen.session.view.owners:
        screen.command(partial(screen.leave_inner_thread, screen.session.view.owners[-1].thread_id))


def _go_inside(screen: RunScreen, session: ViewSession) -> None:
    """Open the branches, or the thread, of the shown step, the selected node, or the running node."""
    chosen = screen.query_one(GraphPane).chosen
    place = session.inside(chosen)
    if place is None:
        node = chosen or session.view.progress.next_node or ""
        why = session.view.graph.why_closed(node) or "no branches and no thread of its own here"
        screen.show_message(why, "Inside", "warning")
    elif place.thread:
        screen.command(partial(screen.open_thread, place.thread))
    else:
        _open_branches(screen, session, place)


def _open_branches(screen: RunScreen, session: ViewSession, place: InsidePlace) -> None:
    from hitl_tui.ui.screens.branches import BranchesScreen

    def chosen(path: str | None) -> None:
        request = next((other for other in session.requests if other.path == path), None) if path else None
        if request is not None and session is screen.session:
            screen.open_card(request)

    keys = (*screen.keymap.bindings["look.inside"], *screen.keymap.bindings["look.outside"])
    screen.app.push_screen(BranchesScreen(session, place, screen.now, keys), chosen)


def _threads(screen: RunScreen) -> None:
    """List the threads."""
    from hitl_tui.ui.screens.threads import ThreadsScreen

    current = screen.session.thread_id if screen.session else ""
    keys = screen.keymap.bindings["app.threads"]
    threads = ThreadsScreen(
        screen.hub, current, screen.now, keys, do=screen.do_action, open_step=partial(open_decision, screen),
        actor=screen.actor,
    )  # fmt: skip
    screen.app.push_screen(threads, screen.go_to_thread)


def _queue(screen: RunScreen) -> None:
    """Show the queue; a chosen request opens with its card."""
    from hitl_tui.config import queue_file, queue_looks_file
    from hitl_tui.ui.screens.queue import QueueScreen

    viewed = dict(screen.left)
    if screen.session is not None:
        viewed[screen.session.thread_key] = screen.session.view.progress
    queue = QueueScreen(
        screen.hub, screen.actor, screen.now, queue_file(),
        signs=bool(screen.session and screen.session.view.signing_key),
        claim_minutes=screen.attention.claim_minutes, do=screen.do_action,
        open_step=partial(open_decision, screen),
        came_from=screen.came_from, keys=screen.keymap.bindings["app.queue"], looks_file=queue_looks_file(),
        read={(*thread, request.id) for thread, progress in viewed.items() for request in progress.pending},
    )  # fmt: skip
    screen.app.push_screen(queue, lambda choice: screen.open_chosen(choice) if choice is not None else None)


def _workers(screen: RunScreen) -> None:
    """Show who runs what; a chosen thread is opened."""
    from hitl_tui.ui.screens.workers import WorkersScreen

    workers = WorkersScreen(screen.hub, screen.keymap.bindings["app.workers"])
    screen.app.push_screen(workers, screen.go_to_thread)


def _new(screen: RunScreen) -> None:
    """Ask for a graph to start a thread of, then for its input."""
    from hitl_tui.ui.screens.start import StartScreen

    def chosen(graph: KnownGraph | None) -> None:
        if graph is not None:
            screen.command(partial(screen.start_thread, graph))

    screen.app.push_screen(StartScreen(screen.hub), chosen)


def _fold(screen: RunScreen, *, everything: bool) -> None:
    """Fold the part under the cursor of the value, or unfold it; keys move that cursor from then on."""
    pane = screen.query_one(ValuePane)
    if not pane.folds:
        screen.show_message("only a value with parts folds, as text or JSON", severity="warning")
        return
    focused = pane.has_focus
    pane.focus()
    if everything:
        pane.fold_all()
    elif focused:
        pane.fold()


def _ask_step(screen: RunScreen, session: ViewSession) -> None:
    """Ask for a number, and show that step of the shown thread."""
    from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult

    thread_id, step = session.shown or (session.thread_id, session.view.progress.head)

    async def show(typed: str) -> None:
        head = (await (await session.driver_of(thread_id)).snapshot()).progress.head
        if not typed.isdecimal() or int(typed) > head:
            screen.show_message(
                f"there is no step {sanitise_line(typed, 20)}; the newest is {head}", "Go to step", "warning"
            )
            return
        newest = thread_id == session.thread_id and int(typed) == head
        screen.travel(None if newest else (thread_id, int(typed)))

    def answered(answer: DialogResult | None) -> None:
        if answer is not None and (typed := answer.fields["step"].strip()):
            screen.command(partial(show, typed), group="change")

    options = [Option("go", "g", "show it"), BACK]
    fields = [DialogField("step", f"number, now {step}")]
    screen.app.push_screen(Dialog("Go to step", [], options, fields), answered)


def _filter_channels(screen: RunScreen) -> None:
    """Ask which channels to show: by a word, or only the changed ones."""
    from hitl_tui.ui.screens.dialogs import Dialog, DialogField, DialogResult

    pane = screen.query_one(ChannelsPane)

    def answered(answer: DialogResult | None) -> None:
        if answer is not None:
            word = "" if answer.id == "all" else answer.fields["word"].strip()
            pane.filter_rows(word, only_changed=answer.id == "changed")

    options = [
        Option("word", "s", "show those"),
        Option("changed", "c", "only those that the step changed"),
        Option("all", "a", "show all"),
        BACK,
    ]
    fields = [DialogField("word", "part of the name", pane.word)]
    screen.app.push_screen(Dialog("Filter channels", [], options, fields), answered)


def _ask_watch(screen: RunScreen, session: ViewSession) -> None:
    """Ask for an expression to watch, or one to remove."""
    from hitl_tui.ui.screens.watches import WatchScreen

    def chosen(text: str | None) -> None:
        if text is not None and screen.session is not None:
            screen.switch_watch(screen.session, text)

    channel = screen.query_one(ChannelsPane).selected
    dialog = WatchScreen(screen.watches_of(session), session.view.graph.channels, channel)
    screen.app.push_screen(dialog, chosen)


def _save_picture(screen: RunScreen) -> None:
    """Write the screen as SVG to a new file in the current directory; a browser downloads it."""
    from hitl_tui.ui.new_files import write_file
    from hitl_tui.ui.pictures import picture_name, screen_svg

    session = screen.session
    place = (session.thread_id, session.step_view.step) if session else ("hitl-tui", 0)
    svg = screen_svg(screen.app, place[0])
    write_file(screen, picture_name(*place), svg.encode(), "image/svg+xml", "Picture")


def _on_card(do: Callable[[ReviewPane], Any]) -> Do:
    """Wrap a function of the review card: it does nothing before there is one."""
    return lambda screen: do(screen.card) if screen.card is not None else None


def _verb_handlers() -> dict[str, Do]:
    """Return the handler of each verb's action on this screen; it starts the conversation."""

    def handler(entry: VerbEntry) -> Do:
        return _shown(lambda screen, session: _play(screen, session, entry))

    loaded = ((entry, entry.load()) for entry in verbs().values())
    return {
        verb.action.id: handler(entry)
        for entry, verb in loaded
        if verb.action is not None and verb.action.id in BY_ID
    }


def _play(screen: RunScreen, session: ViewSession, entry: VerbEntry, agent: str = "") -> None:
    from hitl_tui.ui.conversations import play

    selected, pane = screen.query_one(ChannelsPane).selected, screen.query_one(ValuePane)
    asked, card = screen.asked_about, screen.card
    start = partial(
        play,
        screen,
        session,
        entry.load(),
        selected=selected,
        part=pane.part if pane.text is not None and pane.text.channel == selected else None,
        agent=agent,
        request=asked.id if asked is not None else "",
        answering=(card.review.chosen, card.review.reason) if card is not None else ("", ""),
    )
    screen.command(start)


HANDLERS: Final[Mapping[str, Do]] = {
    **_verb_handlers(),
    "run.step": lambda screen: screen.step(),
    "run.into": _shown(_step_into),
    "run.out": _shown(_step_out),
    "run.to": _shown(_run_to),
    "run.continue": lambda screen: screen.run_on(),
    "run.break": _shown(_break),
    "run.breaks": _shown(_breakpoints),
    "change.decide": lambda screen: screen.decide(),
    "change.edit": lambda screen: screen.edit_channel(screen.query_one(ChannelsPane).selected),
    "look.check": _shown(_check),
    "look.developer": lambda screen: screen.switch_view(),
    "look.text": lambda screen: screen.shown_value.set_mode("text"),
    "look.diff": lambda screen: screen.shown_value.set_mode("diff"),
    "look.json": lambda screen: screen.shown_value.set_mode("json"),
    "look.failure": _where,
    "look.editor": _shown(_open_editor),
    "look.fold": lambda screen: _fold(screen, everything=False),
    "look.folds": lambda screen: _fold(screen, everything=True),
    "look.read": _shown(_read),
    "look.blame": lambda screen: screen.shown_value.set_mode("blame"),
    "look.view": lambda screen: screen.shown_value.next_mode(),
    "look.find": lambda screen: screen.ask_search(),
    "look.next": lambda screen: screen.walk_found(1),
    "look.previous": lambda screen: screen.walk_found(-1),
    "look.watch": _shown(_ask_watch),
    "look.compare": _shown(_compare),
    "look.family": _shown(_family),
    "look.costs": _shown(_costs),
    "look.artifacts": _shown(_artifacts),
    "look.items": _shown(_items),
    "look.followed": lambda screen: screen.switch_followed(),
    "look.taint": _shown(_taint),
    "look.contract": _shown(_contract),
    "look.channels": _filter_channels,
    "look.agents": _shown(_agents),
    "look.inside": _shown(_go_inside),
    "look.enter": _shown(_enter),
    "look.outside": _go_outside,
    "look.tab": lambda screen: screen.next_pane(),
    "look.older": lambda screen: screen.travel_to_change(-1),
    "look.newer": lambda screen: screen.travel_to_change(1),
    "travel.back": lambda screen: screen.travel_beside("left"),
    "travel.on": lambda screen: screen.travel_beside("right"),
    "travel.step": _shown(_ask_step),
    "travel.up": lambda screen: screen.travel_beside("up"),
    "travel.down": lambda screen: screen.travel_beside("down"),
    "travel.first": lambda screen: screen.travel_to_oldest(),
    "travel.head": lambda screen: screen.travel(None),
    "card.reason": _on_card(lambda card: card.action_type_reason("card.reason")),
    "card.comment": _on_card(lambda card: card.comment()),
    "card.read": _shown(_read),
    "card.uncomment": _on_card(lambda card: card.uncomment()),
    "card.score": _on_card(lambda card: card.ask_scores()),
    "card.edit": lambda screen: screen.edit_asked(),
    "card.allow": lambda screen: screen.play_about_card("allow"),
    "card.next": lambda screen: screen.other_request(1),
    "card.previous": lambda screen: screen.other_request(-1),
    "card.back": _on_card(lambda card: card.step_back()),
    "card.undo": _on_card(lambda card: card.take_back()),
    "stage.next": _presenting(lambda screen: screen.next_stop()),
    "stage.start": _presenting(lambda screen: screen.start_again()),
    "stage.hold": _presenting(lambda screen: screen.hold()),
    "stage.faster": _presenting(lambda screen: screen.faster()),
    "stage.slower": _presenting(lambda screen: screen.slower()),
    "look.spotlight": lambda screen: screen.switch_spotlight(),
    "look.save": _save_picture,
    "look.last_key": lambda screen: screen.switch_keys(),
    "app.threads": _threads,
    "app.queue": _queue,
    "app.workers": _workers,
    "app.new": _new,
    "app.next": lambda screen: screen.next_thread(),
    "app.before": lambda screen: screen.next_thread(back=True),
    "app.decided": _decided,
    "app.store": _shown(_store),
    "app.help": _help,
    "app.back": _back,
    "app.quit": lambda screen: screen.leave(),
}
"""Every action of `verbs/actions.py` except the palette, which belongs to the app."""
