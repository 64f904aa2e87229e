"""Artifacts of a node's envelope: kept with the step and in its hash, in each kind of store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from hitl_tui import (
    END,
    START,
    Artifact,
    Channel,
    GraphRunner,
    MemoryCheckpointer,
    NodeFailed,
    NodeResult,
    RetryPolicy,
    StateGraph,
)
from hitl_tui.engine.log.outcomes import KeptArtifact
from hitl_tui.stores import Checkpointer
from hitl_tui.stores.transfer import export_thread, import_thread
from tests.engine.building import chain
from tests.support.spec import spec

pytestmark = spec("5")

PAGE = Artifact("report.md", "text/markdown; charset=utf-8", "# Ä\n\ttext\x1b[2J")
DOT = Artifact("dot (1).png", "image/png", bytes(range(256)))


def flow(store: Checkpointer | None, *given: Any, private: bool = False) -> GraphRunner:
    channels = {"n": Channel(0, visibility="private" if private else "public")}
    graph = StateGraph(channels).add_node("a", lambda s: NodeResult({"n": 1}, artifacts=list(given)))
    return graph.add_edge(START, "a").add_edge("a", END).compile(checkpointer=store)


def kept(store: Checkpointer, thread: str = "t") -> tuple[KeptArtifact, ...]:
    point = store.checkpoint(thread, 1)
    assert point
    return point.artifacts


def test_they_are_kept_as_they_were_given(store: Checkpointer) -> None:
    runner = flow(store, PAGE, DOT)
    runner.invoke(thread_id="t")
    assert [(each.name, each.media_type, each.binary) for each in kept(store)] == [
        (PAGE.name, PAGE.media_type, False), (DOT.name, DOT.media_type, True),
    ]  # fmt: skip
    assert [each.content for each in kept(store)] == [str(PAGE.content).encode(), DOT.content]
    assert runner.verify("t", strict=True).ok


def test_a_change_of_one_is_found() -> None:
    store = MemoryCheckpointer()
    runner = flow(store, PAGE)
    runner.invoke(thread_id="t")
    point = store._threads["t"].checkpoints[-1]
    for forged in (replace(point.artifacts[0], body="# B"), replace(point.artifacts[0], name="other.md")):
        store._threads["t"].checkpoints[-1] = replace(point, artifacts=(forged,))
        assert not runner.verify("t").ok


def test_they_go_with_an_export_but_not_beside_what_is_private(store: Checkpointer) -> None:
    flow(store, PAGE, DOT).invoke(thread_id="t")
    other = MemoryCheckpointer()
    import_thread(other, export_thread(store, "t"))
    assert kept(other) == kept(store)
    assert flow(other).verify("t").ok
    flow(store, PAGE, private=True).invoke(thread_id="p")
    assert b"report.md" not in b"".join(export_thread(store, "p"))


def test_they_count_in_the_size_of_a_thread(store: Checkpointer) -> None:
    flow(store).invoke(thread_id="small")
    flow(store, Artifact("a.txt", "text/plain", "x" * 100_000)).invoke(thread_id="large")
    assert store.size("large").checkpoints - store.size("small").checkpoints > 90_000


def test_of_branches_they_name_the_branch(store: Checkpointer) -> None:
    def make(state: Any, config: Any) -> NodeResult:
        return NodeResult(artifacts=[Artifact("part.txt", "text/plain", f"item {config.item}")])

    graph = StateGraph({"items": Channel([1, 2], reducer="overwrite")}).add_map("m", over="items", node=make)
    runner = graph.add_edge(START, "m").add_edge("m", END).compile(checkpointer=store)
    runner.invoke(thread_id="t")
    assert [(each.path, each.body) for each in kept(store)] == [("m[0]", "item 1"), ("m[1]", "item 2")]
    assert runner.verify("t").ok


def test_an_attempt_that_fails_leaves_none(store: Checkpointer) -> None:
    def node(state: Any, config: Any) -> NodeResult:
        status = "failed" if config.attempt == 1 else "completed"
        return NodeResult(status=status, artifacts=[Artifact(f"{config.attempt}.txt", "text/plain", "x")])

    graph = StateGraph({"n": Channel(0)}).add_node("a", node, retry=RetryPolicy(2, wait=0))
    graph.add_edge(START, "a").add_edge("a", END).compile(checkpointer=store).invoke(thread_id="t")
    assert [each.name for each in kept(store)] == ["2.txt"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: ("a.txt",), r"artifacts\[0\] is text"),
        (lambda: (Artifact("../a.txt", "text/plain", "x"),), r"the name '\.\./a\.txt'"),
        (lambda: (Artifact(".bashrc", "text/plain", "x"),), r"the name '\.bashrc'"),
        (lambda: (Artifact("a\x1b", "text/plain", "x"),), "the name"),
        (lambda: (Artifact("a", "text", "x"),), "media type 'text'"),
        (lambda: (Artifact("a", "text/plain", 3),), "content is a whole number"),  # type: ignore[arg-type]
        (lambda: (Artifact("a", "text/plain", "\ud800"),), "content is"),
        (lambda: (Artifact("a", "text/plain", "x"), Artifact("a", "text/plain", "y")), "'a' twice"),
        (
            lambda: (Artifact("a", "text/plain", b"x" * 200_000), Artifact("b", "text/plain", "x" * 100_000)),
            "may take",
        ),
    ],
)
def test_an_invalid_artifact_fails_the_node(
    store: Checkpointer, given: Callable[[], Any], words: str
) -> None:
    with pytest.raises(NodeFailed, match=words):
        chain({"n": Channel(0)}, lambda _state, _config: NodeResult(artifacts=given())).compile(
            checkpointer=store
        ).invoke(thread_id="t")
