"""The real engine with the graph of the model, on a SQLite file, whose process can die at any commit or call.

    python -m tests.model.engine STORE POINT TRACE

runs the thread `t` on, and is killed at the given point; TRACE gets what it did before.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    Gate,
    GateChoice,
    GraphRunner,
    NodeFailed,
    ScriptedModel,
    SQLiteCheckpointer,
    StateGraph,
    Tool,
    ToolCall,
)
from hitl_tui.engine.commands import Claim, execute
from hitl_tui.engine.commands.answering import expire
from hitl_tui.engine.log.records import Commit, Cursor
from hitl_tui.engine.log.requests import Request
from hitl_tui.engine.log.threads import Lease, Stamp
from tests.model.protocol import DEADLINE, QUORUM, REVIEWERS, Asked

LATE = 10_000_000
"""Seconds that a gate waits."""
ANSWERS = {
    "send": {"yes": "approve", "no": "reject"},
    "in flight": {"made": {"choice": "made", "text": "sent"}, "again": "again"},
}
VERDICTS = {"approve": "yes", "reject": "no"}


class Killed(BaseException):
    """The process dies here; what it would still do has no effect."""


class Failed(Exception):
    """The node fails here."""


class Store(SQLiteCheckpointer):
    """A store whose process can die before and after each commit, with a clock that can be moved.

    Unless its processes really die, its leases are those of another host, so that only the clock tells that
    their holder has died.
    """

    def __init__(
        self, path: Path, clock: list[int], point: Callable[[str], None], *, really_dies: bool
    ) -> None:
        super().__init__(path, durability="none")  # processes die here, the machine does not
        self._really_dies = really_dies
        self._moved = clock
        self._point = point
        self.is_dead = False

    def now(self) -> int:
        return super().now() + self._moved[0] * 1_000_000

    def new_lease(self, now: int) -> Lease:
        lease = super().new_lease(now)
        if self._really_dies:
            return lease
        return msgspec.structs.replace(lease, boot="another", namespace="another")

    def release(self, thread_id: str, token: str) -> None:
        if not self.is_dead:
            super().release(thread_id, token)

    def commit(self, thread_id: str, commit: Commit) -> Stamp | None:
        self._point("")
        stamp = super().commit(thread_id, commit)
        self._point(label_of(commit))
        return stamp


def label_of(commit: Commit) -> str:
    """What the model calls a commit; "" for one that the model does not have."""
    for entry in commit.ledger:
        data = entry.data if isinstance(entry.data, Mapping) else {}
        if entry.kind == "call" and str(data["key"]).startswith("tool:"):
            if data.get("state") == "started":
                return "the start of send is recorded"
            outcome = data["value"]
            if not outcome.get("ran"):
                return "send counts as made" if outcome.get("error") is None else "send is refused"
            return f"{data['tool']['tool']} is recorded"
    point = commit.checkpoint
    if point is not None and point.node == "pay" and point.source == "node":
        return "the step is committed"
    return ""


class Engine:
    """One process after another that opens the same file; they die in name only, unless `really_dies`."""

    def __init__(self, path: Path, *, rule_asks: bool = True, really_dies: bool = False) -> None:
        self.path = path
        self.really_dies = really_dies
        self.rule_asks = rule_asks
        self.trace: list[str] = []
        self._clock = [0]
        self._dies_at: int | None = None
        self._points = 0
        self._fails = False
        self._amounts: dict[str, int] = {}
        self.die: Callable[[], None] = self._raise
        self._open()

    def _open(self) -> None:
        self.store = Store(self.path, self._clock, self._point, really_dies=self.really_dies)
        self.runner = build(self, self.store)

    def close(self) -> None:
        self.store.close()

    def restart(self) -> None:
        """Open the file in a new process, once the lease of the dead one has ended."""
        self._dies_at = None
        self.store.close()
        self._clock[0] += 60
        self._open()

    def _point(self, label: str) -> None:
        """Note what has just happened; die here if this is the point."""
        if self.store.is_dead:
            raise Killed
        if label == "send is recorded" and "send is made" not in self.trace:
            label = "send counts as made"
        if label:
            self.trace.append(label)
        if self._dies_at == self._points:
            self.die()
        self._points += 1

    def _raise(self) -> None:
        self.store.is_dead = True
        raise Killed

    def effect(self, label: str) -> None:
        """Something happens in the world."""
        self._point("")
        self._point(label)

    def end_of_node(self) -> None:
        if self._fails:
            raise Failed

    def name(self, number: int) -> str:
        return f"fork{number}" if number else "t"

    def cursor(self, number: int) -> Cursor:
        cursor = self.store.cursor(self.name(number))
        assert cursor is not None
        return cursor

    def run(self, number: int, dies_at: int | None, *, fails: bool) -> tuple[list[str], bool]:
        """Run a thread; returns what happened in the model's words, and whether the process died."""
        self.trace, self._points, self._dies_at, self._fails = [], 0, dies_at, fails
        is_new = self.store.info(self.name(number)) is None
        before = () if is_new else self.cursor(number).pending
        try:
            self.runner.invoke({} if is_new else None, thread_id=self.name(number))
        except Killed:
            died = True
        except NodeFailed as error:
            if not isinstance(error.__cause__, Failed):
                raise
            self.trace.append("the node fails, and will be tried again")
            died = False
        else:
            died = self.store.is_dead
        self._dies_at = None
        pending = self.cursor(number).pending
        if pending and not before:
            self.trace.append(f"the worker asks {words_of(self.asked(number, pending[0]))}")
        return self.trace, died

    def asked(self, number: int, request: Request) -> Asked:
        """What a request asks, in the model's words."""
        if request.node == "draft":
            return Asked("gate", self.runner.get_state(self.name(number))["amount"])
        about = "in flight" if request.title == "Was send called?" else "send"
        return Asked(about, request.payload["args"]["amount"])  # type: ignore[arg-type]

    def answer(self, number: int, who: str, verdict: str, dies_at: int | None) -> None:
        """Answer the request that waits; the process may die before or after one of its commits."""
        cursor = self.cursor(number)
        (request,) = cursor.pending
        about = self.asked(number, request).about
        value = ANSWERS.get(about, {}).get(verdict, verdict)
        self._points, self._dies_at = 0, dies_at
        try:
            self.runner.answer(self.name(number), request.id, value, step=cursor.head, actor=who)
        finally:
            self._dies_at = None

    def edit(self, number: int, amount: int) -> None:
        self.runner.update_state(self.name(number), {"amount": amount}, actor="eve")

    def fork(self, number: int, new: int) -> None:
        self.runner.fork(self.name(number), self.cursor(number).head, self.name(new), actor="eve")

    def claim(self, number: int, who: str) -> None:
        session = self.runner.open(self.name(number))
        with session.writing():
            execute(session, Claim(self.cursor(number).pending[0].id, who, minutes=1e6, lasts=True))

    def pass_deadline(self, number: int) -> None:
        """Let the deadline pass, and apply its answer without running on."""
        self._clock[0] += LATE + 1
        session = self.runner.open(self.name(number))
        with session.writing():
            expire(session)

    def answers(self, number: int) -> Iterator[tuple[str, str, str]]:
        """The answers in the ledger: (the request's id, who, verdict)."""
        for entry in self.store.ledger(self.name(number)):
            if entry.kind in ("answer", "vote", "timeout"):
                answer = entry.data["answer"]
                verdict = answer.get("choice", answer.get("type")) if isinstance(answer, Mapping) else answer
                who = DEADLINE if entry.made_by == "deadline" else entry.actor or ""
                yield entry.request_id, who, VERDICTS.get(verdict, verdict)


def words_of(asked: Asked) -> str:
    """What a request asks, as the model's labels say it."""
    if asked.about == "gate":
        return f'"pay {asked.value}?"'
    return f'"send {asked.value}?"' if asked.about == "send" else f'"was {asked.value} sent?"'


def build(engine: Engine, store: Store) -> GraphRunner:
    """The graph of the model."""

    def reply(messages: Any) -> Any:
        amount = int([one["content"] for one in messages if one["role"] == "user"][-1].split()[-1])
        results = sum(one["role"] == "tool" for one in messages)
        return [ToolCall("look"), ToolCall("send", {"amount": amount}), "done"][results]

    async def look() -> str:
        """Look at the account."""
        engine.effect("look is made")
        return "seen"

    async def send(amount: int) -> str:
        """Send an amount."""
        engine.effect("send is made")
        return f"sent {amount}"

    async def pay(state: Any, config: Any) -> dict[str, Any]:
        await config.agents["clerk"].achat(f"pay {state['amount']}")
        engine.end_of_node()
        return {"paid": state["amount"]}

    must_ask: Callable[[Mapping[str, Any]], bool] = lambda _arguments: engine.rule_asks  # noqa: E731
    clerk = Agent(
        "clerk",
        ScriptedModel(reply, pace=0),
        tools=[Tool(look), Tool(send, approve=must_ask, effects="once")],
    )
    gate = Gate(
        "draft",
        "Pay this amount?",
        [GateChoice(word, word, values={"verdict": word}) for word in ("yes", "no")],
        subject="amount",
        reviewers=REVIEWERS,
        quorum=QUORUM,
        one_account=True,
        deadline=LATE,
        on_timeout="yes",
    )
    route = lambda state: "pay" if state["verdict"] == "yes" else END  # noqa: E731
    return (
        StateGraph({"amount": Channel(0), "verdict": Channel(""), "paid": Channel(None)}, name="paying")
        .add_node("draft", lambda _state: {})
        .add_node("pay", pay)
        .add_edge(START, "draft")
        .add_conditional_edge("draft", route, {"pay": "pay", END: END})
        .add_edge("pay", END)
        .compile(checkpointer=store, agents={"clerk": clerk}, interrupt_after=[gate])
    )


def main(path: str, point: str, trace: str) -> None:
    """Run the thread on and be killed."""
    engine = Engine(Path(path), rule_asks=False, really_dies=True)

    def die() -> None:
        Path(trace).write_text("\n".join(engine.trace))
        os.kill(os.getpid(), signal.SIGKILL)

    engine.die = die
    done, _ = engine.run(0, int(point), fails=False)
    Path(trace).write_text("\n".join(done))
    engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
