"""Requests to a LangGraph server, with readable errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from hitl_tui.config import SERVER_HEADERS
from hitl_tui.errors import ServerBusy, ServerLost, ServerRefused

R = TypeVar("R")

_HINTS: Final = {
    401: f"set LANGGRAPH_API_KEY, or {SERVER_HEADERS}",
    403: f"set LANGGRAPH_API_KEY, or {SERVER_HEADERS}",
    429: "too many requests: try again later",
}
_OTHER_KIND: Final = "it may be of a kind or version that takes this otherwise, or not at all"
_ITS_LOG: Final = "its log says why"
_LONGEST: Final = 300
"""Characters of what a server says that are told."""


class Requests:
    """Makes the SDK's requests and turns their failures into readable errors.

    Args:
        http: the SDK's HTTP client.

    Every request may raise `ServerRefused` or `ServerLost`.
    """

    def __init__(self, http: Any) -> None:
        self._http = http

    def __getattr__(self, name: str) -> Any:
        ask = getattr(self._http, name)

        def call(*arguments: Any, **options: Any) -> Any:
            with _readable_errors():
                return ask(*arguments, **options)

        def stream(*arguments: Any, **options: Any) -> Iterator[Any]:
            with _readable_errors():
                yield from ask(*arguments, **options)

        return stream if name == "stream" else call


def with_readable_errors(client: Any) -> Any:
    """Make an SDK client raise readable errors."""
    for part in (client.assistants, client.threads, client.runs, client.store):
        part.http = Requests(part.http)
    client.http = Requests(client.http)
    return client


@contextmanager
def _readable_errors() -> Iterator[None]:
    import httpx

    try:
        yield
    except httpx.HTTPStatusError as error:
        raise _refused(error) from None
    except httpx.TransportError as error:
        said = str(error) or type(error).__name__
        raise ServerLost(f"the server does not answer: {said}", "is it running?") from None
    except ValueError as error:  # depends on the SDK's decoder
        hint = "is it an Agent Server of LangGraph?"
        raise ServerRefused(f"the server's answer is not JSON: {error}", hint, 0) from None


def _refused(error: Any) -> ServerRefused:
    status, request = error.response.status_code, error.request
    message = getattr(error, "message", "") or str(error)
    said = _details(_body(error)) or str(message).partition("\n")[0]
    what = f"the server refuses {request.method} {request.url.path} ({status})"
    hint = _HINTS.get(status) or (_ITS_LOG if status >= 500 else _OTHER_KIND)
    return ServerRefused(f"{what}: {said[:_LONGEST]}", hint, status)


def _body(error: Any) -> Any:
    """Return the body of a server's reply; for redirects the SDK keeps it only in a note."""
    if (body := getattr(error, "body", None)) is not None:
        return body
    try:
        return json.loads(error.__notes__[-1])
    except (AttributeError, IndexError, ValueError):
        return None


def _details(body: Any) -> str:
    """Return a server's list of invalid parts of a request as text, "" if it lists none."""
    listed = body.get("detail") if isinstance(body, Mapping) else None
    if not isinstance(listed, list):
        return ""
    wrong = [each for each in listed if isinstance(each, Mapping) and "msg" in each]
    return "; ".join(f"{'.'.join(map(str, each.get('loc') or ()))}: {each['msg']}" for each in wrong)


def busy() -> ServerBusy:
    """Return the error for a thread that the server already runs."""
    return ServerBusy(
        "the server already runs this thread",
        "wait for that run, end it or roll it back: you are asked when you continue, or give --on-busy",
    )


@contextmanager
def raising_busy() -> Iterator[None]:
    """Raise `ServerBusy` if a server refuses because it already runs the thread."""
    try:
        yield
    except ServerRefused as error:
        if error.status != 409:
            raise
        raise busy() from None


def once_more_if_lost(ask: Callable[[], R]) -> R:
    """Send a request, once more if the connection was lost: servers close idle connections."""
    try:
        return ask()
    except ServerLost:
        return ask()


def failed_there(error: ServerRefused) -> bool:
    """Whether the server, or the graph's code on it, failed on a request."""
    return error.status >= 500


def is_limit_of_server(error: BaseException) -> bool:
    """Whether a run on a server has ended because it took as many supersteps as its graph may."""
    reported = error.args[0] if error.args else None
    return isinstance(reported, Mapping) and reported.get("error") == "GraphRecursionError"
