"""A channel as data, free of functions: what a screen shows and a digest is made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hitl_tui.engine.log.records import Visibility


class ChannelInfo(msgspec.Struct, frozen=True):
    """A channel as declared; `type` is a short word such as "list", "text" or "number".

    `default` is what it holds before any node has written, null for a private channel: a graph is shown and
    exported as it is.
    """

    name: str
    type: str
    reducer: str
    visibility: Visibility
    description: str
    schema: Mapping[str, Any]
    default: Any = None
