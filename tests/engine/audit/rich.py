"""A store with everything a thread can have, and all that can be read of it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from hitl_tui import (
    END,
    START,
    Agent,
    Channel,
    GraphRunner,
    NodeResult,
    ScriptedModel,
    StateGraph,
    append,
)
from hitl_tui.agents.scripted import ToolCall
from hitl_tui.engine.audit.verify import verify_tree
from hitl_tui.engine.graph.gates import Gate, GateChoice
from hitl_tui.engine.log.signing import Signature
from hitl_tui.engine.log.threads import Lease, PauseRequest, Presence, ThreadSummary
from hitl_tui.engine.nodes.children import descendants
from hitl_tui.engine.thread.session import now_us
from hitl_tui.errors import HitlError
from hitl_tui.stores import Checkpointer, FileCheckpointer, SQLiteCheckpointer
from hitl_tui.stores.deletion import delete, leaving
from hitl_tui.stores.files.directory import directory_name
from hitl_tui.stores.transfer import export_thread, import_thread

QUORUM = Gate(
    "publish",
    "publish it?",
    [
        GateChoice("approve", "send it", values={"approved": True}),
        GateChoice("revise", "again", text="optional"),
    ],
    payload=lambda state: {"plan": state["plan"]},
    reviewers=["ann", "bob"],
    quorum=2,
    one_account=True,
    risk="high",
)


def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def graph() -> StateGraph:
    """fetch (external), agent with a tool, map, subgraph, a gate of two votes, publish."""
    inner = (
        StateGraph({"words": Channel([], reducer=append())}, name="team")
        .add_node("say", lambda _state: {"words": "said"})
        .add_edge(START, "say")
        .add_edge("say", END)
    )

    def ask(_state: Any, config: Any) -> dict[str, Any]:
        return {"notes": config.agents["a"].chat("go")}

    def scan(_state: Any, config: Any) -> dict[str, Any]:
        if config.index == 1:
            raise ValueError("no such page")
        return {"found": [config.item], "total": 0.5}

    channels = {
        "notes": Channel(["first"], reducer=append()),
        "found": Channel([], reducer="extend"),
        "total": Channel(0, reducer="sum"),
        "plan": Channel({"go": False}),
        "page": Channel(""),
        "secret": Channel("", visibility="private"),
        "said": Channel(None),
        "approved": Channel(False),
        "best": Channel("", reducer=longest),
        "paper": Channel({}),
        "index": Channel({}, reducer=joined),
    }
    return (
        StateGraph(channels, name="rich")
        .add_node("fetch", fetch, external="web")
        .add_node("ask", ask)
        .add_map("scan", over="plan.items", node=scan)
        .add_subgraph("team", inner, inputs={}, outputs={"words": "said"})
        .add_node("publish", publish)
        .add_compensation("unpublish", lambda _state, _config, args: {"notes": f"undone {args}"})
        .add_edge(START, "fetch")
        .add_edge("fetch", "ask")
        .add_edge("ask", "scan")
        .add_edge("scan", "team")
        .add_edge("team", "publish")
        .add_edge("publish", END)
    )


def longest(old: Any, new: Any) -> Any:
    return max(old or "", new, key=len)


def joined(old: Any, new: Any) -> Any:
    return {**old, **new}


def publish(state: Any) -> NodeResult:
    """What it writes of large values is in the log as what changed in them."""
    paper = {**state["paper"], "state": "published"}
    return NodeResult({"best": "published", "paper": paper, "index": {"at": 2}}, text="done")


def fetch(_state: Any) -> NodeResult:
    updates = {
        "paper": {"text": "paper " * 100, "state": "draft"},
        "index": {"words": "index " * 100, "at": 1},
        "page": "a page",
        "secret": "s3cret",
        "plan": {"go": True, "items": ["x", "y", "z"]},
    }
    return NodeResult(updates, text="fetched", compensation=("unpublish", {"id": 7, "rate": 0.5}))


class Seal:
    """A key that signs with a hash, as a process of ssh-keygen for each signature would be slow."""

    key = "seal"

    def sign(self, words: bytes) -> str:
        return sha256(b"sealed" + words).hexdigest()

    def check(self, words: bytes, signature: str, actor: str | None, _at: int) -> Signature:
        return Signature("good" if signature == self.sign(words) else "wrong", actor or "", "seal")


def runner(store: Checkpointer) -> GraphRunner:
    """The graph on a store."""
    script = ScriptedModel([ToolCall("weather", {"city": "Bern"}), "it rains"] * 9, pace=0)
    agents = {"a": Agent("a", script, tools=[weather])}
    made = graph().compile(checkpointer=store, agents=agents, interrupt_before=[QUORUM])
    made.signer = Seal()
    return made


HELD = Lease(
    token="t0k3n",
    user="hal",
    host="afar",
    pid=4711,
    process_started=17,
    expires_at=now_us() + 3_000_000_000,
    boot="b00t",
    namespace="pid:[1]",
)
"""A lease of a process on another machine, of which nobody here can know whether it lives."""

ASKED = PauseRequest("ivy", "lunch", 1_700_000_000_000_000)
PRESENT = Presence(
    "r1", b"\x01", "jo", "jo@afar", 1_700_000_000_000_000, 1 << 60, claims=True, lasts=True, lease=HELD
)


def fill(store: Checkpointer) -> None:
    """A thread that waits with one of two votes, one undone, forks, one carried here."""
    made = runner(store)
    for thread in ("undone", "waits"):
        made.invoke({"notes": "go", "goal": "a report"}, thread_id=thread)
        vote(made, thread, "ann")
    vote(made, "undone", "bob")
    made.invoke(thread_id="undone")
    made.fork("undone", 3, "early", changes={"total": 2.5}, actor="eve")
    made.fork("undone", 2, "bare", actor="eve")
    made.rollback("undone", actor="cy", note="wrong")
    made.update_state("waits", {"plan": {"go": True, "items": ["q"]}}, actor="dee", note="shorter")
    vote(made, "waits", "ann")
    made.declassify("early", "page", actor="flo", reason="read it")
    import_thread(store, export_thread(store, "early", private=True), "carried")
    made.update_state("carried", {"approved": True}, actor="gil")
    for thread in ("gone", "left"):
        made.invoke({"notes": thread}, thread_id=thread)
        going = leaving(store, [thread], force=True)
        delete(store, going, actor="jo", note="a try", at=1_700_000_000_000_000, why="by hand", force=True)


_CACHE = re.compile(rb',"snapshot":"[^"]*"')


def vote(made: GraphRunner, thread: str, actor: str) -> None:
    """Approve what a thread waits for."""
    waits = made.open(thread).cursor.pending[0]
    made.answer(thread, waits.id, "approve", step=waits.step, actor=actor, note=f"{actor} agrees")


class Stored(NamedTuple):
    """A store at rest, and what can be read of it.

    Args:
        named: the threads by the number of their rows, or by the name of their directory.
    """

    path: Path
    named: dict[Any, str]
    shown: list[Any]

    @classmethod
    def at(cls, path: Path) -> Stored:
        with closing(opened(path)) as store:
            names = sorted(row.info.thread_id for row in store.threads("", 999))
            shown = outputs(store, names)
        if path.is_dir():
            return cls(path, {directory_name(name): name for name in names}, shown)
        with closing(sqlite3.connect(path)) as db:
            return cls(path, dict(db.execute("SELECT key, id FROM thread ORDER BY id")), shown)

    def undetected(self, path: Path, thread: str | None = None) -> str:
        """What a changed copy shows though no check finds it, in a few words; "" where one does.

        Args:
            thread: the one that is checked first, as it was changed.
        """
        names = list(self.named.values())
        # The threads below another one are checked with it.
        roots = [name for name in names if "/" not in name]
        try:
            with closing(opened(path)) as store:
                for name in sorted(roots, key=lambda name: not (thread or "").startswith(name)):
                    if verify_tree(store, name).mismatches:
                        return ""
                return diff(self.shown, outputs(store, names))
        except HitlError:
            return ""


def opened(path: Path) -> Checkpointer:
    """The store at a path; nothing here waits for the disk."""
    kind = FileCheckpointer if path.is_dir() else SQLiteCheckpointer
    return kind(path, "none")


def filled(path: Path) -> Stored:
    """A new store with everything in it, which no check finds anything wrong with; one thread is held."""
    with closing(opened(path)) as store:
        fill(store)
        store.acquire("early", HELD, 0)
        store.request_pause("early", ASKED)
        store.attend("early", PRESENT, 0)
    whole = Stored.at(path)
    assert whole.undetected(path) == ""
    return whole


def outputs(store: Checkpointer, names: list[str]) -> list[Any]:
    """All that anything can show of the threads of a store."""
    values: list[Any] = [
        _unheld(store.threads("", 999)),
        _unheld(store.threads("", 999, None, "")),
        _unheld(store.threads(waiting=True)),
        store.store_ledger(),
    ]
    for name in names:
        cursor = store.cursor(name)
        values += [
            name,
            store.info(name),
            store.cursor(name),
            store.children(name),
            _unheld([line for line in [store.summary(name)] if line]),
            _unheld(store.threads(within=name)),
        ]
        if cursor is not None:
            # Snapshots are a cache: what is made of them is below.
            values += [_CACHE.sub(b"", line) for line in export_thread(store, name, private=True)][:-1]
            values.append([store.totals(name, step) for step in range(cursor.head + 1)])
            values.append([store.load_step(name, step) for step in range(cursor.head + 1)])
            values.append(descendants(store, cursor))
    return values


def _unheld(lines: list[ThreadSummary]) -> list[ThreadSummary]:
    """Lines without who holds the thread or is at it, which is advice about the present and in no hash."""
    return [replace(line, held_by=None, attending=()) for line in lines]


def diff(shown: list[Any], now: list[Any]) -> str:
    """Where two outputs part, "" where they do not."""
    if shown == now:
        return ""
    pairs = ((str(one), str(other)) for one, other in zip(shown, now, strict=False) if one != other)
    one, other = next(pairs, (str(len(shown)), str(len(now))))
    at = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    return f"...{one[max(0, at - 40) : at + 60]} is ...{other[max(0, at - 40) : at + 60]}"
