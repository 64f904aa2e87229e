"""One step as the panes show it: channels with their marks, and the reducer lens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.log.events import PRIVATE, AppliedUpdate
from hitl_tui.engine.log.outcomes import BranchOutcome
from hitl_tui.engine.log.records import Checkpoint, LedgerEntry, Visibility
from hitl_tui.engine.state.channel import ChannelInfo
from hitl_tui.view.format import Kind, is_set_by_person, kind, preview_line, writer
from hitl_tui.view.inside import calls_of_failed, calls_of_step
from hitl_tui.view.lens import lens
from hitl_tui.view.run_view import RunView
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.spans import Line, plain_text, trusted, untrusted

PREVIEW_LIMIT = 240
_WHY = 400

Mark = Literal["+", "≠", "=", "✎", " "]


class ChannelRow(msgspec.Struct, frozen=True):
    """A channel at a step: the step's effect on it (`mark`, `word`) and its value on one line.

    `tainted` means that it holds untrusted data.
    """

    name: str
    mark: Mark
    word: str
    reducer: str
    kind: Kind
    preview: str
    value: Line
    visibility: Visibility
    tainted: bool = False


class StepView(msgspec.Struct, frozen=True):
    """A step and everything that the panes show of it; `checkpoint` is None before the first step.

    `calls` are the tools that its agents called, `failed_calls` those of failed attempts. `why` is the
    node's own explanation, such as why the run continues; "" for none. `agent_changes` are changes that
    people made to agents before the next step. For a step older than the loaded ones, `visits` counts how
    often each node had run (otherwise None), and `following` is the checkpoint after it.
    """

    step: int
    checkpoint: Checkpoint | None
    is_head: bool
    values: Mapping[str, Any]
    updates: tuple[AppliedUpdate, ...]
    rows: tuple[ChannelRow, ...]
    why: str
    lens: tuple[Line, ...]
    calls: tuple[Line, ...] = ()
    failed_calls: tuple[Line, ...] = ()
    agent_changes: tuple[str, ...] = ()
    visits: Mapping[str, int] | None = None
    following: Checkpoint | None = None


def head_step(view: RunView) -> StepView:
    """Return the newest step."""
    head = view.head
    return _step_view(view, head, view.progress.head, view.values, view.head_updates)


def past_step(
    view: RunView,
    checkpoint: Checkpoint,
    values: Mapping[str, Any],
    updates: Sequence[AppliedUpdate],
    *,
    own: bool = True,
) -> StepView:
    """Return a committed step from the driver's data; `own` means that it belongs to the view's thread."""
    step = _step_view(view, checkpoint, checkpoint.step, values, updates)
    return step if own else replace(step, agent_changes=())


def _step_view(
    view: RunView,
    checkpoint: Checkpoint | None,
    step: int,
    values: Mapping[str, Any],
    updates: Sequence[AppliedUpdate],
) -> StepView:
    written: dict[str, list[AppliedUpdate]] = {}
    for update in updates:
        written.setdefault(update.channel, []).append(update)
    declared = {channel.name: channel for channel in view.graph.channels}
    names = [*declared, *(name for name in values if name not in declared)]
    tainted = {taint.channel for taint in checkpoint.tainted} if checkpoint else set()
    branches = checkpoint.branches if checkpoint else ()
    rows = tuple(
        _row(name, declared.get(name), values.get(name), written.get(name, ()), tainted=name in tainted)
        for name in names
    )
    return StepView(
        step=step,
        checkpoint=checkpoint,
        is_head=step == view.progress.head,
        values=values,
        updates=tuple(updates),
        rows=rows,
        why=sanitise_line(checkpoint.text, _WHY) if checkpoint and checkpoint.text else "",
        calls=calls_of_step(checkpoint) if checkpoint and checkpoint.calls else (),
        failed_calls=calls_of_failed(checkpoint) if checkpoint and checkpoint.calls else (),
        lens=(*_decided(checkpoint, updates), *_lens(updates, branches)),
        agent_changes=_agent_changes(view.ledger, step),
    )


def _decided(checkpoint: Checkpoint | None, updates: Sequence[AppliedUpdate]) -> tuple[Line, ...]:
    """Return what a person decided and why, unless a channel that they set says so."""
    if checkpoint is None or checkpoint.decision is None or any(map(is_set_by_person, updates)):
        return ()
    title: Line = (untrusted(f"{checkpoint.decision} by {writer(checkpoint)}", "human"),)
    note = checkpoint.note
    return (title, (trusted("  note  ", "dim"), untrusted(note, "human", _WHY))) if note else (title,)


def _row(
    name: str, info: ChannelInfo | None, value: Any, updates: Sequence[AppliedUpdate], *, tainted: bool
) -> ChannelRow:
    private = (info is not None and info.visibility == "private") or value is PRIVATE
    shown = PRIVATE if private else value
    line = preview_line(shown, PREVIEW_LIMIT)
    mark, word = _mark(updates)
    return ChannelRow(
        name=sanitise(name, multiline=False),
        mark=mark,
        word=word,
        reducer=sanitise(info.reducer, multiline=False) if info else "",
        kind=kind(shown),
        preview=plain_text(line),
        value=line,
        visibility="private" if private else "public",
        tainted=tainted,
    )


def _mark(updates: Sequence[AppliedUpdate]) -> tuple[Mark, str]:
    """Return the combined effect of a step's updates on a channel."""
    if not updates:
        return " ", "untouched"
    if any(map(is_set_by_person, updates)):
        return "✎", "set by hand"
    if not any(update.changed for update in updates):
        return "=", "written, same value"
    before, after = updates[0].before, updates[-1].after
    if before is None:
        return "+", "new"
    grew = kind(before) == kind(after) and kind(after) in ("list", "object") and len(after) > len(before)
    return ("+", "grew") if grew else ("≠", "changed")


def _lens(updates: Sequence[AppliedUpdate], branches: Sequence[BranchOutcome]) -> tuple[Line, ...]:
    if not branches:
        return lens(updates)
    from hitl_tui.view.branches import branch_lens

    return branch_lens(updates, branches)


def _agent_changes(ledger: Sequence[LedgerEntry], step: int) -> tuple[str, ...]:
    if not any(entry.kind == "agent" for entry in ledger):
        return ()
    from hitl_tui.view.agents import change_notes

    return change_notes(ledger, step)
