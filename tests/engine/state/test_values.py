"""What a channel holds."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import uuid
from typing import Any, NamedTuple

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitl_tui import Channel, GraphInvalid, MemoryCheckpointer, NodeFailed, UsageError, ValueRejected
from hitl_tui.engine.state.canonical import canonical
from hitl_tui.engine.state.values import MAX_DEPTH, normalise
from tests.engine.building import one_node, returning
from tests.support.spec import spec

pytestmark = spec("1")

UTC = datetime.UTC


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Word(str, enum.Enum):  # noqa: UP042 - the older spelling is the one to test
    YES = "yes"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Finding:
    path: pathlib.Path
    lines: tuple[int, ...]


class Plan(pydantic.BaseModel):
    steps: list[str]
    due: datetime.date


def nested(depth: int, leaf: Any = 1) -> Any:
    """A leaf inside `depth` lists."""
    for _ in range(depth):
        leaf = [leaf]
    return leaf


CONVERSIONS = {
    "null stays null": (None, None),
    "a bool stays a bool": (True, True),
    "an int of any size": (-(2**200), -(2**200)),
    "a float": (0.1, 0.1),
    "text beyond ASCII": ("Zoë 🎉", "Zoë 🎉"),
    "empty list": ([], []),
    "empty dict": ({}, {}),
    "a tuple becomes a list": ((1, ("a",)), [1, ["a"]]),
    "a named tuple becomes a list": (Point(1, 2), [1, 2]),
    "an ordered dict becomes a dict": (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    "a dataclass becomes a dict of its fields": (
        Finding(pathlib.Path("a/b"), (1, 2)),
        {"path": "a/b", "lines": [1, 2]},
    ),
    "a pydantic model becomes its JSON dump": (
        Plan(steps=["a"], due=datetime.date(2026, 3, 1)),
        {"steps": ["a"], "due": "2026-03-01"},
    ),
    "an enum becomes its value": (Colour.RED, "red"),
    "an int enum becomes its value": (Level.HIGH, 3),
    "a text enum becomes its value": (Word.YES, "yes"),
    "a date becomes ISO text": (datetime.date(2026, 3, 1), "2026-03-01"),
    "a time becomes ISO text": (datetime.time(13, 5), "13:05:00"),
    "a datetime becomes ISO text": (
        datetime.datetime(2026, 3, 1, 13, 5, tzinfo=UTC),
        "2026-03-01T13:05:00+00:00",
    ),
    "a UUID becomes text": (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    "a Decimal becomes text": (decimal.Decimal("1.10"), "1.10"),
    "a Path becomes text": (pathlib.PurePosixPath("a/b"), "a/b"),
    "conversions reach inside lists and dicts": (
        {"a": [Colour.RED, {"b": datetime.date(2026, 3, 1)}]},
        {"a": ["red", {"b": "2026-03-01"}]},
    ),
    "a text enum as a key": ({Word.YES: 1}, {"yes": 1}),
}


@pytest.mark.parametrize(("value", "kept"), CONVERSIONS.values(), ids=CONVERSIONS)
def test_converts_on_the_way_in(value: Any, kept: Any) -> None:
    found = normalise(value, "c")
    assert found == kept
    assert repr(found) == repr(kept)  # types too: 1 is not True, "yes" is no enum


@pytest.mark.parametrize(("value", "kept"), CONVERSIONS.values(), ids=CONVERSIONS)
def test_a_kept_value_is_json(value: Any, kept: Any) -> None:
    assert json.loads(json.dumps(normalise(value, "c"))) == kept


class Holder(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    held: Any


REJECTIONS = {
    "a set": ({"a": [{1}]}, "a[0]", "set"),
    "bytes": ([b"x"], "[0]", "bytes"),
    "a complex number": ({"z": 1j}, "z", "complex"),
    "a timedelta": ([datetime.timedelta(1)], "[0]", "timedelta"),
    "a function": ({"f": len}, "f", "builtin_function_or_method"),
    "an arbitrary object": ({"o": object()}, "o", "object"),
    "a class": ({"t": Finding}, "t", "type"),
    "NaN": ({"a": [float("nan")]}, "a[0]", "nan"),
    "infinity": ([1, float("inf")], "[1]", "inf"),
    "minus infinity": ({"a": float("-inf")}, "a", "-inf"),
    "a lone surrogate": ({"a": {"b": "x\ud800"}}, "a.b", "surrogate"),
    "a lone surrogate in a key": ({"a": {"\udc00": 1}}, "a", "surrogate"),
    "an int as a key": ({"a": {1: 2}}, "a", "int"),
    "null as a key": ({"a": {None: 2}}, "a", "NoneType"),
    "a bad value inside a pydantic model": ({"m": Holder(held=[object()])}, "m.held[0]", "object"),
    "a bad value inside a dataclass": (Finding({1}, ()), "path", "set"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("value", "path", "kind"), REJECTIONS.values(), ids=REJECTIONS)
def test_anything_else_is_rejected_naming_channel_path_and_type(value: Any, path: str, kind: str) -> None:
    with pytest.raises(ValueRejected) as caught:
        normalise(value, "findings")
    assert "'findings'" in caught.value.message
    assert f"at {path}" in caught.value.message
    assert kind in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(("key", "fix"), [(1, "use '1'"), (Colour.RED, "use 'red'")], ids=repr)
def test_a_key_that_is_not_text_is_rejected_with_the_text_to_use(key: Any, fix: str) -> None:
    with pytest.raises(ValueRejected, match="JSON keys are text") as caught:
        normalise({key: 1}, "c")
    assert caught.value.hint == fix


class Refusing(pydantic.BaseModel):
    @pydantic.model_serializer
    def _dump(self) -> Any:
        raise OSError("no way")


def test_a_model_that_can_not_be_dumped_is_rejected_naming_channel_path_and_type() -> None:
    with pytest.raises(
        ValueRejected, match=r"channel 'c' at \[0\]: a value of type Refusing can't be"
    ) as caught:
        normalise([Refusing()], "c")
    assert "no way" in str(caught.value.__cause__)


def test_a_rejected_update_of_a_node_names_node_channel_and_type() -> None:
    runner = one_node({"c": Channel(None)}, returning({"c": {"deep": [object()]}}))
    with pytest.raises(NodeFailed, match=r"'n1'.*channel 'c' at deep\[0\].*object"):
        runner.invoke()


def test_a_rejected_input_names_its_channel() -> None:
    with pytest.raises(ValueRejected, match="channel 'c'"):
        one_node({"c": Channel(None)}, returning(None)).invoke({"c": {1, 2}})


def test_what_went_wrong_is_kept_with_its_lone_surrogates_written_out() -> None:
    def fail(state: Any, config: Any) -> None:
        raise RuntimeError("can't read caf\udce9.txt")

    runner = one_node({"c": Channel(None)}, fail).with_store(MemoryCheckpointer(), {})
    with pytest.raises(NodeFailed, match=r"can't read caf\\udce9\.txt"):
        runner.invoke(thread_id="t")
    assert runner.run_info("t").status == "failed"


@pytest.mark.parametrize("words", [{"actor": "\udcff"}, {"note": "\udcff"}], ids=["actor", "note"])
def test_a_name_or_a_note_with_a_lone_surrogate_is_refused(words: dict[str, str]) -> None:
    runner = one_node({"c": Channel(0)}, returning({"c": 1})).with_store(MemoryCheckpointer(), {})
    runner.invoke(thread_id="t")
    with pytest.raises(UsageError, match="surrogate pair"):
        runner.update_state("t", {"c": 2}, **words)
    assert runner.get_state("t")["c"] == 1


def test_a_rejected_default_names_its_channel() -> None:
    with pytest.raises(GraphInvalid, match="channel 'c'"):
        one_node({"c": Channel(default={1, 2})}, returning(None))


class TestDepth:
    def test_at_most_64_levels(self) -> None:
        assert normalise(nested(MAX_DEPTH), "c") == nested(64)

    def test_65_levels_are_rejected(self) -> None:
        with pytest.raises(ValueRejected, match=r"channel 'c'.*deeper than 64"):
            normalise(nested(65), "c")

    @pytest.mark.parametrize("reducer", ["append", "last_n(2)", "set_union"])
    def test_what_becomes_an_element_is_one_level_deeper_in_its_channel(self, reducer: str) -> None:
        leaf = {"a": nested(62)}
        runner = one_node({"c": Channel([], reducer=reducer)}, returning({"c": leaf}))
        assert runner.invoke()["c"] == [leaf]
        runner = one_node({"c": Channel([], reducer=reducer)}, returning({"c": {"a": nested(63)}}))
        with pytest.raises(NodeFailed, match="deeper than 64"):
            runner.invoke()

    @pytest.mark.parametrize("reducer", ["extend", "set_union"])
    def test_a_list_of_elements_is_as_deep_as_its_channel(self, reducer: str) -> None:
        assert one_node({"c": Channel([], reducer=reducer)}, returning({"c": nested(64)})).invoke()["c"]

    def test_dicts_count_as_levels(self) -> None:
        with pytest.raises(ValueRejected, match="deeper than 64"):
            normalise(nested(63, {"a": {"b": 1}}), "c")

    def test_a_list_in_itself_is_rejected_as_too_deep(self) -> None:
        endless: list[Any] = []
        endless.append(endless)
        with pytest.raises(ValueRejected, match="deeper than 64"):
            normalise(endless, "c")


class TestSize:
    """One update may be at most 1 MiB canonical by default."""

    MIB = 1 << 20

    @pytest.mark.parametrize(
        "value",
        [
            "x" * ((1 << 20) - 2),
            "é" * ((1 << 19) - 1),
            "\x01" * (((1 << 20) - 2) // 6),
            ["x" * ((1 << 20) - 4)],
        ],
        ids=["ascii text", "two-byte text", "escaped text", "text in a list"],
    )
    def test_an_update_of_just_under_a_mebibyte_passes(self, value: Any) -> None:
        assert normalise(value, "c") == value
        assert self.MIB - 6 < len(canonical(value)) <= self.MIB

    @pytest.mark.parametrize(
        "value",
        [
            "x" * ((1 << 20) - 1),
            "é" * (1 << 19),
            "\x01" * ((1 << 20) // 6 + 1),
            [7] * (1 << 19),
            {"k" * (1 << 20): 1},
        ],
        ids=["ascii text", "two-byte text", "escaped text", "many numbers", "a long key"],
    )
    def test_a_larger_one_is_rejected_with_the_advice_to_keep_a_reference(self, value: Any) -> None:
        with pytest.raises(ValueRejected, match="channel 'c'") as caught:
            normalise(value, "c")
        assert "1,048,576" in caught.value.message
        assert "elsewhere" in caught.value.hint
        assert "reference" in caught.value.hint

    def test_the_limit_is_of_an_update_not_of_the_value_it_makes(self) -> None:
        channels = {
            "log": Channel([], reducer="append"),
            "own": Channel("", reducer=lambda old, new: old + new),
        }
        half = "x" * 600_000
        result = one_node(channels, returning({"log": half, "own": half})).invoke({"log": half, "own": half})
        assert result["log"] == [half, half]
        assert result["own"] == half + half

    def test_the_limit_is_a_setting_of_compile(self) -> None:
        from tests.engine.building import chain

        graph = chain({"c": Channel("")}, returning({"c": "x" * 99}))
        assert graph.compile(max_update_bytes=101).invoke()["c"] == "x" * 99
        with pytest.raises(NodeFailed, match="101 bytes is over the limit of 100"):
            graph.compile(max_update_bytes=100).invoke()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@given(json_values)
def test_json_goes_in_as_it_is(value: Any) -> None:
    kept = normalise(value, "c")
    assert json.dumps(kept) == json.dumps(value)
    assert canonical(normalise(kept, "c")) == canonical(kept)
