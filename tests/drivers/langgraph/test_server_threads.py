"""Which threads a server has, as it tells them page by page."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langgraph", reason="the extra `langgraph` is not installed")

from hitl_tui.drivers.langgraph.server import ServerThreads


class Threads:
    """The part of a client that lists threads; every tenth has no checkpoint yet."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.asked: list[int] = []

    def search(self, *, limit: int, offset: int, **_terms: Any) -> list[dict[str, str]]:
        self.asked.append(offset)
        return [{"thread_id": f"t{n}"} for n in range(offset, min(offset + limit, self.total))]

    def get_state(self, thread: str) -> dict[str, Any]:
        begun = not thread.endswith("0")
        return {"checkpoint": {"checkpoint_id": f"c-{thread}"} if begun else None}


class Client:
    def __init__(self, total: int) -> None:
        self.threads = Threads(total)


@pytest.mark.parametrize(("total", "asked"), [(0, [0]), (99, [0]), (100, [0, 100]), (250, [0, 100, 200])])
def test_all_threads_of_a_server_are_found(total: int, asked: list[int]) -> None:
    client = Client(total)
    heads = ServerThreads(client, "agent").heads()
    assert heads == {f"t{n}": f"c-t{n}" for n in range(total) if n % 10}
    assert client.threads.asked == asked
