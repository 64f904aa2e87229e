"""Which threads a server has, as it tells them page by page."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langgraph", reason="the extra `langgraph` is not installed")

from hitl_tui.drivers.langgraph.server import ServerThreads
from hitl_tui.drivers.langgraph.server_edits import TRIAL
from hitl_tui.errors import ServerRefused


class Threads:
    """The part of a client that lists threads; every tenth has no checkpoint yet."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.asked: list[int] = []
        self.trials: tuple[str, ...] = ()

    def search(self, *, limit: int, offset: int, **_terms: Any) -> list[dict[str, Any]]:
        self.asked.append(offset)
        names = [f"t{n}" for n in range(offset, min(offset + limit, self.total))]
        return [
            {"thread_id": name, "metadata": {TRIAL: True} if name in self.trials else {}} for name in names
        ]

    def get_state(self, thread: str) -> dict[str, Any]:
        started = not thread.endswith("0")
        return {"checkpoint": {"checkpoint_id": f"c-{thread}"} if started else None}


class Broken(Threads):
    def get_state(self, thread: str) -> dict[str, Any]:
        if thread == "t1":
            raise ServerRefused("500 Internal Server Error", "", 500)
        return super().get_state(thread)


class Client:
    def __init__(self, total: int, kind: type[Threads] = Threads) -> None:
        self.threads = kind(total)


@pytest.mark.parametrize(("total", "asked"), [(0, [0]), (99, [0]), (100, [0, 100]), (250, [0, 100, 200])])
def test_all_threads_of_a_server_are_found(total: int, asked: list[int]) -> None:
    client = Client(total)
    heads = ServerThreads(client, "agent").heads()
    assert heads == {f"t{n}": f"c-t{n}" for n in range(total) if n % 10}
    assert client.threads.asked == asked


def test_a_thread_whose_state_the_server_fails_on_hides_no_other_and_is_named() -> None:
    threads = ServerThreads(Client(4, Broken), "agent")
    assert threads.heads() == {"t2": "c-t2", "t3": "c-t3"}
    assert threads.unreadable == {"t1": "500 Internal Server Error"}


def test_copies_for_trying_edits_are_no_threads() -> None:
    client = Client(3)
    client.threads.trials = ("t2",)
    assert ServerThreads(client, "agent").heads() == {"t1": "c-t1"}
