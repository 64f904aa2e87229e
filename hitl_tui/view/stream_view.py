"""What the newest attempt of a node writes or wrote while running; a part of the fold in folding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from hitl_tui.engine.log import events as ev

STREAM_TAIL: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class StreamView:
    """What the newest attempt of a node writes or wrote while running.

    `text` is the raw tail of what was streamed (sanitise before showing), `length` counts all of
    it, so that a screen can append what is new; `serial` is the number of the event that began it.
    """

    serial: int = 0
    node: str = ""
    agent: str = ""
    model: str = ""
    text: str = ""
    length: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None
    calls: int = 0
    started: int | None = None
    duration: int | None = None
    live: bool = False


def with_text(stream: StreamView, event: ev.TextStreamed) -> tuple[StreamView, str]:
    """The stream after a piece of text, but for the text itself, which comes beside it."""
    text = event.text
    if stream.agent != event.agent:
        # Two agents of one node would otherwise run into one another.
        text = f"\n{text}" if stream.length and stream.agent else text
        stream = replace(stream, agent=event.agent)
    return replace(stream, node=event.node, length=stream.length + len(text)), text


def with_line(stream: StreamView, event: ev.ToolCalled, line: str) -> tuple[StreamView, str]:
    """The same with a line of its own between what the agent says before and after it."""
    line = f"\n{line}\n" if stream.length and stream.agent else f"{line}\n"
    return replace(stream, node=event.node, agent=event.agent, length=stream.length + len(line)), line


def with_call(stream: StreamView, event: ev.ModelCalled) -> StreamView:
    """The stream with what a model call used."""
    known = event.cost is not None and (stream.cost is not None or not stream.calls)
    return replace(
        stream,
        agent=(event.agent or stream.agent) if not event.path else "",
        model=event.model,
        tokens_in=stream.tokens_in + event.tokens_in,
        tokens_out=stream.tokens_out + event.tokens_out,
        cost=(stream.cost or 0.0) + (event.cost or 0.0) if known else None,
        calls=stream.calls + 1,
    )
