"""Snapshots that hold only what is new."""

from __future__ import annotations

import random
import string
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitl_tui.stores import snapshots
from tests.support.spec import spec

pytestmark = spec("10")

scalar = st.one_of(st.none(), st.integers(), st.text(alphabet='a,"]\\[ä', max_size=4))
value = st.one_of(scalar, st.lists(st.one_of(scalar, st.lists(scalar, max_size=2)), max_size=4))
change = st.tuples(st.sampled_from("abc"), st.sampled_from(["append", "set", "drop", "same"]), value)


def packed(state: dict[str, Any]) -> bytes:
    return msgspec.json.encode(state)


def parts_of(states: list[dict[str, Any]]) -> list[bytes]:
    parts: list[bytes] = []
    for state in states:
        parts.append(snapshots.part_of(packed(state), parts[::-1]))
    return parts


def read(parts: list[bytes]) -> Any:
    return msgspec.json.decode(snapshots.whole(reversed(parts)))


@pytest.fixture
def all_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of any size share what they can, and build on one another thrice at most."""
    monkeypatch.setattr(snapshots, "_SMALLEST_SHARED", 1)
    monkeypatch.setattr(snapshots, "_LONGEST_CHAIN", 3)


@pytest.mark.usefixtures("all_shared")
@given(changes=st.lists(change, max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_state_comes_back_though_all_is_shared(changes: list[tuple[str, str, Any]]) -> None:
    check_states(changes)


@given(changes=st.lists(change, max_size=12))
def test_every_state_comes_back(changes: list[tuple[str, str, Any]]) -> None:
    check_states(changes)


def check_states(changes: list[tuple[str, str, Any]]) -> None:
    states: list[dict[str, Any]] = [{}]
    for name, kind, new in changes:
        state = dict(states[-1])
        if kind == "append" and isinstance(state.get(name), list):
            state[name] = [*state[name], new]
        elif kind == "drop":
            state.pop(name, None)
        elif kind == "set":
            state[name] = new
        states.append(state)
    parts = parts_of(states)
    in_turn = list(snapshots.each_whole(parts, []))
    for place, state in enumerate(states):
        found = read(parts[: place + 1])
        assert found == state
        assert list(found) == list(state)
        assert in_turn[place] == packed(state)
        assert list(snapshots.each_whole(parts[place:], parts[:place][::-1])) == in_turn[place:]


def test_a_list_that_grows_is_stored_once() -> None:
    text = random.Random(1)
    entries = [f"{text.getrandbits(800):x}" for _ in range(1000)]
    parts = parts_of([{"entries": entries[:count], "n": count} for count in range(100, 1001, 100)])
    assert sum(map(len, parts)) < 1.1 * len(msgspec.json.encode(entries))


@pytest.mark.slow
def test_what_stays_of_a_large_value_is_stored_once_for_a_while() -> None:
    text = random.Random(1)
    document = {f"part{n}": {"text": f"{text.getrandbits(400):x}", "n": n} for n in range(1000)}
    states = []
    for n in range(20):
        document = {**document, f"part{n * 37}": {"n": -n}}
        document.pop(f"part{n * 41 + 1}", None)
        states.append({"document": document, "rows": [*document.values()]})
    parts = parts_of(states)
    assert [len(part) > 100_000 for part in parts] == [n in (0, 17) for n in range(20)]
    assert max(len(part) for n, part in enumerate(parts) if n not in (0, 17)) < 4_000
    assert [read(parts[: n + 1]) for n in range(20)] == states


@given(
    edits=st.lists(
        st.tuples(st.sampled_from(["change", "insert", "drop", "move"]), st.integers(0, 199), scalar),
        max_size=8,
    )
)
def test_what_an_edit_leaves_of_a_large_value_is_shared(edits: list[tuple[str, int, Any]]) -> None:
    before = [{"id": n, "text": f"item {n} of the list"} for n in range(200)]
    after: list[Any] = list(before)
    for kind, place, new in edits:
        item = after.pop(place % len(after)) if kind != "insert" else {"new": new}
        if kind != "drop":
            after.insert(place if kind != "move" else -place, {"id": new} if kind == "change" else item)
    old, text = packed({"rows": before}), packed({"rows": after})
    part = snapshots.part_of(text, [snapshots.part_of(old, [])])
    assert snapshots.whole([part, snapshots.part_of(old, [])]) == text
    assert len(part) < 250 + 150 * len(edits)


def test_a_change_in_the_middle_of_a_long_text_is_stored_alone() -> None:
    text = "".join(map(chr, random.Random(1).choices(range(97, 123), k=50_000)))
    states = [{"text": text}, {"text": text[:20_000] + "CHANGED" + text[20_007:]}]
    parts = parts_of(states)
    assert len(parts[1]) < 5_000
    assert read(parts) == states[1]


def test_what_names_more_than_the_value_before_has_is_an_error() -> None:
    first, _ = parts_of([{"a": "x" * 5_000}, {}])
    _, second = parts_of([{"a": "y" * 6_000 + "x" * 5_000}, {"a": "y" * 6_000 + "x" * 5_001}])
    with pytest.raises(ValueError, match="does not continue"):
        snapshots.whole([second, first])


def test_what_shrinks_by_half_is_packed() -> None:
    (part,) = parts_of([{"text": "word " * 5000}])
    assert len(part) < 1000


def test_what_does_not_shrink_is_stored_as_it_is() -> None:
    state = {"text": "".join(random.Random(1).choices(string.ascii_letters, k=50_000))}
    (part,) = parts_of([state])
    assert (state["text"].encode() in part, read([part])) == (True, state)


@pytest.mark.parametrize("order", [1, -1])
def test_what_shrinks_in_one_half_alone_comes_back(order: int) -> None:
    halves = ["word " * 10_000, "".join(random.Random(1).choices(string.ascii_letters, k=50_000))][::order]
    state = {"text": "".join(halves)}
    assert read(parts_of([state])) == state


def test_foreign_bytes_are_kept_unchanged() -> None:
    part = snapshots.part_of(b"\x00state", [])
    assert snapshots.whole([part]) == b"\x00state"
    assert read([part, snapshots.part_of(packed({"a": [1]}), [part])]) == {"a": [1]}


def test_a_missing_or_damaged_part_is_an_error() -> None:
    first, second = parts_of([{"a": [1, 2]}, {"a": [1, 2, 3]}])
    with pytest.raises(ValueError, match="missing"):
        snapshots.whole([second])
    for damaged in (first[:-1], first[:20] + b"x" + first[21:], first[:3], b"p" + first[1:]):
        with pytest.raises(ValueError, match="not as it was written"):
            snapshots.whole([second, damaged])
