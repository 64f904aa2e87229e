"""A record that only replaces a value is followed in one look, which finds what all looks find."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui.engine.audit import tracing
from hitl_tui.engine.audit.tracing import Trace
from hitl_tui.engine.log.records import UpdateRecord
from hitl_tui.engine.state.canonical import channel_hash, item_hash
from tests.support.spec import spec

pytestmark = spec("12")

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=3), SCALARS, max_size=2)
HASHES = st.sampled_from(["right", "right", "right", "right", "of another", "of nothing"])
REDUCERS = st.sampled_from(["overwrite", "overwrite", "append", "sum", "last_n(2)", "mine#1234"])
STEPS = st.tuples(
    st.sampled_from("ab"),
    VALUES,
    REDUCERS,
    st.sampled_from(["reduce", "set"]),
    st.tuples(HASHES, HASHES, HASHES),
    st.sampled_from(["public", "private"]),
    st.booleans(),
    st.sampled_from([msgspec.UNSET, msgspec.UNSET, 7]),
)


def records(steps: list[Any]) -> list[tuple[UpdateRecord, bool]]:
    """Records whose hashes are right, or not, each with whether its own hash is to hold."""
    made = []
    held: dict[str, bytes] = {}
    for seq, (channel, value, reducer, op, spoilt, visibility, intact, result) in enumerate(steps):
        hashes = (held.get(channel, channel_hash(None)), item_hash(value), channel_hash(value))
        previous, update, following = (
            {"right": own, "of another": channel_hash([seq]), "of nothing": channel_hash(None)}[how]
            for own, how in zip(hashes, spoilt, strict=True)
        )
        held[channel] = following
        made.append(
            (
                UpdateRecord(
                    *("t", seq, seq, 1, "node", "", 1, channel, op, reducer, visibility, "node", value),
                    *(previous, update, following, False, None, None, 0, b"", b"", result),
                ),
                intact,
            )
        )
    return made


@given(st.lists(STEPS, max_size=8))
@pytest.mark.slow
def test_a_trace_finds_the_same_with_and_without_the_one_look(steps: list[Any]) -> None:
    def followed() -> tuple[Any, ...]:
        trace = Trace({})
        reports = []
        for record, intact in records(steps):
            reports.append((trace.follow(record, intact), trace.state_hash()))
        return reports, trace.standings(), trace.written, trace.private, trace.depends

    short = followed()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tracing, "_is_replaced", lambda record, channel: False)
        assert followed() == short


def test_most_records_of_a_log_are_followed_in_one_look() -> None:
    trace = Trace({})
    looks = []
    with pytest.MonkeyPatch.context() as patch:
        real = tracing._is_replaced
        patch.setattr(tracing, "_is_replaced", lambda *given: looks.append(real(*given)) or looks[-1])
        right = ("right", "right", "right")
        for record, intact in records(
            [
                ("a", value, "overwrite", "reduce", right, "public", True, msgspec.UNSET)
                for value in (1, "x", None)
            ]
        ):
            assert trace.follow(record, intact) is None
    assert looks == [False, True, True]
    assert trace.standings()["a"].digest == channel_hash(None)
