"""What an agent sees of the state: one block, apart from its chat history (SPEC 8)."""

from __future__ import annotations

from html import escape

import msgspec

from hitl_tui.engine.channels.state import WorkflowState

_encode = msgspec.json.Encoder().encode
# JSON means the same with these escaped, and no text in it can then open or close a tag.
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def state_block(state: WorkflowState) -> str:
    """The channels that a node reads as a block for a model's prompt, one line each.

    Channels named in `reads`, dotted entries as they are named; of undeclared reads and "*" the public
    ones: a private channel goes to a model by name only.  Putting a channel in the block reads it.
    """
    lines = [_line(state, name) for name in _named(state)]
    return "\n".join(("<workflow_state>", *lines, "</workflow_state>"))


def _named(state: WorkflowState) -> list[str]:
    reads = ("*",) if state.reads is None else state.reads
    names: dict[str, None] = {}
    for entry in reads:
        if entry == "*":
            names.update(dict.fromkeys(name for name in state if state.visibility(name) == "public"))
        else:
            names[entry] = None
    return list(names)


def _line(state: WorkflowState, name: str) -> str:
    body = _encode(state[name]).decode().translate(_ESCAPES)
    channel = name.partition(".")[0]
    tainted = "true" if state.is_tainted(channel) else "false"
    return (
        f'<channel name="{escape(name)}" visibility="{state.visibility(channel)}" tainted="{tainted}">'
        f"{body}</channel>"
    )
