"""Shows a channel's value as text, diff, JSON or blame, and prepares it for editing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from hitl_tui.engine.graph.description import GraphInfo
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.view.format import inline, kind, preview_line, read_json
from hitl_tui.view.rows import continued, wrap_line, wrap_spans
from hitl_tui.view.sanitise import sanitise, sanitise_line
from hitl_tui.view.session import Versions, ViewSession, weight
from hitl_tui.view.spans import Line, Span, plain_text, trusted, untrusted
from hitl_tui.view.step_view import StepView
from hitl_tui.view.value_lines import read_lines, value_lines

if TYPE_CHECKING:
    from hitl_tui.view.revision import Revision

Mode = Literal["text", "diff", "json", "blame"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


T = TypeVar("T")
READ: Final = 78
"""Width of a row of prose in cells."""
_INLINE_LIMIT: Final = 20_000
_NAME: Final = 24
_BLAME_VERSIONS: Final = 50
_SHORT: Final = 40
"""Most characters of a value that the table of channels shows whole."""
_LEAST: Final = 4
"""Fewest rows in which another value is shown."""
_READ_ROWS: Final = 4
"""Most rows of a value that a node is about to read."""
_DEFAULT: Final = 40
_WORDS: Final = 400
"""Most characters of a channel's description."""
_VERSION: Final = 120
"""Width of a version's value in cells."""


class ValueText(msgspec.Struct, frozen=True):
    """Lines of a value; with `revision`, they show the changes since its last version.

    Args:
        gutter: what precedes each line; () for nothing.
        note: a note below them.
        prose: whether it is a text, which is shown no wider than is easy to read.
        heads: the titles of the two versions of a revision, shown side by side.
        since: the version it is compared with, if not the previous one.
        rich: the same lines with the roles of their words, if they have any.
        whole: the value itself if it is a text; of two versions the newer one.
    """

    channel: str
    mode: Mode
    lines: Sequence[str]
    revision: Revision | None = None
    gutter: Sequence[str] = ()
    note: Line = ()
    prose: bool = False
    heads: tuple[str, str] = ("before", "after")
    since: str = ""
    rich: Sequence[Line] = ()
    whole: str = ""


def lines_text(lines: Sequence[Line], mode: Mode) -> ValueText:
    """Return a `ValueText` of lines that are not a channel's value."""
    return ValueText("", mode, tuple(map(plain_text, lines)), rich=lines)


async def value_text(session: ViewSession, channel: str, mode: Mode, reveal: str, back: int = 0) -> ValueText:
    """Return the value of a channel at the shown step; heavy work is done in a thread.

    Args:
        back: the number of versions before the previous one to compare with.
        reveal: the key that reveals a private value.
    """
    step = session.step_view
    value = step.values.get(channel)
    what = kind(value)
    if what == "private":
        seen = session.revealed
        if seen is not None and (seen.channel, seen.step) == (channel, step.step):
            revealed: Line = (trusted("private: shown until you select something else", "warning"),)
            return ValueText(channel, mode, value_lines(seen.value, "text"), note=revealed)
        hidden = (Span(f"private, so not shown; {reveal} reveals it", "dim"),)
        return ValueText(channel, mode, ("[private]",), note=hidden)
    shown = await _shown(session, channel, mode, value, back)
    return replace(shown, whole=value) if isinstance(value, str) else shown


async def _shown(session: ViewSession, channel: str, mode: Mode, value: Any, back: int) -> ValueText:
    prose, step = isinstance(value, str), session.step_view
    if mode == "blame":
        return await _blame(session, channel)
    if mode == "diff":
        versions = await session.versions(channel, step.step, 2 + back)
        if len(versions.found) > 1:
            compared = await _diff(session, channel, versions, value)
            previous = versions.found[-1][0]
            return replace(compared, since=f"since step {previous.step}") if back else compared
        note = _written(versions)
        first = await _made(session, "first", (value,), lambda: value_lines(value, "text"))
        return ValueText(channel, mode, first, note=note, prose=prose)
    if mode == "json":
        lines = await _made(session, "json", (value,), lambda: value_lines(value, "json"))
        return ValueText(channel, mode, lines)
    lines, gutter = await _made(session, "text", (value,), lambda: read_lines(value, session.read))
    session.read = lines
    return ValueText(channel, mode, lines, gutter=gutter, prose=prose)


async def _diff(session: ViewSession, channel: str, versions: Versions, value: Any) -> ValueText:
    from hitl_tui.view.revision import revision

    (newest, who, _), (previous, writer, before) = versions.found[0], versions.found[-1]
    rows = await _made(session, "diff", (before, value), lambda: revision(before, value))
    note = (
        trusted(f"{rows.summary() or 'the same'} since step {previous.step} · by ", "dim"),
        untrusted(who, "name"),
        trusted(f" at step {newest.step}", "dim"),
    )
    text = revised(channel, rows, note, prose=isinstance(value, str))
    names = (sanitise_line(name, _NAME) for name in (writer, who))
    heads = [f"step {point.step}, by {name}" for point, name in zip((previous, newest), names, strict=True)]
    return replace(text, heads=(heads[0], heads[1]))


def revised(channel: str, rows: Revision, note: Line = (), *, prose: bool) -> ValueText:
    """Return a value with its changes."""
    return ValueText(channel, "diff", rows.texts(marked=True), rows, note=note, prose=prose)


async def _blame(session: ViewSession, channel: str) -> ValueText:
    from hitl_tui.view.blame import blame

    fetched = await session.versions(channel, session.step_view.step, _BLAME_VERSIONS)
    versions = [(point, value) for point, _, value in reversed(fetched.found)]
    older = f"steps before {fetched.since} were not checked" if fetched.since else ""
    note: Line = (trusted(older, "dim"),) if older else ()
    if not versions:
        return ValueText(channel, "blame", (), note=note or (trusted("not written yet", "dim"),))
    values = tuple(value for _, value in versions)
    rows = await _made(session, "blame", values, lambda: blame(versions))
    gutter = tuple(f"{row.step:>3} {sanitise_line(row.who, 10):<10} │ " for row in rows)
    return ValueText(channel, "blame", tuple(row.text for row in rows), gutter=gutter, note=note)


def _written(versions: Versions) -> Line:
    """Describe who made a value that has no earlier version."""
    since = versions.since
    if not versions.found:
        unchanged = f"unchanged since step {since - 1} at least" if since else "unchanged so far"
        return (trusted(unchanged, "dim"),)
    point, who, _ = versions.found[0]
    written = "written by " if since else "first written by "
    return (trusted(written, "dim"), untrusted(who, "name"), trusted(f" at step {point.step}", "dim"))


async def version_lines(session: ViewSession, channel: str, limit: int) -> tuple[Line, ...]:
    """Return a channel's versions up to the shown step, newest first, a line each; () for fewer than two."""
    fetched = await session.versions(channel, session.step_view.step, limit)
    if len(fetched.found) < 2 or any(kind(value) == "private" for _, _, value in fetched.found):
        return ()
    room = max(len(sanitise_line(who, _NAME)) for _, who, _ in fetched.found)
    head: Line = (trusted(f"step  {'by':<{room}}  versions, newest first", "dim"),)
    return (head, *(_version_line(point.step, who, value, room) for point, who, value in fetched.found))


def read_values(step: StepView, reads: Sequence[str], width: int) -> tuple[Line, ...]:
    """Return the values that a node is about to read, channel by channel; () for nothing."""
    rows: list[Line] = []
    for row in step.rows:
        if "*" in reads or row.name in reads:
            name = Span(f"{row.name}  ", "name")
            rows += islice(wrap_spans((name, *row.value), width), _READ_ROWS)
    return ((), (trusted("── reads", "dim"),), *rows) if rows else ()


def declared_lines(graph: GraphInfo, width: int) -> tuple[Line, ...]:
    """Describe the channels of a graph: what each is for, and which nodes write and read it."""
    rows: list[Line] = [(), (trusted("── the channels as declared", "dim"),)]
    for channel in graph.channels:
        begins = "private" if channel.visibility == "private" else inline(channel.default, _DEFAULT)
        typed = f"{channel.type}, " if channel.type else ""
        facts = f"{typed}begins as {begins}. {_touched(graph, channel.name)}."
        words = f"{channel.description}. {facts}" if channel.description else facts
        name = trusted(f"{sanitise_line(channel.name, _NAME)}  ", "name")
        rows += wrap_spans((name, untrusted(words, "plain", _WORDS)), width)
    return tuple(rows) if graph.channels else ()


def _touched(graph: GraphInfo, channel: str) -> str:
    """Describe which nodes write and read a channel."""
    writers = [node.name for node in graph.nodes if {"*", channel} & set(node.writes)]
    readers = [node.name for node in graph.nodes if {"*", channel} & set(node.reads)]
    every = len(graph.nodes)

    def names(nodes: list[str]) -> str:
        if len(nodes) == every > 1:
            return "every node"
        return ", ".join(nodes) or "no node"

    return f"{names(writers)} writes it, {names(readers)} reads it"


def other_values(step: StepView, channel: str, width: int, room: int) -> tuple[Line, ...]:
    """Return values of other channels that their rows cut, each below a rule, as far as there is room."""
    rows: list[Line] = []
    for row in step.rows:
        value = step.values.get(row.name)
        whole = row.kind not in ("list", "object") and len(row.preview) < _SHORT
        if whole or row.name == channel or row.visibility == "private" or weight(value) > _INLINE_LIMIT:
            continue
        if len(rows) + _LEAST > room:
            break
        lines, gutter = read_lines(value)
        rule = "─" * max(width - len(row.name) - 4, 0)
        rows += [(), (trusted("── ", "dim"), untrusted(row.name, "name"), trusted(f" {rule}", "dim"))]
        for number, line in enumerate(lines):
            lead = gutter[number] if gutter else ""
            for part in wrap_line(line, width - len(lead)):
                rows.append((trusted(lead, "dim"), untrusted(part)))
                lead = continued(lead)
    return tuple(rows[: max(room, 0)])


def _version_line(step: int, who: str, value: Any, room: int) -> Line:
    name = sanitise_line(who, _NAME)
    return (
        trusted(f"{step:>4}  ", "dim"),
        untrusted(f"{name:<{room}}  ", "name"),
        *preview_line(value, _VERSION),
    )


async def _made(session: ViewSession, what: str, of: tuple[object, ...], make: Callable[[], T]) -> T:
    """Compute a result from values: in a thread for large values, and once for the same ones."""
    if not any(isinstance(value, str | list | dict) and len(value) > _INLINE_LIMIT for value in of):
        return make()
    result: T | None = session.made.find(what, of)
    if result is None:
        result = await asyncio.to_thread(make)
        session.made.keep(what, of, result)
    return result


class EditText(msgspec.Struct, frozen=True):
    """The initial text; `as_json` says how to read it back, `why` why it is not shown as text."""

    text: str
    as_json: bool
    why: str = ""


def draft_of(value: Any, channel_type: str) -> EditText:
    """Return the text to edit for a value: a text as it is, anything else as JSON.

    A text with characters that could control a terminal is also edited as JSON, which escapes them. A
    private value is not shown here either: the person writes a new one.
    """
    if value is PRIVATE:
        if channel_type in {"text", ""}:
            return EditText("", as_json=False, why="private: write a new text")
        return EditText("", as_json=True, why="private: write a new value, as JSON")
    plain = isinstance(value, str) or (value is None and channel_type == "text")
    if plain:
        text = value or ""
        if sanitise(text) == text:
            return EditText(text, as_json=False)
        return EditText(json.dumps(text), as_json=True, why="as JSON, because it has control characters")
    text = json.dumps(value, indent=2, ensure_ascii=False)
    if sanitise(text) != text:
        text = json.dumps(value, indent=2)
    return EditText(text, as_json=True)


def read_draft(text: str, *, as_json: bool) -> Any:
    """Return the value of an edited text; raises `NotJson`."""
    return read_json(text) if as_json else text
