"""Shows the costs of a thread as tables: by agent, by node and by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hitl_tui.engine.audit.costs import CostReport, ModelUseTotal
from hitl_tui.view.cells import cells
from hitl_tui.view.format import cost, duration
from hitl_tui.view.sanitise import sanitise_line
from hitl_tui.view.spans import Line, Role, Span, trusted

_NAME: Final = 28
_NOTHING: Final = ModelUseTotal()
UNKNOWN: Final = "unknown"
Row = tuple[str, ...]


def cost_lines(report: CostReport) -> tuple[Line, ...]:
    """Return all tables; one line if no model was called."""
    if not report.steps and not report:
        return ((trusted("no node has run yet", "dim"),),)
    agents = [
        (
            *map(_name, (line.agent, f"{line.provider}/{line.model}")),
            *_figures(
                ModelUseTotal(
                    line.calls, line.tokens_in, line.tokens_out, line.cost or 0.0, line.cost is not None
                )
            ),
        )
        for line in report
    ]
    nodes = [
        (_name(node.node), str(node.runs), duration(node.duration), *_figures(node.spent))
        for node in report.by_node()
    ]
    steps = [
        (str(step.step), _name(step.node), duration(step.duration), *_figures(step.spent))
        for step in report.steps
    ]
    if report.lost.calls:
        steps.append(("", "attempts without a step", "", *_figures(report.lost)))
    figures = ("calls", "input", "output", "cost")
    return (
        (Span("By agent", "title"),),
        *_table(("agent", "model", *figures), agents, 2, ("all", "", *_figures(report.total))),
        (),
        (Span("By node", "title"),),
        *_table(("node", "runs", "time", *figures), nodes, 1),
        (),
        (Span("By step", "title"),),
        *_table(("step", "node", "time", *figures), steps, 2),
    )


def _name(text: str) -> str:
    return sanitise_line(text, _NAME)


def _figures(spent: ModelUseTotal) -> Row:
    """Return calls, tokens in and out, and cost; an unknown price is never shown as 0."""
    if spent == _NOTHING:
        return "0", "", "", ""
    price = UNKNOWN if not spent.cost_known and spent.cost == 0 else cost(spent.cost, spent.cost_known)
    return f"{spent.calls:,}", f"{spent.tokens_in:,}", f"{spent.tokens_out:,}", price


def _table(head: Row, rows: Sequence[Row], texts: int, foot: Row | None = None) -> list[Line]:
    """Return rows with columns as wide as needed; the first `texts` aligned left, the rest right."""
    everything = [head, *rows, *([foot] if foot else [])]
    widths = [max(map(cells, column)) for column in zip(*everything, strict=True)]

    def line(row: Row, role: Role) -> Line:
        parts = []
        for place, (cell, width) in enumerate(zip(row, widths, strict=True)):
            room = " " * (width - cells(cell))
            parts.append(cell + room if place < texts else room + cell)
        return (trusted(f"  {'  '.join(parts)}".rstrip(), role),)

    return [line(head, "dim"), *(line(row, "value") for row in rows), *([line(foot, "name")] if foot else [])]
