"""Graph with the path that the run took, and what the current node reads and writes."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType

from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.graph.drawing import RunMarks, nodes_of, taken_edges
from hitl_tui.engine.log.records import END, Checkpoint
from hitl_tui.ui.bindings import bound
from hitl_tui.ui.sizes import HIGH_FROM
from hitl_tui.ui.widgets.lines import LineView, ours
from hitl_tui.view.breakpoints import breakpoint_line, marked_nodes
from hitl_tui.view.failed_branches import failed_branches
from hitl_tui.view.format import duration, tokens, writer
from hitl_tui.view.graph_text import Picture, draw
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.session import ViewSession
from hitl_tui.view.spans import Line, Span
from hitl_tui.view.taint import composition_facts, contract_facts

_ROLES: Final = {
    "edge": "edge",
    "route": "route",
    "node": "dim",
    "visited": "plain",
    "current": "current",
    "waiting": "accent",
    "end": "dim",
    "label": "dim",
    "count": "dim",
    "break": "human",
}
_FACT_ROWS: Final = 9
_NAMES_SHOWN: Final = 6
_BESIDE_FROM: Final = 60
_PICTURE: Final = 34
_USUAL: Final = 22
"""Cells of a picture in a pane of the usual width."""
_BROAD: Final = 29
"""Cells of a picture in a wide pane, and below it the cells of a screen that has one."""
_BROAD_FROM: Final = 118
_BROADER_FROM: Final = 170
_STEPS_SHOWN: Final = 40
_WRITER: Final = 12
_DECISION: Final = 20
_SHORTEST: Final = 100_000
"""Microseconds below which a step's duration is not shown."""
_AROUND_STEPS: Final = 3
"""Rows between picture, facts and steps, with the heading of these."""
_MANY: Final = 10
_FEW: Final = 50
"""Number of nodes up to which a picture in lanes says more than a list."""


class GraphPane(LineView):
    """Graph pane, drawn again only if the node, the counts, the route or the breakpoints differ.

    While it has the focus, one of its nodes is `chosen`.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("list.up", "choose(-1)"),
        bound("list.down", "choose(1)"),
    ]

    def __init__(self) -> None:
        super().__init__("graph", "Graph")
        self.is_alone = False
        """Whether it is the only pane on screen."""
        self._is_broader = False
        self._inside: tuple[str, str, str] = ("", "", "")
        self._breakpoints: tuple[Line, ...] = ()
        self._marks: dict[str, bool] = {}
        self._read: tuple[object, ...] = ()
        self._graph: GraphInfo | None = None
        self._look = RunMarks()
        self._waits = False
        self._failed = False
        self._next = ""
        self._made = ""
        self._steps: tuple[Line, ...] = ()
        self._drawn: tuple[object, ...] = ()
        self.picture: Picture | None = None
        self._chosen = ""
        self._room_for: tuple[GraphInfo, int] | None = None

    @property
    def chosen(self) -> str:
        """Node under the cursor while the pane has the focus, else ""."""
        return self._chosen if self.has_focus else ""

    def show_session(self, session: ViewSession) -> None:
        """Show where the run is, or was at the shown step."""
        view, step = session.view, session.step_view
        point = step.checkpoint
        if session.is_past:
            current = (point.node if point else "") or (point.next_node if point else None)
            counts = step.visits if step.visits is not None else _visits(session.view.checkpoints, step.step)
            visits = dict(counts)
            following = (point.next_node if point else None) or _came_next(session, step.step)
        else:
            current = view.running_node or _standing(session)
            visits, following = dict(view.progress.visits), view.progress.next_node or ""
        self._graph = view.graph
        self._take_room(view.graph)
        self._inside = _inside(session)
        notes = {self._inside[0]: self._inside[2]} if self._inside[1] else {}
        failed = failed_branches(view.branched, step.step)
        notes = {**{node: f"✗{number}" for node, number in failed.items()}, **notes}
        taken = taken_edges(view.checkpoints, step.step)
        self._read_breakpoints(session)
        self._look = RunMarks(current or None, visits, taken, self._marks, notes)
        self._failed = view.error is not None and not session.is_past
        self._made = session.node_at_hand
        self._waits = session.request is not None and not session.is_past
        self._next = _decider(session) if self._waits and not _is_breakpoint(session) else following
        place = session.shown or (session.thread_id, step.step)
        tall = self._is_broader and self.app.size.height >= HIGH_FROM
        points = session.points_of(place[0])[-_STEPS_SHOWN:] if tall else ()
        self._steps = tuple(_step_line(point, place[1]) for point in reversed(points))
        self._draw()

    def _read_breakpoints(self, session: ViewSession) -> None:
        """Check the breakpoints again only if they, the graph or their hits have changed."""
        points, graph, hits = session.breakpoints, session.view.graph, dict(session.hits)
        if (points, graph, hits) != self._read:
            self._read = points, graph, hits
            self._marks = marked_nodes(points, graph)
            self._breakpoints = tuple(breakpoint_line(point, graph, hits) for point in points)

    def _take_room(self, graph: GraphInfo) -> None:
        """Widen the pane for the picture if the screen is wide: by the same for all states of a run."""
        known = graph, self.screen.size.width
        if known == self._room_for:
            return
        self._room_for = known
        names = [node.name for node in graph.nodes]
        visited = RunMarks(visits=dict.fromkeys(names, _MANY))

        def fits(cells: int) -> bool:
            return len(names) <= _FEW and not draw(graph.edges, names, visited, cells, 0).plain

        wide = self.screen.size.width >= _BROAD_FROM
        self.set_class(wide and not fits(_USUAL) and fits(_BROAD), "-broad")
        self._is_broader = self.screen.size.width >= _BROADER_FROM
        self.set_class(self._is_broader, "-broader")

    def _draw(self) -> None:
        graph = self._graph
        if graph is None or self.size.width < 10:
            return
        size = self.scrollable_content_region.size
        key = (
            graph,
            self._look,
            self._breakpoints,
            self._chosen,
            self._inside,
            self._waits,
            self._failed,
            self._next,
            self._steps,
            size,
        )
        if key == self._drawn:
            return
        self._drawn = key
        names = [node.name for node in graph.nodes]
        beside = size.width >= _BESIDE_FROM
        width = _PICTURE if beside else size.width
        room = size.height if beside else max(4, size.height - 1 - _FACT_ROWS)
        kinds = {node.name: node.kind for node in graph.nodes}
        self.picture = picture = draw(graph.edges, names, self._look, width, room, kinds=kinds)
        rows: list[Line] = [
            tuple(ours(text, self._role(role)) for text, role in runs) for runs in picture.rows
        ]
        if not names:  # of a thread that is shown from its log
            rows = [(Span("its nodes are unknown", "dim"),)]
        facts = self._facts(graph)
        shown = _side_by_side(rows, facts) if beside else [*rows, (), *facts]
        free = size.height - len(shown) - _AROUND_STEPS + 1
        if self._steps and free > 0:
            shown += [(), (Span("steps", "dim"),), *self._steps[:free]]
        if self._steps and self.is_alone:
            shown += _about(graph, size.width, size.height - len(shown))
        self.show(shown)
        if self._chosen:
            self._point()
            return
        row = picture.node_rows.get(self._look.current or "")
        if row is not None and not round(self.scroll_y) <= row + 1 < round(self.scroll_y) + size.height:
            self.scroll_to(y=max(0, row - size.height // 2), animate=False)

    def _role(self, role: str) -> str:
        if role == "current" and self._failed:
            return "error"
        return _ROLES["waiting" if role == "current" and self._waits else role]

    def _facts(self, graph: GraphInfo) -> list[Line]:
        """Return what comes next, and what the current or the chosen node may read and write."""
        about = self._chosen or self._look.current or ""
        if about == END and self._steps:
            about = self._made
        node = graph.node(about)
        facts: list[tuple[str, tuple[str, ...], str]] = []
        if graph.nodes and not self._chosen and self._look.current != END:
            facts.append(
                ("next", (self._next or "depends on the route",), "accent" if self._waits else "plain")
            )
        if self._inside[1] and self._inside[0] == about:
            facts.append(("inside", tuple(self._inside[1].split(", ")), "node"))
        facts += composition_facts(node) if node is not None else []
        routes = [edge for edge in graph.edges if edge.source == about and edge.label]
        if routes:
            facts.append(("routes", tuple(f"{edge.label} → {edge.target}" for edge in routes), "dim"))
        if node is not None:
            facts.append(("reads", node.reads or ("nothing",), "plain"))
            facts.append(("writes", node.writes or ("nothing",), "plain"))
            facts += contract_facts(node) if self._steps else []
        rows: list[Line] = []
        for label, values, role in facts:
            words = ["all channels" if value == "*" else sanitise_line(value, 40) for value in values]
            if len(words) > _NAMES_SHOWN:
                words = [*words[: _NAMES_SHOWN - 1], f"and {len(words) - _NAMES_SHOWN + 1} more"]
            rows += [
                (Span(f"{label if index == 0 else '':<7}", "dim"), ours(word, role))
                for index, word in enumerate(words)
            ]
        if self._breakpoints:
            rows += [(), (Span("breakpoints", "dim"),), *self._breakpoints]
        return rows

    def _names(self) -> list[str]:
        """Return the nodes of the picture from top to bottom."""
        names = {node.name for node in self._graph.nodes} if self._graph else set()
        rows = self.picture.node_rows if self.picture else {}
        return sorted(names & rows.keys(), key=lambda name: rows[name])

    def action_choose(self, by: int) -> None:
        """Choose another node."""
        names = self._names()
        if names:
            at = names.index(self._chosen) + by if self._chosen in names else 0
            self._choose(names[min(max(at, 0), len(names) - 1)])

    def _choose(self, name: str) -> None:
        """Choose a node, "" for none; the lines below the picture describe it."""
        self._chosen = name
        self._draw()
        self._point()

    def _point(self) -> None:
        """Show the cursor on the chosen node."""
        row = self.picture.node_rows.get(self._chosen) if self.picture else None
        self.cursor_row = row
        if row is not None and not round(self.scroll_y) <= row + 1 < round(self.scroll_y) + self.size.height:
            self.scroll_to(y=max(0, row - self.size.height // 2), animate=False)
        self.repaint()

    def on_focus(self) -> None:
        """Choose the node where the run is."""
        names = self._names()
        current = self._look.current
        self._choose(current if current in names else (names or [""])[0])

    def on_blur(self) -> None:
        """Choose no node any more."""
        self._choose("")

    def on_click(self, event: events.Click) -> None:
        """Choose the node under the mouse."""
        row, picture = self.row_at(event), self.picture
        if row is None or picture is None:
            return
        near = [name for name in self._names() if abs(picture.node_rows[name] - row) <= 1]
        if near:
            self._choose(min(near, key=lambda name: abs(picture.node_rows[name] - row)))

    def on_resize(self, event: events.Resize) -> None:
        """Draw for the new size."""
        self._draw()


def _step_line(point: Checkpoint, shown: int) -> Line:
    """Describe a step in a few words: its author, how it was decided, what it cost."""
    used = point.tokens_in + point.tokens_out
    facts = [sanitise_line(point.decision, _DECISION)] if point.decision is not None else []
    facts += [tokens(used)] if used else []
    facts += [duration(point.duration)] if point.duration >= _SHORTEST else []
    person = point.source == "human" or point.decision is not None
    role = "current" if point.step == shown else "human" if person else "plain"
    who = ours(f"{writer(point):<{_WRITER}}", role)
    return (Span(f"{point.step:>5}  ", "dim"), who, Span(f"  {' · '.join(facts)}", "dim"))


def _inside(session: ViewSession) -> tuple[str, str, str]:
    """Return the node with branches that runs or waits, and its progress: in full, and in short."""
    inside = session.view.inside
    known = inside.branches or inside.total
    if session.is_past or inside.step != session.view.progress.head + 1 or not known:
        return "", "", ""
    from hitl_tui.view.branches import counted, short_count

    return inside.node, counted(inside), short_count(inside)


def _about(graph: GraphInfo, width: int, room: int) -> tuple[Line, ...]:
    """Return the declarations of channels and nodes, as far as a pane alone on a high screen has room."""
    from hitl_tui.view.taint import contracts
    from hitl_tui.view.value_source import READ, declared_lines

    declared = declared_lines(graph, min(width, READ))[: max(room, 0)]
    return (*declared, *contracts(graph.nodes, room - len(declared)))


def _side_by_side(left: list[Line], right: list[Line]) -> list[Line]:
    """Return two columns, the left one as wide as a picture."""
    blank: Line = (Span(" " * _PICTURE),)
    count = max(len(left), len(right))
    left = [*left, *[blank] * (count - len(left))]
    right = [*right, *[()] * (count - len(right))]
    return [(*row, Span("  "), *other) for row, other in zip(left, right, strict=True)]


def _standing(session: ViewSession) -> str | None:
    """Return the node where the thread is: the one that failed or waits for a decision, else the next one."""
    view = session.view
    if view.error is not None:
        return view.error.node
    if session.request is not None:
        return session.request.node
    if view.progress.status == "completed":
        return END
    if view.progress.next_node is not None:
        return view.progress.next_node
    return next((point.node for point in reversed(view.checkpoints) if point.node), None)


def _came_next(session: ViewSession, step: int) -> str:
    """Return the author of the step after a past one of this thread, "" if the view doesn't know."""
    if session.shown is None or session.shown[0] != session.thread_id:
        return ""
    point = next((later for later in session.view.checkpoints if later.step == step + 1), None)
    point = point or session.step_view.following
    if point is None:
        return ""
    who = sanitise_line(writer(point), 40)
    return f"{sanitise_line(point.decision, 40)} by {who}" if point.decision is not None else who


def _decider(session: ViewSession) -> str:
    """Return who may decide; once there are votes, who may still vote."""
    request = session.request
    if request is None or not request.votes:
        return "you decide"
    from hitl_tui.view.card import yet_to_vote

    return f"{yet_to_vote(request)} decides"


def _is_breakpoint(session: ViewSession) -> bool:
    return session.request is not None and session.request.breakpoint


def _visits(checkpoints: tuple[Checkpoint, ...], until: int) -> dict[str, int]:
    counts: dict[str, int] = {}
    for point in checkpoints:
        if point.step <= until and point.source != "human":
            for node in nodes_of(point):
                counts[node] = counts.get(node, 0) + 1
    return counts
