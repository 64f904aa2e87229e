"""Shows the differences between two states as lines, channel by channel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from hitl_tui.drivers.protocol import Driver
from hitl_tui.engine.log.events import PRIVATE
from hitl_tui.engine.log.units import about
from hitl_tui.engine.state.canonical import equal
from hitl_tui.view.format import PRIVATE_TEXT
from hitl_tui.view.leaves import ABSENT, Leaf, changed_leaves, has_leaves, leaf_line
from hitl_tui.view.lines import on_terminal
from hitl_tui.view.revision import Pair, RevisedLine, Revision, revision
from hitl_tui.view.spans import Line, Role, Span, plain_text, untrusted
from hitl_tui.view.value_lines import value_lines
from hitl_tui.view.word_diff import Fragment, cut_unchanged, fragment_spans

Change = Literal["same", "changed", "added", "removed", "private"]
MARKS: Final[dict[Change, str]] = {"same": "=", "changed": "≠", "added": "+", "removed": "-", "private": "·"}


class Compared(msgspec.Struct, frozen=True):
    """A channel in two states; `before` or `after` is None if that state lacks it."""

    channel: Annotated[str, about("The channel.")]
    change: Annotated[Change, about("How it differs; a private one is named, not compared.")]
    before: Annotated[Any, about("Its value in `a`.")]
    after: Annotated[Any, about("Its value in `b`.")]


def compare_states(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Compared, ...]:
    """Compare the channels of two states; private ones are named, not compared."""
    rows = []
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        change: Change
        if old is PRIVATE or new is PRIVATE:
            rows.append(Compared(name, "private", PRIVATE, PRIVATE))
            continue
        if name not in before or name not in after:
            change = "added" if name in after else "removed"
        else:
            change = "same" if equal(old, new) else "changed"
        rows.append(Compared(name, change, old, new))
    return tuple(rows)


def side_by_side(row: Compared) -> tuple[Pair, ...]:
    """Return the two values of a channel side by side."""
    if row.change == "private":
        hidden = (Fragment("same", PRIVATE_TEXT),)
        return (Pair(hidden, hidden, "same"),)
    if row.change == "added":
        return tuple(
            Pair(None, (Fragment("added", line),), "added") for line in value_lines(row.after, "text")
        )
    if row.change == "removed":
        return tuple(
            Pair((Fragment("removed", line),), None, "removed") for line in value_lines(row.before, "text")
        )
    return tuple(revision(row.before, row.after).pairs)


_CONTEXT: Final = 2
_MOST: Final = 400
_LOOKED_AT: Final = 5_000
_SIGNS: Final = {"same": "    ", "added": "  + ", "removed": "  - ", "changed": "  ~ ", "moved": "    "}
_ROLES: Final[dict[str, Role]] = {
    "same": "dim", "added": "added", "removed": "removed", "changed": "accent", "moved": "human",
}  # fmt: skip
_AROUND: Final = 80
"""Characters of a long line that are shown on each side of a change."""
_CLOSE: Final = 40
_LEAVES: Final = 20
_LONG_TEXT: Final = 60
_LONGEST: Final = 2_000
"""Most characters of a line that was added or removed as a whole."""


def near_changes(lines: Revision, context: int) -> tuple[list[RevisedLine | None], int]:
    """Return the changed lines with some context, None for each gap; and how many more there are."""
    near = lines.changed
    beyond = len(near) - _LOOKED_AT
    near = near[:_LOOKED_AT]
    wanted = sorted({at + by for at in near for by in range(-context, context + 1)} & set(range(len(lines))))
    shown: list[RevisedLine | None] = []
    last = -1
    for at in wanted[:_MOST]:
        if at > last + 1:
            shown.append(None)
        shown.append(lines[at])
        last = at
    return shown, max(0, len(wanted) - _MOST) + max(0, beyond)


def diff_lines(rows: Sequence[Compared]) -> tuple[Line, ...]:
    """Return the differences in sanitised lines; () if there are none.  Private channels are only named."""
    return tuple(line for row in rows if row.change != "same" for line in _channel(row))


def _channel(row: Compared) -> Iterator[Line]:
    """Return lines about a channel: its name and how it differs, then the changed lines."""
    name = untrusted(row.channel, "name")
    if row.change == "private":
        yield name, Span(": [private], not compared", "dim")
        return
    yield name, Span(f": {row.change}", "dim")
    if has_leaves(row.before, row.after):
        leaves = changed_leaves(row.before, row.after, _LEAVES)
        if not leaves.more:
            for leaf in leaves.first:
                yield from _leaf(leaf)
            return
    yield from changes(revision(row.before, row.after))


def _leaf(leaf: Leaf) -> Iterator[Line]:
    """Return lines about a changed part: one line, or for long texts the changed lines below its path."""
    sign = "added" if leaf.before is ABSENT else "removed" if leaf.after is ABSENT else "changed"
    texts = isinstance(leaf.before, str) and isinstance(leaf.after, str)
    if texts and max(len(leaf.before), len(leaf.after)) > _LONG_TEXT:
        yield Span(_SIGNS[sign], _ROLES[sign]), untrusted(leaf.path, "name"), Span(": changed", "dim")
        yield from changes(revision(leaf.before, leaf.after))
        return
    yield Span(_SIGNS[sign], _ROLES[sign]), *leaf_line(leaf, signed=False)


def changes(lines: Revision, *, marked: bool = True) -> Iterator[Line]:
    """Return the changed lines with some context, cut if too many; `marked` as for `fragment_spans`."""
    shown, left = near_changes(lines, _CONTEXT)
    for line in shown:
        if line is None:
            yield (Span(f"{_SIGNS['same']}…", "dim"),)
        else:
            yield _marked_line(line, _AROUND, _LONGEST, marked=marked)
    if left:
        yield (Span(f"{_SIGNS['same']}… {left:,} more lines", "dim"),)


def excerpt(lines: Revision, most: int, *, marked: bool) -> tuple[Line, ...]:
    """Return the first changes with a few words around each, for narrow places.

    Args:
        most: the maximum number of lines.
        marked: as for `fragment_spans`.
    """
    shown = [line for line in near_changes(lines, 0)[0] if line is not None and line.text.strip()]
    rows = [_marked_line(line, _CLOSE, 4 * _CLOSE, marked=marked) for line in shown[:most]]
    if len(shown) > most:
        rows[-1] = (Span(f"{_SIGNS['same']}… {len(shown) - most + 1:,} more", "dim"),)
    return tuple((Span(line[0].text[2:], line[0].role), *line[1:]) for line in rows)


def _marked_line(line: RevisedLine, around: int, longest: int, *, marked: bool) -> Line:
    """Return a line after its sign; only the words near a change of a long line."""
    sign = Span(_SIGNS[line.kind], _ROLES[line.kind])
    if line.kind == "changed":
        return sign, *fragment_spans(cut_unchanged(line.parts, around), marked=marked)
    text, most = line.text, 2 * around if line.kind == "same" else longest
    if len(text) > most:
        text = f"{text[:most]}… {len(text) - most:,} more characters"
    return (Span(sign.text + text, sign.role),)


def diff_text(rows: Sequence[Compared]) -> list[str]:
    """Return the differences as lines of text; content is never at the beginning of a line."""
    lines = in_rows(diff_lines(rows))
    equal = all(row.change in ("same", "private") for row in rows)
    return [*lines, "no difference"] if equal else lines


def in_rows(lines: Iterable[Line]) -> list[str]:
    """Wrap lines of a difference to the width of a terminal, with a hanging indent."""
    shown: list[str] = []
    for text in map(plain_text, lines):
        sign = text[: len(_SIGNS["same"])] if text.startswith(" ") else ""
        shown += (sign + row for row in on_terminal(text.removeprefix(sign), len(sign)))
    return shown


async def changed_since(driver: Driver, step: int, now: int) -> str:
    """Return how channels changed since a step, for a person who decided about that step."""
    rows = await changed_rows(driver, step, now)
    return "\n".join((f"changed since step {step}:", *diff_text(rows))) if rows else ""


async def changed_rows(driver: Driver, step: int, now: int) -> tuple[Compared, ...]:
    """Return the channels at a step beside those at a newer one; () if there is no newer step."""
    if not 0 <= step < now:
        return ()
    return compare_states(await driver.state_at(step), await driver.state_at(now))
