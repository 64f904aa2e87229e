"""What an agent node asks: a text with the values of channels in it (SPEC 8)."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Sequence
from typing import Any

from hitl_tui.engine.channels.channel import RUN_INPUTS
from hitl_tui.engine.channels.state import WorkflowState
from hitl_tui.engine.nodes.prompt_block import state_block
from hitl_tui.errors import HitlError
from hitl_tui.loading import positions
from hitl_tui.loading.graphfile.context import Context

STATE = "workflow_state"
ITEM = "item"
_FENCE = "```"
_LETTERS = f"{string.ascii_letters}{string.digits}_"

_PLACEHOLDER = re.compile(r"\{\{([A-Za-z][\w.-]*)\}\}|\{([A-Za-z][\w.-]*)\}")


class Prompt:
    """A template; `{channel}` stands for a value, `{workflow_state}` for the block of all that is read.

    Other braces stay as they are, so that a prompt can show JSON.
    """

    def __init__(self, template: str, *, of_map: bool = False) -> None:
        self._template = template
        self._of_map = of_map

    @property
    def names(self) -> list[str]:
        """The channels and leaves it shows by name, in order."""
        found = (match[2] for match in _PLACEHOLDER.finditer(self._template))
        return [name for name in found if name and name != STATE and not self._is_item(name)]

    def _is_item(self, name: str) -> bool:
        return self._of_map and name.partition(".")[0] == ITEM

    def render(self, state: WorkflowState, item: Any = None) -> str:
        """The prompt on a state; a value that looks like a placeholder is not read as one."""

        def fill(match: re.Match[str]) -> str:
            if match[1]:
                return f"{{{match[1]}}}"
            if self._is_item(match[2]):
                return _as_text(_leaf(item, match[2]))
            return state_block(state) if match[2] == STATE else _as_text(state[match[2]])

        return _PLACEHOLDER.sub(fill, self._template)


def _leaf(item: Any, name: str) -> Any:
    for part in name.split(".")[1:]:
        try:
            item = item[int(part)] if isinstance(item, list) else item[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise HitlError(f"the item has nothing at {{{name}}}", "look at the items of the map") from None
    return item


def build_prompt(
    context: Context, path: positions.Path, template: str, reads: Sequence[str], *, of_map: bool = False
) -> Prompt:
    """The prompt of a node, with every placeholder checked against what the node reads.

    Args:
        of_map: `{item}` is a branch's item, `{item.key}` a part of it.
    """
    private = frozenset(name for name, channel in context.bound.items() if channel.visibility == "private")
    prompt = Prompt(template, of_map=of_map)
    for name in dict.fromkeys(prompt.names):
        channel = name.partition(".")[0]
        if channel in RUN_INPUTS or not context.check_channel(path, channel):
            continue
        if not ({name, channel} & set(reads) or ("*" in reads and channel not in private)):
            context.problems.add(
                path, f"it shows {{{name}}}, which is not among the node's reads", f"add {channel!r} to reads"
            )
    return prompt


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else _as_json(value)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def read_json(reply: str) -> Any:
    """The JSON of a model's reply, out of its code fence where it has one; raises `ValueError`."""
    head, _, body = reply.strip().partition("\n")
    label = head.removeprefix(_FENCE)
    fenced = label != head and body.endswith(_FENCE) and not label.strip(_LETTERS).strip()
    try:
        return json.loads(body.removesuffix(_FENCE) if fenced else reply)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
