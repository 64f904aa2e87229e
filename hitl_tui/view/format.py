"""Values, amounts and times as a person reads them."""

from __future__ import annotations

from typing import Any, Literal

from hitl_tui.view.spans import Line

Kind = Literal["null", "bool", "number", "text", "list", "object", "private", "other"]


def kind(value: Any) -> Kind:
    """What a value is, in one word."""
    raise NotImplementedError


def size(value: Any) -> str:
    """How large a value is: "list 4", "text 612", "3 keys"; "" for what has no size."""
    raise NotImplementedError


def preview_line(value: Any, limit: int) -> Line:
    """`preview` as spans: the size dim, the value itself with role value."""
    raise NotImplementedError


def preview(value: Any, limit: int = 80) -> str:
    """A value on one line of about `limit` cells, at a cost independent of its size."""
    raise NotImplementedError


def tokens(n: int) -> str:
    """ "214 tok", "1.2k tok", "3.4M tok"."""
    raise NotImplementedError


def cost(usd: float, known: bool) -> str:
    """ "$0.0123"; "≥ $0.0123" where only a part is known, "unknown" where nothing is."""
    raise NotImplementedError


def duration(us: int) -> str:
    """ "0.4 s", "8.4 s", "2m 05s", "1h 02m" of microseconds."""
    raise NotImplementedError


def ago(at: int, now: int) -> str:
    """ "just now", "5 m ago", "3 d ago"."""
    raise NotImplementedError


def clock(at: int, offset_minutes: int = 0) -> str:
    """ "14:03:59" of microseconds since the epoch, in a zone given by its offset from UTC."""
    raise NotImplementedError
