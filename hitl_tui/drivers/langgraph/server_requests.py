"""Requests to a server of LangGraph: what their failures mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hitl_tui.errors import ServerBusy

R = TypeVar("R")


def busy() -> ServerBusy:
    """The error for a thread that the server runs already."""
    return ServerBusy(
        "the server runs this thread already",
        "wait for that run, end it or roll it back: going on asks which, as does --on-busy",
    )


@contextmanager
def telling_busy() -> Iterator[None]:
    """Tell the refusal of a server that runs the thread already as what it is."""
    try:
        yield
    except Exception as error:
        if status_of(error) != 409:
            raise
        raise busy() from None


def again_if_cut(ask: Callable[[], R]) -> R:
    """What a server answers, asked once more where the connection was lost: it closes idle ones."""
    try:
        return ask()
    except Exception as error:
        if not is_cut(error):
            raise
        return ask()


def is_cut(error: Exception) -> bool:
    """Whether the connection was lost, and not what was asked for refused."""
    import httpx

    return isinstance(error, (httpx.TransportError, OSError))


def status_of(error: Exception) -> int | None:
    """The HTTP status of an error of the SDK, None where it has none."""
    return getattr(getattr(error, "response", None), "status_code", None)


def failed_there(error: Exception) -> bool:
    """Whether the server, or the graph's own code in it, failed on what was asked."""
    return (status_of(error) or 0) >= 500
