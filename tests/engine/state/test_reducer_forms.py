"""By_type, custom functions, and reducers written as text."""

from __future__ import annotations

import hashlib
import inspect
import operator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hitl_tui import Channel, GraphInvalid, ReducerError, ValueRejected, append, last_n
from hitl_tui.engine.state import reducers
from hitl_tui.engine.state.reducers import as_reducer, parse_reducer
from hitl_tui.engine.state.values import normalise
from tests.engine.building import bound
from tests.support.spec import spec

pytestmark = spec("4")


def highest(old: Any, new: Any) -> Any:
    return new if old is None or new > old else old


class Rules:
    @staticmethod
    def joined(old: Any, new: Any) -> Any:
        return f"{old or ''}{new}"


def reduced(reducer: Any, *updates: Any) -> Any:
    channel = bound(Channel(None, reducer=reducer))
    value = None
    for update in updates:
        value = channel.reduce(value, channel.accept(update))
    return value


NAMES = ["overwrite", "append", "extend", "merge", "merge_deep", "set_union", "sum", "min", "max"]


class TestText:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_name_stands_for_the_function_of_that_name(self, name: str) -> None:
        assert parse_reducer(name) is getattr(reducers, name)()

    @pytest.mark.parametrize("name", [*NAMES, "last_n(8)", 'by_type({"a":"append","b":"last_n(2)"})'])
    def test_a_reducer_is_written_as_it_is_read(self, name: str) -> None:
        assert parse_reducer(name).text == name
        assert parse_reducer(parse_reducer(name).text) == parse_reducer(name)

    @pytest.mark.parametrize("text", [" append ", "append()", "append( )", "last_n( 8 )", " last_n (8)"])
    def test_spaces_and_empty_brackets_do_not_matter(self, text: str) -> None:
        assert parse_reducer(text).text in ("append", "last_n(8)")

    def test_last_is_another_name_for_overwrite(self) -> None:
        assert parse_reducer("last").text == "overwrite"

    def test_append_and_last_n_are_exported_at_the_top(self) -> None:
        assert append() == reducers.append()
        assert last_n(3) == parse_reducer("last_n(3)")

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "appendd",
            "Append",
            "last_n",
            "last_n()",
            "last_n(x)",
            "last_n(1.5)",
            "append(3)",
            "a b",
            "()",
            "sum(1)",
        ],
    )
    def test_an_unknown_one_is_refused_with_the_known_ones(self, text: str) -> None:
        with pytest.raises(GraphInvalid) as caught:
            Channel(reducer=text)
        assert repr(text) in caught.value.message
        assert all(name in caught.value.hint for name in [*NAMES, "last_n(N)", "by_type", "module:function"])

    @pytest.mark.parametrize("given", [3, ["append"], object()], ids=["int", "list", "object"])
    def test_an_invalid_reducer_is_refused(self, given: Any) -> None:
        with pytest.raises(GraphInvalid, match="a reducer can't be"):
            Channel(reducer=given)


class TestLastN:
    @pytest.mark.parametrize("n", [0, -1, True, 1.5, "3", None], ids=repr)
    def test_less_than_1_is_an_error_when_built(self, n: Any) -> None:
        with pytest.raises(GraphInvalid, match="at least 1"):
            last_n(n)

    @pytest.mark.parametrize("text", ["last_n(0)", "last_n(-2)"])
    def test_last_n_below_1_is_refused_as_text_too(self, text: str) -> None:
        with pytest.raises(GraphInvalid, match="at least 1"):
            Channel(reducer=text)


BY_TYPE = reducers.by_type({"submit_draft": "overwrite", "note": "append", "facts": "merge", "points": "sum"})


class TestByType:
    @pytest.mark.parametrize(
        ("updates", "value"),
        [
            ([{"type": "submit_draft", "content": "v1"}], "v1"),
            ([{"type": "submit_draft", "content": None}], None),
            ([{"type": "submit_draft", "content": "v1", "by": "ann"}], {"content": "v1", "by": "ann"}),
            ([{"type": "submit_draft", "by": "ann"}], {"by": "ann"}),
            ([{"type": "submit_draft"}], {}),
            ([{"type": "note", "content": "a"}, {"type": "note", "content": "b"}], ["a", "b"]),
            ([{"type": "note", "text": "a"}], [{"text": "a"}]),
            ([{"type": "facts", "a": 1}, {"type": "facts", "b": 2}], {"a": 1, "b": 2}),
            ([{"type": "facts", "content": {"a": 1}}], {"a": 1}),
            ([{"type": "points", "content": 2}, {"type": "points", "content": 3}], 5),
        ],
        ids=[
            "content alone where that is all there is",
            "null content",
            "the dict without type where there is more",
            "the dict without type where there is no content",
            "nothing but a type",
            "append",
            "append a dict",
            "merge",
            "merge content",
            "sum",
        ],
    )
    def test_the_reducer_of_that_type_gets_the_update(self, updates: list[Any], value: Any) -> None:
        assert reduced(BY_TYPE, *updates) == value

    @pytest.mark.parametrize(
        "update",
        [
            {"type": "other"},
            {"content": 1},
            {"type": 3},
            {"type": ["note"]},
            {"type": None},
            "note",
            None,
            [],
        ],
        ids=repr,
    )
    def test_an_unknown_type_is_refused_with_the_known_ones(self, update: Any) -> None:
        with pytest.raises(ReducerError) as caught:
            reduced(BY_TYPE, update)
        assert "channel 'c'" in caught.value.message
        assert caught.value.hint == "known types: submit_draft, note, facts, points"
        assert ("not one without" in caught.value.message) == (update == {"content": 1})

    def test_an_error_of_the_inner_reducer_names_the_channel(self) -> None:
        with pytest.raises(ReducerError, match=r"channel 'c'.*takes a number"):
            reduced(BY_TYPE, {"type": "points", "content": "x"})

    def test_takes_functions_too(self) -> None:
        assert reduced(reducers.by_type({"top": highest}), {"type": "top", "content": 3}) == 3

    def test_needs_a_type(self) -> None:
        with pytest.raises(GraphInvalid, match="at least one type"):
            reducers.by_type({})

    @pytest.mark.parametrize(
        "text", ["by_type", "by_type()", "by_type({)", 'by_type(["a"])', 'by_type({"a":"zap"})']
    )
    def test_bad_text_is_refused(self, text: str) -> None:
        with pytest.raises(GraphInvalid):
            Channel(reducer=text)


class Later:
    """Async, as no reducer may be."""

    async def __call__(self, old: Any, new: Any) -> Any:
        return new

    @staticmethod
    async def reduce(old: Any, new: Any) -> Any:
        return new


class TestCustom:
    def test_a_function_makes_the_next_value(self) -> None:
        assert reduced(highest, 2, 5, 3) == 5

    def test_the_previous_value_is_null_where_there_is_none(self) -> None:
        assert reduced(lambda old, new: [old, new], 1) == [None, 1]

    def test_its_result_is_converted_into_the_value_domain(self) -> None:
        assert reduced(lambda old, new: {"path": Path("a"), "pair": (1, 2)}, 1) == {
            "path": "a",
            "pair": [1, 2],
        }

    @pytest.mark.parametrize(
        "result", [{1}, object(), float("nan"), b"x"], ids=["set", "object", "nan", "bytes"]
    )
    def test_a_result_outside_the_value_domain_is_rejected(self, result: Any) -> None:
        with pytest.raises(ValueRejected, match="channel 'c'"):
            reduced(lambda old, new: result, 1)

    @pytest.mark.parametrize(
        ("function", "why"),
        [
            (lambda old: old, r"called as \(old, new\): too many"),
            (lambda old, new, more: old, "missing a required argument: 'more'"),
            (lambda *, old, new: old, "called as"),
            (Later.reduce, "reduce is async"),
            (Later(), "Later is async"),
        ],
        ids=["one argument", "three", "none by place", "an async function", "an async object"],
    )
    def test_one_that_could_take_no_update_is_refused_when_built(self, function: Any, why: str) -> None:
        with pytest.raises(GraphInvalid, match=why) as refused:
            Channel(reducer=function)
        assert refused.value.hint == "a reducer is a plain function (old, new) -> value"

    @pytest.mark.parametrize(
        "function",
        [max, operator.or_, partial(lambda k, old, new: old | new, 1), lambda old, new, more=1: old | new],
        ids=["one written in C", "an operator", "a partial one", "a default more"],
    )
    def test_whatever_can_be_called_with_both_is_taken(self, function: Any) -> None:
        assert bound(Channel(1, reducer=function)).reduce(1, 1) == 1

    def test_what_it_raises_names_channel_reducer_and_error(self) -> None:
        with pytest.raises(
            ReducerError, match=r"'c'.*TestCustom.*raised ZeroDivisionError: division by zero"
        ):
            reduced(lambda old, new: new / 0, 1)

    @pytest.mark.parametrize(
        "mutate",
        [
            lambda old, new: old.append(new),
            lambda old, new: new["a"].append(1),
            lambda old, new: new.update(x=1),
        ],
        ids=["old", "inside new", "new"],
    )
    def test_it_cannot_change_what_it_is_given(self, mutate: Any) -> None:
        channel = bound(Channel([], reducer=mutate))
        with pytest.raises(ReducerError, match="read-only"):
            channel.reduce(channel.default, channel.accept({"a": []}))

    @spec("14")
    def test_its_source_hash_is_of_its_source(self) -> None:
        source = inspect.getsource(highest).encode()
        assert as_reducer(highest).source_hash == hashlib.sha256(source).hexdigest()

    def test_another_source_is_another_hash(self) -> None:
        def lowest(old: Any, new: Any) -> Any:
            return new if old is None or new < old else old

        assert as_reducer(lowest).source_hash != as_reducer(highest).source_hash

    def test_a_built_in_one_has_no_source_hash(self) -> None:
        assert as_reducer("append").source_hash == ""

    def test_a_function_without_source_has_a_hash_nevertheless(self) -> None:
        assert as_reducer(max).source_hash


class TestModuleFunction:
    def test_is_imported(self) -> None:
        assert reduced(f"{__name__}:highest", 2, 5, 3) == 5

    def test_is_written_as_it_was_given(self) -> None:
        assert parse_reducer(f"{__name__}:highest").text == f"{__name__}:highest"

    def test_may_name_a_function_inside_a_class(self) -> None:
        assert reduced(f"{__name__}:Rules.joined", "a", "b") == "ab"

    def test_has_the_source_hash_of_its_function(self) -> None:
        assert parse_reducer(f"{__name__}:highest").source_hash == as_reducer(highest).source_hash

    @pytest.mark.parametrize(
        ("text", "match"),
        [
            ("no_such_module_here:f", "can't be imported.*no_such_module_here"),
            ("math:no_such_function", "can't be imported.*no_such_function"),
            ("math:pi", "is not a function"),
            ("math:pi.real", "is not a function"),
        ],
    )
    def test_what_cannot_be_imported_is_refused_when_built(self, text: str, match: str) -> None:
        with pytest.raises(GraphInvalid, match=match):
            Channel(reducer=text)


def test_the_function_given_and_the_value_it_is_given_are_frozen_alike() -> None:
    seen: list[Any] = []

    def keep(old: Any, new: Any) -> Any:
        seen.append((old, new))
        return new

    reduced(keep, {"a": [1]}, {"a": [2]})
    assert seen[1][0] == normalise({"a": [1]}, "c")
    with pytest.raises(TypeError, match="read-only"):
        seen[1][0]["a"].append(1)


class TestTried:
    def test_a_reducer_is_called_as_the_channel_calls_it(self) -> None:
        assert append()(["old"], "new") == ["old", "new"]
        assert last_n(2)([1, 2], 3) == [2, 3]
        assert reducers.sum()(None, 2) == 2
        assert as_reducer(highest)(3, 1) == 3

    def test_a_tried_reducer_reports_errors_as_in_a_run(self) -> None:
        with pytest.raises(ReducerError, match="append: needs a list to add to, the channel holds text"):
            append()("old", "new")
        with pytest.raises(ValueRejected, match="the update: a value of type object is not JSON"):
            append()([], object())
